package workload

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// Testbed is the fabric of the DCQCN paper (SIGCOMM 2015, figure 2): four ToRs, four
// leaves and two spines at 40G; T1 and T2 meet L1 and L2, T3 and T4 meet L3 and L4,
// and every leaf both spines. hosts[i] hosts hang on ToR i+1.
func Testbed(hosts [4]int, p Profiles) (*Fabric, error) {
	l := model.LinkSpec{Rate: 40 * model.Gbps, Delay: model.Microsecond}
	f := &Fabric{Net: &model.Network{}}
	for i := range 4 {
		f.Edge = append(f.Edge, f.Net.AddSwitch(fmt.Sprintf("T%d", i+1), p.Switch))
	}
	for i := range 4 {
		f.Mid = append(f.Mid, f.Net.AddSwitch(fmt.Sprintf("L%d", i+1), p.Switch))
	}
	for i := range 2 {
		f.Core = append(f.Core, f.Net.AddSwitch(fmt.Sprintf("S%d", i+1), p.Switch))
	}
	for i, n := range hosts {
		for k := range n {
			f.link(f.host(fmt.Sprintf("T%dh%d", i+1, k+1), p), f.Edge[i], l)
		}
	}
	for i, tor := range f.Edge {
		f.link(tor, f.Mid[i/2*2], l)
		f.link(tor, f.Mid[i/2*2+1], l)
	}
	for _, leaf := range f.Mid {
		for _, sp := range f.Core {
			f.link(leaf, sp, l)
		}
	}
	return f, f.err
}

// Goodputs runs s from the first time to the second and gives what each flow got
// acknowledged in between, in Gb/s.
func Goodputs(s *model.Sim, from, to model.Time) ([]float64, error) {
	if err := s.Run(from); err != nil {
		return nil, err
	}
	before := make([]int64, s.Flows())
	for i := range before {
		before[i] = s.Flow(model.FlowID(i)).Acked
	}
	if err := s.Run(to); err != nil {
		return nil, err
	}
	out := make([]float64, len(before))
	for i := range out {
		out[i] = float64(s.Flow(model.FlowID(i)).Acked-before[i]) * 8 / (to - from).Seconds() / 1e9
	}
	return out, nil
}

// Unfairness is the parking-lot scenario: H1..H4, one on each ToR, send to R on T4.
// With PFC alone H4, which has an ingress port of T4 for itself, gets more.
func Unfairness(o model.Options, cc model.Control) (*model.Sim, *Fabric, error) {
	f, err := Testbed([4]int{1, 1, 1, 2}, refProfiles(12, cc))
	if err != nil {
		return nil, nil, err
	}
	var flows []model.FlowSpec
	for i := range 4 {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: 4, Bytes: model.Forever, TOS: DataTOS})
	}
	return start(f, o, flows)
}

// Victim is the victim flow scenario: H11..H14 on T1 and n senders on T3 send to R on
// T4; VS on T1 sends to VR on T2 and shares no congested link. Flow 0 is the victim.
func Victim(o model.Options, cc model.Control, n int) (*model.Sim, *Fabric, error) {
	f, err := Testbed([4]int{5, 1, n, 1}, refProfiles(12, cc))
	if err != nil {
		return nil, nil, err
	}
	r := model.EndpointID(6 + n)
	flows := []model.FlowSpec{{Src: 4, Dst: 5, Bytes: model.Forever, TOS: DataTOS}}
	for i := range 4 {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: r, Bytes: model.Forever, TOS: DataTOS})
	}
	for i := range n {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(6 + i), Dst: r, Bytes: model.Forever, TOS: DataTOS})
	}
	return start(f, o, flows)
}
