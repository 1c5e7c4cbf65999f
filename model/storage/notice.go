package storage

import "github.com/openinof/inof/model"

// PathDown is a notice to an initiator that a target's address cannot be reached; it
// gives how many paths went down.
func (l *Load) PathDown(initiator model.NodeID, target model.EndpointID) (int, error) {
	n := 0
	for k := range l.paths {
		p := &l.paths[k]
		if p.dst != target || l.sim.EndpointNode(p.src) != initiator {
			continue
		}
		p.told = true
		if p.up {
			n++
			if err := l.down(int32(k), "notice"); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// PathUp is a notice that a target's address can be reached again.
func (l *Load) PathUp(initiator model.NodeID, target model.EndpointID) (int, error) {
	n := 0
	for k := range l.paths {
		p := &l.paths[k]
		if p.dst == target && !p.up && l.sim.EndpointNode(p.src) == initiator {
			n++
			if err := l.up(int32(k), "notice", true); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// pathOf finds the path between two addresses, -1 if the load has none.
func (l *Load) pathOf(src, dst model.EndpointID) int32 {
	for k := range l.paths {
		if p := &l.paths[k]; p.src == src && p.dst == dst {
			return int32(k)
		}
	}
	return -1
}

// Down takes the path between two addresses down, as the initiator's host does that
// was told: only Up brings it back. Paths of other loads are passed over.
func (l *Load) Down(src, dst model.EndpointID) error {
	k := l.pathOf(src, dst)
	if k < 0 {
		return nil
	}
	l.paths[k].told = true
	if !l.paths[k].up {
		return nil
	}
	return l.down(k, "notice")
}

// Up brings a path back that is down.
func (l *Load) Up(src, dst model.EndpointID) error {
	k := l.pathOf(src, dst)
	if k < 0 {
		return nil
	}
	if l.paths[k].up {
		l.paths[k].told = false
		return nil
	}
	return l.up(k, "notice", true)
}

// Ask sends a keep-alive command on a path that is up; when nothing at all is heard on
// it within the time, it goes down as by Down.
func (l *Load) Ask(src, dst model.EndpointID, within model.Time) error {
	k := l.pathOf(src, dst)
	if k < 0 || !l.paths[k].up {
		return nil
	}
	p := &l.paths[k]
	p.asked = l.sim.Now()
	l.sim.At(l.sim.Now()+within, l.tag(stepGiveUp, p.gen, k))
	return l.sim.Post(p.to, capsule, l.tag(stepAsk, p.gen, k))
}

// asked follows a keep-alive command and its answer.
func (l *Load) asked(s *model.Sim, step uint64, gen uint16, k int32) error {
	p := &l.paths[k]
	if p.gen != gen || !p.up {
		return nil
	}
	if step == stepAsk {
		return s.Post(p.back, capsule, l.tag(stepAlright, gen, k))
	}
	p.heard = s.Now()
	return nil
}

// giveUp ends the wait for an answer.
func (l *Load) giveUp(gen uint16, k int32) error {
	p := &l.paths[k]
	if p.gen != gen || !p.up || p.heard > p.asked {
		return nil
	}
	p.told = true
	return l.down(k, "probe")
}
