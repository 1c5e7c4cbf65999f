package scenario

import (
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/storage"
	"github.com/openinof/inof/model/workload"
)

// load is a storage load of the file.
type load struct {
	name string
	from []model.NodeID
	*storage.Load
}

// storage adds a storage load.
func (b *builder) storage(key string, t *Traffic) {
	cfg := storage.Config{Initiators: b.owners(t.Line, key+".from", t.From), Targets: b.owners(t.Line, key+".to", t.To), Depth: t.Depth, ReadPercent: t.Read,
		Service: t.Service, KeepAlive: t.KeepAlive, Reconnect: t.Reconnect, Begin: t.Start, Seed: b.f.Seed + t.Seed<<32, Tag: b.nextApp(key, t), TOS: workload.DataTOS}
	if t.DSCP != nil {
		cfg.TOS = b.dscp(t.Line, key+".dscp", *t.DSCP)
	}
	for _, k := range t.Blocks {
		if k.Weight == 0 {
			k.Weight = 1
		}
		cfg.Blocks = append(cfg.Blocks, storage.Block{Bytes: int64(k.Bytes), Weight: k.Weight})
	}
	if len(b.problems) > 0 {
		return
	}
	l, err := storage.New(b.sim, cfg)
	if err != nil {
		b.problem(t.Line, key, "%v", err)
		return
	}
	b.apps = append(b.apps, l)
	b.loads = append(b.loads, load{t.Name, cfg.Initiators, l})
	b.initiators = append(b.initiators, cfg.Initiators...)
}

// owners gives the hosts of a list of patterns, each once.
func (b *builder) owners(line int, key string, patterns []string) []model.NodeID {
	var out []model.NodeID
	seen := map[model.NodeID]bool{}
	for _, ep := range b.endpoints(line, key, patterns) {
		if n := b.sim.EndpointNode(ep); !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// tell gives all initiators a notice about an address.
func (r runner) tell(ep model.EndpointID, up bool) {
	for _, l := range r.b.loads {
		for _, i := range r.b.initiators {
			var err error
			if up {
				_, err = l.PathUp(i, ep)
			} else {
				_, err = l.PathDown(i, ep)
			}
			r.failed(err)
		}
	}
}

// failed keeps the first error of an app; it ends the run. Shards may have one at the same time.
func (r runner) failed(err error) {
	if err == nil {
		return
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if r.b.broken == nil {
		r.b.broken = err
		r.b.sim.Stop()
	}
}

// Delivered passes a message on to whom it is of.
func (r runner) Delivered(s *model.Sim, _ model.FlowID, tag uint64) {
	if n := int(tag >> 56); n > 0 && n <= len(r.b.apps) {
		r.failed(r.b.apps[n-1].Delivered(s, tag))
	}
}

// LoadResult is what a storage load did.
type LoadResult struct {
	Name string `json:"name"`
	storage.Stats
	IOPS   float64         `json:"iops"`
	Idle   float64         `json:"zero_io_ms"` // longest time without a completed I/O since the load began
	Events []storage.Event `json:"events"`
}

func (b *builder) loadResults(r *Result) {
	for _, l := range b.loads {
		out := LoadResult{Name: l.name, Stats: l.Stats(), Events: l.Events()}
		if busy := r.End - l.Begin(); busy > 0 {
			out.IOPS = float64(out.Done) / busy.Seconds()
		}
		out.Idle = l.LongestPause(0).Span(r.End).Seconds() * 1e3
		r.Loads = append(r.Loads, out)
		m, p := r.Metrics, l.name+"."
		m[p+"ios"], m[p+"iops"], m[p+"retried"], m[p+"zero-ms"] = float64(out.Done), out.IOPS, float64(out.Retried), out.Idle
		m[p+"mean-us"], m[p+"worst-ms"] = out.Mean.Seconds()*1e6, out.Worst.Seconds()*1e3
		up, all := l.Paths()
		m[p+"paths-up"], m[p+"paths"] = float64(up), float64(all)
	}
}
