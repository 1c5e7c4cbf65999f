package presence

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/fabric"
)

var (
	ourMAC  = fabric.MAC{0x02, 0, 0, 0, 0, 0x01}
	hostMAC = fabric.MAC{0x02, 0, 0, 0, 0, 0x07}
)

func bytesOf(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	goldenProbe = `ffffffffffff 020000000001 0806
		0001 0800 06 04 0001 020000000001 00000000 000000000000 c6336407
		000000000000000000000000000000000000`
	goldenSolicitation = `3333ff000007 020000000001 86dd
		60000000 0018 3a ff 00000000000000000000000000000000 ff0200000000000000000001ff000007
		87 00 4ce1 00000000 20010db8000000000000000000000007`
	goldenReply         = `0001 0800 06 04 0002 020000000007 c6336407 020000000001 00000000 000000000000000000000000000000000000`
	goldenAdvertisement = `60000000 0020 3a ff 20010db8000000000000000000000007 ff020000000000000000000000000001
		88 00 f918 20000000 20010db8000000000000000000000007 0201020000000007`
)

func TestQuestionsAreTheGoldenBytes(t *testing.T) {
	for addr, want := range map[string]string{"198.51.100.7": goldenProbe, "2001:db8::7": goldenSolicitation} {
		got := hex.EncodeToString(Question(ourMAC, netip.MustParseAddr(addr)))
		if want := strings.ToLower(strings.Join(strings.Fields(want), "")); got != want {
			t.Errorf("question for %s is\n%s, want\n%s", addr, got, want)
		}
	}
}

func TestAnswersAreRead(t *testing.T) {
	for addr, c := range map[string]struct {
		etherType uint16
		frame     string
	}{"198.51.100.7": {fabric.EtherTypeARP, goldenReply}, "2001:db8::7": {fabric.EtherTypeIPv6, goldenAdvertisement}} {
		got, err := ParseAnswer(c.etherType, hostMAC, bytesOf(t, c.frame))
		if want := (Answer{netip.MustParseAddr(addr), hostMAC}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", addr, got, err)
		}
	}
}

func TestAHostsReplyIsTheGoldenAnswer(t *testing.T) {
	for addr, want := range map[string]string{"198.51.100.7": goldenReply, "2001:db8::7": goldenAdvertisement} {
		a := netip.MustParseAddr(addr)
		got := Reply(Question(ourMAC, a), hostMAC, func(b netip.Addr) bool { return a == b })
		if len(got) < 14 || hex.EncodeToString(got[14:]) != strings.Join(strings.Fields(want), "") {
			t.Errorf("%s: %x", addr, got)
		}
		if r := Reply(Question(ourMAC, a), hostMAC, func(netip.Addr) bool { return false }); r != nil {
			t.Errorf("%s: a host that does not have it says %x", addr, r)
		}
		if r := Reply(got, hostMAC, func(netip.Addr) bool { return true }); r != nil {
			t.Errorf("%s: an answer is answered: %x", addr, r)
		}
	}
}

func TestWhatIsNoAnswerIsRefused(t *testing.T) {
	change := func(frame string, at int, to byte) []byte {
		b := bytesOf(t, frame)
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		etherType uint16
		payload   []byte
		no        bool // it may be right, but is no answer
	}{
		"a request":              {fabric.EtherTypeARP, change(goldenReply, 7, 1), true},
		"ARP for IEEE 802.5":     {fabric.EtherTypeARP, change(goldenReply, 1, 6), true},
		"a short ARP packet":     {fabric.EtherTypeARP, bytesOf(t, goldenReply)[:27], false},
		"nothing":                {fabric.EtherTypeIPv6, nil, false},
		"UDP":                    {fabric.EtherTypeIPv6, change(goldenAdvertisement, 6, 17), true},
		"a solicitation":         {fabric.EtherTypeIPv6, change(goldenAdvertisement, 40, 135), true},
		"through a router":       {fabric.EtherTypeIPv6, change(goldenAdvertisement, 7, 64), false},
		"a code":                 {fabric.EtherTypeIPv6, change(goldenAdvertisement, 41, 1), false},
		"a wrong checksum":       {fabric.EtherTypeIPv6, change(goldenAdvertisement, 60, 9), false},
		"longer than it is":      {fabric.EtherTypeIPv6, change(goldenAdvertisement, 5, 0xff), false},
		"cut advertisement":      {fabric.EtherTypeIPv6, change(goldenAdvertisement, 5, 23), false},
		"of a group":             {fabric.EtherTypeARP, change(goldenReply, 8, 0x03), true},
		"LLDP":                   {fabric.EtherTypeLLDP, bytesOf(t, goldenReply), true},
		"without an address":     {fabric.EtherTypeARP, append(bytesOf(t, goldenReply)[:14], make([]byte, 14)...), true},
		"an empty ICMPv6 packet": {fabric.EtherTypeIPv6, change(goldenAdvertisement, 5, 0), true},
	} {
		got, err := ParseAnswer(c.etherType, hostMAC, c.payload)
		_, wrong := errors.AsType[*FrameError](err)
		if got != (Answer{}) || errors.Is(err, ErrNotAnswer) != c.no || wrong == c.no {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{goldenReply, goldenAdvertisement} {
		b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(fabric.EtherTypeARP, b)
		f.Add(fabric.EtherTypeIPv6, b)
	}
	f.Fuzz(func(t *testing.T, etherType uint16, b []byte) {
		Reply(fabric.AppendEthernet(nil, ourMAC, hostMAC, etherType), hostMAC, func(netip.Addr) bool { return true })
		Reply(append(fabric.AppendEthernet(nil, ourMAC, hostMAC, etherType), b...), hostMAC, func(netip.Addr) bool { return true })
		a, err := ParseAnswer(etherType, hostMAC, b)
		if (err == nil) != a.Addr.IsValid() || a.Addr.IsValid() && (a.Addr.IsUnspecified() || a.Addr.Is4In6()) {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
