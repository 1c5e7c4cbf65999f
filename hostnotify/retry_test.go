package hostnotify

import (
	"fmt"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// machine is a host with the queue and the flood guard of the existing agent, and its link.
type machine struct {
	name    string
	task    time.Duration // for one notice; 0: as the existing agent
	frames  int           // every so manieth frame to it is lost; 0: none
	acks    int           // and of its acks
	targets []int
}

var machines = []machine{
	{name: "existing agent", targets: []int{200, 1000, 2000}},
	{name: "fast agent", task: 50 * time.Microsecond, targets: []int{200, 1000, 2000}},
	{name: "slow agent (6 ms)", task: 6 * time.Millisecond, targets: []int{200, 1000, 2000}},
	{name: "slower agent (25 ms)", task: 25 * time.Millisecond, targets: []int{200, 1000, 2000}},
	{name: "slowest agent (100 ms)", task: 100 * time.Millisecond, targets: []int{200}},
	{name: "every 10th frame lost", frames: 10, targets: []int{200, 1000, 2000}},
	{name: "every 20th ack lost", acks: 20, targets: []int{200, 1000, 2000}},
}

func every(n int) func(int) bool {
	if n == 0 {
		return nil
	}
	return func(i int) bool { return i%n == n-1 }
}

// outcome is how a machine came to hear that all its targets are lost.
type outcome struct {
	last            time.Duration // when the last was acked
	frames, repeats int           // sent; notices among them that were repeated
	deaf, full      uint64        // frames and notices that the agent dropped
}

func (o outcome) String() string {
	return fmt.Sprintf("last ack after %8.3f s, %4d frames, %5d repeats", o.last.Seconds(), o.frames, o.repeats)
}

// ours is what the Notifier makes of it.
func (m machine) ours(t testing.TB, targets int) outcome {
	l := newLikeOf(t, Config{}, targets, m.task)
	l.pass(time.Minute)
	l.lose, l.deafTo, l.frames, l.acks = every(m.frames), every(m.acks), 0, 0
	last, repeats := l.storm()
	c := l.agent.Counters()
	return outcome{last, l.frames, int(repeats), c.Deaf, c.QueueFull}
}

// fixed tells a machine as a sender does that has no rule at all except a window of 256 and
// that each notice is repeated first after its last time.
func (m machine) fixed(t testing.TB, targets int, first time.Duration) (o outcome) {
	type notice struct {
		due   time.Time
		sent  bool
		acked bool
	}
	agent, all, now := likeAgent(t, m.task), make([]notice, targets), epoch
	loses, losesAck := every(m.frames), every(m.acks)
	acks, acked, next := 0, 0, 0
	take := func(out snsd.AgentOutput) {
		for _, f := range out.Frames {
			if f[12] != 0x88 || f[13] != 0xa7 {
				continue
			}
			for _, a := range parse(t, f).Acks {
				if acks++; losesAck != nil && losesAck(acks) {
					continue
				}
				if x := &all[a.Seq]; !x.acked {
					x.acked = true
					acked++
					o.last = now.Sub(epoch)
				}
			}
		}
	}
	for acked < targets {
		var frame []snsd.Notice
		flush := func() {
			if len(frame) == 0 {
				return
			}
			b, err := snsd.AppendNotify(nil, frame...)
			if err != nil {
				t.Fatal(err)
			}
			if o.frames++; loses == nil || !loses(o.frames) {
				take(agent.Frame(fabric.Frame{Port: "eth0", EtherType: fabric.EtherTypeNTS, Payload: b}, now.Add(wire)))
			}
			frame = frame[:0]
		}
		send := func(i int) {
			if all[i].sent {
				o.repeats++
			}
			all[i].sent, all[i].due = true, now.Add(first)
			frame = append(frame, snsd.Notice{
				Subject: ip(fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250)), Host: ip(hostA), Seq: uint32(i), Reason: snsd.ReasonLinkDown,
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420},
			})
			if len(frame) == 30 {
				flush()
			}
		}
		var soonest time.Time
		for i := range all[:next] {
			if x := &all[i]; !x.acked {
				if !x.due.After(now) {
					send(i)
				}
				soonest = earliest(soonest, x.due)
			}
		}
		// Room for a frame's worth counts, as with us.
		if next-acked <= 256-30 || next == 0 {
			for ; next < targets && next-acked < 256; next++ {
				send(next)
				soonest = earliest(soonest, all[next].due)
			}
		}
		flush()
		if acked < targets {
			now = earliest(soonest, agent.Next().Add(wire))
			take(agent.Tick(now.Add(-wire)))
		}
	}
	o.deaf, o.full = agent.Counters().Deaf, agent.Counters().QueueFull
	return o
}

// The rule of flight.go is never worse than a fixed first retry after 2 s: neither later with the
// last notice, nor with more repeats than belong to one frame in ten.
func TestRetriesAreNeverWorseThanAFixedTwoSeconds(t *testing.T) {
	for _, m := range machines {
		for _, targets := range m.targets {
			fixed, ours := m.fixed(t, targets, 2*time.Second), m.ours(t, targets)
			t.Logf("%-22s %4d targets, fixed 2 s: %v", m.name, targets, fixed)
			t.Logf("%-22s %4d targets, ours:      %v", m.name, targets, ours)
			if slack := 20 * time.Millisecond; ours.last > fixed.last+fixed.last/50+slack {
				t.Errorf("%s, %d targets: the last ack came after %v, with a fixed retry after %v", m.name, targets, ours.last, fixed.last)
			}
			if ours.repeats > fixed.repeats+targets/10 {
				t.Errorf("%s, %d targets: %d repeats, with a fixed retry %d", m.name, targets, ours.repeats, fixed.repeats)
			}
			if ours.deaf > 0 || ours.full > 0 {
				t.Errorf("%s, %d targets: the agent was deaf to %d frames, and %d notices found its queue full", m.name, targets, ours.deaf, ours.full)
			}
		}
	}
}

// How long a host was without a link says nothing of how fast it acks.
func TestAFrameLostRightAfterALinkCameBackIsRepairedAtOnce(t *testing.T) {
	l := newLike(t, Config{}, 2)
	for _, a := range l.targets {
		l.fault(a, snsd.ReasonLinkDown)
	}
	l.n.Poll(l.now) // lost with the link
	l.n.PortDown("p1")
	l.pass(10 * time.Minute)
	l.n.PortUp("p1", mac(9), l.now)
	frames := l.frames
	l.lose = func(frame int) bool { return frame == frames+2 }
	start := l.now
	for _, o := range l.n.Poll(l.now) {
		l.frames++
		l.take(l.agent.Frame(ntsFrame(o.Frame), l.now.Add(wire)))
	}
	l.w.put(ip("198.51.200.1"))
	l.changed(0, "198.51.200.1")
	l.run()
	if d := l.ackedAt.Sub(start); d > 70*time.Millisecond {
		t.Errorf("all was acked after %v", d)
	}
}
