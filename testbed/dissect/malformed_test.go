package dissect

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
)

// mutate changes a few bytes of b from offset keep on, or its length.
func (r source) mutate(b []byte, keep int) []byte {
	b = append([]byte(nil), b...)
	for range 1 + r.IntN(3) {
		if len(b) <= keep {
			return b
		}
		i := keep + r.IntN(len(b)-keep)
		switch r.IntN(6) {
		case 0:
			b[i] ^= 1 << r.IntN(8)
		case 1:
			b[i] = byte(r.IntN(256))
		case 2:
			b[i] = []byte{0, 1, 4, 6, 0x7f, 0x80, 0xff}[r.IntN(7)]
		case 3:
			b = b[:i]
		case 4:
			b = append(b[:i], b[i+r.IntN(len(b)-i):]...)
		default:
			b = append(b[:i], append([]byte{byte(r.IntN(256)), 0, byte(r.IntN(4)), byte(r.IntN(4))}, b[i:]...)...)
		}
	}
	return b
}

// judged compares the judgement on one packet: an expert info of severity Error, or
// none.
func judged(t *testing.T, what string, n int, trees []node, err error, bytes []byte) {
	t.Helper()
	if len(trees) != 1 {
		t.Errorf("%s %d: %d trees, want 1\n% x", what, n, len(trees), bytes)
		return
	}
	if got := trees[0].experts(severityError); (len(got) > 0) != (err != nil) {
		t.Errorf("%s %d: the decoder says %v, the dissector %q\n% x", what, n, err, got, bytes)
	}
}

// mixed wants both kinds of judgement among those that are compared.
func mixed(t *testing.T, errs []error) {
	t.Helper()
	refused := 0
	for _, err := range errs {
		if err != nil {
			refused++
		}
	}
	if t.Logf("%d of %d are refused", refused, len(errs)); refused < len(errs)/10 || refused > len(errs)*9/10 {
		t.Errorf("%d of %d are refused: little is compared", refused, len(errs))
	}
}

// Whatever becomes of a message, the dissector finds fault with it exactly when the
// decoder does.
func TestTheDissectorJudgesMessagesLikeTheDecoder(t *testing.T) {
	requireTshark(t)
	const trials = 1500
	r, c := newSource(21), newCapture(t)
	var frames [][]byte
	var errs []error
	for range trials {
		var m wire.Message = r.open()
		if r.IntN(5) > 0 {
			m = r.message()
		}
		e, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		k := newTalk(t, []link.Auth{hmac, none}[r.IntN(2)], opensOf(r))
		b := r.mutate(k.sides[fromClient].Seal(nil, e, now), 5)
		for len(b) < wire.HeaderLen {
			b = append(b, 0)
		}
		binary.BigEndian.PutUint32(b, uint32(len(b)))
		_, err = wire.Decode(b)
		frames, errs = append(frames, b), append(errs, err)
		c.stream().send(fromClient, b)
	}
	mixed(t, errs)
	i := 0
	for _, p := range dissect(t, c.file) {
		if p.show("tcp.len") == "0" {
			continue
		}
		judged(t, "message", i, p.protos("inof"), errs[i], frames[i])
		i++
	}
	if i != trials {
		t.Errorf("%d messages were looked at, want %d", i, trials)
	}
}

