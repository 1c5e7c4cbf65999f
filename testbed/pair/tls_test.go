package pair

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// secure is a fabric whose sessions run over mutual TLS.
type secure struct {
	*fabric
	ca *labtest.Authority
}

const allowLine = "  tls-allow: [10.0.0.11, 10.0.0.12, 10.0.0.13]\n"

// newSecure gives every device a certificate of one CA, but for the nodes that edit
// gives others; the reflectors take the three switches by name.
func newSecure(t *testing.T, name string, other func(ca *labtest.Authority, node, dir string) bool) secure {
	t.Helper()
	labtest.RequireNetns(t)
	ca := labtest.NewAuthority(t, "CA of the fabric")
	certs := t.TempDir()
	for _, n := range slices.Concat(spines, tors) {
		dir := filepath.Join(certs, n)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if other == nil || !other(ca, n, dir) {
			ca.Issue(dir, idOf[n])
		}
	}
	f := newFabric(t, name, func(path, text string) string {
		node := strings.TrimSuffix(filepath.Base(path), ".yaml")
		dir := filepath.Join(certs, node)
		tls := fmt.Sprintf("  auth: tls\n  certificate-file: %[1]s/device.pem\n  key-file: %[1]s/device.key\n  ca-file: %[1]s/ca.pem\n", dir)
		if slices.Contains(spines, node) {
			tls += allowLine
		}
		return strings.Replace(text, "  auth: hmac-sha256\n  password-env: FABRIC_PASSWORD\n", tls, 1)
	})
	return secure{f, ca}
}

// files is where a node's certificate is.
func (s secure) files(node string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.lab.NodeDir(node), "inofd.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "certificate-file: ")
	path, _, _ := strings.Cut(rest, "\n")
	return filepath.Dir(path)
}

// edit changes a node's configuration and has its daemon read it.
func (s secure) edit(node, old, new string) {
	s.t.Helper()
	path := filepath.Join(s.lab.NodeDir(node), "inofd.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.Replace(string(b), old, new, 1)
	if text == string(b) {
		s.t.Fatalf("%s: no %q in\n%s", node, old, text)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.reload(node)
}

// overTLS is a session that is up, and protected as was asked for.
func overTLS(p api.Peer) bool {
	return p.State == api.PeerEstablished && p.Auth == "tls" && p.CertificateExpires != nil
}

// refused is a session that does not begin, for a reason with these words.
func refused(words ...string) func(api.Peer) bool {
	return func(p api.Peer) bool {
		return p.State != api.PeerEstablished && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(p.LastError, w) })
	}
}

// The fabric over mutual TLS: certificates are renewed while it runs, a switch is shut
// out by the allow list and taken in again. No host is told anything of all that; a
// fault is told as ever.
func TestTheFabricOverTLS(t *testing.T) {
	s := newSecure(t, "tls", nil)
	s.settled()
	for _, spine := range spines {
		s.sessions(spine, "over TLS", overTLS)
	}
	s.expect("nothing happens")
	s.pulled("over TLS", 21)

	// Renewed everywhere: sessions that stand go on, and new ones show the new one.
	since := map[string]api.Peer{}
	for _, p := range s.peers("tor1") {
		since[p.Address] = p
	}
	for _, n := range slices.Concat(spines, tors) {
		s.ca.Issue(s.files(n), idOf[n])
		s.reload(n)
	}
	s.expect("certificates are renewed")
	for _, p := range s.peers("tor1") {
		if was := since[p.Address]; !p.Since.Equal(was.Since) {
			t.Errorf("the session with %s did not survive the renewal: %+v", p.Address, p)
		}
	}
	s.kill("spine1")
	s.sessions("spine1", "down", down)
	s.start("spine1")
	s.sessions("spine1", "over TLS, with the new certificates", overTLS)
	s.expect("a reflector begins with the new certificates")

	// tor2 is shut out at both reflectors: its sessions end at once.
	for _, spine := range spines {
		s.edit(spine, allowLine, "  tls-allow: [10.0.0.11, 10.0.0.13]\n")
	}
	for _, spine := range spines {
		s.session("tor2", spine, "refused", refused("certificate refused"))
		s.session("tor1", spine, "up", overTLS)
	}
	s.expect("tor2 is shut out: its hosts count as unchanged")
	for _, spine := range spines {
		s.edit(spine, "  tls-allow: [10.0.0.11, 10.0.0.13]\n", allowLine)
		s.session("tor2", spine, "taken in again", overTLS)
	}
	s.expect("tor2 is back")
	s.pulled("with tor2 again", 92)
}

