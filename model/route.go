package model

import (
	"fmt"
	"slices"
)

// Entries of a switch's table, which has one for each switch that frames may be for: below
// routeGroup a port of the switch, else a group; routeLocal is the switch's own.
const (
	routeGroup uint16 = maxPorts
	routeLocal uint16 = 0xfffe
	routeNone  uint16 = 0xffff
)

// group is an ECMP set: n ports from off in hops.
type group struct {
	off, n int32
}

// buildRoutes computes the tables of all switches.
func (s *Sim) buildRoutes() error {
	s.numberHomes()
	if len(s.homes) >= int(linkLocal) {
		return fmt.Errorf("%w: frames for %d switches, at most %d", ErrTopology, len(s.homes), linkLocal-1)
	}
	n := len(s.homes) + 1
	s.routes = make([]uint16, len(s.switches)*n)
	for i := range s.switches {
		s.switches[i].routeBase = i * n
	}
	r := s.newRouter()
	for i := range s.switches {
		r.install(int32(i))
	}
	return nil
}

// numberHomes gives a column of the tables to each switch that has hosts, or an address. The last
// column is of who is at no switch: no table has a way there.
func (s *Sim) numberHomes() {
	column := make([]int32, len(s.switches))
	for i := range column {
		column[i] = -1
		if s.addressed {
			column[i] = 0
		}
	}
	at := func(ep int) int32 { return s.ports[s.ports[s.nics[ep].port].peer].sw }
	for ep := range s.nics {
		if sw := at(ep); sw >= 0 {
			column[sw] = 0
		}
	}
	s.homes = s.homes[:0]
	for i := range column {
		if column[i] >= 0 {
			column[i] = int32(len(s.homes))
			s.homes = append(s.homes, int32(i))
		}
	}
	s.home = make([]uint16, len(s.nics))
	s.local = make([]int32, len(s.nics))
	for ep := range s.nics {
		s.home[ep], s.local[ep] = uint16(len(s.homes)), -1
		if sw := at(ep); sw >= 0 {
			s.home[ep] = uint16(column[sw])
		}
	}
}

// router computes shortest paths over what is up at the moment it was made.
type router struct {
	s     *Sim
	dist  []int32 // of switches to the current destination switch
	queue []int32
	// Per switch: the groups that its table refers to, and where they begin.
	paths  [][]uint16 // per switch, per column: port, group or none
	groups [][]int32  // per switch: flattened groups, each preceded by its length
	starts [][]int32
}

func (s *Sim) newRouter() *router {
	n, cols := len(s.switches), len(s.homes)+1
	r := &router{s: s, dist: make([]int32, n), paths: make([][]uint16, n), groups: make([][]int32, n), starts: make([][]int32, n)}
	flat := make([]uint16, n*cols)
	for i := range flat {
		flat[i] = routeNone
	}
	for i := range r.paths {
		r.paths[i] = flat[i*cols : (i+1)*cols]
	}
	// Switches with the same neighbours are reached the same ways but for the last hop: of each
	// such family the paths to one are searched, and the others take them over.
	like := make([]int32, len(s.homes))
	family := map[string]int32{}
	var near []int32
	for c, d := range s.homes {
		like[c] = -1
		if s.switches[d].dead {
			continue
		}
		near = r.neighbours(d, near[:0])
		key := fmt.Sprint(near)
		if first, ok := family[key]; ok && len(near) > 0 {
			like[c] = first
			r.lastHops(int32(c), first, near)
			continue
		}
		family[key] = int32(c)
		r.towards(d, int32(c))
	}
	for i, row := range r.paths {
		for c, first := range like {
			if first >= 0 && row[c] == routeNone && s.homes[c] != int32(i) {
				row[c] = row[first]
			}
		}
	}
	return r
}

