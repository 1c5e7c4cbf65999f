package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Golden bytes of the TLVs that a message may hold at most once (docs/protocol.md,
// "Update"): each alone is good, the second one makes the message malformed.
func TestASecondSingleTLVIsMalformed(t *testing.T) {
	const (
		origin = "01 000005 04 c0000201"
		stamp  = "02 000010 18a0000000000001 0000000000000002"
		times  = "03 000018 0000000000000001 0000000000000002 0000000000000003"
	)
	need := map[wire.MsgType]string{wire.TypeKeepalive: "", wire.TypeUpdate: origin + stamp, wire.TypeEndOfSync: stamp, wire.TypeNotification: "01 000002 0007"}
	for _, c := range []struct {
		typ  wire.MsgType
		name string
		tlv  string
	}{
		{wire.TypeUpdate, "origin", origin},
		{wire.TypeUpdate, "stamp", stamp},
		{wire.TypeUpdate, "times", times},
		{wire.TypeUpdate, "settings", "04 000006 01 00000000 03"},
		{wire.TypeUpdate, "anew", "0f 000000"},
		{wire.TypeUpdate, "refused", "10 00000d 00000001 00000002 00 00000000"},
		{wire.TypeUpdate, "position", "09 000010 18a0000000000001 0000000000000002"},
		{wire.TypeUpdate, "partial", "0a 000000"},
		{wire.TypeEndOfSync, "stamp", stamp},
		{wire.TypeEndOfSync, "resumed", "0b 000000"},
		{wire.TypeKeepalive, "demand", "02 000008 0000000000000001"},
		{wire.TypeKeepalive, "answer", "03 000008 0000000000000001"},
		{wire.TypeNotification, "code", "01 000002 0007"},
		{wire.TypeNotification, "text", "02 000001 61"},
	} {
		t.Run(c.typ.String()+" "+c.name, func(t *testing.T) {
			body := need[c.typ]
			if !strings.Contains(body, c.tlv) {
				body += c.tlv
			}
			if m, err := wire.Decode(inoftest.Message(t, c.typ, body)); err != nil {
				t.Fatalf("once: got %v, %v", m, err)
			}
			m, err := wire.Decode(inoftest.Message(t, c.typ, body+c.tlv))
			p, ok := errors.AsType[*wire.ProtocolError](err)
			if !ok || p.Code != wire.CodeMalformed || !strings.Contains(err.Error(), "twice") {
				t.Fatalf("twice: got %v, %v; want code %v", m, err, wire.CodeMalformed)
			}
		})
	}
}

// Records, and TLVs of a type that is not known, may come any number of times.
func TestOtherTLVsMayRepeat(t *testing.T) {
	const fault = "07 000012 00 0000000000000000 04 c0000201 03 657430" // nobody is down: reason, time, device, port "et0"
	body := "01 000005 04 c0000201 02 000010 18a0000000000001 0000000000000002" + fault + fault + "50 000001 00 50 000001 00"
	m, err := wire.Decode(inoftest.Message(t, wire.TypeUpdate, body))
	if err != nil {
		t.Fatal(err)
	}
	if u := m.(*wire.Update); len(u.Downs) != 2 {
		t.Fatalf("%d records, want 2", len(u.Downs))
	}
}
