package snsd

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

var t0 = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func initiator() AgentConfig {
	return AgentConfig{
		Interface: "eth0", MAC: hostMAC, Addrs: []netip.Addr{hostAddr}, Subscribes: true,
		Service: Service{Role: RoleInitiator, Protocol: ProtocolRoCE},
	}
}

func newAgent(t *testing.T, change func(c *AgentConfig)) *Agent {
	t.Helper()
	cfg := initiator()
	change(&cfg)
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tell gives the agent one frame with these notices.
func tell(t *testing.T, a *Agent, now time.Time, notices ...Notice) AgentOutput {
	t.Helper()
	b, err := AppendNotify(nil, notices...)
	if err != nil {
		t.Fatal(err)
	}
	return a.Frame(fabric.Frame{Port: "eth0", Src: switchMAC, Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: b}, now)
}

func kinds(out AgentOutput) []AgentEventKind {
	var k []AgentEventKind
	for _, e := range out.Events {
		k = append(k, e.Kind)
	}
	return k
}

func wantKinds(t *testing.T, out AgentOutput, want ...AgentEventKind) {
	t.Helper()
	if d := cmp.Diff(want, kinds(out)); d != "" {
		t.Errorf("events differ:\n%s", d)
	}
}

// The whole captured session, the agent in the host's place.
func TestAgentPlaysTheGoldenSession(t *testing.T) {
	frames := goldenFrames(t)
	a := newAgent(t, func(*AgentConfig) {})
	out := a.LinkUp(t0)
	if d := cmp.Diff(frames[:2], out.Frames); d != "" {
		t.Errorf("registration and query differ:\n%s", d)
	}
	hear := func(i int, now time.Time) AgentOutput {
		t.Helper()
		out := a.Frame(fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: frames[i][14:]}, now)
		if len(out.Frames) != 1 || !bytes.Equal(out.Frames[0], frames[i+1]) {
			t.Errorf("ack of frame %d: % x", i+1, out.Frames)
		}
		return out
	}
	wantKinds(t, hear(2, t0.Add(3*time.Second)), AgentReceived)
	if got, want := a.Next(), t0.Add(6*time.Second); !got.Equal(want) {
		t.Errorf("next at %v, want the end of the restraint %v", got, want)
	}
	wantKinds(t, a.Tick(t0.Add(6*time.Second-1)))
	out = a.Tick(t0.Add(6*time.Second + time.Millisecond))
	wantKinds(t, out, AgentConnect)
	if !out.Events[0].At.Equal(t0.Add(6 * time.Second)) {
		t.Errorf("connected at %v", out.Events[0].At)
	}
	wantKinds(t, hear(4, t0.Add(8*time.Second)), AgentReceived, AgentProbe)
	wantKinds(t, hear(6, t0.Add(9*time.Second)), AgentReceived, AgentDisconnect)
}

func TestAgentActsByReason(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	for r := ReasonNone; r <= ReasonBFDDown+1; r++ {
		want := AgentProbe
		if r == ReasonZoneChanged || r == ReasonIPChanged || r == ReasonAgedOut {
			want = AgentDisconnect
		}
		wantKinds(t, tell(t, a, t0, goldenNotice(Inactive, r)), AgentReceived, want)
	}
}

func TestAgentHoldsBackFlappingSubjects(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	n := goldenNotice(Active, 0)
	tell(t, a, t0, n)
	tell(t, a, t0.Add(time.Second), goldenNotice(Inactive, ReasonLinkDown))
	n.Seq++
	tell(t, a, t0.Add(2*time.Second), n)
	wantKinds(t, a.Tick(t0.Add(4*time.Second)))
	if want := t0.Add(5 * time.Second); !a.Next().Equal(want) {
		t.Errorf("next at %v, want %v", a.Next(), want)
	}
	wantKinds(t, a.Tick(t0.Add(5*time.Second)), AgentConnect)
	n.Seq++ // active again while connected: nothing to do
	wantKinds(t, tell(t, a, t0.Add(6*time.Second), n), AgentReceived)
	if !a.Next().IsZero() {
		t.Errorf("something is due at %v", a.Next())
	}
}

