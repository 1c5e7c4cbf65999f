package link

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Session is the state machine of one connection (docs/protocol.md, "Session").
//
// It holds no lock. Once it is Established, Receive and Deadline on the one side
// and Seal and KeepaliveAt on the other touch nothing in common, so that a reader
// and a writer may work at the same time.
type Session struct {
	cfg   SessionConfig
	state State
	since time.Time

	own      []byte         // our Open as sent, until there are keys
	keys     []*SessionKeys // of each password, until the peer has shown which it knows
	used     *SessionKeys   // those of the session, mode hmac-sha256
	proved   bool           // listener: the dialer has; Confirm is next
	peer     *wire.Open
	hold     time.Duration // negotiated
	interval time.Duration // negotiated keepalive

	// receiving half
	rx     opener
	lastRx time.Time
	begun  time.Time

	// sending half
	tx     sealer
	lastTx time.Time
}

// NewSession gives a session in state Connect. Now begins the handshake timeout.
func NewSession(cfg SessionConfig, now time.Time) (*Session, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Auth.Mode == wire.AuthTLS && cfg.Identify == nil {
		return nil, errors.New("mode tls without a transport that identifies the peer")
	}
	return &Session{cfg: cfg, since: now, begun: now}, nil
}

// Start is to be called once the transport is there; it appends the dialer's Open.
func (s *Session) Start(out []byte, now time.Time) ([]byte, error) {
	if s.state != StateConnect || !s.cfg.Dialer {
		return out, nil
	}
	return s.sendOpen(out, now)
}

func (s *Session) sendOpen(out []byte, now time.Time) ([]byte, error) {
	o := &wire.Open{
		Device: s.cfg.Self, Roles: s.cfg.Roles, MinVersion: wire.Version, MaxVersion: wire.Version, Caps: s.cfg.Caps,
		Hold: s.cfg.Hold, Keepalive: s.cfg.Keepalive, Nonce: s.cfg.Nonce, Epoch: s.cfg.Epoch, Auth: s.cfg.Auth.Mode, Resume: s.cfg.Resume,
	}
	e, err := wire.Encode(o)
	if err != nil {
		return out, err
	}
	// The Open has number 0 and no tag: there is no key yet.
	s.own = e.Append(nil, 0, false)
	s.enter(StateOpenSend, now)
	s.lastTx = now
	return append(out, s.own...), nil
}

func (s *Session) enter(st State, now time.Time) { s.state, s.since = st, now }

// Limit is the longest message that is taken now, in bytes.
func (s *Session) Limit() int {
	if s.state == StateEstablished {
		return wire.MaxMessage
	}
	return wire.MaxHandshakeMessage
}

// Receive takes one whole message. It appends to out what must be sent at once
// and gives the message if it is for the layer above (Update, EndOfSync, Report). After an
// error the session is over: a *PeerError is the peer's own Notification, anything
// else is to be told to the peer by Notify.
func (s *Session) Receive(frame, out []byte, now time.Time) (wire.Message, []byte, error) {
	h, err := wire.ParseHeader(frame, s.Limit())
	if err != nil {
		return nil, out, err
	}
	if h.Length != len(frame) {
		return nil, out, &wire.ProtocolError{Code: wire.CodeLength, Where: "header", Detail: fmt.Sprintf("length %d, but there are %d bytes", h.Length, len(frame))}
	}
	if s.state != StateEstablished && h.Type == wire.TypeNotification && !h.Tagged() {
		m, err := wire.DecodeBody(h.Type, frame[wire.HeaderLen:])
		if n, ok := m.(*wire.Notification); ok {
			err = &PeerError{Code: n.Code, Text: n.Text}
		}
		return nil, out, err
	}
	if s.state < StateOpenConfirm {
		return s.receiveOpen(h, frame, out, now)
	}
	body, err := s.open(h, frame)
	if err != nil {
		return nil, out, err
	}
	if s.conceals(h.Type) {
		if body, err = s.reveal(body, h.Seq); err != nil {
			return nil, out, err
		}
	}
	m, err := wire.DecodeBody(h.Type, body)
	if err != nil {
		return nil, out, err
	}
	s.lastRx = now
	switch m := m.(type) {
	case *wire.Notification:
		return nil, out, &PeerError{Code: m.Code, Text: m.Text}
	case *wire.Keepalive:
		switch {
		case s.state == StateEstablished && m.Demand|m.Answer != 0:
			return m, out, nil
		case s.state == StateEstablished:
		case s.proved:
			return nil, out, s.unexpected(h.Type)
		case s.cfg.Dialer:
			s.enter(StateEstablished, now)
		case s.cfg.Confirm:
			s.proved = true
		default:
			out = s.confirm(out, now)
		}
		return nil, out, nil
	case *wire.Update, *wire.EndOfSync, *wire.Report, *wire.PathKeys, *wire.Bound:
		if s.state == StateEstablished {
			return m, out, nil
		}
	}
	return nil, out, s.unexpected(h.Type)
}

