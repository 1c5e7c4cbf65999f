package link

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
)

// In a session with a password the keys are encrypted, and only so they are taken; nothing
// is taken twice, or the other way round.
func TestPathKeysCannotBeReadOnTheWay(t *testing.T) {
	d, l := established(t)
	now := time.Unix(2000, 0)
	q := &wire.PathKeys{Asked: []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("2001:db8::9")}}
	answer := reflector.PathSecret{1}.Answer(d.cfg.Self, q)
	pass := func(from, to *Session, m *wire.PathKeys) []byte {
		t.Helper()
		e, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		frame := from.Seal(nil, e, now)
		got, _, err := to.Receive(frame, nil, now)
		if diff := cmp.Diff(wire.Message(m), got, inoftest.CmpOpts); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
		return frame
	}
	asked := pass(d, l, q)
	given := pass(l, d, answer)
	again := pass(l, d, answer)
	for _, k := range answer.Keys {
		if bytes.Contains(given, k.Secret[:]) {
			t.Error("a key can be read")
		}
	}
	if bytes.Contains(asked, q.Asked[1].AsSlice()) {
		t.Error("the question can be read")
	}
	body := func(b []byte) []byte { return b[wire.HeaderLen : len(b)-wire.TagLen] }
	if bytes.Equal(body(given), body(again)) {
		t.Error("the same message is encrypted in the same way twice")
	}
	for name, bad := range map[string][]byte{"in clear": inoftest.FrameOf(t, answer)[wire.HeaderLen:], "of another message": body(again), "nothing": nil, "twice": append(bytes.Clone(body(given)), body(given)...)} {
		d, l := established(t)
		_, _, err := d.Receive(l.tx.seal(nil, wire.Raw(wire.TypePathKeys, bad)), nil, now)
		if p := new(wire.ProtocolError); !errors.As(err, &p) || p.Code != wire.CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
