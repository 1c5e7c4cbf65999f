package workload

import (
	"testing"

	"github.com/openinof/inof/model"
)

// dcqcnScale runs n flows of the paper's set into one 40G port and gives the mean depth
// of the queue and the XOFF frames from the first time to the second.
func dcqcnScale(t *testing.T, n int, from, to model.Time) (depth float64, xoff uint64) {
	t.Helper()
	l := model.LinkSpec{Rate: 40 * model.Gbps, Delay: model.Microsecond}
	f, err := Star(n+1, l, refProfiles(64, model.Paper()))
	if err != nil {
		t.Fatal(err)
	}
	var flows []model.FlowSpec
	for i := range n {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: model.EndpointID(n), Bytes: model.Forever, TOS: DataTOS, Start: model.Time(i) * 10 * model.Microsecond})
	}
	s, _, err := start(f, model.Options{Seed: 1}, flows)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(from); err != nil {
		t.Fatal(err)
	}
	x := s.XoffSent()
	p, samples := s.PortOf(f.Edge[0], n), 0.0
	for at := from; at < to; at += 10 * model.Microsecond {
		if err := s.Run(at); err != nil {
			t.Fatal(err)
		}
		depth += float64(s.QueueBytes(p, 3))
		samples++
	}
	return depth / samples, s.XoffSent() - x
}

// TestModelDCQCNDoesNotScale: plain DCQCN settles for some tens of flows and no longer
// does above about 160 at 40G into one port.
func TestModelDCQCNDoesNotScale(t *testing.T) {
	long(t)
	for _, c := range []struct {
		n       int
		settles bool
	}{{32, true}, {128, true}, {192, false}, {256, false}} {
		depth, xoff := dcqcnScale(t, c.n, 80*model.Millisecond, 120*model.Millisecond)
		t.Logf("%3d flows: queue %7.0f KB on average, %d XOFF", c.n, depth/1000, xoff)
		if settled := xoff == 0 && depth < 1e6; settled != c.settles {
			t.Errorf("%d flows: queue %.0f KB, %d XOFF; settles: want %v", c.n, depth/1000, xoff, c.settles)
		}
	}
}
