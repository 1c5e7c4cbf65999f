package model

// Entries of a switch's table: below routeGroup a port of the switch, else a group.
const (
	routeGroup uint16 = maxPorts
	routeNone  uint16 = 0xffff
)

// group is an ECMP set: n ports from off in hops.
type group struct {
	off, n int32
}

// buildRoutes computes the tables of all switches.
func (s *Sim) buildRoutes() {
	n := s.stride()
	s.routes = make([]uint16, len(s.switches)*n)
	for i := range s.switches {
		s.switches[i].routeBase = int32(i * n)
	}
	r := s.newRouter()
	for i := range s.switches {
		r.install(int32(i))
	}
}

// router computes shortest paths over what is up at the moment it was made.
type router struct {
	s     *Sim
	dist  []int32 // of switches to the current destination switch
	queue []int32
	// Per switch: the groups that its table refers to, and where they begin.
	paths  [][]uint16 // per switch, per destination switch: port, group or none
	groups [][]int32  // per switch: flattened groups, each preceded by its length
	starts [][]int32
}

func (s *Sim) newRouter() *router {
	n := len(s.switches)
	r := &router{s: s, dist: make([]int32, n), paths: make([][]uint16, n), groups: make([][]int32, n), starts: make([][]int32, n)}
	flat := make([]uint16, n*n)
	for i := range flat {
		flat[i] = routeNone
	}
	for i := range r.paths {
		r.paths[i] = flat[i*n : (i+1)*n]
	}
	access := make([]bool, n)
	for i := range access {
		access[i] = s.addressed
	}
	for i := range s.nics {
		if sw := s.ports[s.ports[s.nics[i].port].peer].sw; sw >= 0 {
			access[sw] = true
		}
	}
	for d := range access {
		if access[d] && !s.switches[d].dead {
			r.towards(int32(d))
		}
	}
	return r
}

// usable tells whether frames can pass from port pi to its peer.
func (s *Sim) usable(pi int32) bool {
	pt := &s.ports[pi]
	return (pt.flags|s.ports[pt.peer].flags)&portDown == 0
}

// towards finds all shortest paths to destination switch d.
func (r *router) towards(d int32) {
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
		r.paths[id][d] = r.entry(id, m)
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
	for ep := range s.nics {
		pi := s.ports[s.nics[ep].port].peer
		e := routeNone
		if dsw := s.ports[pi].sw; dsw == id {
			if s.usable(pi) {
				e = uint16(pi - sw.portBase)
			}
		} else if dsw >= 0 && !sw.dead {
			e = r.paths[id][dsw]
		}
		s.routes[sw.routeBase+int32(ep)] = e
	}
	for k := len(s.nics); k < s.stride(); k++ { // addresses of switches
		e := routeNone
		if d := k - len(s.nics); int32(d) != id && !sw.dead {
			e = r.paths[id][d]
		}
		s.routes[int(sw.routeBase)+k] = e
	}
}
