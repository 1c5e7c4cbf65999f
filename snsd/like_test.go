package snsd

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

func newLike(t *testing.T, change func(c *LikeConfig)) *LikeAgent {
	t.Helper()
	cfg := LikeConfig{AgentConfig: initiator()}
	change(&cfg)
	l, err := NewLikeAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// started is one that runs and has sent what it sends then.
func started(t *testing.T) *LikeAgent {
	l := newLike(t, func(*LikeConfig) {})
	if n := len(l.LinkUp(t0).Frames); n != 2 {
		t.Fatalf("%d frames at the start, want a registration and a query", n)
	}
	return l
}

func tellLike(t *testing.T, l *LikeAgent, now time.Time, notices ...Notice) AgentOutput {
	t.Helper()
	b, err := AppendNotify(nil, notices...)
	if err != nil {
		t.Fatal(err)
	}
	return l.Frame(fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: b}, now)
}

func aTarget(i int, st State, why Reason) Notice {
	return Notice{Subject: netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), Host: hostAddr, Seq: uint32(i), State: st, Reason: why,
		Service: Service{Role: RoleTarget, Protocol: ProtocolRoCE, Port: 4420}}
}

// advance ticks until the end and gives the events.
func advance(l *LikeAgent, from, to time.Time) (out AgentOutput) {
	for now := from; !now.After(to); {
		x := l.Tick(now)
		out.Frames, out.Events = append(out.Frames, x.Frames...), append(out.Events, x.Events...)
		if now = l.Next(); now.IsZero() {
			break
		}
	}
	return out
}

func TestTheLikeAgentRegistersAtItsStartAndByTheClockButNotWhenItsLinkComesBack(t *testing.T) {
	l := started(t)
	l.LinkDown(t0)
	if n := len(l.LinkUp(t0.Add(time.Second)).Frames); n != 0 {
		t.Errorf("%d frames when the link is back", n)
	}
	if next := l.Next(); !next.Equal(t0.Add(30 * time.Second)) {
		t.Errorf("registers next at %v", next.Sub(t0))
	}
	if n := len(l.Tick(t0.Add(30 * time.Second)).Frames); n != 1 {
		t.Errorf("%d frames after 30 s", n)
	}
}

func TestTheLikeAgentKeepsWhatItWasToldWithoutALink(t *testing.T) {
	l := started(t)
	tellLike(t, l, t0, aTarget(1, Active, 0))
	l.LinkDown(t0.Add(time.Second))
	wantKinds(t, advance(l, t0.Add(time.Second), t0.Add(5*time.Second)), AgentConnect)
}

func TestTheLikeAgentTakesARepeatedNoticeForATask(t *testing.T) {
	l := started(t)
	n := aTarget(1, Inactive, ReasonLinkDown)
	for i := range 2 {
		out := tellLike(t, l, t0.Add(time.Duration(i)*time.Second), n)
		wantKinds(t, out, AgentReceived, AgentProbe)
		if len(out.Frames) != 1 {
			t.Errorf("%d acks", len(out.Frames))
		}
	}
	if c := l.Counters(); c.Duplicates != 1 || c.Acks != 2 {
		t.Errorf("%+v", c)
	}
}

func TestTheLikeAgentServesOneNoticeAfterTheOther(t *testing.T) {
	l := started(t)
	out := tellLike(t, l, t0, aTarget(1, Inactive, ReasonZoneChanged), aTarget(2, Inactive, ReasonPFCStorm), aTarget(3, Inactive, ReasonBFDDown))
	wantKinds(t, out, AgentReceived, AgentDisconnect)
	var at []time.Duration
	for l.Waiting() > 0 {
		now := l.Next()
		at = append(at, now.Sub(t0))
		wantKinds(t, l.Tick(now), AgentReceived, AgentProbe)
	}
	if d := cmp.Diff([]time.Duration{DefaultLikeTask, 2 * DefaultLikeTask}, at); d != "" {
		t.Error(d)
	}
}

func TestTheQueueOfTheLikeAgentHolds1000(t *testing.T) {
	l := started(t)
	for range 101 {
		var ns []Notice
		for i := range 10 {
			ns = append(ns, aTarget(i+1, Active, 0))
		}
		tellLike(t, l, t0, ns...)
	}
	if c := l.Counters(); l.Waiting() != 1000 || c.QueueFull != 9 || c.Acks != 1 {
		t.Errorf("%d wait, %+v", l.Waiting(), c)
	}
}

