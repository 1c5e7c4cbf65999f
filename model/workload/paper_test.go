package workload

import (
	"math"
	"sort"

	"github.com/openinof/inof/model"
)

// FCTs gives the completion times in ms of all finished flows, sorted.
func FCTs(s *model.Sim) []float64 {
	var out []float64
	for i := range s.Flows() {
		if f := s.Flow(model.FlowID(i)); f.Done > 0 {
			out = append(out, (f.Done-f.Start).Seconds()*1e3)
		}
	}
	sort.Float64s(out)
	return out
}

// Slowdowns gives, sorted, the completion times of all finished flows as multiples
// of what they would take alone: the base round trip of a full payload along the
// path plus all frames at the rate of the slower end.
func Slowdowns(s *model.Sim) []float64 { return SlowdownsOf(s, 0, math.MaxInt64) }

// SlowdownsOf gives those of the flows of at least least and less than below bytes.
func SlowdownsOf(s *model.Sim, least, below int64) []float64 {
	var out []float64
	for i := range s.Flows() {
		f := s.Flow(model.FlowID(i))
		if f.Done == 0 || f.Bytes < least || f.Bytes >= below {
			continue
		}
		out = append(out, max(1, (f.Done-f.Start).Seconds()/s.IdealFCT(model.FlowID(i)).Seconds()))
	}
	sort.Float64s(out)
	return out
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
