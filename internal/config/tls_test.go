package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// keyFiles writes a certificate of a CA and one of a device to a directory.
type keyFiles struct {
	t    *testing.T
	dir  string
	ca   *x509.Certificate
	cakk *ecdsa.PrivateKey
}

func newKeyFiles(t *testing.T) *keyFiles {
	t.Helper()
	f := &keyFiles{t: t, dir: t.TempDir()}
	f.cakk = f.ec(elliptic.P256())
	f.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * 24 * time.Hour)}
	f.write("ca.pem", "CERTIFICATE", f.der(f.ca, f.ca, f.cakk.Public()))
	return f
}

func (f *keyFiles) ec(c elliptic.Curve) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	return k
}

func (f *keyFiles) der(c, parent *x509.Certificate, pub any) []byte {
	f.t.Helper()
	b, err := x509.CreateCertificate(rand.Reader, c, parent, pub, f.cakk)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *keyFiles) write(name, typ string, der []byte) string {
	f.t.Helper()
	p := filepath.Join(f.dir, name)
	if err := os.WriteFile(p, pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return p
}

// device writes name.pem and name.key.
func (f *keyFiles) device(name, ip string, key any, pub any, notAfter time.Time) {
	f.t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.ParseIP(ip)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter}
	f.write(name+".pem", "CERTIFICATE", f.der(c, f.ca, pub))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name+".key", "PRIVATE KEY", der)
}

