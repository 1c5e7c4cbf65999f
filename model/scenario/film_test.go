package scenario

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/openinof/inof/model"
)

func filmed(t *testing.T, text string) *Result {
	t.Helper()
	f, err := Parse("film", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f.Film = true
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The last frame of a film says what the result of the run says, queue by queue; a cable that
// was cut is down from then on.
func TestAFilmEndsAsTheRunDid(t *testing.T) {
	r := filmed(t, `name: film
duration: 4ms
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 4, link: {rate: 25G, delay: 1us}, uplink: {rate: 25G, delay: 1us}}
reroute: 100us
traffic:
  - {name: in, kind: incast, from: h0..h3, to: h4}
record: {every: 20us}
faults:
  - {at: 2ms, kind: link-down, link: leaf0-spine0}
`)
	f := r.Film
	if f == nil || len(f.Frames) != 200 || f.End != 4 || len(f.Switches) != 4 || len(f.Hosts) != 8 || len(f.Events) != 1 || len(f.Series.Times) != 200 {
		t.Fatalf("%+v", f)
	}
	last := f.Frames[len(f.Frames)-1]
	sum, want := uint64(0), uint64(0)
	for _, q := range last.Queues {
		sum += q.PFC
		if !slices.Contains(f.Ports, q.Port) {
			t.Errorf("%s is not among the ports", q.Port)
		}
	}
	for _, p := range r.Ports {
		want += p.Stats.RxXoff + p.Stats.TxXoff
	}
	if sum != want || sum == 0 {
		t.Errorf("%d XOFF frames in the film, %d in the result", sum, want)
	}
	for _, fr := range f.Frames {
		if cut := len(fr.Down) == 2; cut != (fr.Ms > 2-1e-9) {
			t.Fatalf("at %g ms: down %v", fr.Ms, fr.Down)
		}
	}
	peers := map[string]string{}
	for _, n := range append(slices.Clone(f.Switches), f.Hosts...) {
		for _, p := range n.Ports {
			peers[n.Name+":"+p.Name] = p.Peer
		}
	}
	for at, peer := range peers {
		if peers[peer] != at {
			t.Errorf("%s is joined to %s, and that to %s", at, peer, peers[peer])
		}
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
}

// A notice of a film has the steps of the chain that the run tells of.
func TestAFilmTellsHowHostsWereTold(t *testing.T) {
	f, err := Load("../../scenarios/failover-cut.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Film = true
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Film.Notices) == 0 {
		t.Fatal("no notice")
	}
	n := r.Film.Notices[0]
	if n.Host != "i0" || n.Subject != "10.0.0.5" || n.State != "inactive" || n.Reason != "link-down" || n.Status != "acked" || n.Origin != "A2" || n.Fault != 4e6 {
		t.Errorf("%+v", n)
	}
	before := n.Fault
	for i, at := range []*float64{n.Detected, n.Decided, n.Sent, n.Reflected, n.Received, n.Frame, n.Taken, n.Acts} {
		if at == nil || *at < before {
			t.Fatalf("step %d is missing or before the one in front of it: %+v", i, n)
		}
		before = *at
	}
}

// A long film keeps frames of the whole run, fewer of them.
func TestALongFilmIsThinned(t *testing.T) {
	s := filmed(t, `name: film
duration: 3ms
topology: {kind: star, hosts: 3, link: {rate: 25G, delay: 1us}}
traffic:
  - {name: in, kind: incast, from: h0..h1, to: h2}
record: {every: 1us}
`)
	f := s.Film
	if n := len(f.Frames); n > maxFrames || n < maxFrames/3 {
		t.Errorf("%d frames", n)
	}
	if first, last := f.Frames[0].Ms, f.Frames[len(f.Frames)-1].Ms; first > 0.1 || last < 2.9 {
		t.Errorf("from %g to %g ms", first, last)
	}
	for i := 1; i < len(f.Frames); i++ {
		if f.Frames[i].Ms <= f.Frames[i-1].Ms {
			t.Fatal("frames are not in order")
		}
	}
	var none *model.Sim
	c := camera{film: &Film{}, every: 1 << 30}
	c.take(none) // a sample that is no frame looks at nothing
}
