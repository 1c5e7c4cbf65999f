package reflector

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
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
	open := inoftest.FrameOf(t, inoftest.Golden["open-client"])
	openWith := func(tlv string) []byte {
		return inoftest.Relength(append(slices.Clone(open), inoftest.Message(t, wire.TypeOpen, tlv)[wire.HeaderLen:]...))
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		text  string // empty: it is good
	}{
		{"device", inoftest.Message(t, wire.TypeUpdate, update+"08 000015 04 c0000202"+eight+eight), ""},
		{"device of a later version", inoftest.Message(t, wire.TypeUpdate, update+"08 000017 04 c0000202"+eight+eight+"0102"), ""},
		{"device twice", inoftest.Message(t, wire.TypeUpdate, update+"08 000015 04 c0000202"+eight+eight+"08 000015 04 c0000202"+eight+eight), ""},
		{"device without address", inoftest.Message(t, wire.TypeUpdate, update+"08 000000"), "device: truncated: 0 bytes are left, want 1"},
		{"device of no family", inoftest.Message(t, wire.TypeUpdate, update+"08 000015 05 c0000202"+eight+eight), "family 5, want 4 or 6"},
		{"device mapped", inoftest.Message(t, wire.TypeUpdate, update+"08 000021 06 00000000000000000000ffffc0000202"+eight+eight), "IPv4 address in IPv6 form"},
		{"device without epoch", inoftest.Message(t, wire.TypeUpdate, update+"08 000005 04 c0000202"), "device.epoch: truncated: 0 bytes are left, want 8"},
		{"device without sequence", inoftest.Message(t, wire.TypeUpdate, update+"08 000014 04 c0000202"+eight+"00000000000000"), "device.seq: truncated: 7 bytes are left, want 8"},
		{"position", inoftest.Message(t, wire.TypeUpdate, update+"09 000010"+eight+eight), ""},
		{"position without sequence", inoftest.Message(t, wire.TypeUpdate, update+"09 000008"+eight), "position.seq: truncated: 0 bytes are left, want 8"},
		{"position empty", inoftest.Message(t, wire.TypeUpdate, update+"09 000000"), "position.epoch: truncated"},
		{"position of no epoch", inoftest.Message(t, wire.TypeUpdate, update+"09 000010 0000000000000000"+eight), "0 is no epoch"},
		{"partial of a later version", inoftest.Message(t, wire.TypeUpdate, update+"0a 000001 07"), ""},
		{"partial longer than the message", inoftest.Message(t, wire.TypeUpdate, update+"0a 000001"), "length 1, but 0 bytes are left"},
		{"resumed of a later version", inoftest.Message(t, wire.TypeEndOfSync, stamp+"0b 000001 07"), ""},
		{"resumed longer than the message", inoftest.Message(t, wire.TypeEndOfSync, stamp+"0b 0000ff 00"), "length 255, but 1 bytes are left"},
		{"resumed alone", inoftest.Message(t, wire.TypeEndOfSync, "0b 000000"), "sequence) is missing"},
		{"resume", openWith("09 000010" + eight + eight), ""},
		{"resume of a later version", openWith("09 000011" + eight + eight + "01"), ""},
		{"resume without sequence", openWith("09 000008" + eight), "resume: truncated: 0 bytes are left, want 8"},
		{"resume cut", openWith("09 00000f" + eight + "00000000000000"), "resume: truncated: 7 bytes are left, want 8"},
		{"zones with the resume", openWith("09 000010" + eight + eight + "0a 000010" + eight + eight), ""},
		{"zones without it", openWith("0a 000010" + eight + eight), "TLV type 10 without TLV type 9"},
		{"zones cut", openWith("09 000010" + eight + eight + "0a 00000f" + eight + "00000000000000"), "zones: truncated: 15 bytes are left, want 16"},
		{"zones twice", openWith("09 000010" + eight + eight + "0a 000010" + eight + eight + "0a 000010" + eight + eight), "twice"},
		{"resume twice", openWith("09 000010" + eight + eight + "09 000010" + eight + eight), "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := wire.Decode(c.bytes)
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			p, ok := errors.AsType[*wire.ProtocolError](err)
			if !ok || p.Code != wire.CodeMalformed || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, %v; want code %v with %q", m, err, wire.CodeMalformed, c.text)
			}
		})
	}
	if _, err := wire.Encode(&wire.Update{Origin: inoftest.DevID(0), Devices: []wire.DeviceStamp{{}}}); wire.CodeOf(err) != wire.CodeMalformed {
		t.Errorf("a state of no device: %v", err)
	}
	if _, err := wire.Encode(&wire.Update{Origin: inoftest.DevID(0), Devices: []wire.DeviceStamp{{Device: netip.MustParseAddr("fe80::1%eth0")}}}); wire.CodeOf(err) != wire.CodeMalformed {
		t.Errorf("a device with a zone index: %v", err)
	}
}
