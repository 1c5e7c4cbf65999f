package config

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/openinof/inof/internal/setting"
)

// Limits of the files of mode tls.
const (
	maxPEM      = 256 << 10           // bytes of a certificate, key or CA file
	ExpirySoon  = 30 * 24 * time.Hour // certificates that expire within this are warned of
	minRSABits  = 2048
	minECBits   = 256
	allowedPEM  = "a PEM file"
	allowedCert = "a PEM certificate, own first, for the key in key-file"
)

// TLS is what session.auth: tls needs; zero in other modes.
type TLS struct {
	CertificateFile string
	KeyFile         string
	CAFile          string
	Allow           []string // device ids and SHA-256 fingerprints in lower-case hexadecimal; empty: any that the CA signed
	Keys            *TLSKeys // nil after Parse, which reads no files
}

// Files lists the three files.
func (t TLS) Files() []string { return []string{t.CertificateFile, t.KeyFile, t.CAFile} }

// TLSKeys is what the files of mode tls hold. It does not change.
type TLSKeys struct {
	certificate tls.Certificate
	roots       *x509.CertPool
	cas         []*x509.Certificate
	notes       []string
	digest      string
}

// String hides the key.
func (k *TLSKeys) String() string { return redacted }

// Digest tells apart what two sets of files hold; empty for none.
func (k *TLSKeys) Digest() string {
	if k == nil {
		return ""
	}
	return k.digest
}

// Certificate is the own chain with its key.
func (k *TLSKeys) Certificate() tls.Certificate { return k.certificate }

// Roots are the CAs of the ca-file.
func (k *TLSKeys) Roots() *x509.CertPool { return k.roots }

// Left is the time that a certificate has left, in whole days; on the last one in hours, and in the
// last hour in minutes, one at least.
func Left(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%d day(s)", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d hour(s)", d/time.Hour)
	}
	return fmt.Sprintf("%d minute(s)", (d+time.Minute-1)/time.Minute)
}

// Warnings says what an operator should know: certificates that expire within 30
// days or are not valid, a key that others can read.
func (k *TLSKeys) Warnings(now time.Time) []string {
	list := append([]string{}, k.notes...)
	about := func(what string, c *x509.Certificate) {
		const day = "2006-01-02"
		switch left := c.NotAfter.Sub(now); {
		case now.Before(c.NotBefore):
			list = append(list, fmt.Sprintf("%s is not valid before %s", what, c.NotBefore.UTC().Format(day)))
		case left < 0:
			list = append(list, fmt.Sprintf("%s has expired on %s: new sessions are refused", what, c.NotAfter.UTC().Format(day)))
		case left < ExpirySoon:
			list = append(list, fmt.Sprintf("%s expires on %s, in %s", what, c.NotAfter.UTC().Format(day), Left(left)))
		}
	}
	about("the certificate of this device", k.certificate.Leaf)
	for _, c := range k.cas {
		about(fmt.Sprintf("the CA %+q", c.Subject.CommonName), c)
	}
	return list
}

// KeyError is what is wrong with a file of mode tls.
type KeyError struct {
	Key     string // below session: certificate-file, key-file or ca-file
	File    string
	What    string
	Allowed string
}

// Error gives one line.
func (e *KeyError) Error() string {
	return fmt.Sprintf("session.%s: %s: %s", e.Key, e.File, e.What)
}

// LoadTLS reads the files and checks that they are good for a device and match. The
// error joins a *KeyError for each thing that is wrong.
func LoadTLS(t TLS, device netip.Addr) (*TLSKeys, error) {
	var errs []error
	read := func(key, file string) []byte {
		data, err := readLimited(file, maxPEM)
		if err != nil {
			errs = append(errs, &KeyError{key, file, err.Error(), allowedPEM})
		}
		return data
	}
	cert, key, ca := read("certificate-file", t.CertificateFile), read("key-file", t.KeyFile), read("ca-file", t.CAFile)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	k := &TLSKeys{roots: x509.NewCertPool()}
	sum := sha256.Sum256(append(append(append([]byte{}, cert...), 0), ca...))
	k.digest = hex.EncodeToString(sum[:8])
	if err := k.addCAs(ca, t.CAFile); err != nil {
		errs = append(errs, err)
	}
	if err := k.addOwn(cert, key, t, device); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	k.check(t)
	return k, nil
}

