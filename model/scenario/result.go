package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
	"github.com/openinof/inof/model/workload"
)

// Result is what came out of a run.
type Result struct {
	Name       string             `json:"name"`
	About      string             `json:"about,omitempty"`
	End        model.Time         `json:"end_ps"`
	Totals     model.Totals       `json:"totals"`
	Groups     []GroupResult      `json:"traffic"`
	Loads      []LoadResult       `json:"storage,omitempty"`
	Jobs       []JobResult        `json:"reductions,omitempty"`
	Control    *control.Report    `json:"control,omitempty"`
	Hash       uint64             `json:"-"`     // of all events, if File.Trace asked for it
	Ports      []PortResult       `json:"ports"` // queues that did something
	Links      []LinkResult       `json:"interfaces"`
	Chips      []SwitchResult     `json:"switches"`
	Flows      []FlowResult       `json:"flows"`
	Series     Series             `json:"-"`
	Film       *Film              `json:"-"` // nil: File.Film did not ask for it
	Faults     []Moment           `json:"-"`
	Thresholds []Threshold        `json:"-"`
	Metrics    map[string]float64 `json:"metrics"`
	Incidents  []IncidentResult   `json:"incidents,omitempty"`
	OneCore    string             `json:"one_core,omitempty"` // why the run used one core, if more were asked for
	expect     []Expect
	file       string
}

// Moment is when something broke or was mended.
type Moment struct {
	Ms   float64
	What string
}

// Threshold is a depth at which a recorded queue begins to act.
type Threshold struct {
	KB   float64
	What string
}

// lines gives what a picture shows beside the series.
func (b *builder) lines(r *Result) {
	for i := range b.faults {
		if f := &b.faults[i]; f.spec.At <= r.End {
			r.Faults = append(r.Faults, Moment{f.spec.At.Seconds() * 1e3, f.spec.Kind + " " + f.where()})
		}
	}
	when := ""
	if len(b.f.Switch.Tuners) > 0 {
		when = ", at the end"
	}
	for _, p := range b.probes {
		if low, high, ok := b.sim.Marking(p.port, p.queue); ok {
			r.Thresholds = append(r.Thresholds, Threshold{float64(low) / 1e3, "marks from" + when}, Threshold{float64(high) / 1e3, "marks all from" + when})
		}
	}
}

// GroupResult sums the flows of one traffic entry.
type GroupResult struct {
	Name     string  `json:"name"`
	Flows    int     `json:"flows"`
	Done     int     `json:"done"`
	Bytes    int64   `json:"acked_bytes"`
	Goodput  float64 `json:"goodput_gbps"` // of all flows, over the time the group was active
	Least    float64 `json:"least_gbps"`   // of one flow
	Most     float64 `json:"most_gbps"`
	FCT      [4]Ms   `json:"fct_ms"` // p50, p95, p99, max
	Slowdown [4]Ms   `json:"slowdown"`
	Mean     float64 `json:"slowdown_mean"`
	FCTMean  float64 `json:"-"` // ms
	Retx     uint64  `json:"retransmitted"`
}

// IncidentResult is what a switch told its operator.
type IncidentResult struct {
	At   float64 `json:"ms"`
	Port string  `json:"port"`
	What string  `json:"what"`
}

// Ms is a figure that may be missing.
type Ms float64

func (m Ms) String() string {
	if math.IsNaN(float64(m)) {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(m))
}

// MarshalJSON prints a missing figure as null.
func (m Ms) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(m)) {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%g", float64(m)), nil
}

// PortResult is one queue of a port that did something.
type PortResult struct {
	Port  string           `json:"port"`
	Queue int              `json:"queue"`
	Stats model.QueueStats `json:"stats"`
}

// LinkResult is a port with its totals.
type LinkResult struct {
	Port string `json:"port"` // "node>neighbour"
	Name string `json:"name"`
	model.PortCounters
	TxUse float64 `json:"tx_utilisation"` // of the link's rate, over the whole run
	RxUse float64 `json:"rx_utilisation"`
}

// SwitchResult is a switch with its packet memory.
type SwitchResult struct {
	Switch string `json:"switch"`
	model.SwitchStats
}

// FlowResult is how one flow went.
type FlowResult struct {
	Group    string  `json:"group"`
	Src, Dst string  `json:"-"`
	Bytes    int64   `json:"bytes"`
	Start    float64 `json:"start_ms"`
	FCT      Ms      `json:"fct_ms"`
	Slowdown Ms      `json:"slowdown"`
	Goodput  float64 `json:"goodput_gbps"`
	Retx     uint64  `json:"retransmitted"`
}

