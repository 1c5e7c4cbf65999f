package hostnotify

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// like is a Notifier with a host beside it that has the habits of the existing agent,
// and that knows many targets.
type like struct {
	*rig
	agent   *snsd.LikeAgent
	targets []string
	lose    func(frame int) bool // of the switch's frames; nil: none
	deafTo  func(ack int) bool   // of the agent's acks; nil: none is lost
	acks    int
	frames  int
	events  []snsd.AgentEvent
	ackedAt time.Time // the last ack
}

const wire = 50 * time.Microsecond // one way, frame or ack

func newLike(t testing.TB, cfg Config, targets int) *like { return newLikeOf(t, cfg, targets, 0) }

func newLikeOf(t testing.TB, cfg Config, targets int, task time.Duration) *like {
	l := &like{rig: newRig(t, cfg)}
	w := &flatWorld{l.w}
	l.n = New(cfg, w)
	l.n.SetSynced(true)
	l.agent = likeAgent(t, task)
	for i := range targets {
		a := fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250)
		l.targets = append(l.targets, a)
		w.put(ip(a))
	}
	w.put(ip(hostA), mac(42)).Role = snsd.RoleInitiator
	l.n.PortUp("p1", mac(9), l.now)
	l.n.Subscribe(ip(hostA), "p1", mac(42), l.now)
	l.run()
	return l
}

