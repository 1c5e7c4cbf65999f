package model

import (
	"fmt"
	"slices"
)

// FlowID numbers the flows of a Sim from 0.
type FlowID int32

// PortID numbers the ports of a Sim; PortOf finds one.
type PortID int32

// EndpointID numbers host ports (each has its own address).
type EndpointID int32

// FlowSpec is one transfer over its own queue pair.
type FlowSpec struct {
	Src, Dst   EndpointID
	Bytes      int64 // payload, at least 1; Forever = until the run ends
	Start      Time
	TOS        uint8 // DSCP << 2; ECN-capable unless NoECT
	NoECT      bool
	Tagged     bool    // its frames carry an 802.1p priority, which is then its class at the NIC
	Priority   uint8   // 0..7, if Tagged
	NoCC       bool    // this flow ignores notifications
	Congestion Control // nil: the NIC's
	Rate       Rate    // initial and greatest rate; 0 = the NIC's
	Hash       uint32  // ECMP hash; 0 = derived from endpoints, number and seed
	Tag        uint64  // of the application that owns it
}

// Forever as FlowSpec.Bytes sends until the run ends.
const Forever int64 = 1 << 40

// flow is the cold part of a queue pair: what it was for and how it went.
type flow struct {
	spec  FlowSpec
	done  Time   // when the last ACK came; 0 = not yet
	nth   uint32 // of its source, counted from 0
	begun bool
}

// ExpectFlows makes room for n more flows at once: many that are added one by one would have their
// records copied to ever larger places, with the old ones beside them.
func (s *Sim) ExpectFlows(n int) {
	s.flows, s.starts = slices.Grow(s.flows, n), slices.Grow(s.starts, n)
	s.qps, s.rx = slices.Grow(s.qps, n), slices.Grow(s.rx, n)
}

// AddFlow plans a flow; it may be called before and during a run.
func (s *Sim) AddFlow(f FlowSpec) (FlowID, error) {
	id := int32(len(s.flows))
	if int(f.Src) >= len(s.nics) || int(f.Dst) >= len(s.nics) || f.Src < 0 || f.Dst < 0 {
		return 0, fmt.Errorf("%w %d: endpoints %d -> %d, there are %d", ErrFlow, id, f.Src, f.Dst, len(s.nics))
	}
	n := &s.nics[f.Src]
	switch {
	case n.node == s.nics[f.Dst].node:
		return 0, fmt.Errorf("%w %d: host %s sends to itself", ErrFlow, id, s.nodes[n.node].name)
	case f.Bytes <= 0 || f.Bytes > Forever:
		return 0, fmt.Errorf("%w %d: %d bytes, want 1..%d", ErrFlow, id, f.Bytes, Forever)
	case f.Priority >= NumQueues || f.Priority > 0 && !f.Tagged:
		return 0, fmt.Errorf("%w %d: 802.1p priority %d, want 0..7 of a tagged flow", ErrFlow, id, f.Priority)
	case !s.reachable(f.Src, f.Dst) || !s.reachable(f.Dst, f.Src):
		return 0, fmt.Errorf("%w %d: no path between %s and %s", ErrFlow, id, s.nodes[n.node].name, s.nodes[s.nics[f.Dst].node].name)
	}
	f.Start = max(f.Start, s.now)
	nth := n.flows
	n.flows++
	s.flows = append(s.flows, flow{spec: f, nth: nth})
	s.qps = append(s.qps, s.newQP(&f, nth))
	q := &s.qps[id]
	rcv := s.controls[q.ctl].answer.Receiver
	if rcv == nil {
		rcv = s.nics[f.Dst].prof.receiver()
	}
	_, goBack := rcv.(*GoBackN)
	q.repeat = !goBack
	s.rx = append(s.rx, rxqp{hash: q.hash ^ 0x5bd1e995, src: int32(f.Src), dst: int32(f.Dst), home: s.home[f.Src], class: f.hostClass(), lastNack: ^uint32(0), ctl: q.ctl, rcv: s.receiverOf(rcv, n.prof.MTU), ack: uint16(s.nics[f.Dst].prof.Ack + s.controls[q.ctl].answer.Ack)})
	if s.telemetry {
		s.ints = growTo(s.ints, int(id)+1)
	}
	if q.ctl != 0 {
		s.control(q).Open(QP{s, id})
	}
	if f.Start <= s.now && len(s.starts) == 0 && s.running {
		s.begin(id)
		return FlowID(id), nil
	}
	s.starts = append(s.starts, id)
	s.sorted = false
	if s.running {
		s.sortStarts()
	}
	return FlowID(id), nil
}

func (s *Sim) newQP(f *FlowSpec, nth uint32) qp {
	n := &s.nics[f.Src]
	p := n.prof
	cc := f.Congestion
	if cc == nil {
		cc = p.CC
	}
	if cc == Uncontrolled {
		cc = nil
	}
	ctl := s.controlOf(cc)
	header := p.Header + s.controls[ctl].answer.Header
	frames := (f.Bytes + int64(p.MTU) - 1) / int64(p.MTU)
	if frames >= 1<<32-1 {
		frames = 1<<32 - 2
	}
	q := qp{
		total: uint32(frames), nic: int32(f.Src), link: -1, home: s.home[f.Dst], full: uint16(p.MTU + header),
		last: uint16(f.Bytes - (frames-1)*int64(p.MTU) + int64(header)),
		tos:  f.TOS &^ ecnMask, q: f.hostClass(), state: qpIdle, win: p.Window, msgs: -1, hole: noHole,
		ctl: ctl,
	}
	if ctl != 0 && !f.NoCC {
		q.hears = s.controls[ctl].ctl.Hears()
	}
	if f.Bytes == Forever {
		q.last = q.full
	}
	if !f.NoECT && !s.controls[ctl].answer.NoECT {
		q.tos |= ecnECT
	}
	q.psb = s.ports[n.port].psb
	if f.Rate > 0 {
		q.psb = max(q.psb, f.Rate.perByte())
	}
	q.gapFull = s.span(q.full, q.psb)
	q.hash = f.Hash
	if q.hash == 0 {
		rng := seedFor(s.opt.Seed, classFlow, int(f.Src)<<40^int(f.Dst)<<20^int(nth))
		q.hash = uint32(rng.Uint64())
	}
	return q
}

