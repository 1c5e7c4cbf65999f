package scenario

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/model"
)

// onCores runs a file on some cores until a time and gives all that can be told of the run.
func onCores(t *testing.T, f *File, cores int, until model.Time) *Result {
	t.Helper()
	f.Cores, f.Trace = cores, true
	b, err := f.build()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.begin(); err != nil {
		t.Fatal(err)
	}
	for at := until / 4; at <= until; at += until / 4 {
		if err := b.sim.RunOn(f.Cores, at); err != nil || b.broken != nil {
			t.Fatal(err, b.broken)
		}
		if err := b.sim.CheckConservation(); err != nil {
			t.Fatal(err)
		}
	}
	r := b.result(newRecorder(b))
	r.Totals.PeakLive = 0 // shards have their peaks at different moments
	return r
}

// same compares two runs event by event.
func same(t *testing.T, one, many *Result) {
	t.Helper()
	if one.Hash != many.Hash {
		t.Errorf("trace %x on one core, %x on several", one.Hash, many.Hash)
	}
	for what, pair := range map[string][2]any{"totals": {one.Totals, many.Totals}, "metrics": {one.Metrics, many.Metrics}, "storage": {one.Loads, many.Loads}, "reductions": {one.Jobs, many.Jobs}, "queues": {one.Ports, many.Ports}, "incidents": {one.Incidents, many.Incidents}} {
		if d := cmp.Diff(pair[0], pair[1]); d != "" {
			t.Errorf("%s:\n%.1500s", what, d)
		}
	}
}

const everythingAtOnce = `name: everything
duration: 6ms
seed: 5
congestion: cx4
topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts: 4, link: {rate: 25G, delay: 1us}, uplink: {rate: 50G, delay: 1us}}
switch: {buffer: 4MiB}
nic: {mtu: 4096, rto: 500us}
traffic:
  - {name: io, kind: storage, from: [h0, h4, h8, h12], to: [h3, h7], depth: 4, read: 60, service: 30us, keep-alive: 400us, reconnect: 300us, blocks: [{bytes: 4KiB, weight: 3}, {bytes: 64KiB}]}
  - {name: log, kind: storage, from: h1, to: h15, depth: 2, read: 0, service: 10us, keep-alive: 50ms, blocks: [{bytes: 16KiB}], start: 700us}
  - {name: sum, kind: allreduce, from: [h1, h2, h5, h6, h9, h10], bytes: 200KiB, start: 100us}
  - {name: ring, kind: allreduce, method: ring, from: [h11, h13, h14], bytes: 100KiB, start: 50us}
faults:
  - {at: 1500us, kind: link-down, link: h3-leaf0}
  - {at: 3ms, kind: link-up, link: h3-leaf0}
  - {at: 4500us, kind: tell-down, host: h7}
  - {at: 5ms, kind: tell-up, host: h7}
  - {at: 100us, kind: loss, link: h5-leaf1, probability: 0.01}
`

// Storage, its paths that fail and come back, and reductions of both methods with loss are the same
// on several cores, event by event.
func TestStorageAndReductionsAreTheSameOnSeveralCores(t *testing.T) {
	load := func() *File {
		f, err := Parse("everything.yaml", []byte(everythingAtOnce))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one := onCores(t, load(), 1, 6*model.Millisecond)
	m := one.Metrics
	for key, least := range map[string]float64{"io.ios": 500, "io.retried": 1, "log.ios": 50, "sum.done": 1, "sum.resends": 1, "ring.done": 1} {
		if m[key] < least {
			t.Errorf("%s is %g: this test shows nothing", key, m[key])
		}
	}
	if len(one.Loads[0].Events) < 8 {
		t.Errorf("paths changed %d times", len(one.Loads[0].Events))
	}
	for _, cores := range []int{2, 3} {
		r := onCores(t, load(), cores, 6*model.Millisecond)
		if r.OneCore != "" {
			t.Fatal(r.OneCore)
		}
		same(t, one, r)
	}
}

// Every mechanism that is shipped runs on two cores as on one, or says why not.
func TestShippedScenariosAreTheSameOnTwoCores(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	const until = 400 * model.Microsecond
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			load := func() *File {
				f, err := Load(path)
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.Faults {
					f.Faults[i].At = min(f.Faults[i].At, until/2)
				}
				for i := range f.Traffic {
					f.Traffic[i].Start = min(f.Traffic[i].Start, until/4)
				}
				return f
			}
			f := load()
			if f.Control != nil {
				f.Cores = 2
				if b, err := f.build(); err != nil || !strings.Contains(b.whyOneCore(), "control plane") {
					t.Errorf("a control plane on two cores: %v", err)
				}
				return
			}
			if two := onCores(t, f, 2, until); two.OneCore == "" {
				same(t, onCores(t, load(), 1, until), two)
			}
		})
	}
}
