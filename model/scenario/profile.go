package scenario

import (
	"math/bits"

	"github.com/openinof/inof/model"
)

// queueMask turns a list of queues into bits.
func (b *builder) queueMask(line int, key string, queues []int) uint8 {
	m := uint8(0)
	for _, q := range queues {
		if q < 0 || q >= model.NumQueues {
			b.problem(line, key, "queue %d, want 0..7", q)
			continue
		}
		m |= 1 << q
	}
	return m
}

// switchProfile turns the file's switch into the model's.
func (b *builder) switchProfile(key string, s *Switch) model.SwitchProfile {
	p := model.SwitchProfile{Name: key, Buffer: int64(s.Buffer), Lossless: 1 << 3}
	if s.Buffer == 0 {
		p.Buffer = 32 << 20
	}
	if s.Lossless != nil {
		p.Lossless = b.queueMask(s.Line, key+".lossless", s.Lossless)
	}
	if m, ok := s.Model.Settings.(model.BufferSettings); ok {
		p.MMU, p.Other = m.Kind(), m
	}
	if len(s.DSCP) > 0 {
		p.DSCP = model.DefaultDSCP()
		for _, m := range s.DSCP {
			if m.DSCP < 0 || m.DSCP > 63 || m.Queue < 0 || m.Queue > 7 {
				b.problem(m.Line, key+".dscp", "DSCP %d -> queue %d, want 0..63 and 0..7", m.DSCP, m.Queue)
				continue
			}
			p.DSCP[m.DSCP] = uint8(m.Queue)
		}
	}
	b.trust(key, s, &p)
	p.PFC = b.pfc(key, &s.PFC)
	b.scheduler(key, s, &p)
	if b.cc != nil {
		p.ECN = b.cc.Marking()
	}
	if e := s.ECN; e != nil {
		p.ECN = b.ecn(key, e)
	}
	if s.Balancer.Settings != nil {
		p.Balancer = s.Balancer.Settings.(model.BalancerSettings)
	}
	if s.Scheduler.Settings != nil {
		p.Scheduler = s.Scheduler.Settings.(model.SchedulerSettings)
	}
	for _, c := range s.Stages {
		p.Stages = append(p.Stages, c.Settings.(model.StageSettings))
	}
	for _, c := range s.Tuners {
		p.Tuners = append(p.Tuners, c.Settings.(model.TunerSettings))
	}
	if d := s.Deadlock; d != nil {
		p.Deadlock = model.Deadlock{On: true, Detect: d.Detect, Poll: d.Poll, Recover: d.Recover, Discard: d.Discard, TurnOff: d.TurnOff, ErrorDown: d.ErrorDown, Window: d.Window}
	}
	if c := s.Cells; c != nil {
		if p.MMU != model.MMUCells {
			b.problem(c.Line, key+".cells", "are of no use without model: cells")
		}
		p.Cells = model.CellMMU{Cell: c.Cell, Guaranteed: int32(c.Guaranteed), Egress: int32(c.Egress), Headroom: int32(c.Headroom), HeadroomPool: int64(c.HeadroomPool),
			Xoff: int64(c.Xoff), XoffAlpha: c.XoffAlpha, XonOffset: int32(c.XonOffset), XonFloor: int32(c.XonFloor), Limit: int64(c.Limit), LimitAlpha: c.LimitAlpha, LosslessMax: int64(c.LosslessMax)}
		for _, v := range []Size{c.Guaranteed, c.Egress, c.Headroom, c.XonOffset, c.XonFloor, c.Xoff, c.Limit, c.LosslessMax} {
			if v > 1<<31-1 || int64(v) > p.Buffer {
				b.problem(c.Line, key+".cells", "a threshold of %d bytes lies above the buffer of %d", v, p.Buffer)
			}
		}
	}
	return p
}

