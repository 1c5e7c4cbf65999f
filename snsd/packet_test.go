package snsd

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// unhex reads hex digits with spaces between the fields.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// payload puts a header of that version before root TLVs.
func payload(t testing.TB, version byte, roots ...string) []byte {
	body := unhex(t, strings.Join(roots, " "))
	return append([]byte{version, 0, byte(len(body) >> 8), byte(len(body)), 0, 0, 0, 0}, body...)
}

const (
	ackRoot   = "22 0015  01 0004 c0000232  02 0004 c000020b  05 0004 00000007"
	queryRoot = "23 0007  02 0004 c000020b"
	// the notice of version 0: state and reason of one byte
	notify0 = "21 0027  01 0004 c0000232  02 0004 c000020b  05 0004 00000007  06 0001 00  07 0001 04  08 0007 01 01 0000 1144 00"
)

func TestParsePacketHeader(t *testing.T) {
	cases := []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrTruncated},
		{"half a header", []byte{1, 0, 0, 0}, ErrTruncated},
		{"newer version", payload(t, 2, ackRoot), ErrVersion},
		{"empty", payload(t, 1), nil},
		{"padding only", append(payload(t, 1), make([]byte, 50)...), nil},
		{"length beyond the frame", append([]byte{1, 0, 0xff, 0xff, 0, 0, 0, 0}, unhex(t, ackRoot+"22")...), ErrTruncated},
	}
	for _, c := range cases {
		p, err := ParsePacket(c.b)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if strings.HasPrefix(c.name, "length beyond") && len(p.Acks) != 1 {
			t.Errorf("%s: the complete root TLV was lost", c.name)
		}
		var partial *PartialError
		if errors.As(err, &partial) && partial.Bad != 1 {
			t.Errorf("%s: one fault was told %d times", c.name, partial.Bad)
		}
	}
}

func TestParsePacketVersion0(t *testing.T) {
	p, err := ParsePacket(payload(t, 0, notify0, notify0))
	if err != nil {
		t.Fatal(err)
	}
	n := goldenNotice(Inactive, ReasonZoneChanged)
	n.Service.NQN = ""
	if d := cmp.Diff(Packet{Notices: []Notice{n, n}}, p, cmpAddr); d != "" {
		t.Error(d)
	}
	back, err := p.Append(nil)
	if err != nil || string(back) != string(payload(t, 0, notify0, notify0)) {
		t.Errorf("written as % x, %v", back, err)
	}
	if _, err := ParsePacket(payload(t, 1, notify0)); !errors.Is(err, ErrLength) {
		t.Errorf("one-byte state in version 1: %v", err)
	}
}

func TestParsePacketSkipsBadRoots(t *testing.T) {
	cases := []struct {
		name, root string
		want       error
	}{
		{"unknown kind", "24 0000", ErrKind},
		{"kind 0", "20 0000", ErrKind},
		{"not structured", "02 0015 01 0004 c0000232 02 0004 c000020b 05 0004 00000007", ErrKind},
		{"no sub-TLV", "22 0000", ErrMissing},
		{"no subject", "22 000e 02 0004 c000020b 05 0004 00000007", ErrMissing},
		{"no host", "22 000e 01 0004 c0000232 05 0004 00000007", ErrMissing},
		{"no sequence", "22 000e 01 0004 c0000232 02 0004 c000020b", ErrMissing},
		{"address of 3 bytes", "23 0006 02 0003 c00002", ErrLength},
		{"address of 5 bytes", "23 0008 02 0005 c000020b00", ErrLength},
		{"empty address", "23 0003 02 0000", ErrLength},
		{"host twice", "23 000e 02 0004 c000020b 02 0004 c000020c", ErrDuplicate},
		{"host in both families", "23 001a 02 0004 c000020b 04 0010 20010db8000000000000000000000001", ErrFamily},
		{"mixed families", "22 0021 01 0004 c0000232 04 0010 20010db8000000000000000000000001 05 0004 00000007", ErrFamily},
		{"loopback", "23 0007 02 0004 7f000001", ErrAddress},
		{"multicast v6", "23 0013 04 0010 ff020000000000000000000000000001", ErrAddress},
		{"sub-TLV runs out", "23 0007 02 0005 c000020b", ErrTruncated},
		{"sub-TLV header cut", "23 0009 02 0004 c000020b 0900", ErrTruncated},
		{"no service", "21 0023 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 00000001 07 0004 00000000", ErrMissing},
		{"no state", "21 0026 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 07 0004 00000000 08 0007 01010000114400", ErrMissing},
		{"service cut", "21 002c 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 00000001 07 0004 00000000 08 0006 010100001144", ErrTruncated},
		{"NQN cut", "21 002d 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 00000001 07 0004 00000000 08 0007 01010000114401", ErrTruncated},
		{"state 2", "21 002d 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 00000002 07 0004 00000000 08 0007 01010000114400", ErrValue},
		{"state of a high byte", "21 002d 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 01000000 07 0004 00000000 08 0007 01010000114400", ErrValue},
		{"reason 256", "21 002d 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 00000001 07 0004 00000100 08 0007 01010000114400", ErrValue},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParsePacket(payload(t, 1, ackRoot, c.root, queryRoot))
			var partial *PartialError
			if !errors.As(err, &partial) || partial.Bad != 1 || !errors.Is(err, c.want) {
				t.Fatalf("%v, want one refusal with %v", err, c.want)
			}
			if len(p.Acks) != 1 || len(p.Queries) != 1 || len(p.Notices) != 0 {
				t.Errorf("the good root TLVs were not all kept: %+v", p)
			}
		})
	}
}

