package scenario

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// claim is what one figure of a shipped scenario must be once some of its keys are set otherwise.
type claim struct {
	metric  string
	want    float64
	percent float64 // of deviation
}

// ours is a figure of which no source tells, or another, as docs/model.md says.
func ours(metric string, want float64) claim { return claim{metric, want, 2} }

// starTo is a switch with that many hosts, the last of which, the receiver, has a link of another
// delay.
func starTo(hosts int, delay string) Setting {
	var nodes, links []string
	for i := range hosts {
		nodes = append(nodes, fmt.Sprintf("{name: h%d, kind: host}", i))
		d := "1us"
		if i == hosts-1 {
			d = delay
		}
		links = append(links, fmt.Sprintf("{a: h%d, b: s0, rate: 100G, delay: %s}", i, d))
	}
	return Setting{"topology", "{kind: explicit, nodes: [{name: s0, kind: switch}, " + strings.Join(nodes, ", ") + "], links: [" + strings.Join(links, ", ") + "]}"}
}

func fixedAt(low, high string) []Setting {
	return []Setting{{"switch.tuners", "[]"}, {"switch.ecn.low", low}, {"switch.ecn.high", high}}
}

// runWith runs a shipped scenario with some keys set otherwise; what the file expects is not asked.
func runWith(t *testing.T, name string, set []Setting) *Result {
	t.Helper()
	path := filepath.Join("../../scenarios", name+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseWith(path, data, set)
	if err != nil {
		t.Fatal(err)
	}
	f.Expect, f.Trace = nil, true
	res, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestModelWhatEachMechanismChanges: the sources give figures with a mechanism and without it. The
// shipped scenarios hold those with it; here are the others, and what must not matter.
func TestModelWhatEachMechanismChanges(t *testing.T) {
	longer := Setting{"duration", "100ms"} // the source's
	none := []Setting{{"switch.stages", "[]"}}
	for _, c := range []struct {
		name, file string
		set        []Setting
		want       []claim
	}{
		{"the receiver's notifications", "fast-cnp", none, []claim{{"s0>h16/3.peak-kb", 8278, 1}}},
		{"the receiver's notifications, 10 us away", "fast-cnp", append([]Setting{starTo(17, "10us")}, none...), []claim{{"s0>h16/3.peak-kb", 11663, 1}}},
		{"fast CNP, the receiver 10 us away", "fast-cnp", []Setting{starTo(17, "10us")}, []claim{{"s0>h16/3.peak-kb", 7865, 1}}},
		{"a slow NIC without iQCN", "iqcn", none, []claim{{"s0>h8/3.settled-kb", 16697, 1}, {"in.final-gbps", 95.4, 1}}},
		{"a long link without NPCC", "npcc", append([]Setting{longer}, none...), []claim{{"xoff", 288, 17}, {"in.gbps", 58.2, 1}, ours("s0>h4/3.peak-kb", 16160)}},
		{"a long link with NPCC", "npcc", []Setting{longer}, []claim{{"in.gbps", 93.3, 1}, {"s0>h4/3.peak-kb", 4480, 10}}},
		{"mice in the queue of the elephant", "mice", none, []claim{{"mice.fct-mean-us", 25, 15}, {"mice.fct-p99-ms", 0.077, 1}, ours("elephant.gbps", 63.2)}},
		{"elephants that do not give way", "flex-buffer", []Setting{{"switch.tuners", "[]"}}, []claim{ours("mice.fct-mean-us", 2240), ours("s0>h13/2.drops", 8950)}},
		{"mice, marking from 20 KB", "dynamic-ecn", fixedAt("20KB", "80KB"), []claim{ours("elephant.gbps", 41.8), {"mice.fct-p99-ms", 0.0094, 10}}},
		{"mice, marking from 160 KB", "dynamic-ecn", fixedAt("160KB", "640KB"), []claim{ours("elephant.gbps", 60.3), {"mice.fct-p99-ms", 0.024, 3}}},
		{"mice, marking from 640 KB", "dynamic-ecn", fixedAt("640KB", "2560KB"), []claim{ours("elephant.gbps", 63.2), {"mice.fct-p99-ms", 0.077, 1}}},
		{"mice, marking from 2,560 KB", "dynamic-ecn", fixedAt("2560KB", "6MB"), []claim{ours("elephant.gbps", 65.9), {"mice.fct-p99-ms", 0.111, 1}}},
		{"web search, marking from 20 KB", "ai-ecn-web-search", fixedAt("20KB", "80KB"), []claim{ours("web.slowdown-mean", 2.56), ours("web.slowdown-p99", 12.6)}},
		{"web search, marking from 640 KB", "ai-ecn-web-search", fixedAt("640KB", "2560KB"), []claim{ours("web.slowdown-mean", 2.92), ours("web.slowdown-p99", 16.8), ours("xoff", 78)}},
		{"a ring whose neighbours are across spines", "reduce-ring", []Setting{{"traffic.train.from", "[h0, h4, h8, h12, h1, h5, h9, h13, h2, h6, h10, h14, h3, h7, h11, h15]"}}, []claim{ours("train.took-us", 503)}}, // source 294
		{"bursts, marking from 20 KB", "ai-ecn-incast", fixedAt("20KB", "80KB"), []claim{{"xoff", 0, 0}, ours("elephant.gbps", 4.84)}},
		{"bursts, marking from 160 KB", "ai-ecn-incast", fixedAt("160KB", "640KB"), []claim{ours("xoff", 1), ours("elephant.gbps", 10.35)}},
		{"bursts, marking from 640 KB", "ai-ecn-incast", fixedAt("640KB", "2560KB"), []claim{ours("xoff", 9), ours("elephant.gbps", 24.0)}},
		{"bursts, marking from 2,560 KB", "ai-ecn-incast", fixedAt("2560KB", "6MB"), []claim{ours("xoff", 241), ours("elephant.gbps", 56.1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := runWith(t, c.file, c.set)
			for _, w := range c.want {
				got, ok := res.Metrics[w.metric]
				ok = ok || w.want == 0 // what never happened may have no figure
				if t.Logf("%s: %.4g, claimed %.4g within %g %%", w.metric, got, w.want, w.percent); !ok || !(math.Abs(got-w.want) <= w.percent/100*w.want) {
					t.Errorf("%s is %.4g, want %.4g within %g %%", w.metric, got, w.want, w.percent)
				}
			}
		})
	}
}

// A NIC that owes no notification gets none from the switch: with iQCN and without, every event is
// the same.
func TestIQCNLeavesAFastNICAlone(t *testing.T) {
	set := []Setting{{"nic.np-port-gap", "0"}, {"traffic.in.copies", "8"}, {"duration", "10ms"}}
	with := runWith(t, "iqcn", set)
	without := runWith(t, "iqcn", append(set, Setting{"switch.stages", "[]"}))
	if n := with.Metrics["iqcn.tx"]; n != 0 {
		t.Errorf("%g notifications were added", n)
	}
	if with.Hash != without.Hash || with.Metrics["cnps"] == 0 {
		t.Errorf("trace %016x with iQCN, %016x without; %g notifications", with.Hash, without.Hash, with.Metrics["cnps"])
	}
}