// open checks a message and gives its body. The first one of the peer shows which of
// the passwords it knows.
func (s *Session) open(h wire.Header, frame []byte) ([]byte, error) {
	if s.keys == nil {
		return s.rx.open(h, frame)
	}
	if !h.Tagged() {
		return nil, untagged(h)
	}
	end := len(frame) - wire.TagLen
	body, tag := frame[wire.HeaderLen:end], frame[end:]
	hash := sha256.Sum256(body)
	signed := digest(frame, &hash)
	if s.cfg.Dialer {
		k := ChooseByListener(s.keys, signed[:], tag)
		if k == nil {
			return nil, wrongTag(h)
		}
		if err := s.choose(k); err != nil {
			return nil, err
		}
		return s.rx.open(h, frame)
	}
	var proof []byte
	if h.Type == wire.TypeKeepalive {
		if m, err := wire.DecodeBody(h.Type, body); err == nil {
			proof = m.(*wire.Keepalive).Proof
		}
	}
	k, tagged := ChooseByDialer(s.keys, signed[:], tag, proof)
	if k == nil {
		return nil, wrongTag(h)
	}
	if err := s.choose(k); err != nil || tagged {
		if err != nil {
			return nil, err
		}
		return s.rx.open(h, frame)
	}
	// The tag is that of a password that only the dialer knows; of the message nothing
	// is taken but what it proves.
	if err := s.rx.inOrder(h); err != nil {
		return nil, err
	}
	return nil, nil
}

// Proved tells that a listener's dialer has proved what it must, and waits for Confirm.
func (s *Session) Proved() bool { return s.proved && s.state == StateOpenConfirm }

// Answer appends the listener's own proof, with which the session is Established. It
// is for a session with Confirm that is Proved.
func (s *Session) Answer(out []byte, now time.Time) []byte { return s.confirm(out, now) }

// keepalive is the wire form of most of them.
var keepalive, _ = wire.Encode(&wire.Keepalive{})

func (s *Session) confirm(out []byte, now time.Time) []byte {
	out = s.Seal(out, keepalive, now)
	s.enter(StateEstablished, now)
	return out
}

func (s *Session) unexpected(t wire.MsgType) error {
	return &wire.ProtocolError{Code: wire.CodeUnexpected, Where: t.String(), Detail: "not allowed in state " + s.state.String()}
}

// receiveOpen handles the first message of the peer. A listener answers with its
// own Open; then the dialer proves with a Keepalive that it knows the password, and
// only after that the listener: nobody else gets anything to try passwords on.
func (s *Session) receiveOpen(h wire.Header, frame, out []byte, now time.Time) (wire.Message, []byte, error) {
	if h.Type != wire.TypeOpen || (s.cfg.Dialer && s.state == StateConnect) {
		return nil, out, s.unexpected(h.Type)
	}
	if h.Tagged() || h.Seq != 0 {
		return nil, out, wire.Malformed("Open", "flags %#04x, number %d, want 0 and 0", h.Flags, h.Seq)
	}
	m, err := wire.DecodeBody(h.Type, frame[wire.HeaderLen:])
	if err != nil {
		return nil, out, err
	}
	o := m.(*wire.Open)
	if err := s.fits(o); err != nil {
		return nil, out, err
	}
	if s.state == StateConnect {
		if s.cfg.ResumeFor != nil {
			s.cfg.Resume = s.cfg.ResumeFor(o.Device)
		}
		if out, err = s.sendOpen(out, now); err != nil {
			return nil, out, err
		}
	}
	s.peer = o
	s.hold = min(s.cfg.Hold, o.Hold)
	s.interval = max(min(s.cfg.Keepalive, o.Keepalive, s.hold/3), wire.MinKeepalive)
	if err := s.setKeys(frame); err != nil {
		return nil, out, err
	}
	s.own = nil // the keys were what it was needed for
	s.lastRx = now
	s.enter(StateOpenConfirm, now)
	if !s.cfg.Dialer {
		return nil, out, nil
	}
	first := keepalive
	if proof := ProofOfSecond(s.keys); proof != nil {
		if first, err = wire.Encode(&wire.Keepalive{Proof: proof}); err != nil {
			return nil, out, err
		}
	}
	return nil, s.Seal(out, first, now), nil
}