func TestParsePacketTolerates(t *testing.T) {
	cases := []struct{ name, root string }{
		{"unknown sub-TLV", "23 000c 02 0004 c000020b 63 0002 abcd"},
		{"sub-TLV 0", "23 000a 00 0000 02 0004 c000020b"},
		{"unknown sub-TLV twice", "23 000d 63 0000 63 0000 02 0004 c000020b"},
	}
	for _, c := range cases {
		p, err := ParsePacket(payload(t, 1, c.root))
		if err != nil || len(p.Queries) != 1 {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		}
	}
	// IPv4 addresses in the form of IPv6 are those of the IPv4 host
	mapped, err := ParsePacket(payload(t, 1, "22 002d 03 0010 00000000000000000000ffffc0000232 04 0010 00000000000000000000ffffc000020b 05 0004 00000007"))
	if want := (Ack{target, hostAddr, 7}); err != nil || len(mapped.Acks) != 1 || mapped.Acks[0] != want {
		t.Errorf("%+v, %v, want %+v", mapped, err, want)
	}
	// a newer reason, an unknown role and an NQN with control characters
	p, err := ParsePacket(payload(t, 1, "21 002e 01 0004 c0000232 02 0004 c000020b 05 0004 00000007"+
		"06 0004 00000000 07 0004 00000063 08 0008 4101000011440107"))
	if err != nil || len(p.Notices) != 1 || p.Odd != OddRole|OddNQN || p.Notices[0].Reason != 99 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A frame full of rubbish must not make an error as large as itself.
func TestPartialErrorIsBounded(t *testing.T) {
	p, err := ParsePacket(payload(t, 1, strings.Repeat("24 0000 ", 400), ackRoot))
	var partial *PartialError
	if !errors.As(err, &partial) || partial.Bad != 400 || len(partial.Errs) != maxPartial || len(p.Acks) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	var c ParseCounters
	c.Note(p, err)
	c.Note(ParsePacket([]byte{9, 0, 0, 0, 0, 0, 0, 0}))
	c.Note(ParsePacket(nil))
	if want := (ParseCounters{Packets: 3, Acks: 1, BadRoots: 400, NewerVersion: 1, Malformed: 1}); c != want {
		t.Errorf("counted %+v, want %+v", c, want)
	}
}

func TestAppendRefuses(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1")
	many := make([]Ack, 70) // 70 x 24 bytes
	for i := range many {
		many[i] = Ack{target, hostAddr, uint32(i)}
	}
	for i, c := range []struct {
		p    Packet
		want error
	}{
		{Packet{Version: 2}, ErrVersion},
		{Packet{Queries: []netip.Addr{{}}}, ErrAddress},
		{Packet{Acks: []Ack{{target, v6, 1}}}, ErrFamily},
		{Packet{Acks: []Ack{{netip.MustParseAddr("::1"), v6, 1}}}, ErrAddress},
		{Packet{Acks: []Ack{{v6, netip.MustParseAddr("ff02::1"), 1}}}, ErrAddress},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, State: 2}}}, ErrValue},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, Service: Service{NQN: "a\x00"}}}}, ErrNQN},
		{Packet{Acks: many}, ErrTooLong},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, State: Active, Fence: &Fence{}}}}, ErrValue},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, Fence: &Fence{Level: 3}}}}, ErrValue},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, Fence: &Fence{Hold: 65536 * time.Second}}}}, ErrValue},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, Fence: &Fence{Hold: -1}}}}, ErrValue},
		{Packet{Notices: []Notice{{Subject: target, Host: hostAddr, Fence: &Fence{Took: 50 * 24 * time.Hour}}}}, ErrValue},
	} {
		if b, err := c.p.Append(nil); !errors.Is(err, c.want) || len(b) != 0 {
			t.Errorf("case %d: %d bytes, %v, want %v", i, len(b), err, c.want)
		}
	}
}