func TestAgentAcksARepeatedNoticeWithoutActing(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	n := goldenNotice(Inactive, ReasonZoneChanged)
	wantKinds(t, tell(t, a, t0, n), AgentReceived, AgentDisconnect)
	out := tell(t, a, t0.Add(20*time.Millisecond), n, n)
	wantKinds(t, out, AgentDuplicate, AgentDuplicate)
	p, err := ParsePacket(out.Frames[0][14:])
	if err != nil || len(p.Acks) != 2 || !out.Events[0].Acked {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAgentIgnoresInitiatorsAndStrangers(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	about := goldenNotice(Active, 0)
	about.Service.Role = RoleInitiator
	out := tell(t, a, t0, about)
	wantKinds(t, out, AgentIgnored)
	if len(out.Frames) != 1 {
		t.Error("a notice about an initiator was not acked")
	}
	stranger := goldenNotice(Active, 0)
	stranger.Host = netip.MustParseAddr("192.0.2.99")
	out = tell(t, a, t0, stranger)
	wantKinds(t, out, AgentRefused)
	if len(out.Frames) != 0 {
		t.Error("a notice for another host was acked")
	}
	out = a.Frame(fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: []byte{2, 0, 0, 0, 0, 0, 0, 0}}, t0)
	wantKinds(t, out, AgentRefused)
	if !errors.Is(out.Events[0].Err, ErrVersion) {
		t.Error(out.Events[0].Err)
	}
	out = a.Frame(fabric.Frame{EtherType: fabric.EtherTypeLLDP, Payload: []byte{2}}, t0)
	wantKinds(t, out)
	c := a.Counters()
	if c.Ignored != 1 || c.NotOurs != 1 || c.Received.NewerVersion != 1 || c.Acks != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAgentLosesAcksAsToldAndKeepsSilent(t *testing.T) {
	rolls := []float64{0.4, 0.6, 0.1}
	a := newAgent(t, func(c *AgentConfig) {
		c.LoseAcks = 0.5
		c.Rand = func() float64 { r := rolls[0]; rolls = rolls[1:]; return r }
	})
	n := goldenNotice(Active, 0)
	for i, frames := range []int{0, 1, 0} {
		if out := tell(t, a, t0, n); len(out.Frames) != frames || out.Events[0].Acked != (frames == 1) {
			t.Errorf("notice %d: %d frames", i, len(out.Frames))
		}
	}
	quiet := newAgent(t, func(c *AgentConfig) { c.Silent = true })
	if out := quiet.LinkUp(t0); len(out.Frames) != 0 {
		t.Error("a silent agent registered")
	}
	out := tell(t, quiet, t0, n)
	wantKinds(t, out, AgentReceived)
	if len(out.Frames) != 0 {
		t.Error("a silent agent acked")
	}
	if out := quiet.SetSilent(false, t0); len(out.Frames) != 1 {
		t.Errorf("%d frames when it speaks again, want its registration", len(out.Frames))
	}
}

func TestAgentRegistersEveryInterval(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::11")
	a := newAgent(t, func(c *AgentConfig) { c.Addrs = []netip.Addr{hostAddr, v6}; c.Interval = 10 * time.Second; c.TTL = 40 })
	if out := a.LinkUp(t0); len(out.Frames) != 4 {
		t.Errorf("%d frames at link up, want 2 registrations and 2 queries", len(out.Frames))
	}
	if out := a.LinkUp(t0); len(out.Frames) != 0 {
		t.Error("registered again without a link change")
	}
	for i := 1; i < 4; i++ {
		at := t0.Add(time.Duration(i) * 10 * time.Second)
		if !a.Next().Equal(at) {
			t.Errorf("next registration at %v, want %v", a.Next(), at)
		}
		if out := a.Tick(at); len(out.Frames) != 2 {
			t.Errorf("%d frames", len(out.Frames))
		}
	}
	if out := a.Query(t0); len(out.Frames) != 2 {
		t.Errorf("%d queries", len(out.Frames))
	}
	moved := netip.MustParseAddr("192.0.2.12")
	out, err := a.SetAddrs([]netip.Addr{moved}, t0)
	if err != nil || len(out.Frames) != 2 {
		t.Errorf("%d frames, want a shutdown of number 2 and the new address: %v", len(out.Frames), err)
	}
	if !bytes.Contains(out.Frames[0], []byte("snsd_eth0_02\x06\x02\x00\x00\x00\x00")) {
		t.Errorf("no shutdown LLDPDU: % x", out.Frames[0])
	}
	if out := a.Shutdown(t0); len(out.Frames) != 1 {
		t.Errorf("%d frames at shutdown", len(out.Frames))
	}
	if !a.Next().IsZero() || len(a.Query(t0).Frames) != 0 {
		t.Error("the agent goes on after its shutdown")
	}
}

// An address has its number for as long as it is there: if another one took its place, even for one
// frame, the switch would have it gone.
func TestAnAddressKeepsItsNumber(t *testing.T) {
	addr := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }
	a := newAgent(t, func(c *AgentConfig) { c.Addrs = []netip.Addr{addr(1), addr(2), addr(3)} })
	numbers := func(out AgentOutput) string {
		var said []string
		for _, f := range out.Frames {
			if i := bytes.Index(f, []byte("snsd_eth0_")); i >= 0 {
				said = append(said, fmt.Sprintf("%s:%d", f[i+10:i+12], f[i+15])) // TTL
				if reg := bytes.Index(f, []byte{0x00, 0x18, 0x82, 0x65}); reg > 0 {
					said[len(said)-1] += fmt.Sprintf(":%d", f[reg+11])
				}
			}
		}
		return strings.Join(said, " ")
	}
	for _, c := range []struct {
		addrs []netip.Addr
		want  string // number, TTL, last byte of the address
	}{
		{[]netip.Addr{addr(2), addr(3)}, "01:0 02:120:2 03:120:3"},
		{[]netip.Addr{addr(3), addr(2)}, "03:120:3 02:120:2"},
		{[]netip.Addr{addr(9), addr(3), addr(2), addr(8)}, "01:120:9 03:120:3 02:120:2 04:120:8"},
		{[]netip.Addr{addr(7), addr(8)}, "03:0 02:0 01:120:7 04:120:8"},
	} {
		a.LinkUp(t0)
		out, err := a.SetAddrs(c.addrs, t0)
		if got := numbers(out); err != nil || got != c.want {
			t.Errorf("%v: %s, want %s, %v", c.addrs, got, c.want, err)
		}
	}
}

func TestAgentForgetsWhenTheLinkGoes(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	a.LinkUp(t0)
	n := goldenNotice(Active, 0)
	tell(t, a, t0, n)
	a.LinkDown(t0)
	wantKinds(t, a.Tick(t0.Add(time.Minute)))
	a.LinkUp(t0.Add(time.Minute))
	wantKinds(t, tell(t, a, t0.Add(time.Minute), n), AgentReceived)
}

// In a storm all that is new is acked and acted on, what is repeated is acked, and nothing more is
// remembered than the last word about each subject.
func TestAgentActsOnAllNewsOfAStorm(t *testing.T) {
	const frames, subjects = 10_000, 50
	a := newAgent(t, func(c *AgentConfig) {})
	a.LinkUp(t0)
	probes, acks := 0, 0
	for i := range frames {
		n := Notice{Subject: netip.AddrFrom4([4]byte{198, 51, 100, byte(i%subjects + 1)}), Host: hostAddr, Seq: uint32(i / subjects), State: Inactive, Reason: ReasonLinkDown,
			Service: Service{Role: RoleTarget, Protocol: ProtocolTCP}}
		for range 2 {
			out := tell(t, a, t0, n)
			acks += len(out.Frames)
			for _, e := range out.Events {
				if e.Kind == AgentProbe {
					probes++
				}
			}
		}
	}
	c := a.Counters()
	if probes != frames || acks != 2*frames || c.Duplicates != frames || c.Deaf != 0 || len(a.Peers()) != subjects || len(a.queue) != 0 {
		t.Errorf("%d paths left, %d acks, %d peers, %d waiting, %+v", probes, acks, len(a.Peers()), len(a.queue), c)
	}
}

func TestAgentSpeaksVersion0(t *testing.T) {
	a := newAgent(t, func(c *AgentConfig) { c.Legacy = true })
	if out := a.LinkUp(t0); out.Frames[1][14] != 0 {
		t.Error("the query is not of version 0")
	}
	out := a.Frame(fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: payload(t, 0, notify0)}, t0)
	if len(out.Frames) != 1 || out.Frames[0][14] != 0 {
		t.Error("the ack is not of version 0")
	}
}

