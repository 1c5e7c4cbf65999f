package storage

import "github.com/openinof/inof/model"

// Delivered takes the arrival of a message of this load.
func (l *Load) Delivered(s *model.Sim, tag uint64) error {
	step, gen, n := tag>>48&0xff, uint16(tag>>32), int32(uint32(tag))
	switch step {
	case stepProbe, stepEcho:
		return l.probed(step, gen, n)
	case stepAsk, stepAlright:
		return l.asked(s, step, gen, n)
	}
	o := &l.ios[n]
	if o.gen != gen || o.path < 0 {
		return nil // it was issued again meanwhile
	}
	p := &l.paths[o.path]
	if step == stepPull || step == stepReply {
		p.heard = s.Now()
	}
	switch step {
	case stepCommand:
		if o.read {
			l.serve(s, p, gen, n)
			return nil
		}
		return s.Post(p.back, capsule, l.tag(stepPull, gen, n))
	case stepPull:
		return s.Post(p.to, o.bytes, l.tag(stepData, gen, n))
	case stepData:
		l.serve(s, p, gen, n)
	case stepReply:
		l.pairs[o.pair].completed(s.Now(), o)
		p.waiting--
		return l.fresh(s, n)
	}
	return nil
}

// serve has a target take its time for an I/O.
func (l *Load) serve(s *model.Sim, p *path, gen uint16, n int32) {
	s.AtPort(s.EndpointPort(p.dst), s.Now()+l.cfg.Service, l.tag(stepService, gen, n))
}

// Timer takes a timer of this load.
func (l *Load) Timer(s *model.Sim, tag uint64) error {
	step, gen, n := tag>>48&0xff, uint16(tag>>32), int32(uint32(tag))
	switch step {
	case stepService:
		o := &l.ios[n]
		if o.gen != gen || o.path < 0 {
			return nil
		}
		size := int64(capsule)
		if o.read {
			size += o.bytes
		}
		return s.Post(l.paths[o.path].back, size, l.tag(stepReply, gen, n))
	case stepAlive:
		l.sim.At(l.sim.Now()+l.cfg.KeepAlive/aliveLooks, tag)
		l.gather()
		return l.lookAtPaths()
	case stepReconnect:
		return l.probe(n)
	case stepBegin:
		return l.begin()
	case stepGiveUp:
		return l.giveUp(gen, n)
	}
	return nil
}

// lookAtPaths takes down the paths on which I/O has waited for the keep-alive time.
func (l *Load) lookAtPaths() error {
	for k := range l.paths {
		p := &l.paths[k]
		if p.up && p.waiting > 0 && l.sim.Now()-p.heard >= l.cfg.KeepAlive {
			if err := l.down(int32(k), "keep-alive"); err != nil {
				return err
			}
			if l.cfg.Reconnect > 0 {
				l.sim.At(l.sim.Now()+l.cfg.Reconnect, l.tag(stepReconnect, 0, int32(k)))
			}
		}
	}
	return nil
}

// down closes a path and issues its I/O again elsewhere.
func (l *Load) down(k int32, why string) error {
	p := &l.paths[k]
	p.up = false
	l.downs++
	l.settled = l.sim.Now() + l.cfg.Service + 1
	l.note(k, why)
	l.sim.CloseQP(p.to)
	l.sim.CloseQP(p.back)
	p.waiting = 0
	for n := range l.ios {
		if o := &l.ios[n]; o.path == k {
			if !o.retried {
				o.retried = true
				l.retried++
			}
			if err := l.issue(l.sim, int32(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// up opens a path and gives it the I/O that no path could take.
func (l *Load) up(k int32, why string, open bool) error {
	p := &l.paths[k]
	if open {
		if err := l.open(k); err != nil { // there is no way yet: it stays down
			p.told = false
			if l.cfg.Reconnect > 0 {
				l.sim.At(l.sim.Now()+l.cfg.Reconnect, l.tag(stepReconnect, 0, k))
			}
			return nil
		}
	}
	p.up, p.told, p.heard = true, false, l.sim.Now()
	l.downs--
	l.note(k, why)
	pr := &l.pairs[p.pair]
	idle := pr.idle
	pr.idle = nil
	for _, n := range idle {
		if err := l.issue(l.sim, n); err != nil {
			return err
		}
	}
	return nil
}

func (l *Load) note(k int32, why string) {
	p := &l.paths[k]
	l.log = append(l.log, Event{At: l.sim.Now(), Initiator: l.sim.EndpointNode(p.src), Target: l.sim.EndpointNode(p.dst), Path: int(k - l.pairs[p.pair].first), Up: p.up, Why: why})
}

// probe tries a path that is down with fresh queue pairs.
func (l *Load) probe(k int32) error {
	p := &l.paths[k]
	if p.up || p.told {
		return nil
	}
	if p.gen > 1 { // those of the last attempt
		l.sim.CloseQP(p.to)
		l.sim.CloseQP(p.back)
	}
	l.sim.At(l.sim.Now()+l.cfg.Reconnect, l.tag(stepReconnect, 0, k))
	if l.open(k) != nil {
		return nil
	}
	return l.sim.Post(p.to, capsule, l.tag(stepProbe, p.gen, k))
}

func (l *Load) probed(step uint64, gen uint16, k int32) error {
	p := &l.paths[k]
	if p.gen != gen || p.up || p.told {
		return nil
	}
	if step == stepProbe {
		return l.sim.Post(p.back, capsule, l.tag(stepEcho, gen, k))
	}
	return l.up(k, "reconnect", false)
}

// Stats are the totals of a load.
type Stats struct {
	Done    uint64     `json:"ios"`
	Bytes   uint64     `json:"bytes"`
	Retried uint64     `json:"retried"` // I/Os issued on more than one path
	Mean    model.Time `json:"mean_latency_ps"`
	Worst   model.Time `json:"worst_latency_ps"`
	Waiting int        `json:"waiting"` // I/Os that no path can take
}

// Stats gives the totals so far.
func (l *Load) Stats() Stats {
	s, latency := Stats{Retried: l.retried}, model.Time(0)
	for i := range l.pairs {
		p := &l.pairs[i]
		s.Done += p.done
		s.Bytes += p.bytes
		s.Worst = max(s.Worst, p.worst)
		s.Waiting += len(p.idle)
		latency += p.latency
	}
	if s.Done > 0 {
		s.Mean = latency / model.Time(s.Done)
	}
	return s
}

// Events gives what happened to paths.
func (l *Load) Events() []Event { return l.log }

// Paths gives how many paths of all pairs are up, and how many there are.
func (l *Load) Paths() (up, all int) {
	for i := range l.paths {
		if l.paths[i].up {
			up++
		}
	}
	return up, len(l.paths)
}
