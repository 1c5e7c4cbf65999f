package model_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// drawFabric makes a small fabric with random profiles, links, flows and faults.
func drawFabric(t *rapid.T) (*model.Sim, *workload.Fabric) {
	var cc model.Control
	switch rapid.IntRange(0, 2).Draw(t, "cc") {
	case 1:
		cc = model.CX4()
	case 2:
		cc = model.Paper()
	}
	p := workload.Profiles{Switch: model.ReferenceSwitch(rapid.Int64Range(2_500_000, 8_000_000).Draw(t, "buffer"), cc), NIC: model.ReferenceNIC(cc)}
	p.NIC.MTU = rapid.SampledFrom([]int32{256, 1000, 4096}).Draw(t, "mtu")
	p.NIC.AckEvery = rapid.Int32Range(1, 4).Draw(t, "ack every")
	p.NIC.Selective = rapid.Bool().Draw(t, "selective repeat")
	p.NIC.RTO = 200 * model.Microsecond
	if rapid.Bool().Draw(t, "cells") {
		p.Switch.MMU = model.MMUCells
		p.Switch.Buffer = 8 << 20
		p.Switch.Cells = model.CellMMU{Cell: 320, Guaranteed: 1600, Headroom: 60_000, XoffAlpha: 5, XonOffset: 6144, LimitAlpha: 7}
	}
	if rapid.Bool().Draw(t, "quanta") {
		p.Switch.PFC.Quanta = rapid.Uint16Range(100, 65535).Draw(t, "pause quanta")
	}
	p.Switch.PFC.Pause = rapid.Bool().Draw(t, "802.3x")
	p.Switch.PFC.Reaction = model.Time(rapid.Int64Range(0, 600).Draw(t, "reaction")) * model.Nanosecond
	p.NIC.PFC.Reaction = p.Switch.PFC.Reaction
	p.Switch.PFC.Off = rapid.IntRange(0, 4).Draw(t, "pfc off") == 0
	p.Switch.Sched.WDRR = rapid.Uint8().Draw(t, "wdrr")
	p.Switch.Deadlock = model.Deadlock{On: rapid.Bool().Draw(t, "watchdog"), Detect: 50 * model.Microsecond, Recover: 50 * model.Microsecond, Discard: rapid.Bool().Draw(t, "discard"), TurnOff: 3}
	l := model.LinkSpec{Rate: rapid.SampledFrom([]model.Rate{10, 25, 40, 100}).Draw(t, "rate") * model.Gbps, Delay: model.Time(rapid.Int64Range(1, 2_000_000).Draw(t, "delay"))}
	up := l
	up.Rate *= model.Rate(rapid.IntRange(1, 4).Draw(t, "uplink"))
	up.Loss = rapid.SampledFrom([]float64{0, 0, 0.001, 0.05}).Draw(t, "loss")
	var f *workload.Fabric
	var err error
	if rapid.Bool().Draw(t, "ring") {
		f, err = workload.Ring(4, 2, l, up, p)
	} else {
		f, err = workload.LeafSpine(3, 2, 2, l, up, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Net.Build(model.Options{Seed: rapid.Uint64().Draw(t, "seed"), Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	n := len(f.Hosts)
	for range rapid.IntRange(1, 12).Draw(t, "flows") {
		src := rapid.IntRange(0, n-1).Draw(t, "src")
		dst := (src + rapid.IntRange(1, n-1).Draw(t, "dst")) % n
		_, err := s.AddFlow(model.FlowSpec{Src: model.EndpointID(src), Dst: model.EndpointID(dst), Bytes: rapid.Int64Range(1, 400_000).Draw(t, "bytes"),
			Start: model.Time(rapid.Int64Range(0, 100).Draw(t, "start")) * model.Microsecond, TOS: rapid.SampledFrom([]uint8{0, 3 << 5, 3 << 5, 4 << 5}).Draw(t, "tos")})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, f
}

// Every frame made is delivered, dropped with a reason, queued or on a wire, at any
// moment, whatever breaks.
func TestFramesAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, f := drawFabric(t)
		if err := s.AddressSwitches(); err != nil {
			t.Fatal(err)
		}
		for step := range 40 {
			// Control planes speak all the time, in any class.
			from, to := rapid.IntRange(0, len(f.Edge)-1).Draw(t, "from"), rapid.IntRange(1, len(f.Edge)-1).Draw(t, "to")
			tos, frame := rapid.Uint8().Draw(t, "control tos"), make([]byte, rapid.IntRange(14, 9216).Draw(t, "length"))
			for range rapid.IntRange(0, 20).Draw(t, "control frames") {
				if err := s.SendRouted(f.Edge[from], f.Edge[(from+to)%len(f.Edge)], tos, uint32(tos), frame); err != nil {
					t.Fatal(err)
				}
				if err := s.SendControl(s.PortOf(f.Hosts[0], 0), int(tos>>5), frame); err != nil {
					t.Fatal(err)
				}
			}
			switch rapid.IntRange(0, 12).Draw(t, "fault") {
			case 0:
				s.SetLink(f.Links[rapid.IntRange(0, len(f.Links)-1).Draw(t, "link")], rapid.Bool().Draw(t, "up"))
				s.Reroute()
			case 1:
				s.KillSwitch(f.Edge[0])
			case 2:
				s.ReviveSwitch(f.Edge[0])
				s.Reroute()
			case 3:
				s.Storm(0, 1<<3, 20*model.Microsecond, s.Now()+60*model.Microsecond)
			case 4:
				s.SetMute(f.Links[len(f.Links)-1], rapid.Bool().Draw(t, "a"), rapid.Bool().Draw(t, "b"))
			}
			if err := s.Run(model.Time(step+1) * 7 * model.Microsecond); err != nil {
				t.Fatal(err)
			}
			if err := s.CheckConservation(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Without loss, faults or PFC trouble every flow completes and nothing stays behind.
func TestFlowsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawFabric(t)
		if err := s.RunWhile(2*model.Second, func() bool { return s.Active()+s.Pending() > 0 }); err != nil {
			t.Fatal(err)
		}
		if s.Active()+s.Pending() > 0 {
			t.Fatalf("%d flows active, %d pending: %+v", s.Active(), s.Pending(), s.Totals())
		}
		if err := s.Run(s.Now() + 100*model.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckConservation(); err != nil {
			t.Fatal(err)
		}
		if live := s.Totals().Live; live != 0 {
			t.Errorf("%d frames left", live)
		}
	})
}

// Enough headroom means no loss in a lossless queue, whatever the traffic.
func TestNoLossWithEnoughHeadroom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]model.Rate{10, 40, 100, 400}).Draw(t, "rate") * model.Gbps
		delay := model.Time(rapid.Int64Range(10_000, 5_000_000).Draw(t, "delay"))
		mtu := rapid.SampledFrom([]int32{512, 1000, 4096, 9000}).Draw(t, "mtu")
		cells := rapid.Bool().Draw(t, "cells")
		p := workload.Profiles{Switch: model.ReferenceSwitch(32<<20, nil), NIC: model.ReferenceNIC(nil)}
		p.NIC.MTU = mtu
		p.Switch.PFC.Quanta = 65535
		p.Switch.PFC.Reaction, p.NIC.PFC.Reaction = 500*model.Nanosecond, 500*model.Nanosecond
		need := model.Headroom{Rate: rate, Delay: delay, MTU: mtu + 48, Reaction: 500 * model.Nanosecond}.Bytes()
		if cells {
			p.Switch.MMU = model.MMUCells
			// Frames fill cells badly when small; the books count cells.
			p.Switch.Cells = model.CellMMU{Cell: 256, Headroom: int32(need*2 + 4*256), Guaranteed: 1024, XoffAlpha: 4, XonOffset: 6144, LimitAlpha: 7}
		} else {
			p.Switch.Ref.HeadroomX = float64(need) / (float64(rate) / 8 * delay.Seconds())
		}
		f, err := workload.Star(5, model.LinkSpec{Rate: rate, Delay: delay}, p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Net.Build(model.Options{Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if _, err := s.AddFlow(model.FlowSpec{Src: model.EndpointID(i), Dst: 4, Bytes: 8_000_000, TOS: workload.DataTOS}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Run(3 * model.Millisecond); err != nil {
			t.Fatal(err)
		}
		if tot := s.Totals(); len(tot.Dropped) > 0 {
			t.Fatalf("dropped %v with a headroom of %d bytes", tot.Dropped, need)
		}
	})
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) string {
		s, _, err := workload.References[1].Build(model.Options{Seed: seed, Trace: true}, model.CX4())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(model.Millisecond); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%016x %d", s.TraceHash(), s.Events())
	}
	a, b, c := run(5), run(5), run(6)
	if a != b {
		t.Errorf("seed 5 gave %s and %s", a, b)
	}
	if a == c {
		t.Errorf("seeds 5 and 6 gave the same run %s", a)
	}
	const golden = "5d6f80e2125d4674 789635"
	if a != golden {
		t.Errorf("trace %s, want %s: the model's behaviour has changed, or depends on the machine", a, golden)
	}
}

// A run in many small pieces is the same run.
func TestRunInPieces(t *testing.T) {
	build := func() *model.Sim {
		s, _, err := workload.References[0].Build(model.Options{Seed: 2, Trace: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := build(), build()
	if err := a.Run(300 * model.Microsecond); err != nil {
		t.Fatal(err)
	}
	for b.Now() < 300*model.Microsecond {
		if err := b.Run(b.Now() + 100*model.Nanosecond); err != nil {
			t.Fatal(err)
		}
	}
	if a.TraceHash() != b.TraceHash() {
		t.Error("the pieces do not add up to the whole")
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	for _, r := range workload.References[:2] {
		s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(1200 * model.Microsecond); err != nil {
			t.Fatal(err)
		}
		before := s.Events()
		allocs := testing.AllocsPerRun(5, func() {
			if err := s.Run(s.Now() + 100*model.Microsecond); err != nil {
				t.Fatal(err)
			}
		})
		events := float64(s.Events()-before) / 6
		// Lists that double while queues still grow are allowed; work per event is not.
		if allocs > events/2000 {
			t.Errorf("%s: %g allocations in %g events", r.Name, allocs, events)
		}
	}
}

func TestStopAndProgress(t *testing.T) {
	s, _, err := workload.References[1].Build(model.Options{Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	s.OnProgress(func(now model.Time, events uint64) {
		if calls++; calls == 3 {
			s.Stop()
		}
	})
	if err := s.Run(30 * model.Millisecond); err != model.ErrStopped {
		t.Fatalf("got %v, want ErrStopped", err)
	}
	if err := s.CheckConservation(); err != nil {
		t.Error(err)
	}
	if err := s.Run(s.Now() + model.Microsecond); err != nil {
		t.Errorf("after a stop: %v", err)
	}
}

// A flapping link does not make the tables grow.
func TestReroutingDoesNotGrow(t *testing.T) {
	p := workload.Profiles{Switch: model.ReferenceSwitch(8<<20, nil), NIC: model.ReferenceNIC(nil)}
	l := model.LinkSpec{Rate: 25 * model.Gbps, Delay: model.Microsecond}
	f, err := workload.LeafSpine(8, 1, 8, l, l, p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Net.Build(model.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFlow(model.FlowSpec{Src: 0, Dst: 5, Bytes: model.Forever, TOS: workload.DataTOS}); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		s.SetLink(f.Links[1], i%2 == 1)
		for _, sw := range f.Edge {
			s.RerouteSwitch(sw)
		}
		if err := s.Run(s.Now() + model.Microsecond); err != nil {
			t.Fatal(err)
		}
		if n := s.Groups(); n > 2048 {
			t.Fatalf("%d groups after %d flaps", n, i)
		}
	}
	for _, leaf := range f.Edge[1:] { // the tables still say the truth
		if n := s.ECMPWays(leaf, 0); n != 8 {
			t.Errorf("%s has %d ways to h0", s.NodeName(leaf), n)
		}
	}
}
