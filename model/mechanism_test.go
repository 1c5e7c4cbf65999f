package model

import (
	"reflect"
	"slices"
	"testing"
)

// fabricWith is a small leaf-spine fabric with everything of the suite that may stand
// together, loaded so that queues mark and pause.
func fabricWith(t *testing.T, cc Control, sp SwitchProfile, np NICProfile) *Sim {
	t.Helper()
	n := &Network{}
	np.CC = cc
	var spines []NodeID
	for range 2 {
		spines = append(spines, n.AddSwitch("spine", sp))
	}
	for range 4 {
		leaf := n.AddSwitch("leaf", sp)
		for _, s := range spines {
			if _, err := n.Connect(leaf, s, LinkSpec{Rate: 100 * Gbps, Delay: Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			if _, err := n.Connect(n.AddHost("h", np), leaf, LinkSpec{Rate: 100 * Gbps, Delay: Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := n.Build(Options{Seed: 7, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		for _, to := range []int{(i + 5) % 16, 3} {
			if i/4 == to/4 {
				continue
			}
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: EndpointID(to), Bytes: 400_000, TOS: 3 << 5, Start: Time(i) * Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func settingsOf(t *testing.T, part Part, kind string) Settings {
	t.Helper()
	s, err := NewSettings(part, kind, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every mechanism of the registry loses no frame unaccounted, and does on several cores what
// it does on one, event for event.
func TestMechanismsOnShards(t *testing.T) {
	inference := aiECNMechanism
	inference.New = func() Settings {
		set := aiECNMechanism.New().(*AIECN)
		set.Mode = inferenceMode
		return set
	}
	for _, m := range append(slices.Clone(mechanisms), &inference) {
		cc := Control(Paper())
		sp := ReferenceSwitch(4<<20, nil)
		sp.ECN = ECN{Mode: ECNDequeue, KMin: 50_000, KMax: 200_000, PMax: 0.2}
		sp.Lossless = 1<<3 | 1<<4
		np := ReferenceNIC(nil)
		np.RTO = Millisecond
		switch set := m.New().(type) {
		case Control:
			cc = set
		case BalancerSettings:
			sp.Balancer = set
		case SchedulerSettings:
			sp.Scheduler = set
		case ReceiverSettings:
			np.Receiver, sp.Balancer = set, &Spray{}
		case StageSettings:
			sp.Stages = []StageSettings{set}
		case TunerSettings:
			sp.Tuners = []TunerSettings{set}
			sp.MMU = MMUCells
			sp.Cells.XoffAlpha, sp.Cells.LimitAlpha = 6, 8
		case BufferSettings:
			sp.MMU = set.Kind()
			sp.Cells.XoffAlpha, sp.Cells.LimitAlpha = 6, 8
		default:
			t.Fatalf("%s %s is of no part", m.Part, m.Kind)
		}
		one, two := fabricWith(t, cc, sp, np), fabricWith(t, cc, sp, np)
		if err := one.Run(2 * Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := two.RunOn(2, 2*Millisecond); err != nil {
			t.Fatal(err)
		}
		if one.TraceHash() != two.TraceHash() || !reflect.DeepEqual(one.StageCounters(), two.StageCounters()) || one.Totals().Marks != two.Totals().Marks {
			t.Errorf("%s %s: other events on two cores; %v and %v", m.Part, m.Kind, one.StageCounters(), two.StageCounters())
		}
		for _, s := range []*Sim{one, two} {
			if err := s.CheckConservation(); err != nil {
				t.Errorf("%s %s: %v", m.Part, m.Kind, err)
			}
		}
		acked := int64(0)
		for i := range one.Flows() {
			acked += one.Flow(FlowID(i)).Acked
		}
		if acked < 200_000 {
			t.Errorf("%s %s: %d bytes arrived in 2 ms", m.Part, m.Kind, acked)
		}
	}
}
