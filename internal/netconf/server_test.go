package netconf

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/openinof/inof/internal/api"
)

// login makes an SSH connection.
func login(port, user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", "127.0.0.1:"+port, &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second})
}

// subsystem begins a session over SSH, up to the framing of base:1.1.
func subsystem(t *testing.T, c *ssh.Client) *client {
	t.Helper()
	x, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	in, err1 := x.StdinPipe()
	out, err2 := x.StdoutPipe()
	if err := errors.Join(err1, err2, x.RequestSubsystem("netconf")); err != nil {
		t.Fatal(err)
	}
	return greetServer(t, in, out)
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: waited for in vain", what)
		}
	}
}

// Who comes in: by password, token and key; with none of them, five times, and no more.
func TestWhoComesInOverSSH(t *testing.T) {
	d := newDevice(t)
	s, port, key := overSSH(t, d)
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	hers, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	for user, auth := range map[string]ssh.AuthMethod{"anna": ssh.PublicKeys(hers), "robot": ssh.Password("token")} {
		c, err := login(port, user, auth)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		subsystem(t, c).ok(`<close-session/>`)
		_ = c.Wait()
	}
	if n := s.Counters(); n.Sessions != 2 || n.NoLogin != 0 {
		t.Errorf("%+v", n)
	}
	if _, err := login(port, "bob", ssh.PublicKeys(hers)); err == nil {
		t.Error("her key lets in another user")
	}
	// A key that is not known is counted when its connection has ended: another may follow it.
	until(t, "the wrong key is counted", func() bool { return s.Counters().NoLogin == 1 })
	for range 4 {
		if _, err := login(port, "anna", ssh.Password("guess")); err == nil {
			t.Error("a wrong password lets in")
		}
	}
	if _, err := login(port, "anna", ssh.Password("secret")); err == nil {
		t.Error("after five that failed the address is let in")
	}
	until(t, "five are counted, and the sixth", func() bool { n := s.Counters(); return n.NoLogin == 5 && n.TooMany == 1 })
}

