package workload

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// Reference names one of the workloads that simulators are compared on.
type Reference struct {
	Name  string
	Until model.Time
	build func(o model.Options, cc model.Control) (*model.Sim, *Fabric, error)
}

// References are W1, W2 and W3: payload 1000 B, data frame 1048 B, a 60 B ACK for
// each, links of 1 us, no window.
var References = []Reference{
	{"W1", 30 * model.Millisecond, w1}, {"W2", 30 * model.Millisecond, w2}, {"W3", 2 * model.Millisecond, w3},
}

// Build makes the fabric of the workload with its flows; cc nil is PFC only.
func (r Reference) Build(o model.Options, cc model.Control) (*model.Sim, *Fabric, error) {
	return r.build(o, cc)
}

// refProfiles is the reference profile with a buffer in MiB.
func refProfiles(mib int64, cc model.Control) Profiles {
	return Profiles{Switch: model.ReferenceSwitch(mib<<20, cc), NIC: model.ReferenceNIC(cc)}
}

const refDelay = model.Microsecond

// w1 is incast: 17 hosts on one switch, the first 16 send 10 MB to the last.
func w1(o model.Options, cc model.Control) (*model.Sim, *Fabric, error) {
	f, err := Star(17, model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}, refProfiles(32, cc))
	if err != nil {
		return nil, nil, err
	}
	var flows []model.FlowSpec
	for i := range 16 {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: 16, Bytes: 10_000_000, TOS: DataTOS})
	}
	return start(f, o, flows)
}

// w2 is a permutation on a leaf-spine fabric of 16 hosts.
func w2(o model.Options, cc model.Control) (*model.Sim, *Fabric, error) {
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}
	f, err := LeafSpine(4, 4, 4, l, l, refProfiles(32, cc))
	if err != nil {
		return nil, nil, err
	}
	var flows []model.FlowSpec
	for i := range 16 {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: model.EndpointID((i + 5) % 16), Bytes: 10_000_000, TOS: DataTOS})
	}
	return start(f, o, flows)
}

// w3 is web search traffic at half load on a three-tier Clos of 320 hosts.
func w3(o model.Options, cc model.Control) (*model.Sim, *Fabric, error) {
	edge := model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}
	up := model.LinkSpec{Rate: 400 * model.Gbps, Delay: refDelay}
	f, err := Clos(5, 4, 16, 4, 16, edge, up, refProfiles(32, cc))
	if err != nil {
		return nil, nil, err
	}
	return start(f, o, Poisson(w3Arrivals(320, edge.Rate)))
}

// w3Arrivals is the traffic of W3 between n hosts: 1 ms of web search at half load.
func w3Arrivals(n int, rate model.Rate) Arrivals {
	a := Arrivals{Sizes: WebSearch, Load: 0.5, Until: model.Millisecond, Seed: 1_000_003}
	for i := range n {
		a.From = append(a.From, Sender{model.EndpointID(i), rate})
		a.To = append(a.To, model.EndpointID(i))
	}
	return a
}

func start(f *Fabric, o model.Options, flows []model.FlowSpec) (*model.Sim, *Fabric, error) {
	s, err := f.Net.Build(o)
	if err != nil {
		return nil, nil, err
	}
	s.ExpectFlows(len(flows))
	for i, fl := range flows {
		if _, err := s.AddFlow(fl); err != nil {
			return nil, nil, fmt.Errorf("flow %d: %w", i, err)
		}
	}
	return s, f, nil
}