// Whoever shows a certificate of another CA, or of ours but for another device, is
// refused with the reason; the others do not notice.
func TestStrangersAreRefused(t *testing.T) {
	stranger := labtest.NewAuthority(t, "CA of somebody else")
	s := newSecure(t, "strangers", func(ca *labtest.Authority, node, dir string) bool {
		if node != "tor2" {
			return false
		}
		stranger.Issue(dir, idOf[node]) // and it takes our reflectors
		if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
		return true
	})
	for _, spine := range spines {
		s.session("tor1", spine, "up", overTLS)
		s.session("tor3", spine, "up", overTLS)
		s.session("tor2", spine, "refused", refused("certificate"))
	}
	labtest.Eventually(t, "spine1 to list the stranger", func() error {
		ps := s.peers("spine1")
		return errorf(slices.ContainsFunc(ps, func(p api.Peer) bool {
			return p.Refused && strings.HasPrefix(p.Address, idOf["tor2"]+":") && strings.Contains(p.LastError, "certificate")
		}), "%+v", ps)
	})
	// From the node of tor3: a certificate of our CA for another device, with the id of
	// tor3 in the Open; then tor3's own.
	dir := t.TempDir()
	s.ca.Issue(dir, "10.0.0.99")
	if n := s.knock("tor3", "spine1", dir); n.Code != wire.CodeCertificate || !strings.Contains(n.Text, "10.0.0.13") {
		t.Errorf("a certificate for another device: code %v, %s", n.Code, n.Text)
	}
	s.session("tor3", "spine1", "up as before", overTLS)
	// A daemon is given a certificate for another device: it goes on with the one it has.
	s.ca.Issue(s.files("tor1"), "10.0.0.99")
	s.reload("tor1")
	labtest.Eventually(t, "an event to tell of the wrong certificate", func() error {
		text := s.ctl("tor1", "show", "event")
		return errorf(strings.Contains(text, "10.0.0.99"), "%s", text)
	})
	s.session("tor1", "spine1", "up as before", overTLS)
}

// knock begins a session from a node as the device it is, with the certificate in a
// directory, and gives the Notification that ends it.
func (s secure) knock(node, spine, dir string) *wire.Notification {
	s.t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "device.pem"), filepath.Join(dir, "device.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	sess, err := link.NewSession(link.SessionConfig{Self: netip.MustParseAddr(idOf[node]), Dialer: true, Roles: wire.RoleClient, Epoch: 1, Auth: link.Auth{Mode: wire.AuthNone}}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	open, err := sess.Start(nil, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	open[len(open)-1] = byte(wire.AuthTLS) // the last TLV is the mode
	var answer []byte
	err = s.lab.Do(node, func() error {
		raw, err := net.DialTimeout("tcp", idOf[spine]+":19516", labtest.Patience)
		if err != nil {
			return err
		}
		defer raw.Close()
		if err := raw.SetDeadline(time.Now().Add(labtest.Patience)); err != nil {
			return err
		}
		c := tls.Client(raw, &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{link.ALPN}})
		if _, err := c.Write(open); err != nil {
			return err
		}
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(c, head); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head, wire.MaxHandshakeMessage)
		if err != nil {
			return err
		}
		answer = append(head, make([]byte, h.Length-len(head))...)
		_, err = io.ReadFull(c, answer[len(head):])
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := wire.Decode(answer)
	if err != nil {
		s.t.Fatal(err)
	}
	n, ok := m.(*wire.Notification)
	if !ok {
		s.t.Fatalf("the answer is %+v", m)
	}
	return n
}
