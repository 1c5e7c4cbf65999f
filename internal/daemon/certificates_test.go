package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// testPKI writes certificates of one CA, a directory for each device.
type testPKI struct {
	t      *testing.T
	dir    string
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newTestPKI(t *testing.T) *testPKI {
	t.Helper()
	p := &testPKI{t: t, dir: t.TempDir(), serial: 1}
	p.key = p.newKey()
	p.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(3650 * 24 * time.Hour)}
	return p
}

func (p *testPKI) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

func (p *testPKI) file(name, typ string, der []byte, err error) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err == nil {
		err = os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// session writes a device's files, good for so long, and gives its session section.
func (p *testPKI) session(name, id string, life time.Duration, more string) string {
	p.t.Helper()
	p.serial++
	key := p.newKey()
	c := &x509.Certificate{SerialNumber: big.NewInt(p.serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.ParseIP(id)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, c, p.ca, key.Public(), p.key)
	cert := p.file(name+".pem", "CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(key)
	keyFile := p.file(name+".key", "PRIVATE KEY", der, err)
	der, err = x509.CreateCertificate(rand.Reader, p.ca, p.ca, p.key.Public(), p.key)
	return fmt.Sprintf("session: {auth: tls, certificate-file: %s, key-file: %s, ca-file: %s%s}\n", cert, keyFile, p.file("ca.pem", "CERTIFICATE", der, err), more)
}

// addWith makes a device with a session section.
func (f *testFabric) addWith(name, id, role, session string, ports ...string) *node {
	f.t.Helper()
	doc := fmt.Sprintf("device: {id: %s, name: %s, roles: [%s]}\nstate-directory: %s\n%s", id, name, role, f.t.TempDir(), session)
	if role == "client" {
		doc += fmt.Sprintf("client: {reflectors: [{address: %s}]}\nports: {access: [eth*]}\n", reflectorID)
	}
	n := &node{t: f.t, f: f, cfg: f.load(doc)}
	list := make([]fabric.Port, len(ports))
	for i, p := range ports {
		list[i] = fabric.Port{Name: p, AdminUp: true}
	}
	n.fake = fabric.NewFake(fabric.FakeConfig{Name: name}, list...)
	f.nodes[name] = n
	n.start()
	return n
}

func (f *testFabric) load(doc string) *config.Config {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "inofd.yaml")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		f.t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

// peersOf gives the peers by device id; refused ones by "refused".
func peersOf(t *testing.T, n *node) map[string]api.Peer {
	t.Helper()
	list, err := n.d.Peers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]api.Peer{}
	for _, p := range list {
		key := p.Device.String()
		if p.Refused {
			key = "refused"
		}
		m[key] = p
	}
	return m
}

func TestCertificatesOfADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		p := newTestPKI(t)
		f := newTestFabric(t)
		sessionOf := func(name string, life time.Duration, allow string) string {
			id := map[string]string{"spine": reflectorID, "tor1": "10.0.0.1", "tor2": "10.0.0.2"}[name]
			return p.session(name, id, life, allow)
		}
		spineCfg := sessionOf("spine", year, "")
		spine := f.addWith("spine", reflectorID, "reflector", spineCfg)
		f.addWith("tor1", "10.0.0.1", "client", sessionOf("tor1", year, ""), "eth1")
		tor2 := f.addWith("tor2", "10.0.0.2", "client", sessionOf("tor2", 20*24*time.Hour+time.Hour, ""), "eth1")
		settle(20 * time.Second)
		expect := func(step string, want1, want2 bool) {
			t.Helper()
			m := peersOf(t, spine)
			for id, want := range map[string]bool{"10.0.0.1": want1, "10.0.0.2": want2} {
				if got := m[id].State == api.PeerEstablished; got != want {
					t.Errorf("%s: session of %s: %v, want %v; peers %+v", step, id, got, want, m)
				}
			}
		}
		expect("at first", true, true)
		s, err := spine.d.Status(t.Context())
		if err != nil || !strings.Contains(s.Warnings.String(), "certificate of client 10.0.0.2 expires in 20 day(s)") {
			t.Errorf("status of the reflector: %v, %q", err, s.Warnings)
		}
		s, err = tor2.d.Status(t.Context())
		if err != nil || !strings.Contains(s.Warnings.String(), "the certificate of this device expires on") {
			t.Errorf("status of the client: %v, %q", err, s.Warnings)
		}

		// Renewed files are found at the next handshake, by both sides.
		sessionOf("tor2", year, "")
		sessionOf("spine", year+time.Hour, "")
		before := *peersOf(t, tor2)[reflectorID].CertificateExpires
		f.net.Cut()
		settle(20 * time.Second)
		expect("renewed", true, true)
		if now := *peersOf(t, tor2)[reflectorID].CertificateExpires; !now.After(before) {
			t.Errorf("the reflector still shows the certificate that ends at %v", now)
		}
		if s, _ = tor2.d.Status(t.Context()); len(s.Warnings) != 0 {
			t.Errorf("warnings after the renewal: %q", s.Warnings)
		}

		// Files that do not match are not used; sessions go on with the old ones.
		p.file("spine.key", "PRIVATE KEY", []byte("broken"), nil)
		f.net.Cut()
		settle(20 * time.Second)
		expect("broken key", true, true)
		s, _ = spine.d.Status(t.Context())
		if c, ok := s.Counters["certificates"].(map[string]uint64); !ok || c["failed"] != 1 || c["renewed"] == 0 {
			t.Errorf("counters %v", s.Counters["certificates"])
		}

		// The allow list: taking an entry out ends that session and no other.
		reload := func(allow string) {
			t.Helper()
			next := f.load(fmt.Sprintf("device: {id: %s, name: spine, roles: [reflector]}\nstate-directory: %s\n%s", reflectorID, spine.cfg.State, sessionOf("spine", year, allow)))
			if err := spine.d.Reload(t.Context(), next, false); err != nil {
				t.Fatal(err)
			}
			settle(20 * time.Second)
		}
		reload(", tls-allow: [10.0.0.1, 10.0.0.2]")
		expect("all listed", true, true)
		was := peersOf(t, spine)["10.0.0.1"]
		reload(", tls-allow: [10.0.0.1]")
		expect("one revoked", true, false)
		now := peersOf(t, spine)
		if now["10.0.0.1"].Since != was.Since {
			t.Error("the other session was cut too")
		}
		if r := now["refused"]; !strings.Contains(r.LastError, "not on the allow list") {
			t.Errorf("the reflector shows %+v", r)
		}
		if e := peersOf(t, tor2)[reflectorID].LastError + peersOf(t, tor2)["invalid IP"].LastError; !strings.Contains(e, "certificate refused") {
			t.Errorf("the client shows %q", e)
		}
		if s, _ = spine.d.Status(t.Context()); s.Counts.Peers != 1 {
			t.Errorf("%d peers are counted", s.Counts.Peers)
		}
		reload("")
		expect("list emptied", true, true)
	})
}

func TestTLSNeedsItsFiles(t *testing.T) {
	cfg, err := config.Parse("f", []byte("device: {id: 10.0.0.1, roles: [reflector]}\nstate-directory: "+t.TempDir()+
		"\nsession: {auth: tls, certificate-file: /nonexistent/a, key-file: /nonexistent/b, ca-file: /nonexistent/c}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, Env{Listen: func(context.Context, netip.AddrPort) (net.Listener, error) { return nil, nil }}); err == nil || !strings.Contains(err.Error(), "session.key-file: /nonexistent/b") {
		t.Error(err)
	}
}