func likeAgent(t testing.TB, task time.Duration) *snsd.LikeAgent {
	a, err := snsd.NewLikeAgent(snsd.LikeConfig{Task: task, AgentConfig: snsd.AgentConfig{
		Interface: "eth0", MAC: mac(42), Addrs: []netip.Addr{ip(hostA)}, Subscribes: true, Service: snsd.Service{Role: snsd.RoleInitiator},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.LinkUp(epoch)
	return a
}

// run lets time pass until nothing waits and nothing is under way.
func (l *like) run() {
	l.t.Helper()
	for end := l.now.Add(2 * time.Minute); ; {
		for _, o := range l.n.Poll(l.now) {
			l.n.Handed(o, l.now)
			l.frames++
			if l.lose == nil || !l.lose(l.frames) {
				l.take(l.agent.Frame(ntsFrame(o.Frame), l.now.Add(wire)))
			}
		}
		if c := l.n.Counters(); c.Waiting+c.InFlight == 0 {
			return
		}
		l.now = earliest(l.n.Next(), l.agent.Next().Add(wire))
		l.take(l.agent.Tick(l.now.Add(-wire)))
		if l.now.After(end) {
			l.t.Fatalf("not told within two minutes: %+v", l.n.Counters())
		}
	}
}

func (l *like) take(out snsd.AgentOutput) {
	l.events = append(l.events, out.Events...)
	for _, f := range out.Frames {
		if f[12] != 0x88 || f[13] != 0xa7 {
			continue
		}
		for _, a := range parse(l.t, f).Acks {
			if l.acks++; l.deafTo == nil || !l.deafTo(l.acks) {
				l.ackedAt = l.now
				l.n.Ack("p1", a, l.now)
			}
		}
	}
}

func (l *like) count(k snsd.AgentEventKind) (n int) {
	for _, e := range l.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func ntsFrame(b []byte) fabric.Frame {
	return fabric.Frame{Port: "eth0", EtherType: fabric.EtherTypeNTS, Payload: slices.Clone(b[fabric.EthernetHeaderLen:])}
}

func earliest(ts ...time.Time) (first time.Time) {
	for _, t := range ts {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// storm has all targets lost at once and gives when the last of them was acked.
func (l *like) storm() (last time.Duration, repeats uint64) {
	l.t.Helper()
	start, before := l.now, l.n.Counters().Retried
	for _, a := range l.targets {
		l.w.fault[ip(a)] = snsd.ReasonLinkDown
	}
	l.changed(snsd.ReasonLinkDown, l.targets...)
	l.run()
	return l.ackedAt.Sub(start), l.n.Counters().Retried - before
}

// A busy host that loses frames is repaired from what it acks, without repeats that fill
// its queue.
func TestFramesLostInAStormAreRepairedWithoutAnother(t *testing.T) {
	const targets = 2000
	l := newLike(t, Config{}, targets)
	l.lose = func(frame int) bool { return frame%10 == 0 }
	last, repeats := l.storm()
	t.Logf("last ack after %v, %d repeats", last, repeats)
	if last > 4400*time.Millisecond || repeats > targets/4 {
		t.Errorf("the last ack came after %v, %d repeats", last, repeats)
	}
}

// losesOne loses the next frame, and gives how long it takes until all is acked.
func (l *like) losesOne(target string) time.Duration {
	l.t.Helper()
	l.pass(time.Minute)
	first := l.frames + 1
	l.lose = func(frame int) bool { return frame == first }
	start := l.now
	l.fault(target, snsd.ReasonLinkDown)
	l.run()
	l.lose = nil
	return l.ackedAt.Sub(start)
}

func TestASingleLostFrameOfAnIdleHostIsRepairedWithin25ms(t *testing.T) {
	l := newLike(t, Config{}, 500)
	if d := l.losesOne(l.targets[0]); d > 25*time.Millisecond {
		t.Errorf("repaired after %v", d)
	}
	l.targets = l.targets[1:]
	l.storm()
	l.w.put(ip("198.51.200.1"))
	l.changed(0, "198.51.200.1")
	l.run()
	if d := l.losesOne("198.51.200.1"); d > 25*time.Millisecond {
		t.Errorf("after a storm: repaired after %v", d)
	}
}

// A whole frame's worth of notices is repaired as one.
func TestALostFrameFullOfNoticesIsRepairedAtOnce(t *testing.T) {
	l := newLike(t, Config{}, 25)
	l.lose = func(frame int) bool { return frame == 2 }
	start := l.now
	for _, a := range l.targets {
		l.w.fault[ip(a)] = snsd.ReasonLinkDown
	}
	l.changed(snsd.ReasonLinkDown, l.targets...)
	l.run()
	if d := l.ackedAt.Sub(start); d > 25*time.Millisecond+25*snsd.DefaultLikeTask {
		t.Errorf("the last was acked after %v", d)
	}
}

// A host that stalls is not swamped: little is repeated, and less each time; and what its
// late acks teach is remembered.
func TestAHostThatStallsIsNotSwamped(t *testing.T) {
	r := crowd(t, Config{}, 1, 600)
	r.settle()
	var all []string
	for _, a := range r.w.sorted() {
		if a != ip("192.0.2.1") {
			r.w.fault[a] = snsd.ReasonLinkDown
			all = append(all, a.String())
		}
	}
	r.changed(snsd.ReasonLinkDown, all...)
	before := r.n.Counters().Retried
	for end := r.now.Add(10 * time.Second); r.now.Before(end); r.now = r.n.Next() {
		r.poll()
	}
	c := r.n.Counters()
	if c.Retried-before > 16*repeatBurst {
		t.Errorf("%d repeats within 10 s of silence", c.Retried-before)
	}
}

func TestAnActiveNoticeIsRepeatedOnceEarlyAndThenNeverWithinFiveSeconds(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.fault(farT, 0)
	start := r.now
	r.ack(r.poll()[1]) // hostB's
	var at []time.Duration
	for range 4 {
		r.now = r.n.Next()
		expect(t, r.poll(), hostA+": "+farT+" active")
		at = append(at, r.now.Sub(start))
	}
	ms := time.Millisecond
	if d := cmp.Diff([]time.Duration{20 * ms, 5020 * ms, 10020 * ms, 15020 * ms}, at); d != "" {
		t.Errorf("repeats (-want +got):\n%s", d)
	}
}

// The whole point of it: the agent waits 3 s after the last active notice of a target.
func TestAHostWhoseAcksAreLostConnectsAllTheSame(t *testing.T) {
	l := newLike(t, Config{}, 1)
	l.pass(time.Minute)
	l.take(l.agent.Tick(l.now))
	l.fault(l.targets[0], snsd.ReasonBFDDown)
	l.run()
	l.events = nil
	l.fault(l.targets[0], 0)
	for end := l.now.Add(4 * time.Second); l.now.Before(end); l.pass(10 * time.Millisecond) {
		for _, o := range l.n.Poll(l.now) {
			out := l.agent.Frame(ntsFrame(o.Frame), l.now)
			l.events = append(l.events, out.Events...) // but no ack arrives
		}
		l.events = append(l.events, l.agent.Tick(l.now).Events...)
	}
	if got := l.count(snsd.AgentConnect); got != 1 {
		t.Errorf("connected %d times within 4 s, want once", got)
	}
}

// A query comes from an agent that has just started: what is under way to it may have
// come before that.
func TestAQueryHasWhatIsUnderWayRepeatedAtOnce(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.fault(farT, 0)
	r.ack(r.poll()[1])
	r.now = r.n.Next()
	r.poll()
	r.pass(time.Second)
	r.n.Query(ip(hostA), r.now)
	expect(t, r.poll(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}
