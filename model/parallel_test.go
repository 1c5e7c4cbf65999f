package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// state is all that can be seen of a run.
type state struct {
	Hash   uint64
	Totals model.Totals
	Flows  []model.FlowStatus
	Queues []model.QueueStats
}

func stateOf(s *model.Sim) state {
	st := state{Hash: s.TraceHash(), Totals: s.Totals()}
	st.Totals.PeakLive = 0 // shards have their peaks at different moments
	for i := range s.Flows() {
		st.Flows = append(st.Flows, s.Flow(model.FlowID(i)))
	}
	for n := range s.Nodes() {
		for k := range s.Ports(model.NodeID(n)) {
			for q := range model.NumQueues {
				st.Queues = append(st.Queues, s.Queue(s.PortOf(model.NodeID(n), k), q))
			}
		}
	}
	return st
}

// On two or three cores a run is the same event for event, and may go on on one.
func TestSeveralCoresGiveTheSameRun(t *testing.T) {
	for _, r := range workload.References {
		for _, cc := range []model.Control{nil, model.CX4(), model.Paper()} {
			build := func() *model.Sim {
				s, _, err := r.Build(model.Options{Seed: 3, Trace: true}, cc)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			times := []model.Time{20 * model.Microsecond, 90*model.Microsecond + 7, 150 * model.Microsecond}
			one := build()
			if err := one.Run(times[2]); err != nil {
				t.Fatal(err)
			}
			want := stateOf(one)
			for _, cores := range []int{2, 3} {
				s := build()
				for _, at := range times[:2] {
					if err := s.RunOn(cores, at); err != nil {
						t.Fatal(err)
					}
					if err := s.CheckConservation(); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Run(times[2]); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, stateOf(s)); d != "" {
					t.Fatalf("%s on %d cores:\n%.2000s", r.Name, cores, d)
				}
			}
		}
	}
}

// Shards run one after the other, to be measured, are the same run again.
func TestMeasureShards(t *testing.T) {
	build := func() *model.Sim {
		s, _, err := workload.References[1].Build(model.Options{Seed: 3, Trace: true}, model.CX4())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := build(), build()
	if err := one.Run(100 * model.Microsecond); err != nil {
		t.Fatal(err)
	}
	ticks := time.Duration(0)
	b, err := two.MeasureShards(2, 100*model.Microsecond, func() time.Duration { ticks++; return ticks })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stateOf(one), stateOf(two)); d != "" {
		t.Fatalf("%.2000s", d)
	}
	// Each window of each shard takes one tick of this clock, and so does each meeting.
	if b.Shards != 8 || b.Windows < 90 || b.Work != time.Duration(b.Shards*b.Windows) || b.Longest != b.Work/2 || b.Together != time.Duration(b.Windows) {
		t.Errorf("%+v", b)
	}
	if x := b.Speedup(); x < 1.7 || x > 2 {
		t.Errorf("speed-up %g", x)
	}
}

// The same over random fabrics and profiles.
func TestSeveralCoresOnRandomFabrics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "which")
		build := func() *model.Sim {
			var s *model.Sim
			rng := rapid.Custom(func(t *rapid.T) int { s, _ = drawFabric(t); return 0 })
			rng.Example(int(seed & 0x7fffffff))
			return s
		}
		one, two := build(), build()
		until := 300 * model.Microsecond
		if err := one.Run(until); err != nil {
			t.Fatal(err)
		}
		if err := two.RunOn(2, until); err != nil {
			t.Fatal(err)
		}
		if err := two.CheckConservation(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(stateOf(one), stateOf(two)); d != "" {
			t.Fatalf("%.3000s", d)
		}
	})
}

// breaks has links of W3's fabric fail, turn black, lose frames and come back while it runs, and
// the switches follow one after the other.
type breaks struct{ links []model.LinkID }

func (b breaks) FlowDone(*model.Sim, model.FlowID)        {}
func (b breaks) Control(*model.Sim, model.PortID, []byte) {}
func (b breaks) Divided() bool                            { return true }
func (b breaks) link(tag uint64) model.LinkID             { return b.links[int(tag)*37%len(b.links)] }
func (b breaks) Timer(s *model.Sim, tag uint64) {
	switch l := b.link(tag); tag % 5 {
	case 0:
		s.SetLink(l, false)
	case 1:
		s.SetMute(l, true, false)
	case 2:
		s.SetLoss(l, 0.01)
	case 3:
		s.SetLink(b.link(tag-3), true)
	case 4:
		s.Reroute()
	}
	if tag < 40 {
		s.At(s.Now()+model.Time(tag%7)*4*model.Microsecond+13, tag+1)
	}
}

