package fencing

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/openinof/inof/hostagent"
)

// Caller is a host that has proven who it is.
type Caller struct {
	Name  string
	Addrs []netip.Addr // the host's own, proven
}

// protocolName is agreed on in the handshake (ALPN).
const protocolName = "snsd-fence/1"

// Credentials prove who the two ends are: by certificates of a common authority, or by a secret that
// a host shares with the arrays. Files are read anew for each handshake, so that a renewed one counts.
type Credentials struct{ cfg hostagent.FenceServiceConfig }

// NewCredentials checks that what the configuration names can be read.
func NewCredentials(cfg hostagent.FenceServiceConfig) (Credentials, error) {
	c := Credentials{cfg}
	var errs []error
	if cfg.Certificate != "" {
		_, _, err := c.certificates()
		errs = append(errs, err)
	}
	if cfg.KeyFile != "" {
		_, err := readSecret(cfg.KeyFile)
		errs = append(errs, err)
	}
	for _, h := range cfg.Hosts {
		_, err := readSecret(h.KeyFile)
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

func base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: []string{protocolName}}
}

// certificates reads the own certificate and the authority's.
func (c Credentials) certificates() (tls.Certificate, *x509.CertPool, error) {
	own, err := tls.LoadX509KeyPair(c.cfg.Certificate, c.cfg.Key)
	if err != nil {
		return own, nil, fmt.Errorf("fence-service.certificate %s, key %s: %w", c.cfg.Certificate, c.cfg.Key, err)
	}
	pem, err := os.ReadFile(c.cfg.CA)
	if err != nil {
		return own, nil, fmt.Errorf("fence-service.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return own, nil, fmt.Errorf("fence-service.ca %s: no certificate in PEM", c.cfg.CA)
	}
	return own, pool, nil
}

// server is the array's side of the handshake.
func (c Credentials) server() *tls.Config {
	cfg := base()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := base()
		if c.cfg.Certificate != "" {
			own, pool, err := c.certificates()
			if err != nil {
				return nil, err
			}
			cfg.Certificates, cfg.ClientCAs, cfg.ClientAuth = []tls.Certificate{own}, pool, tls.RequireAndVerifyClientCert
			return cfg, nil
		}
		for _, h := range c.cfg.Hosts {
			k, err := readSecret(h.KeyFile)
			if err != nil || k.name() != hello.ServerName {
				continue
			}
			own, err := selfSigned(k.array)
			if err != nil {
				return nil, err
			}
			cfg.Certificates, cfg.ClientAuth, cfg.VerifyConnection = []tls.Certificate{own}, tls.RequireAnyClientCert, pinned(k.host)
			return cfg, nil
		}
		return nil, errors.New("fence-service.hosts has no such key")
	}
	return cfg
}

// caller returns who is at the other end of a connection whose handshake is done.
func (c Credentials) caller(state tls.ConnectionState) (Caller, error) {
	leaf := state.PeerCertificates[0]
	if c.cfg.Certificate != "" {
		w := Caller{Name: leaf.Subject.CommonName}
		for _, ip := range leaf.IPAddresses {
			if a, ok := netip.AddrFromSlice(ip); ok {
				w.Addrs = append(w.Addrs, a.Unmap())
			}
		}
		if len(w.Addrs) == 0 {
			return w, fmt.Errorf("the certificate of %q names no IP address (subjectAltName)", w.Name)
		}
		return w, nil
	}
	for _, h := range c.cfg.Hosts {
		if k, err := readSecret(h.KeyFile); err == nil && k.name() == state.ServerName {
			return Caller{Name: h.KeyFile, Addrs: h.Addresses}, nil
		}
	}
	return Caller{}, errors.New("fence-service.hosts has no such key now")
}

// hosts lists the addresses of each host that the configuration names.
func (c Credentials) hosts() (list [][]netip.Addr) {
	for _, h := range c.cfg.Hosts {
		list = append(list, h.Addresses)
	}
	return list
}

// client is the host's side of the handshake with the agent at an address of an array.
func (c Credentials) client(array netip.Addr) (*tls.Config, error) {
	cfg := base()
	if c.cfg.Certificate != "" {
		own, pool, err := c.certificates()
		cfg.Certificates, cfg.RootCAs, cfg.ServerName = []tls.Certificate{own}, pool, array.String()
		return cfg, err
	}
	k, err := readSecret(c.cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	own, err := selfSigned(k.host)
	// The key is pinned: it says more than a name would.
	cfg.Certificates, cfg.ServerName, cfg.InsecureSkipVerify, cfg.VerifyConnection = []tls.Certificate{own}, k.name(), true, pinned(k.array)
	return cfg, err
}

// pair are the keys of both ends, from one secret.
type pair struct{ host, array ed25519.PrivateKey }

// Limits of a secret, in bytes without the blanks around it.
const minSecret, maxSecret = 16, 4096

// readSecret derives the keys from the file of a host's secret.
func readSecret(file string) (p pair, err error) {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return p, fmt.Errorf("key-file: %w", err)
	case !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0:
		return p, fmt.Errorf("key-file %s: mode %v: want a file that only its owner can read (chmod 600)", file, st.Mode())
	case st.Size() > maxSecret:
		return p, fmt.Errorf("key-file %s: %d bytes: want %d..%d", file, st.Size(), minSecret, maxSecret)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return p, fmt.Errorf("key-file: %w", err)
	}
	secret := trim(b)
	if len(secret) < minSecret {
		return p, fmt.Errorf("key-file %s: %d bytes: want %d..%d (head -c 32 /dev/urandom | base64)", file, len(secret), minSecret, maxSecret)
	}
	for _, k := range []struct {
		to   *ed25519.PrivateKey
		info string
	}{{&p.host, "snsd fence host 1"}, {&p.array, "snsd fence array 1"}} {
		seed, err := hkdf.Key(sha256.New, secret, nil, k.info, ed25519.SeedSize)
		if err != nil {
			return p, err
		}
		*k.to = ed25519.NewKeyFromSeed(seed)
	}
	return p, nil
}

func trim(b []byte) []byte {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}

// name is what a host calls for: a digest of its public key, by which the array finds the secret.
func (p pair) name() string {
	sum := sha256.Sum256(slices.Concat([]byte("snsd fence name 1"), public(p.host)))
	return hex.EncodeToString(sum[:16]) + ".snsd"
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// pinned accepts the certificate of one key only, whatever else it says.
func pinned(k ed25519.PrivateKey) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !public(k).Equal(s.PeerCertificates[0].PublicKey) {
			return errors.New("the other end has another key: the key-file of host and array must hold the same secret")
		}
		return nil
	}
}

// selfSigned wraps a key for TLS. Its name and times mean nothing.
func selfSigned(k ed25519.PrivateKey) (tls.Certificate, error) {
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "snsd"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public(k), k)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}, err
}
