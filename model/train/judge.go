package train

import (
	"context"
	"fmt"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// fixed is thresholds that stay.
func fixed(low, high int64, percent float64) Marks {
	return Marks{Name: fmt.Sprintf("fixed %d/%d", low/1000, high/1000), ECN: model.ECN{Mode: model.ECNDequeue, KMin: low, KMax: high, PMax: percent / 100, PerRate: 100 * model.Gbps}}
}

// learnable is AI-ECN as it is, in its heuristic mode.
func learnable() Marks {
	set, err := model.NewSettings(model.PartTuner, "ai-ecn", "")
	if err != nil {
		panic(err) // the registry has it
	}
	m := fixed(160_000, 640_000, 20)
	m.Name, m.Tuner = "ai-ecn heuristic", set.(model.TunerSettings)
	return m
}

// Rivals are what the network is compared with: fixed thresholds of 20 KB to 2.56 MB, thresholds
// that follow incast and elephants, the heuristic mode.
func Rivals() []Marks {
	var out []Marks
	for _, low := range []int64{20_000, 40_000, 160_000, 640_000, 2_560_000} {
		out = append(out, fixed(low, min(4*low, 6_000_000), 20))
	}
	set, err := model.NewSettings(model.PartTuner, "dynamic-ecn", "")
	if err != nil {
		panic(err)
	}
	d := fixed(640_000, 2_560_000, 20)
	d.Name, d.Tuner = "dynamic-ecn", set.(model.TunerSettings)
	return append(out, d, learnable())
}

// Case is traffic to judge by.
type Case struct {
	Name string
	do   func(m Marks) (Outcome, error)
}

// Row is how one kind of thresholds did in one case.
type Row struct {
	Case  string `json:"case"`
	Marks string `json:"thresholds"`
	Outcome
}

// Scored gives the score as text; what has more than one bottleneck has none.
func (r Row) Scored() string {
	if r.Score == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(r.Score)/1e6)
}

// Cases are traffic that the training did not have: the patterns alone and in other orders, longer
// and with other seeds; other fabrics with web search traffic; the incast of W1.
func Cases() []Case {
	var out []Case
	for i, p := range []string{"A", "B", "C", "ABC", "CAB", "BCA"} {
		out = append(out, Case{p, Run{p, 10 * model.Millisecond, uint64(77 + i)}.Do})
	}
	return append(out,
		Case{"incast 16:1", incast},
		Case{"web search, 32 hosts, 4 leaves", webSearch(0.5, 1)},
		Case{"the same, uplinks 2:1", webSearch(0.4, 2)})
}

// others runs a fabric to the end and tells of its flows.
func others(f *workload.Fabric, flows []model.FlowSpec, end model.Time) (Outcome, error) {
	s, err := f.Net.Build(model.Options{Seed: 5})
	if err != nil {
		return Outcome{}, err
	}
	for _, fl := range flows {
		if _, err := s.AddFlow(fl); err != nil {
			return Outcome{}, err
		}
	}
	if err := s.Run(end); err != nil {
		return Outcome{}, err
	}
	return summary(s, end), nil
}

func (m Marks) profiles(buffer int64) workload.Profiles {
	sp := model.ReferenceSwitch(buffer, nil)
	sp.ECN = m.ECN
	if m.Tuner != nil {
		sp.Tuners = []model.TunerSettings{m.Tuner}
	}
	return workload.Profiles{Switch: sp, NIC: model.ReferenceNIC(model.CX4())}
}

// edge is the cable of a host.
var edge = model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}

func incast(m Marks) (Outcome, error) {
	f, err := workload.Star(senders+1, edge, m.profiles(32<<20))
	if err != nil {
		return Outcome{}, err
	}
	var flows []model.FlowSpec
	for i := range senders {
		flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: receiver, Bytes: 10_000_000, TOS: workload.DataTOS})
	}
	return others(f, flows, 12*model.Millisecond)
}

// webSearch is 4 leaves of 8 hosts with as many spines as uplinks of 100G, over-subscribed.
func webSearch(load float64, over int) func(m Marks) (Outcome, error) {
	return func(m Marks) (Outcome, error) {
		f, err := workload.LeafSpine(4, 8, 8/over, edge, edge, m.profiles(8<<20))
		if err != nil {
			return Outcome{}, err
		}
		a := workload.Arrivals{Sizes: workload.WebSearch, Load: load, Until: 4 * model.Millisecond, Seed: 99}
		for i := range 32 {
			a.From = append(a.From, workload.Sender{ID: model.EndpointID(i), Rate: edge.Rate})
			a.To = append(a.To, model.EndpointID(i))
		}
		return others(f, workload.Poisson(a), 5*model.Millisecond)
	}
}

// Judge runs every case with every kind of thresholds, and with the network.
func Judge(ctx context.Context, net *model.ThresholdNet, workers int) ([]Row, error) {
	cases, marks := Cases(), append(Rivals(), Inferring(net, nil))
	rows := make([]Row, len(cases)*len(marks))
	err := parallel(ctx, workers, len(rows), func(n int) error {
		c, m := cases[n/len(marks)], marks[n%len(marks)]
		o, err := c.do(m)
		rows[n] = Row{c.Name, m.Name, o}
		return err
	})
	return rows, err
}