// fits checks the peer's Open against our side.
func (s *Session) fits(o *wire.Open) error {
	refuse := func(c wire.Code, field, format string, args ...any) error {
		return &wire.ProtocolError{Code: c, Where: "Open." + field, Detail: fmt.Sprintf(format, args...)}
	}
	want := wire.RoleClient
	if s.cfg.Dialer {
		want = wire.RoleReflector
	}
	switch {
	case o.MinVersion > wire.Version || o.MaxVersion < wire.Version:
		return refuse(wire.CodeVersion, "versions", "the peer speaks %d..%d, want %d", o.MinVersion, o.MaxVersion, wire.Version)
	case o.Auth != s.cfg.Auth.Mode:
		return refuse(wire.CodeAuthMode, "auth", "the sender of this asks for %v, its peer for %v", s.cfg.Auth.Mode, o.Auth)
	case o.Device == s.cfg.Self:
		return refuse(wire.CodeOwnID, "device", "%v is the receiver's own device id: two devices have the same, or the connection leads back", o.Device)
	case s.cfg.Expect.IsValid() && o.Device != s.cfg.Expect:
		return refuse(wire.CodeDevice, "device", "%v, want %v", o.Device, s.cfg.Expect)
	case s.cfg.Allow != nil && !s.cfg.Allow(o.Device):
		return refuse(wire.CodeDevice, "device", "%v is not allowed here", o.Device)
	case possible(o.Device, s.cfg.Self) != nil:
		return refuse(wire.CodeDevice, "device", "%v", possible(o.Device, s.cfg.Self))
	case o.Caps&wire.CapInterestAll != 0 && s.cfg.Everything != nil && !s.cfg.Everything(o.Device):
		return refuse(wire.CodeDevice, "capabilities", "%v asks for all hosts (client.interest), which reflector.monitors does not let it", o.Device)
	case o.Roles&want == 0:
		return refuse(wire.CodeRole, "roles", "the peer is %v, want %v", o.Roles, want)
	case subtle.ConstantTimeCompare(o.Nonce[:], s.cfg.Nonce[:]) == 1:
		return refuse(wire.CodeOwnID, "nonce", "is our own: the connection leads back to its sender")
	}
	if s.cfg.Auth.Mode == wire.AuthTLS {
		if err := s.cfg.Identify(o.Device); err != nil {
			return err
		}
	}
	return checkTimers(o.Hold, o.Keepalive)
}

// possible gives why an address can be no device's, nil: it can. A loopback address is
// one only where this device's own is.
func possible(device, self netip.Addr) error {
	if device.Is6() && device.IsLinkLocalUnicast() {
		return fmt.Errorf("%v is an address of one link only", device)
	}
	if first := device.AsSlice(); device.Is4() && (first[0] == 0 || first[0] >= 240) {
		return fmt.Errorf("%v is of a reserved network", device)
	}
	return zone.Rules{AllowLoopback: self.IsLoopback()}.CheckAddr(device)
}

// setKeys derives the keys of each password. A dialer begins with the first; what the
// peer sends decides.
func (s *Session) setKeys(peer []byte) error {
	if s.cfg.Auth.Mode != wire.AuthHMAC {
		return nil
	}
	var h Handshake
	h.DialerNonce, h.Dialer, h.ListenerNonce, h.Listener = s.peer.Nonce[:], peer, s.cfg.Nonce[:], s.own
	if s.cfg.Dialer {
		h.DialerNonce, h.Dialer, h.ListenerNonce, h.Listener = h.ListenerNonce, h.Listener, h.DialerNonce, h.Dialer
	}
	keys, err := h.All(s.cfg.Auth.Passwords)
	if err != nil {
		return err
	}
	if s.cfg.Dialer {
		if err := s.choose(keys[0]); err != nil {
			return err
		}
	}
	s.keys = keys
	return nil
}

