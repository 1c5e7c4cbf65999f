package link

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// deliverTo gives a frame of a body that the peer sealed to s. Messages that may not
// come in an established session, and bodies that are malformed, are refused; others
// arrive as they were sent. It reports whether the session goes on.
func deliverTo(t *testing.T, s *Session, frame []byte, typ wire.MsgType, body []byte) bool {
	t.Helper()
	want, wrong := wire.DecodeBody(typ, body)
	m, _, err := s.Receive(frame, nil, inoftest.T0)
	switch {
	case wrong != nil || typ == wire.TypeOpen || typ == wire.TypeNotification:
		if err == nil {
			t.Fatalf("type %v with % x was taken: %v", typ, body, m)
		}
		return false
	case err != nil:
		t.Fatalf("type %v with % x: %v", typ, body, err)
	case typ == wire.TypeKeepalive:
		if k := want.(*wire.Keepalive); k.Demand|k.Answer == 0 {
			want = nil
		}
	}
	if diff := cmp.Diff(want, m, inoftest.CmpOpts); diff != "" {
		t.Fatal(diff)
	}
	return true
}

// A session takes exactly what was sealed for it, in order: FuzzConversation runs both
// sides through a script of messages of every kind. Each arrives as it was sent, until
// one is altered, dropped, repeated, cut or sent back: that is found, with a typed
// error, in every mode but none, and never gives a message and an error.
func FuzzConversation(f *testing.F) {
	i := byte(0)
	for _, m := range inoftest.Golden {
		e, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		for op := range byte(6) {
			f.Add(op%2, []byte{0, 1, 0, op<<1 | i&1}, append([]byte{byte(e.Type()) - 1}, e.Body()...))
		}
		i++
	}
	f.Fuzz(func(t *testing.T, mode byte, script, body []byte) {
		if len(body) == 0 || len(body) > wire.MaxHandshakeMessage || len(script) > 64 {
			return
		}
		config := func(c *SessionConfig) {
			if mode%2 == 1 {
				c.Auth = Auth{Mode: wire.AuthNone}
			}
		}
		d, l := newSession(t, true, config), newSession(t, false, config)
		if dErr, lErr := shake(t, d, l); dErr != nil || lErr != nil {
			t.Fatal(dErr, lErr)
		}
		typ, body := wire.MsgType(body[0]%6+1), body[1:]
		e := wire.Raw(typ, body)
		for i, op := range script {
			tx, rx := d, l
			if op&1 == 1 {
				tx, rx = l, d
			}
			frame := tx.Seal(nil, e, inoftest.T0)
			switch op >> 1 % 6 {
			case 0:
				if !deliverTo(t, rx, frame, typ, body) {
					return
				}
				continue
			case 1:
				frame[(i+len(script))%len(frame)] ^= 1 << (op % 8)
			case 2: // dropped
				frame = tx.Seal(nil, e, inoftest.T0)
			case 3: // repeated
				if !deliverTo(t, rx, frame, typ, body) {
					return
				}
			case 4: // sent back
				rx = tx
			case 5:
				frame = inoftest.Relength(frame[:len(frame)-1])
			}
			if len(frame) < wire.HeaderLen {
				return
			}
			m, _, err := rx.Receive(frame, nil, inoftest.T0)
			if err == nil && mode%2 == 0 {
				t.Fatalf("op %d: % x was taken: %v", op>>1%6, frame, m)
			}
			if _, peer := errors.AsType[*PeerError](err); err != nil && (m != nil || wire.CodeOf(err) == 0 && !peer) {
				t.Fatalf("op %d: %v with %v", op>>1%6, m, err)
			}
			return
		}
	})
}
