package labtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Authority is a CA of a test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // its certificate
}

var serial = int64(time.Now().UnixNano())

// NewAuthority makes a CA that is good for a day.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.key = newKey(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.PEM = a.sign(template, template, &a.key.PublicKey)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (a *Authority) sign(template, parent *x509.Certificate, pub *ecdsa.PublicKey) (*x509.Certificate, []byte) {
	a.t.Helper()
	serial++
	template.SerialNumber = big.NewInt(serial)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Issue writes a new certificate with its key into a directory, as the files of the
// daemon's configuration, and gives its fingerprint. Each file is replaced at once.
func (a *Authority) Issue(dir string, addrs ...string) string {
	a.t.Helper()
	k := newKey(a.t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: addrs[0]}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, s := range addrs {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(s))
	}
	cert, text := a.sign(template, a.cert, &k.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"device.pem": text, "device.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "ca.pem": a.PEM,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", b, 0o600); err != nil {
			a.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			a.t.Fatal(err)
		}
	}
	sum := sha256.Sum256(cert.Raw)
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}
