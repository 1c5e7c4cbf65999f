package scenario

import (
	"slices"

	"github.com/openinof/inof/model"
)

// Series are the samples of a run: Values[i] belongs to Names[i].
type Series struct {
	Times  []float64 // ms
	Names  []string
	Values [][]float64
}

// recorder samples goodput of each traffic group, I/Os of each load, chosen queues
// and XOFF frames.
type recorder struct {
	b      *builder
	series Series
	acked  []int64
	ios    []uint64
	xoff   uint64
	last   model.Time
	camera *camera // nil: nobody wants a film
}

func newRecorder(b *builder) *recorder {
	r := &recorder{b: b, acked: make([]int64, len(b.groups)), ios: make([]uint64, len(b.loads))}
	if b.f.Film {
		r.camera = &camera{film: &Film{}}
	}
	for _, g := range b.groups {
		r.series.Names = append(r.series.Names, g.name+" Gb/s")
	}
	for _, l := range b.loads {
		r.series.Names = append(r.series.Names, l.name+" kIOPS")
	}
	for _, p := range b.probes {
		r.series.Names = append(r.series.Names, p.name+" KB")
	}
	r.series.Names = append(r.series.Names, "XOFF frames")
	r.series.Values = make([][]float64, len(r.series.Names))
	return r
}

func (r *recorder) sample() {
	s := r.b.sim
	dt := (s.Now() - r.last).Seconds()
	if dt <= 0 {
		return
	}
	r.last = s.Now()
	if r.camera != nil {
		r.camera.take(s)
	}
	rs := &r.series
	rs.Times = append(rs.Times, s.Now().Seconds()*1e3)
	i := 0
	put := func(v float64) {
		rs.Values[i] = append(rs.Values[i], v)
		i++
	}
	for k, g := range r.b.groups {
		sum := int64(0)
		for _, id := range g.flows {
			sum += s.Acked(id)
		}
		put(float64(sum-r.acked[k]) * 8 / dt / 1e9)
		r.acked[k] = sum
	}
	for k, l := range r.b.loads {
		n := l.Stats().Done
		put(float64(n-r.ios[k]) / dt / 1e3)
		r.ios[k] = n
	}
	for _, p := range r.b.probes {
		put(float64(s.QueueBytes(p.port, p.queue)) / 1e3)
	}
	n := s.XoffSent()
	put(float64(n - r.xoff))
	r.xoff = n
}

// Select gives the series whose name ends in the suffix.
func (s Series) Select(suffix string) (out Series) {
	out.Times = s.Times
	for i, n := range s.Names {
		if len(n) > len(suffix) && n[len(n)-len(suffix):] == suffix || n == suffix {
			out.Names = append(out.Names, n)
			out.Values = append(out.Values, slices.Clone(s.Values[i]))
		}
	}
	return out
}
