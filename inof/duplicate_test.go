package inof

import (
	"errors"
	"strings"
	"testing"
)

// Golden bytes of the TLVs that a message may hold at most once (docs/protocol.md,
// "Update"): each alone is good, the second one makes the message malformed.
func TestASecondSingleTLVIsMalformed(t *testing.T) {
	const (
		origin = "01 000005 04 c0000201"
		stamp  = "02 000010 18a0000000000001 0000000000000002"
		times  = "03 000018 0000000000000001 0000000000000002 0000000000000003"
	)
	need := map[MsgType]string{TypeKeepalive: "", TypeUpdate: origin + stamp, TypeEndOfSync: stamp, TypeNotification: "01 000002 0007"}
	for _, c := range []struct {
		typ  MsgType
		name string
		tlv  string
	}{
		{TypeUpdate, "origin", origin},
		{TypeUpdate, "stamp", stamp},
		{TypeUpdate, "times", times},
		{TypeUpdate, "settings", "04 000006 01 00000000 03"},
		{TypeUpdate, "anew", "0f 000000"},
		{TypeUpdate, "refused", "10 00000d 00000001 00000002 00 00000000"},
		{TypeUpdate, "position", "09 000010 18a0000000000001 0000000000000002"},
		{TypeUpdate, "partial", "0a 000000"},
		{TypeEndOfSync, "stamp", stamp},
		{TypeEndOfSync, "resumed", "0b 000000"},
		{TypeKeepalive, "demand", "02 000008 0000000000000001"},
		{TypeKeepalive, "answer", "03 000008 0000000000000001"},
		{TypeNotification, "code", "01 000002 0007"},
		{TypeNotification, "text", "02 000001 61"},
	} {
		t.Run(c.typ.String()+" "+c.name, func(t *testing.T) {
			body := need[c.typ]
			if !strings.Contains(body, c.tlv) {
				body += c.tlv
			}
			if m, err := Decode(message(t, c.typ, body)); err != nil {
				t.Fatalf("once: got %v, %v", m, err)
			}
			m, err := Decode(message(t, c.typ, body+c.tlv))
			p, ok := errors.AsType[*ProtocolError](err)
			if !ok || p.Code != CodeMalformed || !strings.Contains(err.Error(), "twice") {
				t.Fatalf("twice: got %v, %v; want code %v", m, err, CodeMalformed)
			}
		})
	}
}

// Records, and TLVs of a type that is not known, may come any number of times.
func TestOtherTLVsMayRepeat(t *testing.T) {
	const fault = "07 00000b 02 00 04 c0000201 03 657430" // a withdrawal: reason, device, port "et0"
	body := "01 000005 04 c0000201 02 000010 18a0000000000001 0000000000000002" + fault + fault + "50 000001 00 50 000001 00"
	m, err := Decode(message(t, TypeUpdate, body))
	if err != nil {
		t.Fatal(err)
	}
	if u := m.(*Update); len(u.Faults) != 2 {
		t.Fatalf("%d faults, want 2", len(u.Faults))
	}
}
