// Package pki issues the certificates of tests, benches and simulations: one CA, and devices of it.
// They are good at any time, also in a bubble of testing/synctest.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/link"
)

// CA issues the certificates of one run.
type CA struct {
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey // of the CA
	own    *ecdsa.PrivateKey // of all clients
	roots  *x509.CertPool
	serial atomic.Int64
}

// New makes a CA.
func New() (*CA, error) {
	p := &CA{roots: x509.NewCertPool()}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if p.own, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	p.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "iNOF test CA"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, p.ca, p.ca, p.key.Public(), p.key)
	if err != nil {
		return nil, err
	}
	if p.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.roots.AddCert(p.ca)
	return p, nil
}

func (p *CA) issue(key *ecdsa.PrivateKey, addrs ...netip.Addr) ([]byte, error) {
	c := &x509.Certificate{SerialNumber: big.NewInt(1 + p.serial.Add(1)), Subject: pkix.Name{CommonName: addrs[0].String()},
		NotBefore: p.ca.NotBefore, NotAfter: p.ca.NotAfter}
	for _, a := range addrs {
		c.IPAddresses = append(c.IPAddresses, net.IP(a.AsSlice()))
	}
	return x509.CreateCertificate(rand.Reader, c, p.ca, key.Public(), p.key)
}

// Credentials are those of a device, in memory.
func (p *CA) Credentials(dev netip.Addr) (*link.Credentials, error) {
	der, err := p.issue(p.own, dev)
	if err != nil {
		return nil, err
	}
	return &link.Credentials{Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: p.own}, Roots: p.roots}, nil
}

// Write puts the files of a device into a directory: cert.pem, key.pem, ca.pem; and ca-key.pem,
// for Read.
func (p *CA) Write(dir string, addrs ...netip.Addr) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := p.issue(key, addrs...)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	issuer, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{{"cert.pem", "CERTIFICATE", cert}, {"key.pem", "PRIVATE KEY", der}, {"ca.pem", "CERTIFICATE", p.ca.Raw}, {"ca-key.pem", "PRIVATE KEY", issuer}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the CA whose files another process has written; it issues other serial numbers.
func Read(dir string) (*CA, error) {
	p := &CA{roots: x509.NewCertPool()}
	p.serial.Store(1 << 32)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		return nil, err
	}
	p.ca, p.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	p.roots.AddCert(p.ca)
	p.own, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return p, err
}