func (b *builder) result(rec *recorder) *Result {
	s := b.sim
	r := &Result{Name: b.f.Name, About: b.f.About, End: s.Now(), Totals: s.Totals(), Series: rec.series, Metrics: map[string]float64{}, OneCore: b.oneCore, expect: b.f.Expect, file: b.f.path}
	for _, g := range b.groups {
		b.group(r, g)
	}
	for n := range s.Nodes() {
		if s.IsSwitch(model.NodeID(n)) {
			r.Chips = append(r.Chips, SwitchResult{s.NodeName(model.NodeID(n)), s.Switch(model.NodeID(n))})
		}
		for k := range s.Ports(model.NodeID(n)) {
			p := s.PortOf(model.NodeID(n), k)
			name := s.NodeName(model.NodeID(n)) + ">" + s.NodeName(s.PortNode(s.Peer(p)))
			c := s.PortCounters(p)
			whole := float64(s.PortRate(p)) / 8 * s.Now().Seconds()
			r.Links = append(r.Links, LinkResult{Port: name, Name: s.PortShortName(p), PortCounters: c, TxUse: float64(c.TxBytes) / whole, RxUse: float64(c.RxBytes) / whole})
			for q := range model.NumQueues {
				if st := s.Queue(p, q); st.TxFrames+st.Drops+st.TxXoff+st.RxXoff > 0 {
					r.Ports = append(r.Ports, PortResult{name, q, st})
				}
			}
		}
	}
	for i, e := range s.Incidents() {
		r.Incidents = append(r.Incidents, IncidentResult{e.At.Seconds() * 1e3, s.PortName(e.Port), e.What})
		r.Metrics[fmt.Sprintf("incident%d-ms", i+1)] = e.At.Seconds() * 1e3
	}
	r.Metrics["incidents"] = float64(len(r.Incidents))
	b.lines(r)
	b.metrics(r)
	b.loadResults(r)
	b.jobResults(r)
	b.controlResults(r)
	r.Hash = s.TraceHash()
	return r
}

func (b *builder) group(r *Result, g group) {
	s := b.sim
	out := GroupResult{Name: g.name, Flows: len(g.flows), Least: math.Inf(1)}
	var fct, slow []float64
	first, last := s.Now(), model.Time(0)
	for _, id := range g.flows {
		f := s.Flow(id)
		fr := FlowResult{Group: g.name, Src: s.NodeName(s.EndpointNode(f.Src)), Dst: s.NodeName(s.EndpointNode(f.Dst)), Bytes: f.Acked, Start: f.Start.Seconds() * 1e3, FCT: Ms(math.NaN()), Slowdown: Ms(math.NaN()), Retx: f.Retx}
		end := s.Now()
		if f.Done > 0 {
			end = f.Done
			out.Done++
			fr.FCT = Ms((f.Done - f.Start).Seconds() * 1e3)
			fr.Slowdown = Ms(max(1, (f.Done-f.Start).Seconds()/s.IdealFCT(id).Seconds()))
			fct, slow = append(fct, float64(fr.FCT)), append(slow, float64(fr.Slowdown))
		}
		if end > f.Start {
			fr.Goodput = float64(f.Acked) * 8 / (end - f.Start).Seconds() / 1e9
		}
		first, last = min(first, f.Start), max(last, end)
		out.Bytes += f.Acked
		out.Retx += f.Retx
		out.Least, out.Most = min(out.Least, fr.Goodput), max(out.Most, fr.Goodput)
		r.Flows = append(r.Flows, fr)
	}
	if len(g.flows) == 0 {
		out.Least = 0
	}
	if last > first {
		out.Goodput = float64(out.Bytes) * 8 / (last - first).Seconds() / 1e9
	}
	slices.Sort(fct)
	slices.Sort(slow)
	for i, p := range []float64{50, 95, 99, 100} {
		out.FCT[i], out.Slowdown[i] = Ms(workload.Percentile(fct, p)), Ms(workload.Percentile(slow, p))
	}
	out.FCTMean = math.NaN()
	if len(slow) > 0 {
		out.FCTMean = workload.Mean(fct)
		out.Mean = workload.Mean(slow)
	}
	r.Groups = append(r.Groups, out)
}

