package scenario

import (
	"fmt"
	"os"
	"path/filepath"

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
		b.poisson(key, t, from)
		return
	default:
		b.problem(t.Line, key+".kind", "%q is not flows, incast, permutation, all-to-all, poisson or storage", t.Kind)
		return
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
		specs[k].Start = t.Start + model.Time(k)*t.Gap
	}
	if len(t.Way) > 0 {
		b.pin(key, t, specs)
	}
	b.add(key, t, specs)
}

func (b *builder) poisson(key string, t *Traffic, from []model.EndpointID) {
	sizes := workload.WebSearch
	if t.Sizes != "" && t.Sizes != "web-search" {
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
	if t.Load <= 0 || t.Load > 2 || len(from) < 2 {
		b.problem(t.Line, key+".load", "%g of %d hosts: want a load above 0 and at most 2, and two hosts or more", t.Load, len(from))
		return
	}
	until := t.Until
	if until == 0 {
		until = b.f.Duration
	}
	rate := b.sim.PortRate(b.sim.EndpointPort(from[0]))
	if n := t.Load * float64(rate) / 8 * until.Seconds() / sizes.Mean() * float64(len(from)); n > maxFlows {
		b.problem(t.Line, key, "about %.0f flows, at most %d", n, maxFlows)
		return
	}
	if !b.takes(t.Line, key, int64(t.Load*float64(rate)/8*until.Seconds()/sizes.Mean()*float64(len(from)))*perFlow) {
		return
	}
	seed := t.Seed
	if seed == 0 {
		seed = b.f.Seed * 1_000_003
	}
	specs := workload.Poisson(sizes, len(from), rate, t.Load, until, seed)
	for k := range specs {
		specs[k].Src, specs[k].Dst = from[specs[k].Src], from[specs[k].Dst]
	}
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
	for _, f := range specs {
		f.Tagged, f.Priority = tagged, prio
		f.TOS, f.Rate, f.NoCC, f.NoECT = tos, t.Rate, t.NoCC, t.NoECT
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
