package inof

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What the TLVs of resumption and of several reflectors refuse: Open TLV 9, Update
// TLVs 8, 9 and 10, End-of-Sync TLV 11.
func TestWrongBytesOfResumptionHaveTypedErrors(t *testing.T) {
	const (
		origin = "01 000005 04 c0000201"
		stamp  = "02 000010 18a0000000000001 0000000000000002"
		eight  = "18a0000000000001"
		update = origin + stamp
	)
	open := frameOf(t, golden["open-client"])
	openWith := func(tlv string) []byte {
		return relength(append(slices.Clone(open), message(t, TypeOpen, tlv)[HeaderLen:]...))
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		text  string // empty: it is good
	}{
		{"device", message(t, TypeUpdate, update+"08 000015 04 c0000202"+eight+eight), ""},
		{"device of a later version", message(t, TypeUpdate, update+"08 000017 04 c0000202"+eight+eight+"0102"), ""},
		{"device twice", message(t, TypeUpdate, update+"08 000015 04 c0000202"+eight+eight+"08 000015 04 c0000202"+eight+eight), ""},
		{"device without address", message(t, TypeUpdate, update+"08 000000"), "device: truncated: 0 bytes are left, want 1"},
		{"device of no family", message(t, TypeUpdate, update+"08 000015 05 c0000202"+eight+eight), "family 5, want 4 or 6"},
		{"device mapped", message(t, TypeUpdate, update+"08 000021 06 00000000000000000000ffffc0000202"+eight+eight), "IPv4 address in IPv6 form"},
		{"device without epoch", message(t, TypeUpdate, update+"08 000005 04 c0000202"), "device.epoch: truncated: 0 bytes are left, want 8"},
		{"device without sequence", message(t, TypeUpdate, update+"08 000014 04 c0000202"+eight+"00000000000000"), "device.seq: truncated: 7 bytes are left, want 8"},
		{"position", message(t, TypeUpdate, update+"09 000010"+eight+eight), ""},
		{"position without sequence", message(t, TypeUpdate, update+"09 000008"+eight), "position.seq: truncated: 0 bytes are left, want 8"},
		{"position empty", message(t, TypeUpdate, update+"09 000000"), "position.epoch: truncated"},
		{"position of no epoch", message(t, TypeUpdate, update+"09 000010 0000000000000000"+eight), "0 is no epoch"},
		{"partial of a later version", message(t, TypeUpdate, update+"0a 000001 07"), ""},
		{"partial longer than the message", message(t, TypeUpdate, update+"0a 000001"), "length 1, but 0 bytes are left"},
		{"resumed of a later version", message(t, TypeEndOfSync, stamp+"0b 000001 07"), ""},
		{"resumed longer than the message", message(t, TypeEndOfSync, stamp+"0b 0000ff 00"), "length 255, but 1 bytes are left"},
		{"resumed alone", message(t, TypeEndOfSync, "0b 000000"), "sequence) is missing"},
		{"resume", openWith("09 000010" + eight + eight), ""},
		{"resume of a later version", openWith("09 000011" + eight + eight + "01"), ""},
		{"resume without sequence", openWith("09 000008" + eight), "resume: truncated: 0 bytes are left, want 8"},
		{"resume cut", openWith("09 00000f" + eight + "00000000000000"), "resume: truncated: 7 bytes are left, want 8"},
		{"resume twice", openWith("09 000010" + eight + eight + "09 000010" + eight + eight), "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Decode(c.bytes)
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			p, ok := errors.AsType[*ProtocolError](err)
			if !ok || p.Code != CodeMalformed || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, %v; want code %v with %q", m, err, CodeMalformed, c.text)
			}
		})
	}
	if _, err := Encode(&Update{Origin: devID(0), Devices: []DeviceStamp{{}}}); codeOf(err) != CodeMalformed {
		t.Errorf("a state of no device: %v", err)
	}
	if _, err := Encode(&Update{Origin: devID(0), Devices: []DeviceStamp{{Device: netip.MustParseAddr("fe80::1%eth0")}}}); codeOf(err) != CodeMalformed {
		t.Errorf("a device with a zone index: %v", err)
	}
}