// Faults strike the whole fabric at one moment: shards meet for them, and the run stays the same.
func TestSeveralCoresWithFaults(t *testing.T) {
	build := func() *model.Sim {
		s, f, err := workload.References[2].Build(model.Options{Seed: 3, Trace: true}, model.CX4())
		if err != nil {
			t.Fatal(err)
		}
		s.SetHandler(breaks{f.Links})
		s.At(5*model.Microsecond, 0)
		return s
	}
	until := 300 * model.Microsecond
	one := build()
	if err := one.Run(until); err != nil {
		t.Fatal(err)
	}
	want := stateOf(one)
	if d := want.Totals.Dropped; d["no-carrier"] == 0 || d["crc"] == 0 || d["black-path"] == 0 {
		t.Fatalf("the faults cost nothing: %v", d)
	}
	two := build()
	if err := two.RunOn(2, until); err != nil {
		t.Fatal(err)
	}
	if err := two.CheckConservation(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, stateOf(two)); d != "" {
		t.Fatalf("%.2000s", d)
	}
}

// What is told of a run's progress is of the whole fabric, also when it runs in shards, and to be
// looked at changes nothing.
func TestProgressOfSeveralCoresIsOfTheWholeFabric(t *testing.T) {
	build := func() *model.Sim {
		s, _, err := workload.References[2].Build(model.Options{Seed: 3, Trace: true}, model.CX4())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	until := 60 * model.Microsecond
	one := build()
	if err := one.Run(until); err != nil {
		t.Fatal(err)
	}
	two := build()
	looks, before := 0, uint64(0)
	two.OnProgress(func(now model.Time, events uint64) {
		beside := build()
		if err := beside.Run(now); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(stateOf(beside), stateOf(two)); d != "" || events != beside.Events() || two.Active() != beside.Active() || two.Pending() != beside.Pending() {
			t.Errorf("at %v: %d events, want %d; %d flows at work, %d to come, want %d and %d\n%.1500s",
				now, events, beside.Events(), two.Active(), two.Pending(), beside.Active(), beside.Pending(), d)
		}
		if events > before {
			looks, before = looks+1, events
		}
	})
	two.ProgressEach(20_000)
	if err := two.RunOn(2, until); err != nil {
		t.Fatal(err)
	}
	if looks < 3 {
		t.Errorf("%d looks", looks)
	}
	if d := cmp.Diff(stateOf(one), stateOf(two)); d != "" {
		t.Errorf("%.2000s", d)
	}
}

// Deadlock control takes ports down on several cores as on one, at both ends of a link that the
// cut passes, too: a NIC that storms, and switches that wait for it.
func TestPortsAreTakenDownOnSeveralCores(t *testing.T) {
	p := workload.Profiles{Switch: model.ReferenceSwitch(1<<20, nil), NIC: model.ReferenceNIC(nil)}
	p.Switch.Deadlock = model.Deadlock{On: true, Detect: 50 * model.Microsecond, Recover: 20 * model.Microsecond, TurnOff: 3, ErrorDown: true, Window: model.Second}
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}
	build := func() *model.Sim {
		f, err := workload.LeafSpine(8, 4, 4, l, l, p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Net.Build(model.Options{Seed: 3, Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range model.EndpointID(32) {
			to := model.EndpointID(31)
			if i%3 == 0 {
				to = (i + 9) % 32
			}
			if i == to {
				continue
			}
			if _, err := s.AddFlow(model.FlowSpec{Src: i, Dst: to, Bytes: model.Forever, TOS: workload.DataTOS}); err != nil {
				t.Fatal(err)
			}
		}
		s.Storm(31, 1<<3, 20*model.Microsecond, 3*model.Millisecond)
		s.Storm(7, 1<<3, 20*model.Microsecond, 3*model.Millisecond)
		return s
	}
	down := func(s *model.Sim) (hosts, uplinks int) {
		for n := range s.Nodes() {
			for k := range s.Ports(model.NodeID(n)) {
				if p := s.PortOf(model.NodeID(n), k); !s.ErrorDown(p) {
				} else if s.IsSwitch(s.PortNode(s.Peer(p))) {
					uplinks++
				} else {
					hosts++
				}
			}
		}
		return hosts, uplinks
	}
	until := 2 * model.Millisecond
	one := build()
	if err := one.Run(until); err != nil {
		t.Fatal(err)
	}
	if hosts, uplinks := down(one); hosts == 0 || uplinks == 0 {
		t.Fatalf("%d ports to hosts and %d between switches are down: this test shows nothing", hosts, uplinks)
	}
	for _, cores := range []int{2, 3} {
		s := build()
		if why := s.OneCore(cores); why != "" {
			t.Fatal(why)
		}
		b, err := s.MeasureShards(cores, until, func() time.Duration { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		if b.Windows < 500 {
			t.Errorf("%d windows on %d cores: nearly all ran on one", b.Windows, cores)
		}
		if err := s.CheckConservation(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(stateOf(one), stateOf(s)); d != "" {
			t.Errorf("%d cores:\n%.2000s", cores, d)
		}
	}
}