// neighbours gives the switches that one can send to, in their order.
func (r *router) neighbours(d int32, out []int32) []int32 {
	s := r.s
	sw := &s.switches[d]
	for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
		if peer := s.ports[s.ports[pi].peer].sw; peer >= 0 && s.usable(pi) && !s.switches[peer].dead {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lastHops fills column c where it differs from that of the family's first: at the neighbours, and
// at that first.
func (r *router) lastHops(c, first int32, near []int32) {
	d := r.s.homes[c]
	for _, y := range near {
		r.paths[y][c] = r.entry(y, r.portsTo(y, func(peer int32) bool { return peer == d }))
	}
	f := r.s.homes[first]
	r.paths[f][c] = r.entry(f, r.portsTo(f, func(peer int32) bool {
		_, ok := slices.BinarySearch(near, peer)
		return ok
	}))
}

// portsTo gives the ports of a switch that lead to some others.
func (r *router) portsTo(id int32, want func(peer int32) bool) (m []int32) {
	s := r.s
	sw := &s.switches[id]
	for k := range sw.nports {
		if peer := s.ports[s.ports[sw.portBase+k].peer].sw; peer >= 0 && want(peer) && s.usable(sw.portBase+k) {
			m = append(m, k)
		}
	}
	return m
}

// usable reports whether frames can pass from port pi to its peer.
func (s *Sim) usable(pi int32) bool {
	pt := &s.ports[pi]
	return (pt.flags|s.ports[pt.peer].flags)&portDown == 0
}

// towards finds all shortest paths to destination switch d, whose column is c.
func (r *router) towards(d, c int32) {
	s := r.s
	for i := range r.dist {
		r.dist[i] = -1
	}
	r.dist[d] = 0
	r.queue = append(r.queue[:0], d)
	for k := 0; k < len(r.queue); k++ {
		sw := &s.switches[r.queue[k]]
		for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
			peer := s.ports[s.ports[pi].peer].sw
			if peer >= 0 && r.dist[peer] < 0 && s.usable(pi) && !s.switches[peer].dead {
				r.dist[peer] = r.dist[r.queue[k]] + 1
				r.queue = append(r.queue, peer)
			}
		}
	}
	var members [maxPorts]int32
	for _, id := range r.queue[1:] {
		sw := &s.switches[id]
		m := members[:0]
		for k := range sw.nports {
			pi := sw.portBase + k
			peer := s.ports[s.ports[pi].peer].sw
			if peer >= 0 && r.dist[peer] == r.dist[id]-1 && r.dist[peer] >= 0 && s.usable(pi) {
				m = append(m, k)
			}
		}
		r.paths[id][c] = r.entry(id, m)
	}
}

// entry gives the table entry for a set of ports of a switch.
func (r *router) entry(id int32, m []int32) uint16 {
	if len(m) == 1 {
		return uint16(m[0])
	}
	for i, at := range r.starts[id] {
		have := r.groups[id][at:]
		if int(have[0]) == len(m) && equal(have[1:1+len(m)], m) {
			return routeGroup + uint16(i)
		}
	}
	at := int32(len(r.groups[id]))
	r.starts[id] = append(r.starts[id], at)
	r.groups[id] = append(append(r.groups[id], int32(len(m))), m...)
	return routeGroup + uint16(len(r.starts[id])-1)
}

func equal(a, b []int32) bool {
	for i := range b {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// install writes the table of switch id; its groups are added at the end.
func (r *router) install(id int32) {
	s := r.s
	sw := &s.switches[id]
	sw.groupBase, sw.groupCount = int32(len(s.groups)), int32(len(r.starts[id]))
	for _, at := range r.starts[id] {
		n := r.groups[id][at]
		s.groups = append(s.groups, group{off: int32(len(s.hops)), n: n})
		for _, k := range r.groups[id][at+1 : at+1+n] {
			s.hops = append(s.hops, PortID(sw.portBase+k))
		}
	}
	row := s.routes[sw.routeBase : sw.routeBase+len(s.homes)+1]
	copy(row, r.paths[id])
	for c := range row {
		switch {
		case c < len(s.homes) && s.homes[c] == id:
			row[c] = routeLocal
		case sw.dead:
			row[c] = routeNone
		}
	}
	for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
		if ep := s.ports[s.ports[pi].peer].nic; ep >= 0 {
			if s.local[ep] = -1; s.usable(pi) {
				s.local[ep] = pi
			}
		}
	}
}
