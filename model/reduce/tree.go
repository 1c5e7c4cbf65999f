package reduce

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// plant finds the job's tree: its root is the switch with the least sum of hops to the switches of
// the ranks, the first of those; the tree goes the shortest ways from there, by the first port.
func (j *Job) plant() error {
	s := j.sim
	hops := make([]int, s.Nodes()) // sum over the ranks; -1: one cannot be reached
	for i := range j.ranks {
		leaf := s.PortNode(s.Peer(j.ranks[i].port))
		if !s.IsSwitch(leaf) {
			return fmt.Errorf("%w: %s is at no switch", ErrConfig, s.NodeName(s.PortNode(j.ranks[i].port)))
		}
		dist, _ := j.walk(leaf)
		for n := range hops {
			if dist[n] < 0 || hops[n] < 0 {
				hops[n] = -1
			} else {
				hops[n] += dist[n]
			}
		}
	}
	root := model.NodeID(-1)
	for n, d := range hops {
		if d >= 0 && (root < 0 || d < hops[root]) {
			root = model.NodeID(n)
		}
	}
	if root < 0 {
		return fmt.Errorf("%w: no switch reaches all ranks", ErrConfig)
	}
	_, up := j.walk(root)
	j.st.Root = s.NodeName(root)
	of := map[model.NodeID]int{}
	j.grow(of, root, nil)
	for i := range j.ranks {
		p := s.Peer(j.ranks[i].port)
		if err := j.join(of, up, p, i); err != nil {
			return err
		}
	}
	return nil
}

// walk gives the hops of every switch to one, -1 where there is no way, and the port on the way.
func (j *Job) walk(from model.NodeID) ([]int, []model.PortID) {
	s := j.sim
	dist, up := make([]int, s.Nodes()), make([]model.PortID, s.Nodes())
	for n := range dist {
		dist[n] = -1
	}
	dist[from] = 0
	for list := []model.NodeID{from}; len(list) > 0; list = list[1:] {
		for k := range s.Ports(list[0]) {
			back := s.Peer(s.PortOf(list[0], k))
			if n := s.PortNode(back); s.IsSwitch(n) && dist[n] < 0 {
				dist[n], up[n] = dist[list[0]]+1, back
				list = append(list, n)
			}
		}
	}
	return dist, up
}

// grow adds a switch to the tree.
func (j *Job) grow(of map[model.NodeID]int, n model.NodeID, up *model.PortID) int {
	i := len(j.nodes)
	of[n] = i
	e := node{id: n, parent: -1}
	for v := range e.slots {
		e.slots[v] = make([]slot, j.cfg.Slots)
		for k := range e.slots[v] {
			e.slots[v][k].chunk = -1
		}
	}
	if up != nil {
		e.up = *up
	}
	j.nodes = append(j.nodes, e)
	return i
}

// join puts a rank behind port p of its switch into the tree, with the switches on its way.
func (j *Job) join(of map[model.NodeID]int, ways []model.PortID, p model.PortID, r int) error {
	s := j.sim
	at, isNew := j.nodeOf(of, ways, s.PortNode(p))
	j.ranks[r].kid = len(j.nodes[at].kids)
	j.at[j.ranks[r].port] = portal{-1, r}
	for kid := p; ; {
		n := &j.nodes[at]
		j.at[kid] = portal{at, len(n.kids)}
		n.kids = append(n.kids, kid)
		n.below = append(n.below, 0)
		if len(n.kids) > maxTreeKid {
			return fmt.Errorf("%w: more than %d children of %s", ErrConfig, maxTreeKid, s.NodeName(n.id))
		}
		if !isNew || n.parent == -1 && at == 0 {
			break
		}
		kid = s.Peer(n.up)
		parent, fresh := j.nodeOf(of, ways, s.PortNode(kid))
		j.nodes[at].parent, j.nodes[at].kid = parent, len(j.nodes[parent].kids)
		j.at[j.nodes[at].up] = portal{at, -1}
		at, isNew = parent, fresh
	}
	for at, kid := j.at[p].node, j.ranks[r].kid; ; at, kid = j.nodes[at].parent, j.nodes[at].kid {
		j.nodes[at].below[kid]++
		if j.nodes[at].parent < 0 {
			return nil
		}
	}
}

// nodeOf finds a switch in the tree, or adds it.
func (j *Job) nodeOf(of map[model.NodeID]int, ways []model.PortID, n model.NodeID) (at int, fresh bool) {
	if i, ok := of[n]; ok {
		return i, false
	}
	return j.grow(of, n, &ways[n]), true
}

// blame names the ranks that a chunk waits for, from a switch down.
func (j *Job) blame(at, chunk int) {
	n := &j.nodes[at]
	e := n.slot(chunk, j.cfg.Slots)
	for k, p := range n.kids {
		if e.chunk == chunk && e.seen>>k&1 != 0 {
			continue
		}
		far := j.at[j.sim.Peer(p)]
		if far.node >= 0 {
			j.blame(far.node, chunk)
		} else {
			j.st.Stalled = append(j.st.Stalled, j.sim.NodeName(j.sim.PortNode(j.sim.Peer(p))))
		}
	}
}
