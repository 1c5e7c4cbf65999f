package link

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// hmacAuth takes short cuts that argon2id does not: a test has many passwords.
func hmacAuth(passwords ...string) Auth {
	a := Auth{Mode: wire.AuthHMAC}
	for _, p := range passwords {
		a.Passwords = append(a.Passwords, PasswordOfKey(sha256.Sum256([]byte(p))))
	}
	return a
}

func newSession(t inoftest.Failer, dialer bool, f func(*SessionConfig)) *Session {
	t.Helper()
	c := SessionConfig{Self: inoftest.ReflID, Roles: wire.RoleReflector, Epoch: 9, Auth: hmacAuth("password1"), Nonce: inoftest.GoldenNonce(100)}
	if dialer {
		c.Self, c.Roles, c.Dialer, c.Nonce = inoftest.DevID(0), wire.RoleClient, true, inoftest.GoldenNonce(1)
	}
	if f != nil {
		f(&c)
	}
	s, err := NewSession(c, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// frames cuts bytes into messages.
func frames(b []byte) (out [][]byte) {
	for len(b) > 0 {
		n := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// shake runs a handshake; the errors are those of the dialer and the listener.
func shake(t inoftest.Failer, d, l *Session) (dErr, lErr error) {
	t.Helper()
	toL, err := d.Start(nil, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	var toD []byte
	for len(toL)+len(toD) > 0 && (dErr == nil || lErr == nil) {
		in := toL
		toL = nil
		for _, f := range frames(in) {
			if lErr == nil {
				if _, toD, lErr = l.Receive(f, toD, inoftest.T0); lErr != nil {
					toD = l.Notify(toD, lErr)
				}
			}
		}
		in, toD = toD, nil
		for _, f := range frames(in) {
			if dErr == nil {
				if _, toL, dErr = d.Receive(f, toL, inoftest.T0); dErr != nil {
					toL = d.Notify(toL, dErr)
				}
			}
		}
	}
	return dErr, lErr
}

func established(t inoftest.Failer) (d, l *Session) {
	t.Helper()
	d, l = newSession(t, true, nil), newSession(t, false, nil)
	if dErr, lErr := shake(t, d, l); dErr != nil || lErr != nil {
		t.Fatalf("dialer %v, listener %v", dErr, lErr)
	}
	if d.state != StateEstablished || l.state != StateEstablished {
		t.Fatalf("dialer %v, listener %v", d.state, l.state)
	}
	return d, l
}

func TestHandshake(t *testing.T) {
	type cfg = func(*SessionConfig)
	short := func(hold, ka time.Duration) cfg {
		return func(c *SessionConfig) { c.Hold, c.Keepalive = hold, ka }
	}
	tests := []struct {
		name             string
		dialer, listener cfg
		code             wire.Code // 0: established
		blames           string    // who finds it
		text             string
	}{
		{name: "hmac"},
		{name: "none", dialer: func(c *SessionConfig) { c.Auth = Auth{Mode: wire.AuthNone} }, listener: func(c *SessionConfig) { c.Auth = Auth{Mode: wire.AuthNone} }},
		{name: "smaller timers win", dialer: short(time.Second, 300*time.Millisecond), listener: short(2*time.Second, 200*time.Millisecond)},
		{"wrong password", func(c *SessionConfig) { c.Auth = hmacAuth("password2") }, nil, wire.CodeAuthFailed, "listener", "tag does not match"},
		{"listener without authentication", nil, func(c *SessionConfig) { c.Auth = Auth{Mode: wire.AuthNone} }, wire.CodeAuthMode, "listener", "asks for none, its peer for hmac-sha256"},
		{"dialer without authentication", func(c *SessionConfig) { c.Auth = Auth{Mode: wire.AuthNone} }, nil, wire.CodeAuthMode, "listener", "asks for hmac-sha256, its peer for none"},
		{"own id", func(c *SessionConfig) { c.Self = inoftest.ReflID }, nil, wire.CodeOwnID, "listener", "own device id"},
		{"own nonce", func(c *SessionConfig) { c.Nonce = inoftest.GoldenNonce(100) }, nil, wire.CodeOwnID, "listener", "nonce"},
		{"another reflector", func(c *SessionConfig) { c.Expect = inoftest.DevID(9) }, nil, wire.CodeDevice, "dialer", "want 192.0.2.10"},
		{"client not allowed", nil, func(c *SessionConfig) { c.Allow = func(netip.Addr) bool { return false } }, wire.CodeDevice, "listener", "not allowed"},
		{"everything without the right", func(c *SessionConfig) { c.Caps = wire.CapInterestAll }, func(c *SessionConfig) { c.Everything = func(netip.Addr) bool { return false } }, wire.CodeDevice, "listener", "reflector.monitors"},
		{name: "everything with the right", dialer: func(c *SessionConfig) { c.Caps = wire.CapInterestAll }, listener: func(c *SessionConfig) { c.Everything = func(d netip.Addr) bool { return d == inoftest.DevID(0) } }},
		{"loopback id", func(c *SessionConfig) { c.Self = netip.MustParseAddr("127.0.0.1") }, nil, wire.CodeDevice, "listener", "127.0.0.1"},
		{"broadcast id", func(c *SessionConfig) { c.Self = netip.MustParseAddr("255.255.255.255") }, nil, wire.CodeDevice, "listener", "255.255.255.255"},
		{"id of no network", func(c *SessionConfig) { c.Self = netip.MustParseAddr("0.1.2.3") }, nil, wire.CodeDevice, "listener", "0.1.2.3"},
		{"link-local id", func(c *SessionConfig) { c.Self = netip.MustParseAddr("fe80::1") }, nil, wire.CodeDevice, "listener", "fe80::1"},
		{"group id", func(c *SessionConfig) { c.Self = netip.MustParseAddr("ff02::1") }, nil, wire.CodeDevice, "listener", "ff02::1"},
		{"client without the role", func(c *SessionConfig) { c.Roles = wire.RoleReflector }, nil, wire.CodeRole, "listener", "want client"},
		{"reflector without the role", nil, func(c *SessionConfig) { c.Roles = wire.RoleClient }, wire.CodeRole, "dialer", "want reflector"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, l := newSession(t, true, tt.dialer), newSession(t, false, tt.listener)
			dErr, lErr := shake(t, d, l)
			if tt.code == 0 {
				if dErr != nil || lErr != nil || d.state != StateEstablished || l.state != StateEstablished {
					t.Fatalf("dialer %v %v, listener %v %v", d.state, dErr, l.state, lErr)
				}
				if d.hold != l.hold || d.interval != l.interval || d.hold != min(d.cfg.Hold, l.cfg.Hold) || d.interval > d.hold/3 {
					t.Fatalf("timers %v %v and %v %v", d.hold, d.interval, l.hold, l.interval)
				}
				return
			}
			finder, told := dErr, lErr
			if tt.blames == "listener" {
				finder, told = lErr, dErr
			}
			var p *wire.ProtocolError
			if !errors.As(finder, &p) || p.Code != tt.code || !strings.Contains(p.Error(), tt.text) {
				t.Errorf("the %s has %v, want code %v with %q", tt.blames, finder, tt.code, tt.text)
			}
			var peer *PeerError
			both := tt.code == wire.CodeAuthFailed && wire.CodeOf(told) == tt.code // each side finds it in the other's Keepalive
			if !both && (!errors.As(told, &peer) || peer.Code != tt.code) {
				t.Errorf("the other side has %v, want to be told code %v", told, tt.code)
			}
			if d.state == StateEstablished && tt.blames == "dialer" || l.state == StateEstablished {
				t.Errorf("dialer %v, listener %v", d.state, l.state)
			}
		})
	}
}

func TestTimersOutOfRangeAreRefused(t *testing.T) {
	for _, tt := range [][2]time.Duration{{299 * time.Millisecond, 100 * time.Millisecond}, {time.Second, 99 * time.Millisecond}, {time.Second, 2 * time.Second}} {
		if _, err := NewSession(SessionConfig{Self: inoftest.DevID(0), Auth: hmacAuth("password1"), Hold: tt[0], Keepalive: tt[1]}, inoftest.T0); wire.CodeOf(err) != wire.CodeTimers {
			t.Errorf("own timers %v: %v", tt, err)
		}
		o := *inoftest.Golden["open-client"].(*wire.Open)
		o.Hold, o.Keepalive = tt[0], tt[1]
		l := newSession(t, false, nil)
		if _, _, err := l.Receive(openFrame(t, &o), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeTimers {
			t.Errorf("peer's timers %v: %v", tt, err)
		}
	}
}

func openFrame(t inoftest.Failer, o *wire.Open) []byte {
	f := inoftest.FrameOf(t, o)
	f[15] = 0 // number 0
	return f
}

func TestOtherVersionsAreRefused(t *testing.T) {
	for _, v := range [][2]uint8{{1, 1}, {3, 4}, {0, 0}} {
		o := *inoftest.Golden["open-client"].(*wire.Open)
		o.MinVersion, o.MaxVersion = v[0], v[1]
		if _, _, err := newSession(t, false, nil).Receive(openFrame(t, &o), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeVersion {
			t.Errorf("versions %v: %v", v, err)
		}
	}
	o := *inoftest.Golden["open-client"].(*wire.Open)
	o.MinVersion, o.MaxVersion = 2, 7
	if _, _, err := newSession(t, false, nil).Receive(openFrame(t, &o), nil, inoftest.T0); err != nil {
		t.Errorf("a newer peer that still speaks version 2: %v", err)
	}
}

// Every altered, repeated, dropped, swapped or reflected message is found.
func TestNothingCanBeAltered(t *testing.T) {
	seal := func(s *Session, name string) []byte {
		e, err := wire.Encode(inoftest.Golden[name])
		if err != nil {
			t.Fatal(err)
		}
		return s.Seal(nil, e, inoftest.T0)
	}
	t.Run("every byte", func(t *testing.T) {
		d, l := established(t)
		f := seal(d, "update-fault")
		for i := range f {
			g := slices.Clone(f)
			g[i] ^= 1
			trial := *l
			if m, _, err := trial.Receive(g, nil, inoftest.T0); err == nil {
				t.Fatalf("byte %d altered: %v was taken", i, m)
			}
		}
		if _, _, err := l.Receive(f, nil, inoftest.T0); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("repeated", func(t *testing.T) {
		d, l := established(t)
		f := seal(d, "update-fault")
		if _, _, err := l.Receive(f, nil, inoftest.T0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Receive(f, nil, inoftest.T0); wire.CodeOf(err) != wire.CodeSequence {
			t.Fatal(err)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		d, l := established(t)
		seal(d, "update-fault")
		if _, _, err := l.Receive(seal(d, "update-host"), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeSequence {
			t.Fatal(err)
		}
	})
	t.Run("reflected", func(t *testing.T) {
		d, l := established(t)
		seal(l, "update-fault")
		if _, _, err := d.Receive(seal(d, "update-fault"), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeAuthFailed {
			t.Fatal(err)
		}
	})
	t.Run("from another session", func(t *testing.T) {
		d, _ := established(t)
		l2 := newSession(t, false, func(c *SessionConfig) { c.Nonce = inoftest.GoldenNonce(7) })
		if dErr, lErr := shake(t, newSession(t, true, nil), l2); dErr != nil || lErr != nil {
			t.Fatal(dErr, lErr)
		}
		if _, _, err := l2.Receive(seal(d, "update-fault"), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeAuthFailed {
			t.Fatal(err)
		}
	})
	t.Run("without a tag", func(t *testing.T) {
		_, l := established(t)
		for _, m := range []string{"update-fault", "notification", "keepalive-none"} {
			trial := *l
			if _, _, err := trial.Receive(inoftest.GoldenFrame(t, m, nil), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeAuthFailed {
				t.Errorf("%s: %v", m, err)
			}
		}
	})
}

func TestUnexpectedMessagesAreRefused(t *testing.T) {
	for name, s := range map[string]*Session{"Connect": newSession(t, false, nil), "OpenSend": newSession(t, true, nil)} {
		if _, err := s.Start(nil, inoftest.T0); err != nil {
			t.Fatal(err)
		}
		for _, m := range []string{"keepalive-none", "update-host", "end-of-sync"} {
			trial := *s
			if _, _, err := trial.Receive(inoftest.GoldenFrame(t, m, nil), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeUnexpected || !strings.Contains(err.Error(), name) {
				t.Errorf("%s in %s: %v", m, name, err)
			}
		}
	}
	none := func(c *SessionConfig) { c.Auth = Auth{Mode: wire.AuthNone} }
	d, l := newSession(t, true, none), newSession(t, false, none)
	open, _ := d.Start(nil, inoftest.T0)
	if _, _, err := l.Receive(open, nil, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Receive(inoftest.GoldenFrame(t, "update-host", nil), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeUnexpected {
		t.Errorf("Update in OpenConfirm: %v", err)
	}
}

func TestLongMessagesWaitForThePassword(t *testing.T) {
	l := newSession(t, false, nil)
	f := inoftest.AppendHeader(nil, wire.MaxHandshakeMessage+1, wire.TypeOpen, 0, 0)
	if _, _, err := l.Receive(append(f, make([]byte, wire.MaxHandshakeMessage+1-wire.HeaderLen)...), nil, inoftest.T0); wire.CodeOf(err) != wire.CodeLength {
		t.Fatal(err)
	}
}

func TestDeadlines(t *testing.T) {
	s := newSession(t, false, nil)
	if at := s.Deadline(); !at.Equal(inoftest.T0.Add(wire.HandshakeTimeout)) || s.Expired(at.Add(-1)) != nil || wire.CodeOf(s.Expired(at)) != wire.CodeHandshakeTimeout {
		t.Errorf("handshake deadline %v: %v", at, s.Expired(at))
	}
	if !s.KeepaliveAt().IsZero() {
		t.Error("keepalive is due before Established")
	}
	d, l := established(t)
	if at := l.Deadline(); !at.Equal(inoftest.T0.Add(wire.DefaultHold)) || wire.CodeOf(l.Expired(at)) != wire.CodeHoldExpired {
		t.Errorf("hold deadline %v: %v", at, l.Expired(at))
	}
	if at := d.KeepaliveAt(); !at.Equal(inoftest.T0.Add(wire.DefaultKeepalive)) {
		t.Errorf("keepalive at %v", at)
	}
	later := inoftest.T0.Add(2 * time.Second)
	if _, _, err := l.Receive(d.Seal(nil, keepalive, later), nil, later); err != nil {
		t.Fatal(err)
	}
	if !l.Deadline().Equal(later.Add(wire.DefaultHold)) || !d.KeepaliveAt().Equal(later.Add(wire.DefaultKeepalive)) {
		t.Errorf("after a keepalive: %v, %v", l.Deadline(), d.KeepaliveAt())
	}
}

func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		attempt   int
		low, high time.Duration
	}{
		{-1, 50, 100}, {0, 50, 100}, {1, 100, 200}, {2, 200, 400}, {3, 400, 800}, {4, 800, 1600}, {5, 1600, 3200}, {6, 2500, 5000}, {7, 2500, 5000}, {1 << 40, 2500, 5000},
	} {
		if got := Backoff(tt.attempt, 0); got != tt.low*time.Millisecond {
			t.Errorf("attempt %d, least: %v", tt.attempt, got)
		}
		if got := Backoff(tt.attempt, 0.9999999); got > tt.high*time.Millisecond || got < (tt.high-1)*time.Millisecond {
			t.Errorf("attempt %d, most: %v", tt.attempt, got)
		}
	}
}

// FuzzSession feeds bytes to sessions in every state: raw ones and, behind a right
// tag, ones that got past the authentication.
func FuzzSession(f *testing.F) {
	for name := range inoftest.Golden {
		e, _ := wire.Encode(inoftest.Golden[name])
		f.Add(uint8(0), e.Append(nil, 1, false))
		f.Add(uint8(3), e.Body())
	}
	f.Fuzz(func(t *testing.T, state uint8, b []byte) {
		d, l := newSession(t, true, nil), newSession(t, false, nil)
		s, peer := l, d
		switch state % 5 {
		case 1: // dialer in OpenSend
			s = d
			_, _ = d.Start(nil, inoftest.T0)
		case 2: // listener in OpenConfirm
			open, _ := d.Start(nil, inoftest.T0)
			if _, _, err := l.Receive(open, nil, inoftest.T0); err != nil {
				t.Fatal(err)
			}
		case 3, 4:
			peer, s = established(t)
		}
		if state%5 == 4 && len(b) > 0 { // any body, sealed by the peer
			b = peer.Seal(nil, wire.Raw(wire.MsgType(b[0]), b[1:]), inoftest.T0)
		}
		before := s.state
		m, out, err := s.Receive(b, nil, inoftest.T0)
		if err != nil {
			if m != nil {
				t.Fatal("a message with an error")
			}
			for _, n := range frames(s.Notify(nil, err)) {
				if _, err := wire.ParseHeader(n, wire.MaxHandshakeMessage); err != nil {
					t.Fatal(err)
				}
			}
			return
		}
		if before < StateOpenConfirm && s.state == StateEstablished {
			t.Fatal("established without a proof")
		}
		for range frames(out) {
		}
	})
}

// FuzzMAC changes a sealed message: only the unchanged one is taken.
func FuzzMAC(f *testing.F) {
	f.Add(uint16(3), byte(1), []byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint16, flip byte, body []byte) {
		if len(body) > 4096 {
			return
		}
		d, l := established(t)
		frame := d.Seal(nil, wire.Raw(wire.TypeUpdate, body), inoftest.T0)
		h, err := wire.ParseHeader(frame, wire.MaxMessage)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(frame)
		bad[int(at)%len(bad)] ^= flip
		trial := l.rx
		if hb, err := wire.ParseHeader(bad, wire.MaxMessage); err == nil && hb.Length == len(bad) {
			if _, err := trial.open(hb, bad); (err == nil) != (flip == 0) {
				t.Fatalf("byte %d changed by %#x: %v", int(at)%len(bad), flip, err)
			}
		}
		got, err := l.rx.open(h, frame)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%x: %v", got, err)
		}
	})
}
