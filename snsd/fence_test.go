package snsd

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

// notifyFence is a notice about a PFC storm with the fence of a switch: level 1, way 1, 20 s, 12 ms.
const notifyFence = "21 0038  01 0004 c0000232  02 0004 c000020b  05 0004 00000007  06 0004 00000000  07 0004 00000002" +
	"  08 0007 01 01 0000 1144 00  0a 0008 01 01 0014 0000000c"

// offering sets the extensions of a payload.
func offering(b []byte, ext byte) []byte {
	b[extensionsAt] = ext
	return b
}

func TestFenceGoldenBytesBothWays(t *testing.T) {
	b := offering(payload(t, 1, notifyFence), byte(ExtFence))
	n := goldenNotice(Inactive, ReasonPFCStorm)
	n.Service.NQN = ""
	n.Fence = &Fence{Level: FenceNetwork, Way: FenceBySwitch, Hold: 20 * time.Second, Took: 12 * time.Millisecond}
	want := Packet{Version: 1, Extensions: ExtFence, Notices: []Notice{n}}
	got, err := ParsePacket(b)
	if d := cmp.Diff(want, got, cmpAddr); err != nil || d != "" {
		t.Fatalf("%v\n%s", err, d)
	}
	back, err := want.Append(nil)
	if err != nil || string(back) != string(b) {
		t.Errorf("written as % x, %v", back, err)
	}
	var p Packer
	p.Start(nil, Version)
	p.Offer(ExtFence)
	if ok, err := p.Add(&n); !ok || err != nil || string(p.Finish()) != string(b) {
		t.Errorf("packed otherwise: %v, %v", ok, err)
	}
}

// What is odd about a fence costs neither the notice nor counts as a fence.
func TestFenceIsReadForTheSafeSide(t *testing.T) {
	root := func(state, fence string) string {
		n := byte(0x2d + len(unhex(t, fence)))
		return "21 00" + string("0123456789abcdef"[n>>4]) + string("0123456789abcdef"[n&15]) +
			" 01 0004 c0000232 02 0004 c000020b 05 0004 00000007 06 0004 0000000" + state +
			" 07 0004 00000002 08 0007 01010000114400" + fence
	}
	for _, c := range []struct {
		name, root string
		want       *Fence
		odd        Oddity
		err        error
	}{
		{"none", root("0", ""), nil, 0, nil},
		{"announced", root("0", "0a 0008 00 00 0000 00000000"), &Fence{}, 0, nil},
		{"of an active subject", root("1", "0a 0008 02 01 0014 00000001"), nil, 0, nil},
		{"too short", root("0", "0a 0007 02 01 0014 000000"), &Fence{}, OddFence, nil},
		{"empty", root("0", "0a 0000"), &Fence{}, OddFence, nil},
		{"of a level to come", root("0", "0a 0008 03 01 0014 00000001"), &Fence{}, OddFence, nil},
		{"of a way to come", root("0", "0a 0008 02 09 0014 00000001"), &Fence{Level: FenceArray, Way: 9, Hold: 20 * time.Second, Took: time.Millisecond}, 0, nil},
		{"longer", root("0", "0a 000a 02 02 0000 00000000 ffff"), &Fence{Level: FenceArray, Way: FenceByTarget}, 0, nil},
		{"twice", root("0", "0a 0008 02 01 0014 00000001 0a 0008 00 00 0000 00000000"), nil, 0, ErrDuplicate},
	} {
		p, err := ParsePacket(payload(t, 1, c.root))
		if !errors.Is(err, c.err) || p.Odd != c.odd {
			t.Errorf("%s: %v, odd %v", c.name, err, p.Odd)
		}
		if c.err == nil && (len(p.Notices) != 1 || !cmp.Equal(p.Notices[0].Fence, c.want)) {
			t.Errorf("%s: %+v", c.name, p.Notices)
		}
	}
	if p, err := ParsePacket(payload(t, 1, "22 0020  01 0004 c0000232  02 0004 c000020b  05 0004 00000007 0a 0008 02 01 0014 00000001")); err != nil || len(p.Acks) != 1 {
		t.Errorf("an ack with a fence: %v, %+v", err, p)
	}
}

