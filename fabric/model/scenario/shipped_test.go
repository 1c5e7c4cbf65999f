package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/fabric/model"
)

// slowOnes need more than a second; they run with INOF_MODEL=1 (`make model`).
var slowOnes = map[string]bool{"web-search": true, "unfairness-dcqcn": true, "victim-dcqcn": true}

// TestModelShippedScenarios runs the library and checks what each file expects.
func TestModelShippedScenarios(t *testing.T) {
	files, err := filepath.Glob("../../../scenarios/*.yaml")
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
		t.Skip("set INOF_MODEL=1 for the long comparisons")
	}
	var got [2]float64
	for i, name := range []string{"victim-pfc", "victim-dcqcn"} {
		f, err := Load("../../../scenarios/" + name + ".yaml")
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
			f, err := Load("../../../scenarios/" + name + ".yaml")
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
