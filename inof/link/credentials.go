package link

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/openinof/inof/inof/wire"
)

// ALPN is the application protocol that both sides of a TLS connection must name.
const ALPN = "inof/2"

// formerALPN is offered and taken beside it, only so that a peer of version 1 can be
// told within the connection why there is no session.
const formerALPN = "inof/1"

// Limits of certificates.
const (
	MinRSABits   = 2048
	MinCurveBits = 256
	maxChain     = 8 // certificates a peer may show
)

// Credentials are what one side of a session in mode tls shows, and what it
// takes. They do not change once in use; new ones replace them.
type Credentials struct {
	Certificate tls.Certificate // own chain and private key
	Roots       *x509.CertPool  // CAs whose certificates are taken
	Allow       AllowList
}

// String hides the key from logs.
func (c *Credentials) String() string { return "TLS credentials" }

// AllowList narrows the peers further than the CA does. Empty: no further.
type AllowList struct {
	prints  map[[sha256.Size]byte]bool
	devices map[netip.Addr]bool
}

// ParseAllowList reads SHA-256 fingerprints of certificates (64 hexadecimal
// digits, colons between them or not) and device ids.
func ParseAllowList(entries []string) (AllowList, error) {
	l := AllowList{prints: map[[sha256.Size]byte]bool{}, devices: map[netip.Addr]bool{}}
	for _, e := range entries {
		if a, err := netip.ParseAddr(e); err == nil {
			l.devices[a.Unmap()] = true
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(e, ":", ""))
		if err != nil || len(b) != sha256.Size {
			return l, fmt.Errorf("%q is neither a device id nor a SHA-256 fingerprint", e)
		}
		l.prints[[sha256.Size]byte(b)] = true
	}
	return l, nil
}

// holds reports whether a certificate that speaks for a device is on the list.
func (l AllowList) holds(leaf *x509.Certificate, device netip.Addr) bool {
	return len(l.prints)+len(l.devices) == 0 || l.devices[device] || l.prints[sha256.Sum256(leaf.Raw)]
}

// refuseCertificate makes the error of a certificate that is not taken. What comes
// from the certificate is the peer's text.
func refuseCertificate(leaf *x509.Certificate, format string, args ...any) error {
	where := "certificate"
	if leaf != nil {
		where = fmt.Sprintf("certificate %+q", shortText(leaf.Subject.CommonName))
	}
	return &wire.ProtocolError{Code: wire.CodeCertificate, Where: where, Detail: shortText(fmt.Sprintf(format, args...))}
}

// shortText makes a peer's text fit for a line of a log.
func shortText(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}

// Verify checks the chain a peer showed, its own certificate first, for its usage
// (client or server) at a time.
func (c *Credentials) Verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, at time.Time) error {
	if len(chain) == 0 {
		return refuseCertificate(nil, "the peer has shown none")
	}
	leaf := chain[0]
	if len(chain) > maxChain {
		return refuseCertificate(leaf, "comes with a chain of %d, at most %d", len(chain), maxChain)
	}
	switch {
	case at.Before(leaf.NotBefore):
		return refuseCertificate(leaf, "is not valid before %s; it is %s", stamp(leaf.NotBefore), stamp(at))
	case at.After(leaf.NotAfter):
		return refuseCertificate(leaf, "has expired on %s; it is %s", stamp(leaf.NotAfter), stamp(at))
	}
	opts := x509.VerifyOptions{Roots: c.Roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}, Intermediates: x509.NewCertPool()}
	for _, ca := range chain[1:] {
		opts.Intermediates.AddCert(ca)
	}
	paths, err := leaf.Verify(opts)
	if err != nil {
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok && slices.Equal(leaf.RawIssuer, leaf.RawSubject) {
			return refuseCertificate(leaf, "is self-signed, not by a CA of the ca-file: %v", err)
		}
		return refuseCertificate(leaf, "%v", err)
	}
	// Any path that is strong enough will do.
	for _, path := range paths {
		if err = weakest(path); err == nil {
			return nil
		}
	}
	return err
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

func weakest(path []*x509.Certificate) error {
	for _, c := range path {
		if why := weak(c); why != "" {
			return refuseCertificate(c, "is too weak: %s", why)
		}
	}
	return nil
}

// weak tells why a key is too short, or nothing. Weak signatures are refused by
// package x509.
func weak(c *x509.Certificate) string {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < MinRSABits {
			return fmt.Sprintf("RSA key of %d bits, want %d or more", n, MinRSABits)
		}
	case *ecdsa.PublicKey:
		if n := k.Curve.Params().BitSize; n < MinCurveBits {
			return fmt.Sprintf("elliptic curve of %d bits, want %d or more", n, MinCurveBits)
		}
	}
	return ""
}

// Permit reports whether the holder of a certificate may speak for a device: the
// device id must be among the certificate's IP addresses, and either be on the allow list.
func (c *Credentials) Permit(leaf *x509.Certificate, device netip.Addr) error {
	if !names(leaf, device) {
		return refuseCertificate(leaf, "is not for device %v; it is for %s", device, addresses(leaf))
	}
	if !c.Allow.holds(leaf, device) {
		return refuseCertificate(leaf, "of device %v, SHA-256 fingerprint %x, is not on the allow list", device, sha256.Sum256(leaf.Raw))
	}
	return nil
}

// names reports whether an address is among those of a certificate.
func names(leaf *x509.Certificate, addr netip.Addr) bool {
	for _, ip := range leaf.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok && a.Unmap() == addr.Unmap() {
			return true
		}
	}
	return false
}

func addresses(leaf *x509.Certificate) string {
	var list []string
	for _, ip := range leaf.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return "no IP address (subjectAltName)"
	}
	return strings.Join(list, ", ")
}