// Only the subsystem is there, once a connection, and 32 times in all.
func TestOnlyTheSubsystemIsThere(t *testing.T) {
	d := newDevice(t)
	s, port, _ := overSSH(t, d)
	c, err := login(port, "anna", ssh.Password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Dial("tcp", "127.0.0.1:22"); err == nil {
		t.Error("it forwards connections")
	}
	x, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []error{x.Run("id"), x.Shell(), x.RequestPty("xterm", 24, 80, nil), x.RequestSubsystem("sftp")} {
		if try == nil {
			t.Error("something else than netconf is done")
		}
	}
	if _, err := c.NewSession(); err == nil {
		t.Error("a second channel is opened")
	}
	c.Close()
	until(t, "the place is free", func() bool { return s.Counters().Open == 0 })
	var all []*ssh.Client
	for i := range MaxSessions + 1 {
		c, err := login(port, "anna", ssh.Password("secret"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i < MaxSessions {
			subsystem(t, c)
			all = append(all, c)
			continue
		}
		if _, err := c.NewSession(); err == nil || !strings.Contains(err.Error(), "32 sessions") {
			t.Errorf("the 33rd: %v", err)
		}
	}
	all[0].Close()
	until(t, "the place is free", func() bool { return s.Counters().Open == MaxSessions-1 })
	again, err := login(port, "anna", ssh.Password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	subsystem(t, again).ok(addZone("c"))
	if n := s.Counters(); n.Full != 1 || n.NotNetconf < 5 {
		t.Errorf("%+v", n)
	}
}

// Strangers who say nothing take a few places, not those of others, and no memory.
func TestSilentStrangersTakeFewPlaces(t *testing.T) {
	d := newDevice(t)
	s, port, _ := overSSH(t, d)
	var open []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	until(t, "46 are refused", func() bool { return s.Counters().Full == 50-maxFromOne })
	for _, c := range open {
		c.Close()
	}
	until(t, "they are forgotten", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.strangers) == 0 })
	if n := s.Counters(); n.Handshakes != maxFromOne || n.NoLogin != 0 {
		t.Errorf("%+v", n)
	}
	c, err := login(port, "anna", ssh.Password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	subsystem(t, c).ok(`<close-session/>`)
}

// Sessions that send what is too large, too deep or none are answered and ended; what is kept of
// each is bounded, and nothing of the zones is lost.
func TestHostileSessionsAreBounded(t *testing.T) {
	d := newDevice(t)
	s, port, _ := overSSH(t, d)
	begin := func() (*ssh.Client, *client) {
		c, err := login(port, "anna", ssh.Password("secret"))
		if err != nil {
			t.Fatal(err)
		}
		return c, subsystem(t, c)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	c, x := begin()
	x.begin(`<rpc xmlns="` + nsBase + `" message-id="big"><get>`)
	big := strings.Repeat("a", 1<<20)
	for range 8 {
		if _, err := x.to.w.Write([]byte("\n#1048576\n" + big)); err != nil {
			break // it has ended
		}
	}
	if e := x.receive(); !strings.Contains(text(e), "too-big") || !strings.Contains(text(e), `message-id="big"`) {
		t.Errorf("%s", text(e))
	}
	until(t, "it ends", func() bool { return s.Counters().Open == 0 })
	c.Close()

	for _, hostile := range []string{"\n#99999999999\n", "\n#-1\n", "nonsense"} {
		c, x := begin()
		_, _ = x.to.w.Write([]byte(hostile))
		if _, err := x.in.next(); err == nil {
			t.Errorf("%q is answered", hostile)
		}
		c.Close()
	}
	c, x = begin()
	x.raw(strings.Repeat("<a>", 500_000))
	if e := x.receive(); !strings.Contains(text(e), "more than 64 elements") {
		t.Errorf("%s", text(e))
	}
	x.raw(`<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]><rpc xmlns="` + nsBase + `" message-id="1"><get>&c;</get></rpc>`)
	if e := x.receive(); !strings.Contains(text(e), "malformed-message") {
		t.Errorf("%s", text(e))
	}
	x.raw(`<rpc xmlns="` + nsBase + `" message-id="1">` + strings.Repeat("<a/>", maxElements) + `</rpc>`)
	if e := x.receive(); !strings.Contains(text(e), "more than 262144 elements") {
		t.Errorf("%s", text(e))
	}
	x.raw(`<rpc xmlns="` + nsBase + `" message-id="1"><get><filter>` + strings.Repeat("<a><!-- -->b<!-- --></a>", 30_000) + `</filter></get></rpc>`)
	if e := x.receive(); !strings.Contains(text(e), "too-big") {
		t.Errorf("%s", text(e))
	}
	c.Close()
	until(t, "they end", func() bool { return s.Counters().Open == 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	if n := s.Counters(); n.TooBig != 1 || n.BadFraming != 3 || n.Malformed != 3 || n.Errors != 1 {
		t.Errorf("%+v", n)
	}
	want(t, d, zoneA, zoneB)
}

// A subscriber that takes nothing loses events, which is counted and said, and holds up nobody.
func TestASlowSubscriberHoldsUpNobody(t *testing.T) {
	d := newDevice(t)
	d.EventLog = api.NewEventLog(16, time.Now())
	s, port, _ := overSSH(t, d)
	c, err := login(port, "anna", ssh.Password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x := subsystem(t, c)
	x.ok(`<create-subscription xmlns="` + nsNotification + `"/>`)
	long := strings.Repeat("x", 64<<10)
	for range 1000 { // 64 MB: many times what the window of SSH and TCP's buffers take
		d.Append(api.Event{Time: time.Now(), Kind: "port", Text: long})
	}
	for said := false; !said; {
		e := x.receive().child(nsOperations, "event")
		said = e.child(nsOperations, "kind").value() == "lost" && strings.Contains(e.child(nsOperations, "text").value(), "too slowly")
	}
	if n := s.Counters(); n.Lost == 0 {
		t.Errorf("%+v", n)
	}
}

// The host key is made once; one that is broken is not replaced.
func TestTheHostKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	a, err := HostKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := HostKey(dir)
	if err != nil || string(a.PublicKey().Marshal()) != string(b.PublicKey().Marshal()) {
		t.Errorf("another key after a restart: %v", err)
	}
	path := filepath.Join(dir, hostKeyFile)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKey(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// All sessions end with the server, and their locks.
func TestSessionsEndWithTheServer(t *testing.T) {
	d := newDevice(t)
	host, err := HostKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(d, Config{HostKey: host, Door: &api.Door{Gate: &api.Gate{Tokens: func() ([]api.Token, error) { return nil, io.ErrUnexpectedEOF }}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if _, err := login(port, "anna", ssh.Password("secret")); err == nil {
		t.Error("somebody is let in while nobody can be known")
	}
	x := dial(t, s, anna)
	x.ok(`<lock>` + onto + `</lock>`)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	x.p.Close()
	<-x.ended
	if len(s.store.locks) != 0 || s.Counters().Open != 0 {
		t.Error("something is left")
	}
}
