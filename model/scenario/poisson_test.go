package scenario

import (
	"slices"
	"testing"

	"github.com/openinof/inof/model"
)

// Groups of random arrivals do what their keys say: they go where `to` points, begin at `start`, load
// each sender's own link, and two of them without seeds are not one and the same.
func TestPoissonDoesWhatItsKeysSay(t *testing.T) {
	f, err := Parse("x.yaml", []byte(`name: x
duration: 200ms
topology:
  kind: explicit
  nodes: [{name: s, kind: switch}, {name: slow, kind: host}, {name: fast, kind: host}, {name: to, kind: host}, {name: other, kind: host}]
  links:
    - {a: slow, b: s, rate: 10G, delay: 1us}
    - {a: fast, b: s, rate: 100G, delay: 1us}
    - {a: to, b: s, rate: 100G, delay: 1us}
    - {a: other, b: s, rate: 100G, delay: 1us}
traffic:
  - {name: one, kind: poisson, from: [slow, fast], to: to, sizes: web-search, load: 0.5, start: 100ms, until: 200ms}
  - {name: two, kind: poisson, from: [slow, fast], to: to, sizes: web-search, load: 0.5, start: 100ms, until: 200ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.build()
	if err != nil {
		t.Fatal(err)
	}
	type arrival struct {
		from  model.EndpointID
		start model.Time
		bytes int64
	}
	var all []arrival
	var bytes [2]float64
	for i := range b.sim.Flows() {
		s := b.sim.Flow(model.FlowID(i))
		if s.Dst != 2 || s.Start < 100*model.Millisecond || s.Start >= 200*model.Millisecond {
			t.Fatalf("flow %d goes to host %d at %v", i, s.Dst, s.Start)
		}
		bytes[s.Src] += float64(s.Bytes)
		all = append(all, arrival{s.Src, s.Start, s.Bytes})
	}
	// Both groups: the load of a whole link each, with what chance adds and takes in 100 ms.
	if slow, fast := bytes[0]*8/0.1/10e9, bytes[1]*8/0.1/100e9; slow < 0.6 || slow > 1.6 || fast < 0.8 || fast > 1.2 {
		t.Errorf("the slow sender offers %.2f of its link, the fast one %.2f", slow, fast)
	}
	for i, a := range all {
		if slices.Contains(all[i+1:], a) {
			t.Fatalf("flow %d is there twice: %+v", i, a)
		}
	}
	if len(all) < 500 {
		t.Errorf("only %d flows", len(all))
	}
}
