package daemon

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

func (n *node) stages(t *testing.T) []api.Stage {
	t.Helper()
	l, err := n.d.Latency(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Bounds)+1 != len(l.Stages[0].Buckets) {
		t.Fatalf("%d bounds, %d buckets", len(l.Bounds), len(l.Stages[0].Buckets))
	}
	return l.Stages
}

// A fault at one switch leaves a value in every stage of its way, at each device that
// takes part: the one that saw it, the reflector, the one whose host is told.
func TestEveryStageOfAFaultIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		before := map[string][]api.Stage{}
		for name, n := range f.nodes {
			before[name] = n.stages(t)
		}
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		for _, c := range []struct {
			node   string
			scope  api.Scope
			names  []string
			reason string
			want   uint64
		}{
			{"tor3", api.ScopeOwn, []string{"decided", "sent"}, "", 1},
			{"spine", api.ScopeReflector, []string{"taken", "reflected"}, "", 1},
			{"tor1", api.ScopeTold, []string{"decided", "sent", "at-reflector", "reflected", "received", "applied", "frame", "ack"}, "", 1},
			{"tor1", api.ScopeTold, []string{"notice", "acked"}, "link-down", 1},
			{"tor2", api.ScopeTold, []string{"decided", "received", "applied"}, "", 1},
			{"tor2", api.ScopeTold, []string{"frame", "ack"}, "", 2},
			{"tor2", api.ScopeTold, []string{"notice", "acked"}, "link-down", 2},
			{"tor3", api.ScopeTold, []string{"notice", "acked"}, "link-down", 1}, // t2, on the same switch
			{"tor3", api.ScopeTold, []string{"received", "applied"}, "", 0},
		} {
			after := f.nodes[c.node].stages(t)
			for _, name := range c.names {
				s := stage(after, c.scope, name, c.reason)
				if got := s.Total.Count - stage(before[c.node], c.scope, name, c.reason).Total.Count; got != c.want {
					t.Errorf("%s: %s %s %s has %d new values, want %d", c.node, c.scope, name, c.reason, got, c.want)
				}
				if s.Skewed != 0 || s.Held != 0 {
					t.Errorf("%s: %s %s left values out: %+v", c.node, c.scope, name, s)
				}
			}
		}
	})
}

// What hosts are told for other reasons than a lost carrier is measured under its own
// reason: a zone changed, an LLDP time to live ended, a host came back.
func TestReasonsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		count := func(reason string) uint64 {
			return stage(f.nodes["tor1"].stages(t), api.ScopeTold, "acked", reason).Total.Count
		}
		if err := f.nodes["spine"].d.RemoveMembers(t.Context(), "a", []string{t1}); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if got := count("zone-changed"); got != 1 {
			t.Errorf("%d notices because a zone changed, want 1", got)
		}
		was := count("active")
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", true)
		settle(time.Second)
		if got := count("active") - was; got != 1 {
			t.Errorf("%d notices because a host was heard again, want 1", got)
		}
		f.hosts["t3"].silent(true)
		settle(121 * time.Second)
		if got := count("aged-out"); got != 1 {
			t.Errorf("%d notices because a host aged out, want 1", got)
		}
	})
}

// The history of notices has the whole way of each, in order.
func TestTheHistoryHasEveryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		pulled := time.Now()
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		list, err := ask[[]api.Notice](t.Context(), f.nodes["tor1"].d, "notices")
		if err != nil || len(list) == 0 {
			t.Fatalf("%d notices, %v", len(list), err)
		}
		n := list[len(list)-1]
		if n.Origin != f.nodes["tor3"].d.cfg.Load().Device.ID || n.FaultToAcked == nil {
			t.Errorf("origin %s, %+v", n.Origin, n)
		}
		last := pulled
		for i, at := range []*time.Time{n.FaultAt, n.DecidedAt, n.SentAt, n.ReflectorAt, n.ReflectedAt, n.ReceivedAt, n.Queued, n.Sent, n.Acked} {
			if at == nil || at.Before(last) || at.Sub(pulled) > time.Second {
				t.Fatalf("time %d is %v after %v", i, at, last)
			}
			last = *at
		}
	})
}

// slowSender takes its time to return from Send, and may know better when the frame left.
type slowSender struct {
	noPorts
	takes time.Duration
	stamp bool
}

func (s slowSender) Send(string, []byte) error {
	time.Sleep(s.takes)
	return nil
}

// stampingSender is one that stamps.
type stampingSender struct{ slowSender }

func (s stampingSender) SendStamped(string, []byte) (time.Time, error) {
	time.Sleep(s.takes)
	if !s.stamp {
		return time.Time{}, nil
	}
	return time.Now().Add(-s.takes / 2), nil
}

// A host may have a frame, and its ack be back, before the system call has returned that
// sent it: the frame left when the kernel says so, else when it was handed over.
func TestAFrameIsNeverLaterThanItsAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := slowSender{takes: 4 * time.Millisecond}
		stamped := slow
		stamped.stamp = true
		for _, c := range []struct {
			dp   fabric.Dataplane
			left time.Duration // after it was handed over
		}{{slow, 0}, {stampingSender{slow}, 0}, {stampingSender{stamped}, 2 * time.Millisecond}} {
			d, err := NewDevice(c.dp, api.NewEventLog(10, time.Now()), time.Now, func(device.Actions) (*device.Core, error) { return nil, nil })
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			d.SendFrame("eth1", nil)
			if got := d.Left().Sub(began); got != c.left {
				t.Errorf("%T: left after %v, want %v", c.dp, got, c.left)
			}
		}
	})
}

// stage finds a stage; one that is not listed has no values.
func stage(list []api.Stage, scope api.Scope, name, reason string) api.Stage {
	i := slices.IndexFunc(list, func(s api.Stage) bool { return s.Scope == scope && s.Name == name && s.Reason == reason })
	if i < 0 {
		return api.Stage{}
	}
	return list[i]
}
