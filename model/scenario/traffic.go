package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// traffic adds the flows of one entry.
func (b *builder) traffic(i int, t *Traffic) {
	key := fmt.Sprintf("traffic[%d]", i)
	if t.Name == "" {
		t.Name = fmt.Sprintf("t%d", i)
	}
	for k := range b.f.Traffic[:i] {
		if b.f.Traffic[k].Name == t.Name {
			b.problem(t.Line, key+".name", "%q is used twice", t.Name)
		}
	}
	if t.Kind == "storage" {
		b.storage(key, t)
		return
	}
	if t.Kind == "allreduce" {
		b.allReduce(key, t)
		return
	}
	from := b.endpoints(t.Line, key+".from", t.From)
	to := b.endpoints(t.Line, key+".to", t.To)
	if len(from) == 0 {
		if len(b.problems) == 0 {
			b.problem(t.Line, key+".from", "is missing: which hosts send")
		}
		return
	}
	var specs []model.FlowSpec
	pair := func(src, dst model.EndpointID) {
		if src != dst && len(specs) <= maxFlows {
			specs = append(specs, model.FlowSpec{Src: src, Dst: dst})
		}
	}
	switch t.Kind {
	case "flows": // i-th sender to i-th receiver
		if len(to) != len(from) {
			b.problem(t.Line, key, "%d senders and %d receivers", len(from), len(to))
			return
		}
		for k := range from {
			pair(from[k], to[k])
		}
	case "incast":
		if len(to) != 1 {
			b.problem(t.Line, key+".to", "incast has one receiver, not %d", len(to))
			return
		}
		for _, src := range from {
			pair(src, to[0])
		}
	case "permutation":
		n := len(from)
		for k, src := range from {
			pair(src, from[((k+t.Shift)%n+n)%n])
		}
	case "all-to-all":
		for _, src := range from {
			for _, dst := range from {
				pair(src, dst)
			}
		}
	case "poisson":
		b.poisson(i, key, t, from, to)
		return
	default:
		b.problem(t.Line, key+".kind", "%q is not flows, incast, permutation, all-to-all, poisson, storage or allreduce", t.Kind)
		return
	}
	if t.Every < 0 || t.Every > 0 && t.Copies < 2 {
		b.problem(t.Line, key+".every", "%v between %d copies: want a time and two copies or more", t.Every, t.Copies)
		return
	}
	if t.Copies < 0 || t.Copies > 1 && len(specs) > maxFlows/t.Copies {
		b.problem(t.Line, key+".copies", "%d of %d flows, want 1 or more and at most %d flows", t.Copies, len(specs), maxFlows)
		return
	}
	pairs := len(specs)
	for one := specs; t.Copies > 1 && len(specs) < t.Copies*len(one); {
		specs = append(specs, one...)
	}
	if len(specs) == 0 || len(specs) > maxFlows {
		b.problem(t.Line, key, "gives %d flows, want 1..%d", len(specs), maxFlows)
		return
	}
	if !b.takes(t.Line, key, int64(len(specs))*perFlow) {
		return
	}
	for k := range specs {
		specs[k].Bytes = int64(t.Bytes)
		if t.Bytes == 0 {
			specs[k].Bytes = model.Forever
		}
		specs[k].Start = t.Start + model.Time(k)*t.Gap + model.Time(k/pairs)*t.Every
	}
	if len(t.Way) > 0 {
		b.pin(key, t, specs)
	}
	b.add(key, t, specs)
}

