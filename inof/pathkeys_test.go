package inof

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// In a session with a password the keys are encrypted, and only so they are taken; nothing
// is taken twice, or the other way round.
func TestPathKeysCannotBeReadOnTheWay(t *testing.T) {
	d, l := established(t)
	now := time.Unix(2000, 0)
	q := &PathKeys{Asked: []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("2001:db8::9")}}
	answer := PathSecret{1}.Answer(d.cfg.Self, q)
	pass := func(from, to *Session, m *PathKeys) []byte {
		t.Helper()
		e, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		frame := from.Seal(nil, e, now)
		got, _, err := to.Receive(frame, nil, now)
		if diff := cmp.Diff(Message(m), got, cmpOpts); err != nil || diff != "" {
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
	body := func(b []byte) []byte { return b[HeaderLen : len(b)-TagLen] }
	if bytes.Equal(body(given), body(again)) {
		t.Error("the same message is encrypted in the same way twice")
	}
	for name, bad := range map[string][]byte{"in clear": frameOf(t, answer)[HeaderLen:], "of another message": body(again), "nothing": nil, "twice": append(bytes.Clone(body(given)), body(given)...)} {
		d, l := established(t)
		_, _, err := d.Receive(l.tx.seal(nil, Raw(TypePathKeys, bad)), nil, now)
		if p := new(ProtocolError); !errors.As(err, &p) || p.Code != CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