func (f *keyFiles) config(cert, key, ca, more string) string {
	f.t.Helper()
	p := filepath.Join(f.dir, "c.yaml")
	text := "device: {id: 192.0.2.1, roles: [reflector]}\nzones: {file: /nonexistent/zones.yaml}\nsession:\n  auth: tls\n"
	for _, kv := range [][2]string{{"certificate-file", cert}, {"key-file", key}, {"ca-file", ca}} {
		text += fmt.Sprintf("  %s: %s\n", kv[0], filepath.Join(f.dir, kv[1]))
	}
	if err := os.WriteFile(p, []byte(text+more), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return p
}

func TestTLSFilesAreLoadedAndChecked(t *testing.T) {
	f := newKeyFiles(t)
	year := time.Now().Add(365 * 24 * time.Hour)
	good, other := f.ec(elliptic.P256()), f.ec(elliptic.P256())
	f.device("good", "192.0.2.1", good, good.Public(), year)
	f.device("other", "192.0.2.1", other, other.Public(), year)
	f.device("stranger", "192.0.2.9", good, good.Public(), year)
	f.device("expired", "192.0.2.1", good, good.Public(), time.Now().Add(-time.Hour))
	f.device("soon", "192.0.2.1", good, good.Public(), time.Now().Add(10*24*time.Hour+time.Hour))
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	f.device("weak", "192.0.2.1", weak, weak.Public(), year)
	small := f.ec(elliptic.P224())
	f.device("small", "192.0.2.1", small, small.Public(), year)
	f.write("junk", "CERTIFICATE", []byte("no DER"))
	if err := os.WriteFile(filepath.Join(f.dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := newKeyFiles(t)
	data, _ := os.ReadFile(filepath.Join(stranger.dir, "ca.pem"))
	if err := os.WriteFile(filepath.Join(f.dir, "ca2.pem"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	const line5, line6, line7 = "c.yaml:5:21: session.certificate-file", "c.yaml:6:13: session.key-file", "c.yaml:7:12: session.ca-file"
	for _, c := range []struct{ cert, key, ca, want string }{
		{"good.pem", "good.key", "ca.pem", ""},
		{"none.pem", "good.key", "ca.pem", line5},
		{"good.pem", "none.key", "ca.pem", line6},
		{"good.pem", "good.key", "none.pem", line7},
		{"good.pem", "other.key", "ca.pem", "private key does not match public key"},
		{"good.pem", "good.pem", "ca.pem", line6},
		{"junk", "good.key", "ca.pem", line5},
		{"empty", "good.key", "ca.pem", line5},
		{"good.pem", "empty", "ca.pem", line6},
		{"good.pem", "good.key", "empty", line7},
		{"good.pem", "good.key", "junk", line7},
		{"good.pem", "good.key", "good.key", `has a PEM block "PRIVATE KEY"`},
		{"good.pem", "good.key", "good.pem", `"good" is not one of a CA`},
		{"stranger.pem", "stranger.key", "ca.pem", "has the IP addresses [192.0.2.9], not the device id 192.0.2.1; allowed: a certificate with subjectAltName IP:192.0.2.1"},
		{"weak.pem", "weak.key", "ca.pem", "has an RSA key of 1024 bits"},
		{"small.pem", "small.key", "ca.pem", "has an elliptic curve of 224 bits"},
	} {
		cfg, err := Load(f.config(c.cert, c.key, c.ca, ""))
		switch {
		case c.want == "" && (err != nil || cfg.Session.TLS.Keys == nil):
			t.Errorf("%s: %v", c.cert, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s, %s: got %v, want %s", c.cert, c.key, c.ca, err, c.want)
		case err != nil && strings.Contains(err.Error(), "PRIVATE KEY-----"):
			t.Error("an error shows the key")
		}
	}
	for _, c := range []struct {
		cert, key, ca string
		mode          os.FileMode
		want          string
	}{
		{"good.pem", "good.key", "ca.pem", 0o600, ""},
		{"good.pem", "good.key", "ca.pem", 0o640, "can be read by others than its owner (mode 0640)"},
		{"expired.pem", "expired.key", "ca.pem", 0o600, "the certificate of this device has expired on"},
		{"soon.pem", "soon.key", "ca.pem", 0o600, "in 10 day(s)"},
		{"good.pem", "good.key", "ca2.pem", 0o600, "do not vouch for it"},
	} {
		if err := os.Chmod(filepath.Join(f.dir, c.key), c.mode); err != nil {
			t.Fatal(err)
		}
		text, _, err := Check(f.config(c.cert, c.key, c.ca, ""), nil)
		if err != nil || strings.Contains(text, "warning") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v, %q", c.cert, err, text)
		}
	}
	// Printing a configuration shows no key.
	cfg, err := Load(f.config("good.pem", "good.key", "ca.pem", ""))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %v", cfg, cfg.Session, cfg.Session.TLS.Keys); strings.Contains(text, "Private") || !strings.Contains(text, "[secret]") {
		t.Error("printing shows the key")
	}
	// Other files of the same names are a change.
	was := *cfg
	f.device("good", "192.0.2.1", good, good.Public(), year.Add(time.Hour))
	if cfg, err = Load(f.config("good.pem", "good.key", "ca.pem", "")); err != nil {
		t.Fatal(err)
	}
	if d := Diff(&was, cfg); len(d) != 1 || d[0].Key != "session.certificate" || len(d.Restart()) != 0 {
		t.Errorf("a renewed certificate: %v", d)
	}
}

func TestTLSSettings(t *testing.T) {
	const head = "device: {id: 192.0.2.1, roles: [reflector]}\n"
	const files = "certificate-file: /c, key-file: /k, ca-file: /a"
	print := strings.Repeat("AB:", 31) + "AB"
	for _, c := range []struct{ session, want string }{
		{"auth: tls", "f:2:10: session.certificate-file: is missing: auth: tls needs"},
		{"auth: tls, certificate-file: /c, key-file: /k", "session.ca-file: is missing"},
		{"auth: tls, certificate-file: c, key-file: /k, ca-file: /a", `session.certificate-file: "c": is not an absolute path`},
		{"auth: tls, password-env: X, " + files, "a password is given, but session.auth is tls"},
		{"auth: none, " + files, `f:2:41: session.certificate-file: "/c": is given, but session.auth is none; allowed: auth: tls`},
		{"auth: none, tls-allow: [192.0.2.2]", "session.tls-allow: is given, but session.auth is none"},
		{"auth: tls, tls-allow: [abcd], " + files, `session.tls-allow[0]: "abcd": is neither an IP address nor a SHA-256 fingerprint`},
		{"auth: tls, tls-allow: [127.0.0.1], " + files, `is a loopback address`},
		{"auth: tsl", `did you mean "tls"?; allowed: hmac-sha256, tls, none`},
		{"auth: tls, tls-alow: [], " + files, `did you mean "tls-allow"?`},
	} {
		_, err := Parse("f", []byte(head+"session: {"+c.session+"}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.session, err, c.want)
		}
	}
	c, err := Parse("f", []byte(head+"session: {auth: tls, tls-allow: ['192.0.2.2', '"+print+"'], "+files+"}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Session.TLS.Allow, " "); got != "192.0.2.2 "+strings.Repeat("ab", 32) || c.Session.TLS.Keys != nil || c.Session.TLS.KeyFile != "/k" {
		t.Errorf("%+v", c.Session.TLS)
	}
	if _, err := Parse("f", []byte(small+"session: {auth: tls}\n"), nil); err != nil {
		t.Errorf("a standalone device needs certificates: %v", err)
	}
}

// The four lines in docs/operations.md make files that are good for a device.
func TestTheDocumentedCertificatesAreGood(t *testing.T) {
	netnstest.Programs(t, "openssl")
	v, err := exec.Command("openssl", "version").Output()
	if err == nil && !strings.HasPrefix(string(v), "OpenSSL 3") {
		err = fmt.Errorf("the lines are for OpenSSL 3, here is %s", v)
	}
	netnstest.Require(t, "openssl", err)
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```sh\nopenssl")
	lines, _, _ := strings.Cut("openssl"+rest, "```")
	if n := strings.Count(lines, "openssl "); n != 4 {
		t.Fatalf("%d commands", n)
	}
	dir := t.TempDir()
	cmd := exec.Command("sh", "-e", "-c", lines)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, print, ok := strings.Cut(strings.TrimSpace(string(out)), "ingerprint=")
	if !ok {
		t.Fatalf("no fingerprint: %s", out)
	}
	config := filepath.Join(dir, "c.yaml")
	_, yaml, _ := strings.Cut(string(doc), "```yaml\nsession:")
	yaml, _, _ = strings.Cut(yaml, "```")
	text := "device: {id: 192.0.2.11, roles: [reflector]}\nsession:" + strings.ReplaceAll(yaml, "/etc/inof", dir) + "  tls-allow: ['" + print + "']\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(config)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Session.TLS.Keys.Warnings(time.Now()); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
	if c.Session.TLS.Keys.Certificate().Leaf.IsCA || c.Device.ID != netip.MustParseAddr("192.0.2.11") {
		t.Error("the device has the certificate of a CA")
	}
}

// A certificate that ends within minutes is not one that has "0 days".
func TestTheTimeLeftIsNeverNone(t *testing.T) {
	for left, want := range map[time.Duration]string{
		25 * time.Hour: "1 day(s)", 24*time.Hour - 1: "23 hour(s)", time.Hour: "1 hour(s)", 150 * time.Second: "3 minute(s)", 1: "1 minute(s)",
	} {
		if got := Left(left); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
