package train

import (
	"os"
	"slices"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/model"
)

// One training is like the other, bit for bit, however many cores it has.
func TestTrainingRepeats(t *testing.T) {
	p := NewPlan()
	p.Generations, p.Pairs, p.Slot = 1, 2, 500*model.Microsecond
	var nets []*model.ThresholdNet
	for _, p.Workers = range []int{1, 2} {
		net, err := p.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := model.ParseThresholdNet(net.Text())
		if err != nil || *again != *net {
			t.Fatalf("written and read it is another: %v", err)
		}
		nets = append(nets, net)
	}
	if *nets[0] != *nets[1] || nets[0].Weights == (weights{}) {
		t.Errorf("%016x with one core, %016x with two", nets[0].Hash(), nets[1].Hash())
	}
}

// The network that is shipped is what its command makes: the first generation is repeated here,
// all of it by the command.
func TestModelShippedNetworkIsWhatItsCommandMakes(t *testing.T) {
	if os.Getenv("INOF_MODEL") == "" {
		netnstest.LeftTo(t, "make model")
	}
	net, err := model.ShippedThresholdNet()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlan()
	if net.Made != p.Command() {
		t.Fatalf("made by %q, the plan is %q", net.Made, p.Command())
	}
	p.Generations = 1
	first, err := p.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Early != net.Early {
		t.Errorf("after one generation %016x, the file says %016x", first.Early, net.Early)
	}
}

// On patterns in orders and with lengths and seeds that the training did not have, the network is
// better than every fixed threshold, keeps mice short and loses nothing. On patterns alone some
// fixed threshold is better: A is not one of them.
func TestModelInferenceOnUnseenTraffic(t *testing.T) {
	if os.Getenv("INOF_MODEL") == "" {
		netnstest.LeftTo(t, "make model")
	}
	net, err := model.ShippedThresholdNet()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Judge(t.Context(), net, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"A", "ABC", "CAB", "BCA"} {
		best, mice640, got := int64(0), 0.0, Outcome{}
		for _, r := range rows {
			switch {
			case r.Case != pattern:
			case r.Marks == "ai-ecn inference":
				got = r.Outcome
			case r.Marks == "fixed 640/2560":
				mice640 = r.MiceP99
				fallthrough
			case r.Marks[:5] == "fixed":
				best = max(best, r.Score)
			}
		}
		t.Logf("%s: %.3f, the best fixed thresholds %.3f; mice p99 %.1f us, with 640 KB %.1f", pattern, float64(got.Score)/1e6, float64(best)/1e6, got.MiceP99, mice640)
		if got.Score < best+5000 || got.MiceP99 > mice640/2 || got.Use < 0.8 || got.Drops > 0 || got.Inferred == 0 {
			t.Errorf("%s: %+v", pattern, got)
		}
	}
	// What docs/model.md has of orders that TestModelThresholdsAreTheTables leaves out, in thousandths.
	for pattern, want := range map[string]map[string]int64{
		"CAB": {"fixed 640/2560": 808, "dynamic-ecn": 811, "ai-ecn heuristic": 798, "ai-ecn inference": 826},
		"BCA": {"fixed 640/2560": 812, "dynamic-ecn": 800, "ai-ecn heuristic": 793, "ai-ecn inference": 838},
	} {
		for _, r := range rows {
			if w := want[r.Marks]; r.Case == pattern && w > 0 && (r.Score < (w-5)*1000 || r.Score > (w+5)*1000) {
				t.Errorf("%s, %s: %.3f, want .%d", pattern, r.Marks, float64(r.Score)/1e6, w)
			}
		}
	}
	// On other fabrics: no fixed thresholds are better by a twentieth for mice and for long flows.
	for _, c := range Cases()[7:] {
		at := slices.IndexFunc(rows, func(r Row) bool { return r.Case == c.Name && r.Marks == "ai-ecn inference" })
		for _, r := range rows {
			if r.Case == c.Name && r.Marks[:5] == "fixed" && r.MiceP99 < rows[at].MiceP99*0.95 && r.Long > rows[at].Long*1.05 {
				t.Errorf("%s: %s has %.1f us and %.0f Gb/s, the network %.1f and %.0f", c.Name, r.Marks, r.MiceP99, r.Long, rows[at].MiceP99, rows[at].Long)
			}
		}
	}
}

// The score is that of the comparison: 0.7 of use, and a tenth of 0.3 lost for each doubling of
// the queue above 20 KB.
func TestScore(t *testing.T) {
	for _, c := range []struct{ sent, queue, want int64 }{{100, 0, 1e6}, {50, 20_000, 650_000}, {100, 20_001, 970_000}, {100, 40_000, 970_000}, {100, 40_001, 940_000}, {0, 1 << 40, 0}} {
		if got := score(c.sent, 100, c.queue); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
