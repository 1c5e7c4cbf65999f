package reduce

import "github.com/openinof/inof/model"

// What a switch of the tree does.

// slot finds the place of a chunk, which another may have.
func (n *node) slot(chunk, slots int) *slot { return &n.slots[chunk/slots&1][chunk%slots] }

// combine takes the numbers of a child.
func (j *Job) combine(s *model.Sim, at, child int, f *frame) error {
	n := &j.nodes[at]
	e := n.slot(int(f.chunk), j.cfg.Slots)
	if e.chunk > int(f.chunk) {
		n.duplicates++ // of a chunk that all have long had
		return nil
	}
	if e.chunk < int(f.chunk) {
		if e.chunk < 0 {
			n.used++
		}
		*e = slot{chunk: int(f.chunk), vals: e.vals[:0]}
	}
	full := uint64(1)<<len(n.kids) - 1
	if e.seen>>child&1 != 0 {
		n.duplicates++
		switch {
		case e.done: // the result was lost below
			return j.down(s, n, e, child)
		case e.seen == full && child == 0: // it was lost above; one of the children is enough to ask
			return j.upwards(s, n, e)
		}
		return nil
	}
	e.seen |= 1 << child
	e.ranks += f.ranks
	if len(e.vals) == 0 {
		e.vals = append(e.vals, f.vals...)
	} else {
		for i, v := range f.vals {
			e.vals[i] = j.cfg.Op.apply(e.vals[i], v)
		}
	}
	if e.seen != full {
		return nil
	}
	n.complete++
	if n.parent >= 0 {
		return j.upwards(s, n, e)
	}
	e.done = true
	return j.spread(s, n, e)
}

// result takes a result from above.
func (j *Job) result(s *model.Sim, at int, f *frame) error {
	n := &j.nodes[at]
	e := n.slot(int(f.chunk), j.cfg.Slots)
	if e.chunk != int(f.chunk) || e.done {
		n.duplicates++
		return nil
	}
	e.vals = append(e.vals[:0], f.vals...)
	e.ranks, e.done = f.ranks, true
	return j.spread(s, n, e)
}

func (j *Job) upwards(s *model.Sim, n *node, e *slot) error {
	f := frame{job: uint16(j.cfg.Tag), op: j.cfg.Op, chunk: uint32(e.chunk), child: uint16(n.kid), ranks: e.ranks, vals: e.vals}
	return s.SendControl(n.up, j.cfg.Queue, f.bytes())
}

// spread copies a result to all children.
func (j *Job) spread(s *model.Sim, n *node, e *slot) error {
	for k := range n.kids {
		if err := j.down(s, n, e, k); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) down(s *model.Sim, n *node, e *slot, child int) error {
	f := frame{job: uint16(j.cfg.Tag), op: j.cfg.Op, kind: kindDown, chunk: uint32(e.chunk), child: uint16(child), ranks: e.ranks, vals: e.vals}
	return s.SendControl(n.kids[child], j.cfg.Queue, f.bytes())
}