func (k *TLSKeys) addCAs(data []byte, file string) error {
	wrong := func(what string) error {
		return &KeyError{"ca-file", file, what, "PEM certificates of CAs"}
	}
	for len(data) > 0 {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return wrong(fmt.Sprintf("has a PEM block %q", b.Type))
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return wrong(err.Error())
		}
		if !c.IsCA {
			return wrong(fmt.Sprintf("the certificate %+q is not one of a CA (basicConstraints)", c.Subject.CommonName))
		}
		k.roots.AddCert(c)
		k.cas = append(k.cas, c)
	}
	if len(k.cas) == 0 {
		return wrong("holds no certificate")
	}
	return nil
}

func (k *TLSKeys) addOwn(cert, key []byte, t TLS, device netip.Addr) error {
	var err error
	if k.certificate, err = tls.X509KeyPair(cert, key); err != nil {
		// The text of package tls names what is wrong, never the key.
		at, file := "certificate-file", t.CertificateFile
		if strings.Contains(err.Error(), "key") && !strings.Contains(err.Error(), "does not match") {
			at, file = "key-file", t.KeyFile
		}
		return &KeyError{at, file, strings.TrimPrefix(err.Error(), "tls: "), allowedCert}
	}
	leaf := k.certificate.Leaf
	if what := weakKey(leaf); what != "" {
		return &KeyError{"certificate-file", t.CertificateFile, what, "RSA of 2048 bits or more, an elliptic curve of 256 bits or more, Ed25519"}
	}
	var ids []string
	for _, ip := range leaf.IPAddresses {
		a, ok := netip.AddrFromSlice(ip)
		if ok && a.Unmap() == device {
			return nil
		}
		ids = append(ids, ip.String())
	}
	return &KeyError{"certificate-file", t.CertificateFile, fmt.Sprintf("is not for this device: its subjectAltName has the IP addresses [%s], not the device id %s",
		strings.Join(ids, ", "), device), "a certificate with subjectAltName IP:" + device.String()}
}

func weakKey(c *x509.Certificate) string {
	switch pub := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := pub.N.BitLen(); n < minRSABits {
			return fmt.Sprintf("has an RSA key of %d bits", n)
		}
	case *ecdsa.PublicKey:
		if n := pub.Curve.Params().BitSize; n < minECBits {
			return fmt.Sprintf("has an elliptic curve of %d bits", n)
		}
	}
	return ""
}

// check notes what is unwise and works, or may work with other peers.
func (k *TLSKeys) check(t TLS) {
	if st, err := os.Stat(t.KeyFile); err == nil && st.Mode().Perm()&0o077 != 0 {
		k.notes = append(k.notes, fmt.Sprintf("session.key-file %s can be read by others than its owner (mode %04o): chmod 600", t.KeyFile, st.Mode().Perm()))
	}
	leaf := k.certificate.Leaf
	inter := x509.NewCertPool()
	for _, der := range k.certificate.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			inter.AddCert(c)
		}
	}
	// Expiry is told apart, and must not hide that the chain is good.
	at := leaf.NotAfter.Add(-time.Second)
	for _, c := range k.cas {
		if c.NotAfter.Before(at) {
			at = c.NotAfter.Add(-time.Second)
		}
	}
	opts := x509.VerifyOptions{Roots: k.roots, Intermediates: inter, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := leaf.Verify(opts); err != nil {
		k.notes = append(k.notes, fmt.Sprintf("session.certificate-file %s: the CAs of session.ca-file do not vouch for it: %v", t.CertificateFile, err))
	}
}