// reachable reports whether the tables have a way from one endpoint to another.
func (s *Sim) reachable(a, b EndpointID) bool {
	peer := s.ports[s.nics[a].port].peer
	sw := s.ports[peer].sw
	if sw < 0 {
		return peer == s.nics[b].port // a cable between two hosts
	}
	r := s.routes[s.switches[sw].routeBase+int(s.home[b])]
	return r < routeLocal || r == routeLocal && s.local[b] >= 0
}

// sortStarts orders the listed flows by start and plans the first.
func (s *Sim) sortStarts() {
	s.running = true
	if s.sorted {
		return
	}
	s.sorted = true
	slices.SortFunc(s.starts, func(a, b int32) int {
		// Latest first: the next to start is at the end; of one moment, the first listed.
		if c := compareTime(s.flows[b].spec.Start, s.flows[a].spec.Start); c != 0 {
			return c
		}
		return int(b - a)
	})
	s.planStart()
}

func compareTime(a, b Time) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (s *Sim) planStart() {
	if n := len(s.starts); n > 0 {
		id := s.starts[n-1]
		s.schedule(s.flows[id].spec.Start, evStart, id)
	}
}

// startListed begins the first listed flow, if the event was planned for it: one
// planned before an earlier flow was listed comes again later.
func (s *Sim) startListed(id int32) {
	n := len(s.starts)
	if n == 0 || s.starts[n-1] != id || s.flows[id].begun {
		return
	}
	s.starts = s.starts[:n-1]
	s.planStart()
	s.begin(id)
}

// begin makes a flow's queue pair live.
func (s *Sim) begin(id int32) {
	s.flows[id].begun = true
	s.active++
	q := &s.qps[id]
	q.next = s.now
	q.heard = s.now
	s.wake(id)
}

// finish ends a flow whose last frame was acknowledged.
func (s *Sim) finish(id int32, q *qp) {
	// Where its NIC still lists it, it has nothing to send and falls out in its turn.
	q.sndNxt, q.hole = q.total, noHole
	q.done = true
	s.flows[id].done = s.now
	s.active--
	s.finished++
	if s.handler != nil {
		s.handler.FlowDone(s, FlowID(id))
	}
}

// Active gives how many flows have begun and not finished.
func (s *Sim) Active() int { return s.active }

// Pending gives how many flows have not begun.
func (s *Sim) Pending() int { return len(s.starts) }

// FlowStatus is how a flow stands.
type FlowStatus struct {
	ID          FlowID
	Src, Dst    EndpointID
	Tag         uint64
	Bytes       int64
	Start, Done Time // Done is 0 while it lasts
	Begun       bool
	Acked       int64 // payload bytes acknowledged in whole frames
	Retx        uint64
	OutOfOrder  uint64
	Rate        Rate // at present
	ControlState
}

// Flow tells how a flow stands.
func (s *Sim) Flow(id FlowID) FlowStatus {
	f, q, r := &s.flows[id], &s.qps[id], &s.rx[id]
	mtu := int64(s.nics[f.spec.Src].prof.MTU)
	st := FlowStatus{
		ID: id, Src: f.spec.Src, Dst: f.spec.Dst, Tag: f.spec.Tag, Bytes: f.spec.Bytes, Start: f.spec.Start, Done: f.done, Begun: f.begun,
		Acked: min(int64(q.sndUna)*mtu, f.spec.Bytes), Retx: q.retx, OutOfOrder: uint64(r.ooo),
		Rate: Rate((8e12<<serBits + q.psb/2) / q.psb),
	}
	if q.ctl != 0 {
		st.ControlState = s.control(q).State(QP{s, int32(id)})
	}
	return st
}

// Flows gives the number of flows planned so far.
func (s *Sim) Flows() int { return len(s.flows) }

// IdealFCT gives how long a flow would take alone: the base round trip (propagation
// of both ways and the serialisation of one payload at every hop) plus all its
// frames at the speed of the slowest link on its way.
func (s *Sim) IdealFCT(id FlowID) Time {
	f, q := &s.flows[id].spec, &s.qps[id]
	prof := s.nics[f.Src].prof
	delay, ser, slowest := Time(0), Time(0), uint64(0)
	pi := s.nics[f.Src].port
	for range maxHops {
		pt := &s.ports[pi]
		delay += pt.delay
		ser += Time(uint64(prof.MTU) * pt.psb >> serBits)
		slowest = max(slowest, pt.psb)
		peer := &s.ports[pt.peer]
		if peer.sw < 0 {
			break
		}
		pi = s.routeByHash(&s.switches[peer.sw], int32(f.Dst), q.hash)
		if pi < 0 {
			return never
		}
	}
	frames := (f.Bytes + int64(prof.MTU) - 1) / int64(prof.MTU)
	bytes := uint64(f.Bytes + frames*int64(prof.Header))
	return 2*delay + ser + Time(bytes*slowest>>serBits)
}
