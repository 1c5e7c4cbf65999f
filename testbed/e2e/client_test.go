package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// peer gives a client's only session as operators see it.
func (f *fab) peer(node string) api.Peer {
	f.t.Helper()
	ps, err := ask(f, node, peersOf)
	if err != nil || len(ps) != 1 {
		f.t.Fatalf("peers of %s: %+v, %v", node, ps, err)
	}
	return ps[0]
}

// awaitPeerError waits until a client without a session says why.
func (f *fab) awaitPeerError(node string, words ...string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%q as the error of the session of %s", words, node), func() error {
		if p := f.peer(node); p.State == api.PeerEstablished || !hasAll(p.LastError, words) {
			return fmt.Errorf("state %s, error %q", p.State, p.LastError)
		}
		return nil
	})
}

// A device with a wrong password is told why it has no session, and so is its
// reflector; the rest goes on. Once the password is right the session comes back by
// itself, and with it what was missed.
func TestAWrongPasswordIsCorrectedByAReload(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "password"})
	f.kept()
	f.write("tor2.password", "another password\n")
	f.kill("tor2")
	f.start("tor2")
	f.awaitPeerError("tor2", "authentication failed")
	f.awaitCounter("spine", "inof_server_1.auth_failed", 1)
	f.logLine("spine", "session ended", tor2ID, "authentication failed")
	if w := f.status("tor2").Warnings.String(); !hasAll(w, []string{"no session with reflector " + spineID, "authentication failed"}) {
		t.Errorf("warnings of tor2: %q", w)
	}
	if o := f.ctl("tor2", "show", "peer"); o.code != 0 || !strings.Contains(o.stdout, "authentication failed") {
		t.Errorf("show peer: %+v", o)
	}

	// A fault that tor2 misses is told at tor1.
	since := f.marks("i1", "i2")
	f.fault("tor1", "eth1", false)
	f.awaitNotice("i1", since["i1"], notice{init1, target, "inactive", "link-down"})
	f.quiet("i2", since["i2"])

	// A password that cannot be one changes nothing but a counter.
	f.write("tor2.password", "short\n")
	after := f.lastEvent("tor2")
	f.reload("tor2")
	f.awaitEvent("tor2", after, "error", "session.password-file", "tor2.password", "5 characters")
	if n := f.counter("tor2", "config.reload_errors"); n != 1 {
		t.Errorf("%d reload errors, want 1", n)
	}

	f.write("tor2.password", goodPassword+"\n")
	f.reload("tor2")
	if log := readText(f.logFile("tor2")); strings.Contains(log, "service manager cannot be told") {
		t.Errorf("whoever started the lab is gone, and that is no news:\n%s", log)
	}
	f.established("tor2")
	f.awaitNotice("i2", since["i2"], notice{init2, target, "inactive", "link-down"})
	f.fault("tor1", "eth1", true)
	f.awaitNotice("i2", since["i2"], notice{init2, target, "active", "none"})
	f.stillTells()
}

// A reload with a new password on both sides breaks no session.
func TestANewPasswordBreaksNoSession(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "newpass"})
	before := f.peer("tor1")
	for _, n := range []string{"spine", "tor1", "tor2"} {
		f.write(n+".password", "a new password for all\n")
		f.reload(n)
	}
	f.stillTells()
	if p := f.peer("tor1"); p.State != api.PeerEstablished || p.Reconnects != before.Reconnects || !p.Since.Equal(before.Since) {
		t.Errorf("the session was %+v and is %+v", before, p)
	}
	f.kept()
	f.kill("tor1")
	f.start("tor1")
	f.established("tor1")
	f.stillTells()
}

const loneLab = `
name: e2e-lone
topology:
  nodes:
    lone:
      kind: inof-switch
      startup-config: lone.yaml
      exec: [ip addr add 10.9.0.1/24 dev eth49]
    fake: {kind: linux, exec: [ip addr add 10.9.0.2/24 dev eth1]}
    far: {kind: linux}
  links:
    - endpoints: ["lone:eth49", "fake:eth1"]
    - endpoints: ["lone:eth1", "far:eth1"]
`

// A client whose reflector is no reflector, or an odd one, says so, keeps trying,
// and has its session as soon as there is a real one.
func TestAClientOutlivesOddReflectors(t *testing.T) {
	t.Parallel()
	f := noFabric(t)
	f.write("lone.yaml", f.clientConfig("lone", "10.9.0.1", "10.9.0.2"))
	f.write("lone.password", goodPassword)
	f.up(loneLab)
	f.awaitPeerError("lone", "connection refused")
	l := f.listen("fake", "10.9.0.2")
	open := func(change func(*link.SessionConfig)) []byte {
		return openOf(t, func(c *link.SessionConfig) {
			c.Roles = wire.RoleReflector
			if change != nil {
				change(c)
			}
		})
	}
	for _, c := range []struct {
		name, counter string
		says          []byte
		words         []string
	}{
		{"silence", "handshake_timeouts", nil, []string{"handshake timeout", "OpenSend after 1s"}},
		{"random bytes", "not_inof", bytes.Repeat([]byte{0xa5}, 99), []string{"not iNOF", "a5 a5"}},
		{"HTTP", "not_inof", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []string{"not iNOF", "HTTP"}},
		{"a newer version", "bad_version", header(16, 3, 1), []string{"unsupported version", "in version 3", "speaks version 2"}},
		{"a huge length", "bad_length", header(1<<20, 2, 1), []string{"bad length", "length 1048576"}},
		{"a client", "bad_device", openOf(t, nil), []string{"roles do not fit", "client, want reflector"}},
		{"its own device id", "bad_device", open(func(c *link.SessionConfig) { c.Self = netip.MustParseAddr("10.9.0.1") }), []string{"own device id", "10.9.0.1"}},
		{"an Open and then rubbish", "bad_version", append(open(nil), make([]byte, 64)...), []string{"unsupported version", "version 0"}},
	} {
		f.kill("lone") // its patience with each begins anew
		f.start("lone")
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write(c.says)
		f.awaitPeerError("lone", c.words...)
		f.awaitCounter("lone", "inof_dialer_1."+c.counter, 1)
		if w := f.status("lone").Warnings.String(); !hasAll(w, c.words) {
			t.Errorf("%s: warnings %q, want %q", c.name, w, c.words)
		}
		nc.Close()
		nc, err = l.Accept() // it tries again
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	f.honest(l)
	labtest.Eventually(t, "a session with the real reflector", func() error {
		if p := f.peer("lone"); p.State != api.PeerEstablished || p.Device.String() != "10.9.0.2" {
			return fmt.Errorf("state %s, error %q", p.State, p.LastError)
		}
		return nil
	})
}

// honest runs the listening side of a reflector on a listener.
func (f *fab) honest(l net.Listener) {
	f.t.Helper()
	s, err := link.NewServer(link.ServerConfig{
		TransportConfig: link.TransportConfig{
			Self: netip.MustParseAddr("10.9.0.2"), Roles: wire.RoleReflector, Epoch: 1,
			Auth: func() link.Auth {
				return link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{goodKey()}}
			},
			Sink: func(link.PeerEvent) {},
		},
		Listen: func(context.Context) (net.Listener, error) { return l, nil },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	f.t.Cleanup(func() { cancel(); <-done })
}

// listen opens the reflector's port in a node.
func (f *fab) listen(node, addr string) net.Listener {
	f.t.Helper()
	var l net.Listener
	err := f.lab.Do(node, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", addr, wire.DefaultPort))
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { l.Close() })
	return l
}