func TestEachRepeatedActiveNoticeRestartsTheRestraint(t *testing.T) {
	l := started(t)
	for i := range 5 {
		tellLike(t, l, t0.Add(time.Duration(i)*time.Second), aTarget(1, Active, 0))
		wantKinds(t, l.Tick(t0.Add(time.Duration(i)*time.Second)))
	}
	out := advance(l, t0.Add(4*time.Second), t0.Add(8*time.Second))
	wantKinds(t, out, AgentConnect)
	if at := out.Events[0].At.Sub(t0); at != 7*time.Second {
		t.Errorf("connects after %v, want 3 s after the last notice", at)
	}
}

func TestTheLikeAgentConnectsToOneTargetAtATime(t *testing.T) {
	l := started(t)
	tellLike(t, l, t0, aTarget(1, Active, 0), aTarget(2, Active, 0), aTarget(3, Active, 0))
	out := advance(l, t0, t0.Add(4*time.Second))
	var at []time.Duration
	for _, e := range out.Events {
		if e.Kind == AgentConnect {
			at = append(at, e.At.Sub(t0))
		}
	}
	if d := cmp.Diff([]time.Duration{3 * time.Second, 3*time.Second + DefaultLikeConnect, 3*time.Second + 2*DefaultLikeConnect}, at); d != "" {
		t.Error(d)
	}
}

func TestTheLikeAgentDropsWhatItIsToldOfInitiators(t *testing.T) {
	l := started(t)
	tellLike(t, l, t0, aTarget(1, Active, 0))
	n := aTarget(1, Inactive, ReasonIPChanged)
	n.Service.Role = RoleInitiator
	out := tellLike(t, l, t0.Add(time.Second), n)
	wantKinds(t, out, AgentIgnored)
	if len(out.Frames) != 1 {
		t.Error("it is not acked")
	}
	wantKinds(t, advance(l, t0.Add(time.Second), t0.Add(4*time.Second)), AgentConnect) // all the same
}

func TestFramesThatTheLikeAgentNeverSees(t *testing.T) {
	l := started(t)
	f := fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: make([]byte, 1500)}
	b, err := AppendNotify(nil, aTarget(1, Active, 0))
	if err != nil {
		t.Fatal(err)
	}
	copy(f.Payload, b)
	wantKinds(t, l.Frame(f, t0))
	f.Payload = f.Payload[:1499]
	wantKinds(t, l.Frame(f, t0), AgentReceived)
	for range floodFrames - 1 {
		l.Frame(fabric.Frame{EtherType: fabric.EtherTypeNTS, Payload: b}, t0)
	}
	advance(l, t0, t0.Add(9*time.Second))
	wantKinds(t, l.Frame(f, t0.Add(9*time.Second)))
	wantKinds(t, l.Frame(f, t0.Add(11*time.Second)), AgentReceived)
	if c := l.Counters(); c.TooLong != 1 || c.Deaf != 2 {
		t.Errorf("%+v", c)
	}
}

func TestTheLikeAgentRegistersANewAddressSomeTimeLater(t *testing.T) {
	l := started(t)
	other := netip.MustParseAddr("192.0.2.77")
	if err := l.SetAddrs([]netip.Addr{other}, t0); err != nil {
		t.Fatal(err)
	}
	wantKinds(t, tellLike(t, l, t0, aTarget(1, Active, 0)), AgentRefused)
	if n := len(advance(l, t0, t0.Add(DefaultLikeMove-time.Second)).Frames); n != 0 {
		t.Errorf("%d frames before its time", n)
	}
	if n := len(l.Tick(t0.Add(DefaultLikeMove)).Frames); n != 1 {
		t.Errorf("%d frames, want a registration", n)
	}
}

func TestTheLikeAgentHasIPv4AndRoCEOnly(t *testing.T) {
	for want, change := range map[error]func(c *LikeConfig){
		ErrFamily: func(c *LikeConfig) { c.Addrs = []netip.Addr{netip.MustParseAddr("2001:db8::1")} },
		ErrValue:  func(c *LikeConfig) { c.Service.Protocol = ProtocolTCP },
	} {
		cfg := LikeConfig{AgentConfig: initiator()}
		change(&cfg)
		if _, err := NewLikeAgent(cfg); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}