func drawNotice(t *rapid.T) Notice {
	six := rapid.Bool().Draw(t, "v6")
	n := Notice{
		Subject: drawAddr(t, six, "subject"), Host: drawAddr(t, six, "host"), Seq: rapid.Uint32().Draw(t, "seq"),
		State: State(rapid.IntRange(0, 1).Draw(t, "state")), Reason: Reason(rapid.Byte().Draw(t, "reason")),
		Service: drawService(t),
	}
	if n.State == Inactive && rapid.Bool().Draw(t, "fence") {
		n.Fence = &Fence{
			Level: FenceLevel(rapid.IntRange(0, 2).Draw(t, "level")), Way: FenceWay(rapid.Byte().Draw(t, "way")),
			Hold: time.Duration(rapid.Uint16().Draw(t, "hold")) * time.Second,
			Took: time.Duration(rapid.Uint32().Draw(t, "took")) * time.Millisecond,
		}
	}
	return n
}

func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Packet{
			Version: uint8(rapid.IntRange(0, 1).Draw(t, "version")), Extensions: Extensions(rapid.Byte().Draw(t, "extensions")),
		}
		for range rapid.IntRange(0, 3).Draw(t, "notices") {
			want.Notices = append(want.Notices, drawNotice(t))
		}
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			n := drawNotice(t)
			want.Acks = append(want.Acks, Ack{n.Subject, n.Host, n.Seq})
			want.Queries = append(want.Queries, n.Host)
		}
		b, err := want.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		pad := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "padding")
		got, err := ParsePacket(append(b, pad...))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpAddr); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzParsePacket(f *testing.F) {
	for i, frame := range goldenFrames(f) {
		if i > 0 {
			f.Add(frame[14:])
		}
	}
	f.Add(payload(f, 0, notify0))
	f.Add(offering(payload(f, 1, notifyFence), 3))
	f.Add(payload(f, 1, ackRoot, "24 0000", queryRoot))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePacket(b)
		if len(b) > MaxPayload {
			return // can be read, need not be written
		}
		var partial *PartialError
		if err != nil && !errors.As(err, &partial) {
			if len(p.Notices)+len(p.Acks)+len(p.Queries) > 0 {
				t.Fatalf("refused with %v but gave %+v", err, p)
			}
			return
		}
		back, err := p.Append(nil)
		if err != nil {
			t.Fatalf("read %+v but cannot write it: %v", p, err)
		}
		again, err := ParsePacket(back)
		p.Odd = 0
		if err != nil || !cmp.Equal(p, again, cmpAddr) {
			t.Fatalf("read %+v, wrote and read %+v, %v", p, again, err)
		}
	})
}

func BenchmarkParsePacketNotice(b *testing.B) {
	payload, _ := AppendNotify(nil, goldenNotice(Active, 0))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePacket(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePacketAck(b *testing.B) {
	payload, _ := AppendAck(nil, Ack{target, hostAddr, 7})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePacket(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendNotify(b *testing.B) {
	n := goldenNotice(Active, 0)
	var p Packer
	buf := make([]byte, 0, 1514)
	b.ReportAllocs()
	for b.Loop() {
		p.Start(buf, Version)
		if ok, err := p.Add(&n); !ok || err != nil {
			b.Fatal(err)
		}
		p.Finish()
	}
}

// BenchmarkPacker packs 1,000 notices; ns/op is for all of them.
func BenchmarkPacker(b *testing.B) {
	notices := make([]Notice, 1000)
	for i := range notices {
		notices[i] = goldenNotice(Active, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := PackNotices(notices, Version, func([]byte) {}); err != nil {
			b.Fatal(err)
		}
	}
}
