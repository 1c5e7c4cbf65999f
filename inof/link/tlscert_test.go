package link

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// testCA signs certificates of devices.
type testCA struct {
	t    testing.TB
	cert *x509.Certificate
	key  crypto.Signer
}

var serial int64 // tests of this package that make certificates do not run in parallel

func newCA(t testing.TB, name string) *testCA {
	t.Helper()
	ca := &testCA{t: t, key: newKey(t, elliptic.P256())}
	serial++
	ca.cert = ca.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
	}, nil, ca.key.Public())
	return ca
}

func newKey(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (ca *testCA) sign(tmpl, parent *x509.Certificate, pub any) *x509.Certificate {
	ca.t.Helper()
	if parent == nil {
		parent = tmpl
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, pub, ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		ca.t.Fatal(err)
	}
	return c
}

func (ca *testCA) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// issue makes credentials of a device, valid for a year; change may alter the
// certificate and the key before.
func (ca *testCA) issue(id netip.Addr, change func(*x509.Certificate, *crypto.Signer)) *Credentials {
	ca.t.Helper()
	key := newKey(ca.t, elliptic.P256())
	serial++
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "device " + id.String()}, IPAddresses: []net.IP{id.AsSlice()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(tmpl, &key)
	}
	leaf := ca.sign(tmpl, ca.cert, key.Public())
	return &Credentials{Certificate: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, Roots: ca.pool()}
}

// with gives a copy that trusts another CA.
func (c *Credentials) with(roots *testCA) *Credentials {
	n := *c
	n.Roots = roots.pool()
	return &n
}

func (c *Credentials) allowing(t testing.TB, entries ...string) *Credentials {
	t.Helper()
	n := *c
	var err error
	if n.Allow, err = ParseAllowList(entries); err != nil {
		t.Fatal(err)
	}
	return &n
}

func selfSigned(t testing.TB, id netip.Addr, trust *testCA) *Credentials {
	ca := &testCA{t: t, key: newKey(t, elliptic.P256())}
	serial++
	leaf := ca.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "self"}, IPAddresses: []net.IP{id.AsSlice()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, nil, ca.key.Public())
	return &Credentials{Certificate: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: ca.key, Leaf: leaf}, Roots: trust.pool()}
}

func shortRSA(t testing.TB) func(*x509.Certificate, *crypto.Signer) {
	return func(_ *x509.Certificate, key *crypto.Signer) {
		k, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		*key = k
	}
}

func tlsAuth(c *Credentials) *password {
	return &password{a: Auth{Mode: wire.AuthTLS, TLS: NewCredentialStore(c, nil)}}
}