// Whatever is collected for a slow peer, its messages say of every record the state
// of its device that was said last, all but the last are part of a run, and the last
// one carries the position of the last one collected.
func TestARunKeepsStampsAndPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c coalescer
		var last *Update
		stamp := map[netip.Addr]Stamp{}
		for i := range rapid.IntRange(2, 6).Draw(t, "updates") {
			u := &Update{Origin: reflID, Epoch: 1, Seq: uint64(i + 1), Pos: Stamp{9, uint64(i + 1)}}
			for range rapid.IntRange(1, 150).Draw(t, "hosts") {
				h := hostAt(hostIP(rapid.IntRange(0, 600).Draw(t, "host")), devID(rapid.IntRange(0, 5).Draw(t, "device")), "Ethernet1")
				u.Hosts = append(u.Hosts, HostRecord{Op: Put, Host: h})
			}
			u.stampDevices(func(dev netip.Addr) Stamp { return Stamp{5, uint64(100*i) + uint64(dev.As4()[3])} })
			for _, h := range u.Hosts {
				stamp[h.Host.Device] = u.StampOf(h.Host.Device)
			}
			c.add(u)
			last = u
		}
		us := c.take()
		for i, u := range us {
			for _, h := range u.Hosts {
				if got := u.StampOf(h.Host.Device); got != stamp[h.Host.Device] {
					t.Fatalf("message %d: device %v has %v, want %v", i, h.Host.Device, got, stamp[h.Host.Device])
				}
			}
			end := i == len(us)-1
			if u.Partial == end || (u.Pos == last.Pos) != end {
				t.Fatalf("message %d of %d: partial %v, position %v", i, len(us), u.Partial, u.Pos)
			}
			got, err := Decode(frameOf(t, u))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Message(u), got, cmpOpts); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// deliverTo gives a frame of a body that the peer sealed to s. Messages that may not
// come in an established session, and bodies that are malformed, are refused; others
// arrive as they were sent. It tells whether the session goes on.
func deliverTo(t *testing.T, s *Session, frame []byte, typ MsgType, body []byte) bool {
	t.Helper()
	want, wrong := decodeBody(typ, body)
	m, _, err := s.Receive(frame, nil, t0)
	switch {
	case wrong != nil || typ == TypeOpen || typ == TypeNotification:
		if err == nil {
			t.Fatalf("type %v with % x was taken: %v", typ, body, m)
		}
		return false
	case err != nil:
		t.Fatalf("type %v with % x: %v", typ, body, err)
	case typ == TypeKeepalive:
		if k := want.(*Keepalive); k.Demand|k.Answer == 0 {
			want = nil
		}
	}
	if diff := cmp.Diff(want, m, cmpOpts); diff != "" {
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
	for _, m := range golden {
		e, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		for op := range byte(6) {
			f.Add(op%2, []byte{0, 1, 0, op<<1 | i&1}, append([]byte{byte(e.typ) - 1}, e.body...))
		}
		i++
	}
	f.Fuzz(func(t *testing.T, mode byte, script, body []byte) {
		if len(body) == 0 || len(body) > MaxHandshakeMessage || len(script) > 64 {
			return
		}
		config := func(c *SessionConfig) {
			if mode%2 == 1 {
				c.Auth = Auth{Mode: AuthNone}
			}
		}
		d, l := newSession(t, true, config), newSession(t, false, config)
		if dErr, lErr := shake(t, d, l); dErr != nil || lErr != nil {
			t.Fatal(dErr, lErr)
		}
		typ, body := MsgType(body[0]%6+1), body[1:]
		e := &Encoded{typ: typ, body: body}
		for i, op := range script {
			tx, rx := d, l
			if op&1 == 1 {
				tx, rx = l, d
			}
			frame := tx.Seal(nil, e, t0)
			switch op >> 1 % 6 {
			case 0:
				if !deliverTo(t, rx, frame, typ, body) {
					return
				}
				continue
			case 1:
				frame[(i+len(script))%len(frame)] ^= 1 << (op % 8)
			case 2: // dropped
				frame = tx.Seal(nil, e, t0)
			case 3: // repeated
				if !deliverTo(t, rx, frame, typ, body) {
					return
				}
			case 4: // sent back
				rx = tx
			case 5:
				frame = relength(frame[:len(frame)-1])
			}
			if len(frame) < HeaderLen {
				return
			}
			m, _, err := rx.Receive(frame, nil, t0)
			if err == nil && mode%2 == 0 {
				t.Fatalf("op %d: % x was taken: %v", op>>1%6, frame, m)
			}
			if _, peer := errors.AsType[*PeerError](err); err != nil && (m != nil || codeOf(err) == 0 && !peer) {
				t.Fatalf("op %d: %v with %v", op>>1%6, m, err)
			}
			return
		}
	})
}