// choose makes the keys of one password those of the session.
func (s *Session) choose(k *SessionKeys) (err error) {
	tx, rx := k.Dialer, k.Listener
	if !s.cfg.Dialer {
		tx, rx = rx, tx
	}
	if s.tx.key, err = newMidstate(tx); err != nil {
		return err
	}
	if s.rx.key, err = newMidstate(rx); err != nil {
		return err
	}
	if s.tx.taggers, s.rx.taggers = s.cfg.taggers, s.cfg.taggers; s.cfg.taggers == nil {
		s.tx.taggers, s.rx.taggers = &ownTagger{}, &ownTagger{}
	}
	s.keys, s.used = nil, k
	return nil
}

// Password is the one of an established session, false where there is none.
func (s *Session) Password() (Password, bool) {
	if s.used == nil {
		return Password{}, false
	}
	return s.used.Password, true
}

// Seal appends a message with this session's number and tag. Only a session that
// is OpenConfirm or Established seals.
func (s *Session) Seal(out []byte, e *wire.Encoded, now time.Time) []byte {
	s.lastTx = now
	if s.conceals(e.Type()) {
		var err error
		if e, err = s.conceal(e.Body(), s.tx.seq+1); err != nil { // as with a message that was lost: it is asked again in the next session
			return out
		}
	}
	return s.tx.seal(out, e)
}

// Notify appends the Notification that tells the peer of err: tagged where the
// peer can check the tag, plain otherwise. An error that the peer reported itself
// is not told back.
func (s *Session) Notify(out []byte, err error) []byte {
	code := wire.CodeOf(err)
	if code == 0 {
		return out
	}
	text := err.Error()
	e, encErr := wire.Encode(&wire.Notification{Code: code, Text: text[:min(len(text), wire.MaxNotificationText)]})
	if encErr != nil {
		return out
	}
	if s.state >= StateOpenConfirm && (s.state == StateEstablished || code != wire.CodeAuthFailed) {
		return s.tx.seal(out, e)
	}
	at := len(out)
	out = e.Append(out, 0, false)
	if p, ok := errors.AsType[*wire.ProtocolError](err); ok && p.AnswerIn != 0 {
		out[at+4] = p.AnswerIn // a peer of another version reads no other header
	}
	return out
}

// Heard says that up to now the peer was not silent: it was not read.
func (s *Session) Heard(now time.Time) { s.lastRx = now }

// Deadline is when Expired gives an error unless something is received before.
func (s *Session) Deadline() time.Time {
	if s.state == StateEstablished {
		return s.lastRx.Add(s.hold)
	}
	return s.begun.Add(s.cfg.HandshakeTimeout)
}

// Expired reports whether the peer was silent for too long.
func (s *Session) Expired(now time.Time) error {
	if now.Before(s.Deadline()) {
		return nil
	}
	if s.state == StateEstablished {
		return &wire.ProtocolError{Code: wire.CodeHoldExpired, Detail: fmt.Sprintf("nothing was received for %v", s.hold)}
	}
	return &wire.ProtocolError{Code: wire.CodeHandshakeTimeout, Detail: fmt.Sprintf("state %v after %v", s.state, s.cfg.HandshakeTimeout)}
}

// KeepaliveAt is when a Keepalive is due unless something is sent before; zero
// before Established.
func (s *Session) KeepaliveAt() time.Time {
	if s.state != StateEstablished {
		return time.Time{}
	}
	return s.lastTx.Add(s.interval)
}

// State of the session and since when.
func (s *Session) State() (State, time.Time) { return s.state, s.since }

// Peer is the Open of the peer, nil before it came.
func (s *Session) Peer() *wire.Open { return s.peer }

// Offered is what our Open said was seen of the peer, nil: nothing.
func (s *Session) Offered() *wire.Resume { return s.cfg.Resume }

// Timers are the negotiated hold time and keepalive interval, zero before the Opens.
func (s *Session) Timers() (hold, keepalive time.Duration) { return s.hold, s.interval }
