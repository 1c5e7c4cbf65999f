package reduce

// What a switch of the tree does.

// slot finds the place of a chunk, which another may have.
func (n *node) slot(chunk, slots int) *slot { return &n.slots[chunk/slots&1][chunk%slots] }

// combine takes the numbers of a child.
func (j *Job) combine(at, child int, f *frame) error {
	n := &j.nodes[at]
	e := n.slot(int(f.chunk), j.cfg.Slots)
	if e.chunk > int(f.chunk) {
		j.st.Duplicates++ // of a chunk that all have long had
		return nil
	}
	if e.chunk < int(f.chunk) {
		if e.chunk < 0 {
			n.used++
			j.st.PeakSlots = max(j.st.PeakSlots, n.used)
		}
		*e = slot{chunk: int(f.chunk), vals: e.vals[:0]}
	}
	full := uint64(1)<<len(n.kids) - 1
	if e.seen>>child&1 != 0 {
		j.st.Duplicates++
		switch {
		case e.done: // the result was lost below
			return j.down(n, e, child)
		case e.seen == full && child == 0: // it was lost above; one of the children is enough to ask
			return j.upwards(n, e)
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
	j.st.Complete++
	if n.parent >= 0 {
		return j.upwards(n, e)
	}
	e.done = true
	return j.spread(n, e)
}

// result takes a result from above.
func (j *Job) result(at int, f *frame) error {
	n := &j.nodes[at]
	e := n.slot(int(f.chunk), j.cfg.Slots)
	if e.chunk != int(f.chunk) || e.done {
		j.st.Duplicates++
		return nil
	}
	e.vals = append(e.vals[:0], f.vals...)
	e.ranks, e.done = f.ranks, true
	return j.spread(n, e)
}

func (j *Job) upwards(n *node, e *slot) error {
	f := frame{job: uint16(j.cfg.Tag), op: j.cfg.Op, chunk: uint32(e.chunk), child: uint16(n.kid), ranks: e.ranks, vals: e.vals}
	return j.sim.SendControl(n.up, j.cfg.Queue, f.bytes())
}

// spread copies a result to all children.
func (j *Job) spread(n *node, e *slot) error {
	for k := range n.kids {
		if err := j.down(n, e, k); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) down(n *node, e *slot, child int) error {
	f := frame{job: uint16(j.cfg.Tag), op: j.cfg.Op, kind: kindDown, chunk: uint32(e.chunk), child: uint16(child), ranks: e.ranks, vals: e.vals}
	return j.sim.SendControl(n.kids[child], j.cfg.Queue, f.bytes())
}
