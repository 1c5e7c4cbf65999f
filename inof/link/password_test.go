package link

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Who does not know the password gets nothing to try passwords on: a listener is silent
// until the dialer has proved itself.
func TestAListenerShowsNoTagBeforeTheDialerDoes(t *testing.T) {
	d, l := newSession(t, true, func(c *SessionConfig) { c.Auth = hmacAuth("password2", "password3") }), newSession(t, false, nil)
	open, _ := d.Start(nil, inoftest.T0)
	_, answer, err := l.Receive(open, nil, inoftest.T0)
	if err != nil || len(frames(answer)) != 1 {
		t.Fatalf("%d messages, %v", len(frames(answer)), err)
	}
	_, proof, err := d.Receive(answer, nil, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	_, out, err := l.Receive(proof, nil, inoftest.T0)
	if wire.CodeOf(err) != wire.CodeAuthFailed || len(out) != 0 {
		t.Fatalf("%v, answered % x", err, out)
	}
	for _, f := range append(frames(answer), frames(l.Notify(nil, err))...) {
		if h, err := wire.ParseHeader(f, wire.MaxMessage); err != nil || h.Tagged() {
			t.Errorf("a tag for a stranger: %+v, %v", h, err)
		}
	}
}

// Whatever each side has of two passwords, the session is established with the newest
// that both know, and both show which that is.
func TestTwoPasswordsWhileOneIsRotated(t *testing.T) {
	use := func(s *Session) PasswordUse { p, _ := s.Password(); return s.cfg.Auth.Use(p) }
	for _, c := range []struct {
		dialer, listener Auth
		d, l             PasswordUse // empty: refused
	}{
		{hmacAuth("old"), hmacAuth("old"), PasswordOnly, PasswordOnly},
		{hmacAuth("new", "old"), hmacAuth("old"), PasswordOld, PasswordOnly},
		{hmacAuth("old"), hmacAuth("new", "old"), PasswordOnly, PasswordOld},
		{hmacAuth("new", "old"), hmacAuth("new", "old"), PasswordNew, PasswordNew},
		{hmacAuth("new"), hmacAuth("new", "old"), PasswordOnly, PasswordNew},
		{hmacAuth("new", "old"), hmacAuth("new"), PasswordNew, PasswordOnly},
		{hmacAuth("old", "new"), hmacAuth("new", "old"), PasswordOld, PasswordNew}, // the listener's order decides
		{hmacAuth("new"), hmacAuth("old"), "", ""},
		{hmacAuth("new", "old"), hmacAuth("others", "still others"), "", ""},
	} {
		d := newSession(t, true, func(s *SessionConfig) { s.Auth = c.dialer })
		l := newSession(t, false, func(s *SessionConfig) { s.Auth = c.listener })
		dErr, lErr := shake(t, d, l)
		if c.d == "" {
			if wire.CodeOf(lErr) != wire.CodeAuthFailed || d.state == StateEstablished || l.state == StateEstablished {
				t.Errorf("%v: %v, %v", c, dErr, lErr)
			}
			continue
		}
		if dErr != nil || lErr != nil || use(d) != c.d || use(l) != c.l {
			t.Errorf("%v: %v %q, %v %q", c, dErr, use(d), lErr, use(l))
			continue
		}
		for i := range 3 { // and goes on in both directions
			if _, _, err := l.Receive(d.Seal(nil, keepalive, inoftest.T0), nil, inoftest.T0); err != nil {
				t.Errorf("%v, message %d: %v", c, i, err)
			}
			if _, _, err := d.Receive(l.Seal(nil, keepalive, inoftest.T0), nil, inoftest.T0); err != nil {
				t.Errorf("%v, message %d: %v", c, i, err)
			}
		}
	}
	if u := hmacAuth("a").Use(PasswordOfKey([32]byte{})); u != PasswordGone {
		t.Errorf("a password that is not in force: %q", u)
	}
}

// A proof of a second password that somebody repeats in another session is none.
func TestAProofIsGoodForOneSession(t *testing.T) {
	two := func(c *SessionConfig) { c.Auth = hmacAuth("new", "old") }
	d, l := newSession(t, true, two), newSession(t, false, func(c *SessionConfig) { c.Auth = hmacAuth("old") })
	open, _ := d.Start(nil, inoftest.T0)
	_, answer, _ := l.Receive(open, nil, inoftest.T0)
	_, proof, err := d.Receive(answer, nil, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	again := newSession(t, false, func(c *SessionConfig) { c.Auth, c.Nonce = hmacAuth("old"), inoftest.GoldenNonce(77) })
	if _, _, err := again.Receive(open, nil, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := again.Receive(proof, nil, inoftest.T0); wire.CodeOf(err) != wire.CodeAuthFailed {
		t.Errorf("repeated: %v", err)
	}
	if _, _, err := l.Receive(proof, nil, inoftest.T0); err != nil {
		t.Errorf("in its own session: %v", err)
	}
}

// The whole rotation: nobody is shut out at any step, each session moves of itself, and a
// password that was taken out ends what stands on it.
func TestAPasswordIsRotatedWithoutShuttingAnybodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		server, near, far := newPassword("old"), newPassword("old"), newPassword("old")
		r := startReflector(t, &f, server, 1, inoftest.ThreeZones, nil)
		a := startClient(t, &f, near, inoftest.DevID(0), 1, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p1"))
		b := startClient(t, &f, far, inoftest.DevID(1), 1, inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "p1"))
		after(time.Second)
		a.withdrawn()
		uses := func() (s string) {
			for _, i := range r.server.Infos() {
				s += string(i.Password) + " "
			}
			return s
		}
		step := func(name string, p *password, to Auth, recheck func() int, want string) {
			t.Helper()
			p.mu.Lock()
			p.a = to
			p.mu.Unlock()
			recheck()
			after(time.Second)
			if got := uses(); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		both := hmacAuth("new", "old")
		step("the reflector takes both", server, both, r.server.Recheck, "old old ")
		step("the first client takes both", near, both, a.dialer.Recheck, "new old ")
		step("the second client takes both", far, both, b.dialer.Recheck, "new new ")
		step("the reflector forgets the old", server, hmacAuth("new"), r.server.Recheck, "current current ")
		step("so does the first", near, hmacAuth("new"), a.dialer.Recheck, "current current ")
		if hosts, faults, zones := a.withdrawn(); hosts+faults+zones != 0 {
			t.Errorf("withdrawn meanwhile: %d hosts, %d faults, %d zones", hosts, faults, zones)
		}
		if n := r.server.Counters(); n.AuthFailed != 0 {
			t.Errorf("counters %+v", n)
		}
		step("the reflector has another", server, hmacAuth("newest"), r.server.Recheck, "")
		a.stop()
		b.stop()
		r.stop()
	})
}

func TestGuessesAreLimitedBySource(t *testing.T) {
	at := func(s string) string { return net.JoinHostPort(s, "1") }
	var g Guesses
	tries := func(from string, now time.Time, most int) (n int) {
		for range most {
			if _, err := g.Check(at(from), now); err != nil {
				if wire.CodeOf(err) != wire.CodeLimit {
					t.Error(err)
				}
				return n
			}
			g.Failed(at(from), now)
			n++
		}
		return n
	}
	if n := tries("192.0.2.1", inoftest.T0, 1000); n != guessBurst {
		t.Errorf("%d at once", n)
	}
	if n := tries("192.0.2.2", inoftest.T0, 3); n != 3 {
		t.Error("another source suffers")
	}
	if n := tries("192.0.2.1", inoftest.T0.Add(time.Minute), 1000); n != guessBurst && n > int(time.Minute/guessEvery) {
		t.Errorf("%d after a minute", n)
	}
	hour := 0
	for s := range 3600 {
		hour += tries("2001:db8::"+fmt.Sprint(s%10), inoftest.T0.Add(time.Duration(s)*time.Second), 1000)
	}
	if most := int(time.Hour/guessEvery) + guessBurst; hour > most {
		t.Errorf("%d in an hour from one /64, want at most %d", hour, most)
	}
	g.Right(at("192.0.2.1"))
	if _, err := g.Check(at("192.0.2.1"), inoftest.T0); err != nil {
		t.Errorf("after the right one: %v", err)
	}
}

// Sources beyond the table share one allowance: it does not grow, and nobody gets more.
func TestManySourcesDoNotFillTheMemory(t *testing.T) {
	var g Guesses
	let := 0
	for i := range 4 * maxGuessSources {
		from := fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		if _, err := g.Check(from, inoftest.T0); err == nil {
			g.Failed(from, inoftest.T0)
			let++
		}
	}
	if len(g.sources) > maxGuessSources || let > maxGuessSources+guessBurst {
		t.Errorf("%d sources are kept, %d tries were let", len(g.sources), let)
	}
	later := inoftest.T0.Add(time.Hour)
	g.Failed("192.0.2.1:1", later)
	if len(g.sources) > 2 {
		t.Errorf("%d are kept after an hour", len(g.sources))
	}
}

// A guesser is refused before it can try; a device with the right password at another
// address is not.
func TestAGuesserIsRefused(t *testing.T) {
	l := startLoopback(t, nil)
	defer l.stop()
	var last error
	for range guessBurst + 5 {
		nc, err := net.Dial("tcp", l.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(t, true, func(c *SessionConfig) { c.Auth = hmacAuth("a wrong one") })
		out, _ := s.Start(nil, time.Now())
		last = nil
		for last == nil {
			if _, err := nc.Write(out); err != nil {
				t.Fatal(err)
			}
			_, out, last = s.Receive(readFrame(t, nc), nil, time.Now())
		}
		_ = nc.Close()
		for n := l.server.Counters(); n.AuthFailed+n.GuessesRefused < n.Accepted; n = l.server.Counters() {
			time.Sleep(time.Millisecond)
		}
	}
	if p, ok := errors.AsType[*PeerError](last); !ok || p.Code != wire.CodeLimit {
		t.Errorf("told %v", last)
	}
	if n := l.server.Counters(); n.AuthFailed != guessBurst || n.GuessesRefused != 5 {
		t.Errorf("counters %+v", n)
	}
}

// It is argon2id, and not something that a faster machine tries in bulk.
func TestAPasswordIsStretched(t *testing.T) {
	a, err := NewPassword([]byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewPassword([]byte("correct horse "))
	if err != nil || a.Equal(b) || !a.Equal(a) {
		t.Errorf("%v", err)
	}
	if _, err := NewPassword([]byte("short")); err == nil {
		t.Error("a short one is taken")
	}
	if text := fmt.Sprintf("%v %+v %#v", a, a, a); text != "[password] [password] [password]" {
		t.Error(text)
	}
}

func BenchmarkNewPassword(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if _, err := NewPassword([]byte("correct horse")); err != nil {
			b.Fatal(err)
		}
	}
}
