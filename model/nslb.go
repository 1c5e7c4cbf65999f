package model

import "sync"

var nslbMechanism = Mechanism{Part: PartBalancer, Kind: "nslb",
	About: "flows known at the start are placed so that no uplink or downlink of leaves carries more than its share (edge colouring); later ones go by hash",
	New:   func() Settings { return &NSLB{} }}

// NSLB is network-scale load balancing: a controller that knows all flows of a job gives each
// its spine. In a full-bisection leaf-spine fabric such a plan always exists (Koenig).
type NSLB struct{}

// Check has nothing to refuse.
func (*NSLB) Check() error { return nil }

// Balancer makes that of a switch; all have the plan in common.
func (c *NSLB) Balancer(sw Switch) Balancer {
	if sw.s.plan == nil {
		sw.s.plan = &nslbPlan{}
	}
	return &nslb{plan: sw.s.plan, own: sw.s.switches[sw.i].seed}
}

// nslbPlan is the colour of each flow, made when the first frame asks for it.
type nslbPlan struct {
	once   sync.Once
	data   []int32 // by flow, of its data
	answer []int32 // of its ACKs
}

type nslb struct {
	plan *nslbPlan
	own  uint32
}

// Pick gives the way that the plan has for a flow.
func (b *nslb) Pick(sw Switch, f Frame, ways []PortID) int {
	p := f.packet()
	b.plan.once.Do(func() { b.plan.make(sw.s) })
	if p.kind() == kindRaw || int(p.flow) >= len(b.plan.data) {
		return int(pickECMP(p.hash, b.own, int32(len(ways))))
	}
	colour := b.plan.data[p.flow]
	if p.kind() != kindData {
		colour = b.plan.answer[p.flow]
	}
	return int(colour) % len(ways)
}

// make colours the flows, and their answers, as edges between leaves.
func (p *nslbPlan) make(s *Sim) {
	leaf := func(e EndpointID) int32 { return s.ports[s.ports[s.nics[e].port].peer].sw }
	forth, back := colouring{}, colouring{}
	for i := range s.flows {
		f := &s.flows[i].spec
		a, b := leaf(f.Src), leaf(f.Dst)
		if a == b {
			p.data, p.answer = append(p.data, 0), append(p.answer, 0)
			continue
		}
		p.data = append(p.data, forth.add(a, b))
		p.answer = append(p.answer, back.add(b, a))
	}
	for i := range p.data { // colours may have changed after they were given
		if f := &s.flows[i].spec; leaf(f.Src) != leaf(f.Dst) {
			p.data[i], p.answer[i] = forth.edge[p.data[i]].colour, back.edge[p.answer[i]].colour
		}
	}
}

// colouring gives the edges of a bipartite multigraph colours so that no two edges at a node
// have the same, with as few colours as the busiest node has edges.
type colouring struct {
	edge []colouredEdge
	at   [2]map[int32][]int32 // by side and node: the edge of each colour, -1 = none
}

type colouredEdge struct {
	end    [2]int32
	colour int32
}

// free gives the first colour that no edge at a node has.
func (c *colouring) free(side int, node int32) int32 {
	for k, e := range c.at[side][node] {
		if e < 0 {
			return int32(k)
		}
	}
	return int32(len(c.at[side][node]))
}

func (c *colouring) of(side int, node, colour int32) int32 {
	if v := c.at[side][node]; int(colour) < len(v) {
		return v[colour]
	}
	return -1
}

func (c *colouring) set(side int, node, colour, edge int32) {
	v := c.at[side][node]
	for int(colour) >= len(v) {
		v = append(v, -1)
	}
	v[colour] = edge
	c.at[side][node] = v
}

// add colours a new edge and gives its number.
func (c *colouring) add(a, b int32) int32 {
	if c.at[0] == nil {
		c.at[0], c.at[1] = map[int32][]int32{}, map[int32][]int32{}
	}
	id := int32(len(c.edge))
	x, y := c.free(0, a), c.free(1, b)
	// A colour free at both ends, if need be after the path of the two colours from b has
	// swapped them: it cannot come back to a, which lacks x.
	if x != y {
		side, node, from, to := 1, b, x, y
		var path []int32
		for {
			e := c.of(side, node, from)
			if e < 0 {
				break
			}
			path = append(path, e)
			side = 1 - side
			node = c.edge[e].end[side]
			from, to = to, from
		}
		for _, e := range path {
			for s, n := range c.edge[e].end {
				if c.of(s, n, c.edge[e].colour) == e {
					c.set(s, n, c.edge[e].colour, -1)
				}
			}
		}
		for _, e := range path {
			c.edge[e].colour = x + y - c.edge[e].colour
			for s, n := range c.edge[e].end {
				c.set(s, n, c.edge[e].colour, e)
			}
		}
	}
	c.edge = append(c.edge, colouredEdge{end: [2]int32{a, b}, colour: x})
	c.set(0, a, x, id)
	c.set(1, b, x, id)
	return id
}