// metrics fills what expectations may name.
func (b *builder) metrics(r *Result) {
	m := r.Metrics
	t := &r.Totals
	m["end-ms"] = r.End.Seconds() * 1e3
	m["xoff"], m["marks"], m["deadlocks"], m["lossless-drops"] = float64(t.TxXoff), float64(t.Marks), float64(t.Deadlocks), float64(t.Lossless)
	m["drops"] = 0
	for _, why := range model.DropReasons() {
		m["drops."+why] = 0
	}
	for why, n := range t.Dropped {
		m["drops."+why] = float64(n)
		m["drops"] += float64(n)
	}
	m["cnps"] = float64(t.Created["cnp"])
	m["hook-hits"] = 0
	for n := range b.sim.Nodes() {
		m["hook-hits"] += float64(b.sim.HookHits(model.NodeID(n)))
	}
	for _, g := range r.Groups {
		p := g.Name + "."
		m[p+"done"], m[p+"flows"], m[p+"gbps"], m[p+"least-gbps"], m[p+"most-gbps"] = float64(g.Done), float64(g.Flows), g.Goodput, g.Least, g.Most
		m[p+"retransmitted"], m[p+"slowdown-mean"], m[p+"acked-mb"] = float64(g.Retx), g.Mean, float64(g.Bytes)/1e6
		m[p+"fct-mean-us"] = g.FCTMean * 1e3
		for i, q := range []string{"p50", "p95", "p99", "max"} {
			m[p+"fct-"+q+"-ms"], m[p+"slowdown-"+q] = float64(g.FCT[i]), float64(g.Slowdown[i])
		}
	}
	for _, p := range r.Ports {
		k := fmt.Sprintf("%s/%d.", p.Port, p.Queue)
		st := &p.Stats
		m[k+"peak-kb"], m[k+"drops"], m[k+"tx-xoff"], m[k+"rx-xoff"] = float64(st.Peak)/1e3, float64(st.Drops), float64(st.TxXoff), float64(st.RxXoff)
		m[k+"marks"], m[k+"deadlocks"], m[k+"paused-ms"], m[k+"frames"] = float64(st.Marks), float64(st.Deadlocks), st.Paused.Seconds()*1e3, float64(st.TxFrames)
		m[k+"first-deadlock-ms"], m[k+"turned-off"] = st.FirstDeadlock.Seconds()*1e3, 0
		if st.TurnedOff {
			m[k+"turned-off"] = 1
		}
	}
	for k, v := range m { // of flows that did not end there is no completion time
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(m, k)
		}
	}
	rs := r.Series
	for i, name := range rs.Names {
		if v := rs.Values[i]; len(v) > 0 && strings.HasSuffix(name, " Gb/s") {
			// Of the last quarter of the run: where it settled, or stands still.
			m[strings.TrimSuffix(name, " Gb/s")+".final-gbps"] = workload.Mean(v[len(v)*3/4:])
		} else if queue, ok := strings.CutSuffix(name, " KB"); ok && len(v) > 0 {
			m[queue+".mean-kb"], m[queue+".settled-kb"] = workload.Mean(v), workload.Mean(v[len(v)/2:])
			sorted := slices.Clone(v)
			slices.Sort(sorted)
			for _, p := range []float64{50, 95, 99} {
				m[fmt.Sprintf("%s.p%g-kb", queue, p)] = workload.Percentile(sorted, p)
			}
		}
	}
	for name, n := range b.sim.StageCounters() {
		m[name] = float64(n)
	}
	b.controlMetrics(m)
}

// controlMetrics sums what rate control did for each group.
func (b *builder) controlMetrics(m map[string]float64) {
	for _, g := range b.groups {
		var sum model.ControlState
		for _, id := range g.flows {
			st := b.sim.Flow(id).ControlState
			sum.CNPs, sum.Cuts, sum.Ups = sum.CNPs+st.CNPs, sum.Cuts+st.Cuts, sum.Ups+st.Ups
			if st.RTTs > 0 {
				if sum.RTTs == 0 || st.RTTMin < sum.RTTMin {
					sum.RTTMin = st.RTTMin
				}
				sum.RTTs, sum.RTTSum, sum.RTTMax = sum.RTTs+st.RTTs, sum.RTTSum+st.RTTSum, max(sum.RTTMax, st.RTTMax)
			}
		}
		p := g.name + "."
		m[p+"notified"], m[p+"cuts"], m[p+"ups"] = float64(sum.CNPs), float64(sum.Cuts), float64(sum.Ups)
		if sum.RTTs > 0 {
			m[p+"rtt-min-us"], m[p+"rtt-max-us"] = sum.RTTMin.Seconds()*1e6, sum.RTTMax.Seconds()*1e6
			m[p+"rtt-mean-us"] = sum.RTTSum.Seconds() * 1e6 / float64(sum.RTTs)
		}
	}
}

// Check compares the result with what the file expects; the error names each
// expectation that failed.
func (r *Result) Check() error {
	d := decoder{file: r.file}
	for _, e := range r.expect {
		v, ok := r.Metrics[e.Metric]
		switch {
		case !ok:
			d.problem(e.Line, "expect", "this result has no metric %q (or no flow completed)", e.Metric)
		case math.IsNaN(v), e.Min != nil && v < *e.Min, e.Max != nil && v > *e.Max:
			d.problem(e.Line, "expect", "%s is %.6g, want %s", e.Metric, v, e.bounds())
		}
	}
	return d.err()
}

func (e Expect) bounds() string {
	switch {
	case e.Min != nil && e.Max != nil:
		return fmt.Sprintf("%g..%g", *e.Min, *e.Max)
	case e.Min != nil:
		return fmt.Sprintf("%g or more", *e.Min)
	case e.Max != nil:
		return fmt.Sprintf("%g or less", *e.Max)
	}
	return "a figure"
}