func (b *builder) poisson(i int, key string, t *Traffic, from, to []model.EndpointID) {
	sizes := workload.WebSearch
	if n, err := model.ParseSize(t.Sizes); err == nil && n > 0 { // all alike
		sizes = workload.OneSize(n)
	} else if t.Sizes != "" && t.Sizes != "web-search" {
		path := t.Sizes
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(b.f.path), path)
		}
		file, err := os.Open(path)
		if err != nil {
			b.problem(t.Line, key+".sizes", "%v", err)
			return
		}
		defer file.Close()
		if sizes, err = workload.ReadSizes(file); err != nil {
			b.problem(t.Line, key+".sizes", "%s: %v", path, err)
			return
		}
	}
	if len(to) == 0 {
		to = from
	}
	if !(t.Load > 0 && t.Load <= 2) || len(to) == 1 && slices.Contains(from, to[0]) {
		b.problem(t.Line, key+".load", "%g of %d hosts to %d: want a load above 0 and at most 2, and another host for each to send to", t.Load, len(from), len(to))
		return
	}
	a := workload.Arrivals{Sizes: sizes, To: to, Load: t.Load, Start: t.Start, Until: t.Until, Seed: t.Seed}
	if a.Until == 0 {
		a.Until = b.f.Duration
	}
	if a.Until <= a.Start {
		b.problem(t.Line, key+".start", "%v is not before the last start at %v", a.Start, a.Until)
		return
	}
	for _, id := range from {
		a.From = append(a.From, workload.Sender{ID: id, Rate: b.sim.PortRate(b.sim.EndpointPort(id))})
	}
	if n := a.Flows(); n > maxFlows {
		b.problem(t.Line, key, "about %.0f flows, at most %d", n, maxFlows)
		return
	}
	if !b.takes(t.Line, key, int64(a.Flows())*perFlow) {
		return
	}
	if a.Seed == 0 { // each group has its own, far from those of the senders of the others
		a.Seed = b.f.Seed*1_000_003 + uint64(i)<<32
	}
	specs := workload.Poisson(a)
	b.add(key, t, specs)
}

// pin finds hashes that take the flows the ways the file names.
func (b *builder) pin(key string, t *Traffic, specs []model.FlowSpec) {
	if len(t.Way) != len(specs) {
		b.problem(t.Line, key+".way", "%d ways for %d flows", len(t.Way), len(specs))
		return
	}
	for k := range specs {
		sw := b.sim.PortNode(b.sim.Peer(b.sim.EndpointPort(specs[k].Src)))
		n := b.sim.ECMPWays(sw, specs[k].Dst)
		if t.Way[k] < 0 || t.Way[k] >= n {
			b.problem(t.Line, key+".way", "way %d of flow %d, there are %d", t.Way[k], k, n)
			return
		}
		h := uint32(1)
		for b.sim.ECMPChoice(sw, h, n) != t.Way[k] {
			h++
		}
		specs[k].Hash = h
	}
}

func (b *builder) add(key string, t *Traffic, specs []model.FlowSpec) {
	g := group{name: t.Name}
	tos := uint8(workload.DataTOS)
	if t.DSCP != nil {
		tos = b.dscp(t.Line, key+".dscp", *t.DSCP)
	}
	tagged, prio := t.Prio != nil, uint8(0)
	if tagged {
		if *t.Prio < 0 || *t.Prio > 7 {
			b.problem(t.Line, key+".priority", "%d, want 0..7", *t.Prio)
			return
		}
		prio = uint8(*t.Prio)
	}
	b.sim.ExpectFlows(len(specs))
	for _, f := range specs {
		f.Tagged, f.Priority = tagged, prio
		f.TOS, f.Rate, f.NoCC, f.NoECT = tos, t.Rate, t.NoCC, t.NoECT
		if f.Congestion = t.CC.control(); t.CC.Given && f.Congestion == nil {
			f.Congestion = model.Uncontrolled
		}
		if f.Start > b.f.Duration {
			b.problem(t.Line, key+".start", "%v is after the end of the run at %v", f.Start, b.f.Duration)
			return
		}
		id, err := b.sim.AddFlow(f)
		if err != nil {
			b.problem(t.Line, key, "%v", err)
			return
		}
		g.flows = append(g.flows, id)
	}
	b.groups = append(b.groups, g)
}