// Each way in which a header can be wrong has its own expert info.
func TestBadHeaders(t *testing.T) {
	requireTshark(t)
	header := func(length uint32, version, typ byte, flags uint16) []byte {
		b := binary.BigEndian.AppendUint32(nil, length)
		b = append(b, version, typ)
		b = binary.BigEndian.AppendUint16(b, flags)
		return append(b, make([]byte, 8)...)
	}
	cases := []struct {
		bytes []byte
		want  string
	}{
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "inof.foreign: No iNOF header here: HTTP"},
		{[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"), "inof.foreign: No iNOF header here: TLS"},
		{[]byte("SSH-2.0-x\r\n"), "inof.foreign: No iNOF header here: SSH"},
		{[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x1d\x01"), "inof.foreign: No iNOF header here: BGP"},
		{[]byte{0x55}, "inof.foreign: No iNOF header here: another protocol, or the middle of a message"},
		{header(15, wire.Version, 2, 0), "inof.bad_length: Length 15, want 16..1048576"},
		{header(0, wire.Version, 2, 0), "inof.bad_length: Length 0, want 16..1048576"},
		{header(1<<20+1, wire.Version, 2, 0), "inof.bad_length: Length 1048577, want 16..1048576"},
		{header(16, 1, 2, 0), "inof.bad_version: Version 1, want 2"},
		{header(16, wire.Version, 9, 0), "inof.unknown_type: Unknown message type 9"},
		{header(16, wire.Version, 2, 0x4000), "inof.malformed: Flags 0x4000 hold one that must be understood"},
		{header(16, wire.Version, 2, 1), "inof.bad_length: Length 16 has no room for the tag of 32 bytes"},
		{append(header(20, wire.Version, 2, 0), 0x91, 0, 0, 0), "inof.unknown_type: Keepalive, TLV 145: it must be understood and is unknown"},
		{append(header(19, wire.Version, 3, 0), 1, 0, 0), "inof.bad_length: Update: 3 bytes are no TLV header"},
		{header(16, wire.Version, 4, 0), "inof.malformed: End-of-Sync: TLV 2 (Stamp) is missing"},
	}
	c := newCapture(t)
	for _, x := range cases {
		c.stream().send(fromClient, x.bytes)
	}
	i := 0
	for _, p := range dissect(t, c.file) {
		if p.show("tcp.len") == "0" {
			continue
		}
		trees := p.protos("inof")
		if len(trees) != 1 {
			t.Fatalf("% x: %d trees", cases[i].bytes, len(trees))
		}
		if got := strings.Join(trees[0].experts(severityError), "; "); got != cases[i].want {
			t.Errorf("% x:\n got %s\nwant %s", cases[i].bytes, got, cases[i].want)
		}
		i++
	}
	if i != len(cases) {
		t.Errorf("%d cases seen, want %d", i, len(cases))
	}
}

// Rubbish from the first byte on, segments torn anywhere, captures that keep only the
// beginning of each packet, reassembly off: there is no byte string that ends in an
// error of Lua (dissect looks for those).
func TestRubbishIsNoErrorOfLua(t *testing.T) {
	requireTshark(t)
	for _, x := range []struct {
		cut  int
		args []string
	}{{0, nil}, {90, nil}, {70, nil}, {0, []string{"-o", "tcp.desegment_tcp_streams:FALSE"}}, {120, []string{"-2"}}} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			r, c := newSource(33), newCapture(t)
			c.cut = x.cut
			for range 60 {
				s := c.stream()
				k := newTalk(t, hmac, opensOf(r))
				for range 4 {
					k.say(fromClient, r.message())
				}
				for _, b := range k.bytes[fromClient] {
					if r.IntN(2) == 0 {
						b = r.mutate(b, 0)
					}
					s.sendIn(fromClient, 1+r.IntN(800), b)
				}
				c.frame(append(ethernet(0x88a7), r.mutate(r.nts(t), 0)...))
				c.frame(r.mutate(r.lldp(t), 12))
			}
			if got := len(dissect(t, c.file, x.args...)); got != c.packets {
				t.Errorf("%d packets of %d", got, c.packets)
			}
		})
	}
}

// The judgement on NTS frames is the parser's too.
func TestTheDissectorJudgesNTSLikeTheParser(t *testing.T) {
	requireTshark(t)
	const trials = 1500
	r, c := newSource(22), newCapture(t)
	var payloads [][]byte
	var errs []error
	for range trials {
		b := r.mutate(r.nts(t), 0)
		if len(b) >= 4 && r.IntN(4) > 0 { // else nearly all lengths are wrong
			binary.BigEndian.PutUint16(b[2:], uint16(max(len(b)-8, 0)))
		}
		if len(b) == 0 {
			b = []byte{1}
		}
		_, err := snsd.ParsePacket(b)
		payloads, errs = append(payloads, b), append(errs, err)
		c.frame(append(ethernet(0x88a7), b...))
	}
	mixed(t, errs)
	for i, p := range dissect(t, c.file) {
		judged(t, "NTS frame", i, p.protos("nts"), errs[i], payloads[i])
	}
}

// So is the one on registrations, inside LLDP and after it.
func TestTheDissectorJudgesRegistrationsLikeTheParser(t *testing.T) {
	requireTshark(t)
	const trials = 800
	r, c := newSource(23), newCapture(t)
	var values [][]byte
	var errs []error
	for range trials {
		v, err := r.registration().AppendTLV(nil)
		if err != nil {
			t.Fatal(err)
		}
		v = r.mutate(v, 4)
		v = v[:min(len(v), 511)]
		_, err = snsd.ParseRegistration(v)
		values, errs = append(values, v), append(errs, err)
		c.frame(lldpdu(v))
	}
	mixed(t, errs)
	for _, args := range [][]string{nil, {"-X", "lua_script1:after-lldp"}} {
		for i, p := range dissect(t, c.file, args...) {
			judged(t, "registration", i, p.protos("snsd"), errs[i], values[i])
		}
	}
}
