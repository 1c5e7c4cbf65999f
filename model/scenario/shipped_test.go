package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/model"
)

// slowOnes need more than a second; they run with INOF_MODEL=1 (`make model`).
var slowOnes = map[string]bool{"web-search": true, "unfairness-dcqcn": true, "victim-dcqcn": true}

// TestModelShippedScenarios runs the library and checks what each file expects.
func TestModelShippedScenarios(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			f, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name != name {
				t.Errorf("the scenario calls itself %s", f.Name)
			}
			if f.About == "" || len(f.Expect) == 0 {
				t.Error("says nothing about itself, or expects nothing")
			}
			if slowOnes[name] && os.Getenv("INOF_MODEL") == "" {
				if err := f.Check(); err != nil {
					t.Error(err)
				}
				return
			}
			r, err := f.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVictim compares the two shipped runs of the victim flow.
func TestModelVictimIsSavedByDCQCN(t *testing.T) {
	if os.Getenv("INOF_MODEL") == "" {
		netnstest.LeftTo(t, "make model")
	}
	var got [2]float64
	for i, name := range []string{"victim-pfc", "victim-dcqcn"} {
		f, err := Load("../../scenarios/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = r.Metrics["victim.final-gbps"]
	}
	if got[1] < 2*got[0] {
		t.Errorf("PFC only %.1f Gb/s, with DCQCN %.1f", got[0], got[1])
	}
}

// TestModelStormStopsOthersInTime: after a NIC storms, its sender's other flow stops
// when the sender's ingress has filled its share of the buffer.
func TestModelStormStopsOthersInTime(t *testing.T) {
	const buffer, rate = 12 << 20, 20e9 // bytes; bits a second towards the storming NIC
	net := &model.Network{}
	sw := net.AddSwitch("s", model.ReferenceSwitch(buffer, nil))
	for range 3 {
		h := net.AddHost("h", model.ReferenceNIC(nil))
		if _, err := net.Connect(h, sw, model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(model.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for dst, r := range map[model.EndpointID]model.Rate{1: rate, 2: model.Gbps} {
		if _, err := s.AddFlow(model.FlowSpec{Src: 0, Dst: dst, Bytes: model.Forever, TOS: 24 << 2, Rate: r}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(at model.Time) {
		if err := s.Run(at); err != nil {
			t.Fatal(err)
		}
	}
	run(100 * model.Microsecond)
	s.Storm(1, 1<<3, 100*model.Microsecond, model.Second)
	// One ingress may take S/(8+1) of the shared pool and its reserve.
	shared := float64(buffer - 3*(37_500+4096))
	want := (shared/9 + 4096) * 8 / rate * 1e3
	stopped := 0.0
	for at := s.Now(); at < 3*model.Millisecond && stopped == 0; at += model.Microsecond {
		run(at)
		if s.Queue(s.PortOf(0, 0), 3).TxXoff > 0 {
			stopped = (at - 100*model.Microsecond).Seconds() * 1e3
		}
	}
	if stopped < want*0.98 || stopped > want*1.02 {
		t.Errorf("the sender was stopped after %.3f ms, the maths gives %.3f", stopped, want)
	}
	run(s.Now() + 10*model.Microsecond)
	before := s.QueueBytes(s.PortOf(0, 2), 3) + int64(s.Queue(s.PortOf(0, 2), 3).TxBytes)
	run(s.Now() + model.Millisecond)
	if after := s.QueueBytes(s.PortOf(0, 2), 3) + int64(s.Queue(s.PortOf(0, 2), 3).TxBytes); after != before {
		t.Errorf("the other flow still moves %d bytes", after-before)
	}
}

// Whatever paths the hashes give, prevention by uplink group keeps the class moving
// where, without it, most choices end in a standstill.
func TestModelPreventionOnManyPaths(t *testing.T) {
	stuck := 0
	for seed := range uint64(8) {
		for _, name := range []string{"hook-deadlock", "hook-prevention"} {
			f, err := Load("../../scenarios/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			f.Seed = seed + 1
			f.Duration = 10 * model.Millisecond
			r, err := f.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			still := r.Metrics["straight.final-gbps"] == 0 && r.Metrics["hook.final-gbps"] == 0
			if name == "hook-deadlock" && still {
				stuck++
			} else if still {
				t.Errorf("seed %d: stands still in spite of prevention", f.Seed)
			}
		}
	}
	if stuck < 3 {
		t.Errorf("only %d of 8 choices of paths deadlock without prevention", stuck)
	}
}

// TestModelFailOverAtAnyMoment: whatever the moment of a fault in the cycles of BFD and of
// reading ports, hosts act within what detection and the way of a notice take, and I/O
// goes on within one I/O more.
func TestModelFailOverAtAnyMoment(t *testing.T) {
	moments := 2
	if os.Getenv("INOF_MODEL") != "" {
		moments = 40
	}
	for name, bound := range map[string]struct{ first, last float64 }{"cut": {6.2, 6.4}, "storm": {50, 103}, "tor": {101, 153}, "black": {101, 153}} {
		least, most, longest := 1e9, 0.0, 0.0
		for k := range moments {
			f, err := Load("../../scenarios/failover-" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			f.Seed = uint64(k + 1)
			f.Faults[0].At += model.Time(k) * 53 * model.Millisecond / model.Time(moments)
			f.Duration = f.Faults[0].At + 300*model.Millisecond
			r, err := f.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			acts, zero := r.Metrics["fault1.i0.host-acts-ms"], r.Metrics["notice.zero-ms"]
			least, most, longest = min(least, acts), max(most, acts), max(longest, zero)
			if acts < bound.first || acts > bound.last || zero > acts+5 {
				t.Errorf("%s at %v: the host acted after %.1f ms, no I/O for %.1f ms; want it to act after %g..%g ms", name, f.Faults[0].At, acts, zero, bound.first, bound.last)
			}
		}
		t.Logf("%s at %d moments: hosts acted after %.1f..%.1f ms, longest without I/O %.1f ms", name, moments, least, most, longest)
	}
}

// The control plane changes nothing in how a run repeats: one seed, one run.
func TestControlPlaneScenarioIsDeterministic(t *testing.T) {
	run := func(seed uint64) (uint64, string) {
		f, err := Load("../../scenarios/failover-return.yaml")
		if err != nil {
			t.Fatal(err)
		}
		f.Seed, f.Trace, f.Duration = seed, true, 5500*model.Millisecond
		r, err := f.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Hash, r.Control.Hash
	}
	a, x := run(1)
	b, y := run(1)
	c, z := run(2)
	if a != b || x != y || a == 0 || a == c || x == z {
		t.Errorf("seed 1 gave %x %s and %x %s, seed 2 %x %s", a, x, b, y, c, z)
	}
}

// A host that probes before it believes a notice takes longer by the probe, and one
// whose path answers does not fail over at all.
func TestHostsThatProbe(t *testing.T) {
	for what, f := range map[string]func(*File){
		"dead": func(*File) {},
		"alive": func(f *File) { // the notice is a false alarm: a storm in a class that carries no data
			f.Faults[0] = Fault{At: 4 * model.Second, Kind: "storm", Host: "t0/0", Queues: []int{5}, Every: 100 * model.Microsecond, For: 10 * model.Second}
			f.Control.Storm = &StormCause{Detect: 10 * model.Millisecond, Deadlocks: 1}
		},
	} {
		file, err := Load("../../scenarios/failover-cut.yaml")
		if err != nil {
			t.Fatal(err)
		}
		file.Duration = 4500 * model.Millisecond
		file.Control.React = &HostReacts{Probe: 120 * model.Millisecond}
		f(file)
		r, err := file.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		up, zero := r.Metrics["notice.paths-up"], r.Metrics["notice.zero-ms"]
		if what == "dead" && (up != 1 || zero < 115 || zero > 130) || what == "alive" && (up != 2 || zero > 10) {
			t.Errorf("%s: %g paths up, no I/O for %g ms", what, up, zero)
		}
		if _, acted := r.Metrics["fault1.i0.host-acts-ms"]; !acted {
			t.Errorf("%s: the host did nothing", what)
		}
	}
}

// Sessions in the class of the data wait for all the data before them: 9 MB at 25 Gb/s.
func TestSessionsInTheDataClassWait(t *testing.T) {
	f, err := Load("../../scenarios/notice-under-load.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dscp := 24
	f.Control.DSCP = &dscp
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wait := r.Metrics["leaf1>spine0/3.peak-kb"] * 8 / 25e3 // ms
	if got := r.Metrics["fault1.h3.reflected-ms"] - r.Metrics["fault1.h3.sent-ms"]; got < 0.9*wait || got > 1.1*wait || wait < 2 {
		t.Errorf("a hop took %.3f ms, want %.3f", got, wait)
	}
}
