package reduce

import "github.com/openinof/inof/model"

// ring is the job done by the hosts alone: 2(n-1) rounds, in each of which every rank sends the
// n-th part of its vector to the next; in the first half the parts are combined, in the second the
// results go round.
type ring struct {
	to    []model.FlowID // from each rank to the next
	round []int          // rounds that each has received
	part  int64
}

func (j *Job) newRing() error {
	n := len(j.ranks)
	j.ring = ring{to: make([]model.FlowID, n), round: make([]int, n), part: max(1, j.cfg.Bytes/int64(n))}
	for k := range n {
		id, err := j.sim.OpenQP(model.FlowSpec{Src: j.cfg.Ranks[k], Dst: j.cfg.Ranks[(k+1)%n], TOS: j.cfg.TOS})
		if err != nil {
			return err
		}
		j.ring.to[k] = id
	}
	return nil
}

func (j *Job) startRing() error {
	for k := range j.ranks {
		if err := j.sim.Post(j.ring.to[k], j.ring.part, j.tag((k+1)%len(j.ranks))); err != nil {
			return err
		}
	}
	return nil
}

// Delivered takes the arrival of a part at a rank, which passes it on.
func (j *Job) Delivered(s *model.Sim, tag uint64) error {
	k, n := int(tag&0xffffffff), len(j.ranks)
	r := &j.ring
	if r.round[k]++; r.round[k] == 2*(n-1) {
		j.ranks[k].done = s.Now()
		return nil
	}
	return s.Post(r.to[k], r.part, j.tag((k+1)%n))
}
