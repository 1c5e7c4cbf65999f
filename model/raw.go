package model

import "fmt"

// Frames of control planes. They wait in the egress queue of their class like all
// others, are paused with it, and are lost with the link. A link-local one (LLDP,
// NTS) ends at the peer. A routed one (sessions, BFD) goes from switch to switch by
// the tables that data goes by. What a switch sends of its own takes no ingress
// buffer; where it passes, a routed frame is accounted as data is.

// rawLimit bounds what the control plane of a switch may have waiting in all its queues,
// or that of a host in one, in bytes; what is beyond is dropped.
const rawLimit = 1 << 20

// linkLocal as packet.dst of a control frame: it ends at the peer.
const linkLocal = ^uint16(0)

// AddressSwitches gives every switch an address of its own, so that SendRouted works.
// It is to be called before the run.
func (s *Sim) AddressSwitches() error {
	s.addressed = true
	s.groups, s.hops = s.groups[:0], s.hops[:0]
	if err := s.buildRoutes(); err != nil {
		return err
	}
	for id := range s.rx {
		r := &s.rx[id]
		r.home, s.qps[id].home = s.home[r.src], s.home[r.dst]
	}
	return nil
}

// SendControl puts a whole Ethernet frame (without FCS, 14..9216 bytes) into queue q of
// a port; the Handler's Control is called when it arrives at the peer.
func (s *Sim) SendControl(port PortID, q int, frame []byte) error {
	if q < 0 || q >= NumQueues {
		return fmt.Errorf("control frame for queue %d, want 0..7", q)
	}
	pk, err := s.newRaw(frame, linkLocal, uint8(q<<5), 0)
	if err != nil {
		return err
	}
	s.emit(int32(port), int32(q), pk)
	return nil
}

// SendRouted sends a whole Ethernet frame from one switch to another, hop by hop, in
// the class of its traffic class byte (DSCP << 2); hash chooses among equal paths. The
// Handler's Control is called when it arrives. Without a path it is lost and counted.
func (s *Sim) SendRouted(from, to NodeID, tos uint8, hash uint32, frame []byte) error {
	a, b := s.nodes[from].sw, s.nodes[to].sw
	if a < 0 || b < 0 || a == b || !s.addressed {
		return fmt.Errorf("routed frame from %s to %s: want two switches that have addresses", s.nodes[from].name, s.nodes[to].name)
	}
	pk, err := s.newRaw(frame, uint16(b), tos&^ecnMask, hash)
	if err != nil {
		return err
	}
	sw := &s.switches[a]
	out := s.route(sw, pk)
	if out < 0 {
		s.drop(pk, DropNoRoute)
		return nil
	}
	if s.ports[out].flags&portDown != 0 {
		out = s.lagMember(sw, out, &s.pool.pkts[pk])
	}
	q := sw.dscp[tos>>2]
	s.pool.pkts[pk].kf = kindFlags(kindRaw, 0, q)
	s.emit(out, int32(q), pk)
	return nil
}

func (s *Sim) newRaw(frame []byte, dst uint16, tos uint8, hash uint32) (int32, error) {
	if len(frame) < 14 || len(frame) > 9216 {
		return 0, fmt.Errorf("control frame of %d bytes, want 14..9216", len(frame))
	}
	i := s.keepRaw(frame)
	pk := s.pool.get()
	s.pool.pkts[pk] = packet{flow: i, size: uint16(max(len(frame)+4, 64)), tos: tos, dst: dst, hash: hash, kf: kindFlags(kindRaw, 0, tos>>5)}
	s.made[kindRaw]++
	return pk, nil
}

// keepRaw gives the content of a control frame a number.
func (s *Sim) keepRaw(frame []byte) int32 {
	n := len(s.rawFree)
	if n == 0 {
		s.raws = append(s.raws, frame)
		return int32(len(s.raws) - 1)
	}
	i := s.rawFree[n-1]
	s.rawFree = s.rawFree[:n-1]
	s.raws[i] = frame
	return i
}

// emit queues a control frame where it was made; ownFrame knows it again there.
func (s *Sim) emit(pi, q, pk int32) {
	pt := &s.ports[pi]
	qu := &s.queues[pi*NumQueues+q]
	p := &s.pool.pkts[pk]
	switch {
	case pt.flags&portDown != 0:
		s.dropAt(pk, pi*NumQueues+q, DropCarrier)
	case pt.discard>>q&1 != 0:
		s.dropAt(pk, pi*NumQueues+q, DropRecovery)
	case pt.sw >= 0 && s.switches[pt.sw].own+int32(p.size) > rawLimit, pt.sw < 0 && qu.bytes > rawLimit:
		s.dropAt(pk, pi*NumQueues+q, DropTail)
	default:
		if pt.sw >= 0 {
			s.switches[pt.sw].own += int32(p.size)
		}
		s.push(pt, qu, q, pk, p)
		if pt.paused>>q&1 == 0 {
			s.needTx(pi, pt)
		}
	}
}

// ownFrame reports whether a frame that waits in a switch was made there: it has passed
// no switch yet, and no ingress was charged for it.
func (p *packet) ownFrame() bool { return p.way&maxHops == 0 }

// arriveRaw takes a control frame off the wire: to its end, or onward.
func (s *Sim) arriveRaw(pi int32, pt *port, pk int32) {
	dst := s.pool.pkts[pk].dst
	switch {
	case dst == linkLocal || int32(dst) == pt.sw: // each switch has a column of its number
		s.consumeRaw(pi, pk)
	case pt.sw >= 0:
		s.forward(pi, pt, pk)
	default: // hosts do not route
		s.drop(pk, DropNoRoute)
	}
}

// consumeRaw ends a control frame at the port where it arrived.
func (s *Sim) consumeRaw(pi, pk int32) {
	p := &s.pool.pkts[pk]
	frame := s.raws[p.flow]
	s.ended[kindRaw]++
	s.forgetContent(p)
	s.pool.put(pk)
	if s.handler != nil {
		s.handler.Control(s, PortID(pi), frame)
	}
}

// ControlInFlight gives how many control frames have been sent and neither arrived nor
// been lost.
func (s *Sim) ControlInFlight() int {
	n := s.made[kindRaw] - s.ended[kindRaw]
	for r := range s.drops {
		n -= s.drops[r].kinds[kindRaw]
	}
	return int(n)
}