// An agent announces what it understands to a switch that offered it, until the link is gone. The
// existing agent announces nothing.
func TestAgentAnnouncesWhatWasOffered(t *testing.T) {
	cfg := AgentConfig{
		Interface: "eth0", MAC: hostMAC, Addrs: []netip.Addr{hostAddr}, Subscribes: true,
		Service: Service{Role: RoleInitiator, Protocol: ProtocolRoCE}, Extensions: ExtFence,
	}
	a, err1 := NewAgent(cfg)
	like, err2 := NewLikeAgent(LikeConfig{AgentConfig: cfg})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	seq := uint32(0)
	// said are the extensions in the last NTS frame that the machine sends.
	said := func(m Machine, out AgentOutput) Extensions {
		t.Helper()
		now = now.Add(time.Second)
		out.Frames = append(out.Frames, m.Tick(now).Frames...)
		ext := Extensions(0xff)
		for _, b := range out.Frames {
			if binary.BigEndian.Uint16(b[12:]) == fabric.EtherTypeNTS {
				ext = Extensions(b[fabric.EthernetHeaderLen+extensionsAt])
			}
		}
		return ext
	}
	hear := func(m Machine, offer Extensions) Extensions {
		t.Helper()
		seq++
		n := goldenNotice(Active, ReasonNone)
		n.Seq = seq
		b, err := Packet{Version: 1, Extensions: offer, Notices: []Notice{n}}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return said(m, m.Frame(fabric.Frame{Dst: fabric.MACNTS, Src: switchMAC, EtherType: fabric.EtherTypeNTS, Payload: b}, now))
	}
	for i, got := range []Extensions{
		said(a, a.LinkUp(now)), hear(a, 0), hear(a, ExtDegraded|ExtFence), said(a, a.Query(now)), hear(a, 0),
		hear(a, ExtFence), said(a, func() AgentOutput { a.LinkDown(now); return a.LinkUp(now) }()),
		said(like, like.LinkUp(now)), hear(like, ExtFence),
	} {
		want := Extensions(0)
		if i >= 2 && i <= 5 {
			want = ExtFence
		}
		if got != want {
			t.Errorf("step %d: %#x, want %#x", i, got, want)
		}
	}
}

// A fence that follows is told as one; with another fault, or when the first notice was lost, the
// notice is told as any other.
func TestAgentTellsOfAFenceThatRises(t *testing.T) {
	a, err := NewAgent(AgentConfig{Interface: "eth0", MAC: hostMAC, Addrs: []netip.Addr{hostAddr}, Extensions: ExtFence})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	a.LinkUp(now)
	network, array := &Fence{Level: FenceNetwork, Way: FenceBySwitch}, &Fence{Level: FenceArray, Way: FenceByTarget}
	for i, c := range []struct {
		state  State
		reason Reason
		fence  *Fence
		want   AgentEventKind
	}{
		{Inactive, ReasonBFDDown, network, AgentReceived},
		{Inactive, ReasonBFDDown, network, AgentDuplicate},
		{Inactive, ReasonBFDDown, array, AgentFenced},
		{Active, ReasonNone, nil, AgentReceived},
		{Inactive, ReasonPFCStorm, &Fence{}, AgentReceived},
		{Inactive, ReasonPFCStorm, network, AgentFenced},
		{Inactive, ReasonLinkDown, network, AgentReceived},
		{Inactive, ReasonLinkDown, nil, AgentReceived},
	} {
		n := goldenNotice(c.state, c.reason)
		n.Fence = c.fence
		b, err := Packet{Version: 1, Extensions: ExtFence, Notices: []Notice{n}}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		out := a.Frame(fabric.Frame{Dst: fabric.MACNTS, Src: switchMAC, EtherType: fabric.EtherTypeNTS, Payload: b}, now)
		if len(out.Events) == 0 || out.Events[0].Kind != c.want || len(out.Frames) != 1 {
			t.Errorf("step %d: %d frames, %+v, want %v", i, len(out.Frames), out.Events, c.want)
		}
	}
}
