package train

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// Traffic patterns of the rig: 16 hosts and a receiver on one switch with 8 MiB, 100G.
//
//	A: three long flows
//	B: a long flow, and each 2 ms 32 flows of 256 KB at once
//	C: a long flow, and 10 KB flows at 30 Gb/s
const (
	senders  = 16
	receiver = senders
	interval = 100 * model.Microsecond
	looks    = 10 // at the queue in an interval
)

// Run is an episode: patterns one after the other, each for Slot.
type Run struct {
	Patterns string
	Slot     model.Time
	Seed     uint64
}

// flows gives the traffic of one pattern from a moment on. What it offers in all is that of the
// comparison for 10 ms, in proportion.
func (r Run) flows(pattern rune, from model.Time, seed uint64) ([]model.FlowSpec, error) {
	long := func(src model.EndpointID, bytes int64) model.FlowSpec {
		return model.FlowSpec{Src: src, Dst: receiver, Bytes: bytes * int64(r.Slot) / int64(10*model.Millisecond), Start: from, TOS: workload.DataTOS}
	}
	switch pattern {
	case 'A':
		return []model.FlowSpec{long(0, 50e6), long(1, 50e6), long(2, 50e6)}, nil
	case 'B':
		out := []model.FlowSpec{long(0, 50e6)}
		for at := 200 * model.Microsecond; at < r.Slot; at += 2 * model.Millisecond {
			for k := range 32 {
				out = append(out, model.FlowSpec{Src: model.EndpointID(1 + k%15), Dst: receiver, Bytes: 256_000, Start: from + at, TOS: workload.DataTOS})
			}
		}
		return out, nil
	case 'C':
		a := workload.Arrivals{Sizes: workload.OneSize(10_000), To: []model.EndpointID{receiver}, Load: 0.02, Start: from, Until: from + r.Slot, Seed: seed}
		for k := range 15 {
			a.From = append(a.From, workload.Sender{ID: model.EndpointID(1 + k), Rate: 100 * model.Gbps})
		}
		return append([]model.FlowSpec{long(0, 62_500_000)}, workload.Poisson(a)...), nil
	}
	return nil, fmt.Errorf("pattern %q, want A, B or C", pattern)
}

// Marks is what sets the thresholds of a run: fixed ones, those of a tuner, or both, the fixed
// ones being the first.
type Marks struct {
	Name  string
	ECN   model.ECN
	Tuner model.TunerSettings
}

// Outcome is how a run went.
type Outcome struct {
	Score    int64   `json:"score_ppm"` // mean over the intervals, in millionths
	Use      float64 `json:"use"`
	MiceMean float64 `json:"mice_mean_us"` // of flows up to 100 KB
	MiceP99  float64 `json:"mice_p99_us"`
	Long     float64 `json:"long_gbps"` // bytes of flows above 1 MB over the time
	Xoff     uint64  `json:"xoff"`
	Drops    uint64  `json:"drops"`
	Inferred uint64  `json:"inferred"` // intervals in which a network decided
	Unlike   uint64  `json:"unlike"`   // and in which its traffic was unlike the training
}

// Do runs an episode and scores it: for each 100 us 0.7 of the use of the receiver's link, and
// 0.3 less what the mean queue takes: a tenth of it for each doubling above 20 KB.
func (r Run) Do(m Marks) (Outcome, error) {
	f, err := workload.Star(senders+1, edge, m.profiles(8<<20))
	if err != nil {
		return Outcome{}, err
	}
	s, err := f.Net.Build(model.Options{Seed: r.Seed})
	if err != nil {
		return Outcome{}, err
	}
	for i, p := range r.Patterns {
		flows, err := r.flows(p, model.Time(i)*r.Slot, r.Seed*1_000_003+uint64(i)<<32)
		if err != nil {
			return Outcome{}, err
		}
		for _, fl := range flows {
			if _, err := s.AddFlow(fl); err != nil {
				return Outcome{}, err
			}
		}
	}
	out, port := s.PortOf(f.Edge[0], receiver), int64(edge.Rate.Bytes(interval))
	end := model.Time(len(r.Patterns)) * r.Slot
	sum, n, before := int64(0), int64(0), uint64(0)
	for at := interval; at <= end; at += interval {
		depth := int64(0)
		for k := range looks {
			if err := s.Run(at - interval + model.Time(k+1)*interval/looks); err != nil {
				return Outcome{}, err
			}
			depth += s.QueueBytes(out, 3)
		}
		sent := s.Queue(out, 3).TxBytes
		sum += score(int64(sent-before), port, depth/looks)
		n++
		before = sent
	}
	o := summary(s, end)
	o.Score, o.Use = sum/n, float64(before)/float64(port*n)
	return o, nil
}

// score rates an interval in millionths.
func score(sent, full, queue int64) int64 {
	doublings := int64(0)
	if queue > 20_000 {
		doublings = min(10, int64(bits.Len64(uint64((queue-1)/20_000))))
	}
	return 700_000*sent/full + 30_000*(10-doublings)
}

// summary tells of the flows of a run.
func summary(s *model.Sim, end model.Time) Outcome {
	var o Outcome
	var mice []float64
	for i := range s.Flows() {
		switch f := s.Flow(model.FlowID(i)); {
		case f.Bytes <= 100_000 && f.Done > 0:
			mice = append(mice, (f.Done-f.Start).Seconds()*1e6)
		case f.Bytes > 1_000_000:
			o.Long += float64(f.Acked) * 8 / end.Seconds() / 1e9
		}
	}
	if slices.Sort(mice); len(mice) > 0 {
		o.MiceMean, o.MiceP99 = workload.Mean(mice), workload.Percentile(mice, 99)
	}
	t := s.Totals()
	for _, d := range t.Dropped {
		o.Drops += d
	}
	c := s.StageCounters()
	o.Xoff, o.Inferred, o.Unlike = t.TxXoff, c["ai-ecn.inferred"], c["ai-ecn.unlike-training"]
	return o
}
