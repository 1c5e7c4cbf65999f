package scenario

import (
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/reduce"
	"github.com/openinof/inof/model/workload"
)

// app is something that lives on the fabric by timers and messages; its number, from 1, stands
// in the upper 8 bits of their tags.
type app interface {
	Timer(s *model.Sim, tag uint64) error
	Delivered(s *model.Sim, tag uint64) error
	Divided() bool // see model.Divisible
}

// maxApps bounds storage loads and reductions of a file: their number is 8 bits of a tag, and one
// is taken.
const maxApps = 254

// nextApp gives the number of the next app; 0: there are too many.
func (b *builder) nextApp(key string, t *Traffic) uint8 {
	if len(b.apps) == maxApps {
		b.problem(t.Line, key, "more than %d storage loads and reductions", maxApps)
		return 0
	}
	return uint8(len(b.apps) + 1)
}

// job is a reduction of the file.
type job struct {
	name string
	*reduce.Job
}

// allReduce adds a reduction.
func (b *builder) allReduce(key string, t *Traffic) {
	cfg := reduce.Config{Ranks: b.endpoints(t.Line, key+".from", t.From), Bytes: int64(t.Bytes), Slots: t.Slots, Resend: t.Resend, Retries: 10,
		Begin: t.Start, Queue: workload.DataTOS >> 5, TOS: workload.DataTOS, Tag: b.nextApp(key, t), Seed: b.f.Seed*1_000_003 + t.Seed}
	switch t.Method {
	case "", "in-network":
	case "ring":
		cfg.Ring = true
	default:
		b.problem(t.Line, key+".method", "%q is not in-network or ring", t.Method)
	}
	switch t.Op {
	case "", "sum":
	case "max":
		cfg.Op = reduce.Max
	case "min":
		cfg.Op = reduce.Min
	default:
		b.problem(t.Line, key+".op", "%q is not sum, max or min", t.Op)
	}
	if cfg.Slots == 0 {
		cfg.Slots = 128
	}
	if cfg.Resend == 0 {
		cfg.Resend = 100 * model.Microsecond
	}
	if t.DSCP != nil {
		cfg.TOS = b.dscp(t.Line, key+".dscp", *t.DSCP)
		cfg.Queue = int(cfg.TOS >> 5)
	}
	if len(b.problems) > 0 {
		return
	}
	j, err := reduce.New(b.sim, cfg)
	if err != nil {
		b.problem(t.Line, key, "%v", err)
		return
	}
	b.apps = append(b.apps, j)
	b.jobs = append(b.jobs, job{t.Name, j})
}

// idle reports whether everything has been sent that ever will be.
func (b *builder) idle() bool {
	for _, j := range b.jobs {
		if !j.Done() {
			return false
		}
	}
	return len(b.loads) == 0 && b.plane == nil && b.sim.Active()+b.sim.Pending() == 0
}

// JobResult is what a reduction did.
type JobResult struct {
	Name string `json:"name"`
	reduce.Stats
}

func (b *builder) jobResults(r *Result) {
	for _, j := range b.jobs {
		st := j.Stats()
		r.Jobs = append(r.Jobs, JobResult{j.name, st})
		m, p := r.Metrics, j.name+"."
		m[p+"done"] = 0
		if st.Done {
			m[p+"done"], m[p+"took-us"] = 1, st.Took.Seconds()*1e6
		}
		m[p+"wrong"], m[p+"resends"], m[p+"duplicates"], m[p+"stalled"] = float64(st.Wrong), float64(st.Resends), float64(st.Duplicates), float64(len(st.Stalled))
		m[p+"chunks"], m[p+"complete"], m[p+"partial"], m[p+"peak-slots"] = float64(st.Chunks), float64(st.Complete), float64(st.Partial), float64(st.PeakSlots)
	}
}
