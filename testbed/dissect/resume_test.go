package dissect

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/wire"
)

// The TLVs of resumption and of several reflectors, good and bad: what the tree shows
// of each, and with which words it refuses. The decoder refuses the same ones.
func TestTLVsOfResumption(t *testing.T) {
	requireTshark(t)
	const (
		update = "01000005 04c0000201" + stampTLV
		device = "08000015 04c0000202 18a0000000000003 000000000000000c"
		three  = "17979cfe3a0c8a00 17979cfe3a0c8a01 17979cfe3a0c8a02"
		twelve = "18a0000000000002 0000000000000007"
	)
	cases := []struct {
		name string
		typ  wire.MsgType
		body string
		show string // of the TLV's line, when it is good
		want string // the expert info, when it is not
	}{
		{"device", wire.TypeUpdate, update + device, "State of a device: 192.0.2.2, epoch 0x18a0000000000003, sequence 12", ""},
		{"device twice", wire.TypeUpdate, update + device + device, "State of a device: 192.0.2.2", ""},
		{"device, IPv6", wire.TypeUpdate, update + "08000021 0620010db8000000000000000000000002" + twelve, "State of a device: 2001:db8::2, epoch 0x18a0000000000002, sequence 7", ""},
		{"device without address", wire.TypeUpdate, update + "08000000", "", "inof.bad_length: Update, TLV 8: inof.family truncated: 0 of 1 bytes are left"},
		{"device of no family", wire.TypeUpdate, update + "08000015 05c0000202" + twelve, "", "inof.malformed: Update, TLV 8: address family 5, want 4 or 6"},
		{"device, mapped", wire.TypeUpdate, update + "08000021 0600000000000000000000ffffc0000202" + twelve, "", "inof.malformed: Update, TLV 8: IPv4 address in IPv6 form"},
		{"device without stamp", wire.TypeUpdate, update + "08000005 04c0000202", "", "inof.bad_length: Update, TLV 8: inof.record_of.epoch truncated: 0 of 8 bytes are left"},
		{"device, cut", wire.TypeUpdate, update + "08000014 04c0000202 18a0000000000003 00000000000000", "", "inof.bad_length: Update, TLV 8: inof.record_of.seq truncated: 7 of 8 bytes are left"},
		{"position", wire.TypeUpdate, update + "09000010" + twelve, "Position: epoch 0x18a0000000000002, sequence 7", ""},
		{"position twice", wire.TypeUpdate, update + "09000010" + twelve + "09000010" + twelve, "", "inof.malformed: Update, TLV 9: is there twice"},
		{"position, cut", wire.TypeUpdate, update + "09000008 18a0000000000002", "", "inof.bad_length: Update, TLV 9: inof.position.seq truncated: 0 of 8 bytes are left"},
		{"position of no epoch", wire.TypeUpdate, update + "09000010 0000000000000000 0000000000000007", "", "inof.malformed: Update, TLV 9: 0 is no epoch"},
		{"times", wire.TypeUpdate, update + "03000018" + three, "Passed on by the reflector: ", ""},
		{"times of the origin and the reflector", wire.TypeUpdate, update + "03000028" + three + "17979cfe3a0c8a05 17979cfe3a0c8a06", "Read by the reflector: ", ""},
		{"times, the origin's not known", wire.TypeUpdate, update + "03000028" + three + "0000000000000000 17979cfe3a0c8a06", "Taken up by the origin: not known", ""},
		{"times, cut", wire.TypeUpdate, update + "03000020" + three + "17979cfe3a0c8a05", "", "inof.bad_length: Update, TLV 3: inof.time.reflector truncated: 0 of 8 bytes are left"},
		{"partial", wire.TypeUpdate, update + "0a000000", "Partial: more follows", ""},
		{"partial twice", wire.TypeUpdate, update + "0a000000 0a000000", "", "inof.malformed: Update, TLV 10: is there twice"},
		{"partial, longer than the message", wire.TypeUpdate, update + "0a000001", "", "inof.bad_length: Update, TLV 10: length 1, but 0 bytes are left"},
		{"resumed", wire.TypeEndOfSync, stampTLV + "0b000000", "Resumed: resumed", ""},
		{"resumed twice", wire.TypeEndOfSync, stampTLV + "0b000000 0b000000", "", "inof.malformed: End-of-Sync, TLV 11: is there twice"},
		{"resumed alone", wire.TypeEndOfSync, "0b000000", "", "inof.malformed: End-of-Sync: TLV 2 (Stamp) is missing"},
		{"cluster", wire.TypeUpdate, update + "0c000010 5eed0000000000c1 000000000000002a", "Cluster: 0x5eed0000000000c1, entry 42", ""},
		{"cluster 0", wire.TypeUpdate, update + "0c000010 0000000000000000 000000000000002a", "", "inof.malformed: Update, TLV 12: 0 is no cluster"},
		{"cluster twice", wire.TypeEndOfSync, stampTLV + strings.Repeat("0c000010 5eed0000000000c1 000000000000002a", 2), "", "inof.malformed: End-of-Sync, TLV 12: is there twice"},
		{"members", wire.TypeEndOfSync, stampTLV + strings.Repeat("0d000005 04c0000202", 9), "Member: 192.0.2.2", ""},
		{"too many members", wire.TypeEndOfSync, stampTLV + strings.Repeat("0d000005 04c0000202", 10), "", "inof.malformed: End-of-Sync, TLV 13: more than 9"},
		{"stamp twice", wire.TypeEndOfSync, stampTLV + stampTLV, "", "inof.malformed: End-of-Sync, TLV 2: is there twice"},
		{"code twice", wire.TypeNotification, "01000002 0007 01000002 0007", "", "inof.malformed: Notification, TLV 1: is there twice"},
		{"resume", wire.TypeOpen, openTLVs + "09000010" + twelve, "Resume: epoch 0x18a0000000000002, sequence 7", ""},
		{"resume, cut", wire.TypeOpen, openTLVs + "0900000f 18a0000000000002 00000000000000", "", "inof.bad_length: Open, TLV 9: inof.resume.seq truncated: 7 of 8 bytes are left"},
		{"zones held", wire.TypeOpen, openTLVs + "09000010" + twelve + "0a000010" + twelve, "Zones held: digest", ""},
		{"zones held, cut", wire.TypeOpen, openTLVs + "09000010" + twelve + "0a00000f 18a0000000000002 00000000000000", "", "inof.bad_length: Open, TLV 10: inof.resume.zones truncated: 15 of 16 bytes are left"},
		{"resume twice", wire.TypeOpen, openTLVs + "09000010" + twelve + "09000010" + twelve, "", "inof.malformed: Open, TLV 9: is there twice"},
		{"asks for everything", wire.TypeOpen, strings.Replace(openTLVs, "04000008 0000000000000000", "04000008 0000000000000001", 1), "Capabilities: 0x0000000000000001", ""},
	}
	c := newCapture(t)
	for i := range cases {
		x := &cases[i]
		body, err := hex.DecodeString(strings.ReplaceAll(x.body, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		frame := append([]byte{0, 0, byte((wire.HeaderLen + len(body)) >> 8), byte(wire.HeaderLen + len(body)), wire.Version, byte(x.typ), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, body...)
		if _, err := wire.Decode(frame); (err != nil) != (x.want != "") {
			t.Errorf("%s: the decoder says %v", x.name, err)
		}
		c.stream().send(fromClient, frame)
	}
	i := 0
	for _, p := range dissect(t, c.file) {
		if p.show("tcp.len") == "0" {
			continue
		}
		x := cases[i]
		i++
		trees := p.protos("inof")
		if len(trees) != 1 {
			t.Errorf("%s: %d trees", x.name, len(trees))
			continue
		}
		if got := strings.Join(trees[0].experts(severityError), "; "); got != x.want {
			t.Errorf("%s:\n got %q\nwant %q", x.name, got, x.want)
		}
		seen := x.show == ""
		trees[0].walk(func(n *node) {
			seen = seen || strings.HasPrefix(n.Show, x.show) || strings.HasPrefix(n.Showname, x.show)
		})
		if !seen {
			t.Errorf("%s: no line %q", x.name, x.show)
		}
	}
	if i != len(cases) {
		t.Errorf("%d cases seen, want %d", i, len(cases))
	}
}

const (
	stampTLV = "02000010 18a0000000000001 0000000000000002"
	openTLVs = "01000005 04c0000201 02000002 0202 03000001 02 04000008 0000000000000000 05000008 0000232800000bb8" +
		"06000020 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 07000008 18a0000000000001 08000001 01"
)