// What there is no room for is not acked, so that the switch tells it again and warns of it; a path
// is left without any room, and subjects that are gone for good make some.
func TestWhatAnAgentHasNoRoomForIsNotAcked(t *testing.T) {
	a := newAgent(t, func(*AgentConfig) {})
	a.LinkUp(t0)
	n := goldenNotice(Active, 0)
	n.Subject = netip.MustParseAddr("10.0.0.1")
	first := n
	for i := range MaxAgentPairs {
		if out := tell(t, a, t0, n); len(out.Frames) != 1 {
			t.Fatalf("notice %d was not acked", i)
		}
		n.Subject = n.Subject.Next()
	}
	refused := func(c uint64) {
		t.Helper()
		out := tell(t, a, t0, n)
		wantKinds(t, out, AgentDropped)
		if len(out.Frames) != 0 || out.Events[0].Acked || a.Counters().TableFull != c || len(a.pairs) != MaxAgentPairs {
			t.Errorf("%d frames, %d pairs, %+v", len(out.Frames), len(a.pairs), a.Counters())
		}
	}
	refused(1)
	refused(2)
	for _, reason := range []Reason{ReasonLinkDown, ReasonZoneChanged} {
		gone := n
		gone.State, gone.Reason = Inactive, reason
		what := AgentProbe
		if reason.Disconnects() {
			what = AgentDisconnect
		}
		out := tell(t, a, t0, gone)
		wantKinds(t, out, AgentReceived, what)
		if len(out.Frames) != 1 || len(a.pairs) != MaxAgentPairs {
			t.Errorf("%v: %d frames, %d pairs", reason, len(out.Frames), len(a.pairs))
		}
	}
	first.State, first.Reason = Inactive, ReasonAgedOut
	tell(t, a, t0, first)
	refused(3) // looked for once a second
	out := tell(t, a, t0.Add(tidyEvery), n)
	wantKinds(t, out, AgentReceived)
	if len(out.Frames) != 1 || len(a.pairs) != MaxAgentPairs {
		t.Errorf("%d frames, %d pairs", len(out.Frames), len(a.pairs))
	}
}

func TestNewAgentRefuses(t *testing.T) {
	for i, change := range []func(c *AgentConfig){
		func(c *AgentConfig) { c.Addrs = nil },
		func(c *AgentConfig) { c.Addrs = make([]netip.Addr, 65) },
		func(c *AgentConfig) { c.Addrs = []netip.Addr{hostAddr, hostAddr} },
		func(c *AgentConfig) { c.Addrs = []netip.Addr{netip.MustParseAddr("fe80::1")} },
		func(c *AgentConfig) { c.Interface = "" },
		func(c *AgentConfig) { c.Interface = string(make([]byte, 250)) },
		func(c *AgentConfig) { c.LoseAcks = 0.5 },
		func(c *AgentConfig) { c.LoseAcks = 1.5; c.Rand = func() float64 { return 0 } },
		func(c *AgentConfig) { c.Service.NQN = "\x07" },
	} {
		cfg := initiator()
		change(&cfg)
		var typed *Error
		if _, err := NewAgent(cfg); !errors.As(err, &typed) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}