const allowedPeers = "a device id, or the SHA-256 fingerprint of a certificate (64 hexadecimal digits, with or without colons)"

// tlsItems are the settings of mode tls.
func (c *Config) tlsItems() []item {
	t := &c.Session.TLS
	return append(values(
		setting.Text("certificate-file", &t.CertificateFile, "", allowedPath,
			"With `tls`: the device's certificate (PEM), and after it those of CAs between it and the `ca-file`. The device id must be among the IP "+
				"addresses of its subjectAltName; on a reflector also the address that clients dial, where that is another.", checkPath),
		setting.Text("key-file", &t.KeyFile, "", allowedPath,
			"With `tls`: the private key of that certificate (PEM, not encrypted), best with mode 0600; others are warned of.", checkPath),
		setting.Text("ca-file", &t.CAFile, "", allowedPath,
			"With `tls`: the CAs (PEM) whose certificates are taken. Two of them while one replaces the other.", checkPath),
	), words("tls-allow", allowedPeers,
		"Only peers on the list are taken, at both ends of a session. Taking an entry out and reloading ends the sessions that stood on it: "+
			"this is how a certificate is revoked. Empty: any that a CA of `ca-file` signed.", joined(&t.Allow), func(v string) string {
			if _, err := netip.ParseAddr(v); err == nil {
				a, what := parseAddr(v, c.Device.AllowLoopback)
				t.Allow = append(t.Allow, a.String())
				return what
			}
			digits := strings.ToLower(strings.ReplaceAll(v, ":", ""))
			if b, err := hex.DecodeString(digits); err != nil || len(b) != sha256.Size {
				return "is neither an IP address nor a SHA-256 fingerprint"
			}
			t.Allow = append(t.Allow, digits)
			return ""
		}).documented("", "a list of device ids and SHA-256 fingerprints of certificates (64 hexadecimal digits, with or without colons)"),
		item{Setting: setting.Setting{Key: "certificate", Text: func() string { return t.Keys.Digest() }}, derived: true})
}

// checkTLS sees that the files are given where they are needed, and nowhere else.
func (c *Config) checkTLS(s *section) {
	if c.Session.Auth != AuthTLS {
		for _, key := range []string{"certificate-file", "key-file", "ca-file", "tls-allow"} {
			if s.has(key) {
				s.problem(key, "is given, but session.auth is "+string(c.Session.Auth), "auth: tls, or leave it out")
			}
		}
		c.Session.TLS = TLS{}
		return
	}
	for _, key := range []string{"certificate-file", "key-file", "ca-file"} {
		if !s.has(key) && !c.Device.Roles.Standalone() {
			s.problem(key, "is missing: auth: tls needs certificate-file, key-file and ca-file", allowedPath)
		}
	}
}

// loadTLS reads the files of a configuration that was parsed; what is wrong with
// them goes to the lines that name them.
func loadTLS(c *Config, p *parser, path string, data []byte) {
	t := &c.Session.TLS
	if c.Session.Auth != AuthTLS || t.CertificateFile == "" || t.KeyFile == "" || t.CAFile == "" || !c.Device.ID.IsValid() {
		return
	}
	keys, err := LoadTLS(*t, c.Device.ID)
	t.Keys = keys
	if err == nil {
		return
	}
	wrong := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		wrong = many.Unwrap()
	}
	for _, err := range wrong {
		var ke *KeyError
		if !errors.As(err, &ke) {
			continue
		}
		pr := Problem{File: path, Key: "session." + ke.Key, Value: ke.File, What: ke.What, Allowed: ke.Allowed}
		if n := find(p.document(data), "session", ke.Key); n != nil {
			pr.Line, pr.Column = n.Line, n.Column
		}
		p.add(pr)
	}
}