// trust sets what tells a frame's class.
func (b *builder) trust(key string, s *Switch, p *model.SwitchProfile) {
	switch s.Trust {
	case "", "dscp":
		if len(s.Prio) > 0 || s.PortPrio != 0 {
			b.problem(s.Line, key+".trust", "dot1p and port-priority are of no use without trust: 802.1p")
		}
	case "802.1p":
		p.Trust8021p = true
	default:
		b.problem(s.Line, key+".trust", "%q is not dscp or 802.1p", s.Trust)
	}
	if s.PortPrio < 0 || s.PortPrio > 7 {
		b.problem(s.Line, key+".port-priority", "%d, want 0..7", s.PortPrio)
		return
	}
	p.PortPriority, p.Remark = uint8(s.PortPrio), s.Remark
	p.Priorities = model.DefaultPriorities()
	for _, m := range s.Prio {
		if m.Priority < 0 || m.Priority > 7 || m.Queue < 0 || m.Queue > 7 {
			b.problem(m.Line, key+".dot1p", "priority %d -> queue %d, want 0..7 both", m.Priority, m.Queue)
			continue
		}
		p.Priorities[m.Priority] = uint8(m.Queue)
	}
}

func (b *builder) scheduler(key string, s *Switch, p *model.SwitchProfile) {
	for _, w := range s.WDRR {
		if w.Weight < 1 || w.Weight > 100 {
			b.problem(w.Line, key+".wdrr", "weight %d, want 1..100", w.Weight)
			continue
		}
		m := b.queueMask(w.Line, key+".wdrr", []int{w.Queue})
		p.Sched.WDRR |= m
		if m != 0 {
			p.Sched.Quantum[bits.TrailingZeros8(m)] = int32(w.Weight) * 256
		}
	}
	p.Sched.Low = b.queueMask(s.Line, key+".low-priority", s.Low)
}

func (b *builder) ecn(key string, e *ECN) model.ECN {
	out := model.ECN{Mode: model.ECNDequeue, KMin: int64(e.Low), KMax: int64(e.High), PMax: e.Percent / 100, PerRate: e.PerRate, DropNonECT: e.DropNonECT,
		Queues: b.queueMask(e.Line, key+".ecn.queues", e.Queues)}
	if e.High == 0 && b.cc != nil { // what is not given is the rate control's
		set := b.cc.Marking()
		out.KMax, out.PMax, out.PerRate = set.KMax, set.PMax, set.PerRate
		if e.Low == 0 {
			out.KMin = set.KMin
		}
		if e.Percent > 0 {
			out.PMax = e.Percent / 100
		}
	}
	switch e.When {
	case "", "dequeue":
	case "enqueue":
		out.Mode = model.ECNEnqueue
	default:
		b.problem(e.Line, key+".ecn.when", "%q is not dequeue or enqueue", e.When)
	}
	return out
}

func (b *builder) pfc(key string, p *PFC) model.PFC {
	return model.PFC{Off: p.Off, Pause: p.Pause, Quanta: p.Quanta, Refresh: p.Refresh, Reaction: p.Reaction,
		ABS: b.queueMask(p.Line, key+".pfc.braking", p.ABS), ABSEvery: p.Period, ABSOver: int64(p.Over)}
}

// nicProfile turns the file's NIC into the model's.
func (b *builder) nicProfile(key string, n *NIC) model.NICProfile {
	p := model.NICProfile{Name: key, MTU: n.MTU, Header: n.Header, Ack: n.Ack, AckEvery: n.AckEvery, AckTOS: -1, CC: b.cc, RTO: n.RTO, CNPGap: n.CNPGap, Selective: n.Selective, Window: n.Window,
		PFC: b.pfc(key, &n.PFC), RxRate: n.RxRate, RxBuffer: int64(n.RxBuffer)}
	if r, ok := n.Receiver.Settings.(model.ReceiverSettings); ok {
		p.Receiver = r
	}
	if d := n.AckDSCP; d != nil {
		p.AckTOS = int16(b.dscp(n.Line, key+".ack-dscp", *d))
	}
	return p
}

// dscp gives the class byte of a DSCP.
func (b *builder) dscp(line int, key string, d int) uint8 {
	if d < 0 || d > 63 {
		b.problem(line, key, "DSCP %d, want 0..63", d)
		return 0
	}
	return uint8(d << 2)
}
