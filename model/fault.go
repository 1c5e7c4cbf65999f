package model

// Faults: what breaks, and how the fabric routes around it.

// SetLink takes a link down or up. Frames on the wire and in its egress queues are
// lost; tables change only when Reroute is called.
func (s *Sim) SetLink(l LinkID, up bool) {
	for _, pi := range s.links[l].port {
		s.setCarrier(pi, up)
	}
}

func (s *Sim) setCarrier(pi int32, up bool) {
	pt := &s.ports[pi]
	if up == (pt.flags&portDown == 0) {
		return
	}
	s.portInfo[pi].carrierChanges++
	s.paths = nil
	if up {
		pt.flags &^= portDown
		s.portInfo[pi].errorDown = false
	} else {
		pt.flags |= portDown
		s.loseWire(pi, pt)
	}
	// A new link knows of no pause.
	for q := range int32(NumQueues) {
		s.resumeQueue(pi, pt, q)
		if !up && pt.sw >= 0 {
			s.flush(pi, pt, q, DropCarrier)
		}
		if up && s.ingress[pi*NumQueues+q].xoff {
			pt.pfcWant |= s.pausedFor(pi, pt, q)
		}
	}
	if up {
		s.needTx(pi, pt)
	}
	if h, ok := s.handler.(CarrierHandler); ok {
		h.Carrier(s, PortID(pi), up)
	}
}

// CarrierHandler is what a Handler may implement to be told of carrier that comes and
// goes, at the moment it does.
type CarrierHandler interface {
	Carrier(s *Sim, port PortID, up bool)
}

// LinkUp reports whether a port has carrier.
func (s *Sim) LinkUp(p PortID) bool { return s.ports[p].flags&portDown == 0 }

// loseWire marks the frames in flight from a port whose carrier went; they are lost
// when they would arrive, whatever the link is like by then.
func (s *Sim) loseWire(pi int32, pt *port) {
	for pk := pt.flHead; pk >= 0; {
		p := &s.pool.pkts[pk]
		p.kf |= flagLost << flagShift
		pk = p.next
	}
}

// SetMute makes a link swallow frames without losing carrier (a black path), in the
// direction from port a of the link, from port b, or both.
func (s *Sim) SetMute(l LinkID, fromA, fromB bool) {
	for end, mute := range []bool{fromA, fromB} {
		pt := &s.ports[s.links[l].port[end]]
		if mute {
			pt.flags |= portMute
		} else {
			pt.flags &^= portMute
		}
	}
}

// SetLoss sets the probability that a frame on the link is corrupted.
func (s *Sim) SetLoss(l LinkID, p float64) {
	for _, pi := range s.links[l].port {
		s.portInfo[pi].loss = p
		if p > 0 {
			s.ports[pi].flags |= portLossy
		} else {
			s.ports[pi].flags &^= portLossy
		}
	}
}

// KillSwitch takes all links of a switch down and forgets what is in it.
func (s *Sim) KillSwitch(n NodeID) {
	sw := &s.switches[s.nodes[n].sw]
	sw.dead, s.paths = true, nil
	for k := range sw.nports {
		s.setCarrier(sw.portBase+k, false)
		s.setCarrier(s.ports[sw.portBase+k].peer, false)
	}
}

// ReviveSwitch brings a dead switch and its links back.
func (s *Sim) ReviveSwitch(n NodeID) {
	sw := &s.switches[s.nodes[n].sw]
	sw.dead, s.paths = false, nil
	for k := range sw.nports {
		s.setCarrier(sw.portBase+k, true)
		s.setCarrier(s.ports[sw.portBase+k].peer, true)
	}
}

// Reroute computes the tables of all switches anew from what is up.
func (s *Sim) Reroute() {
	s.groups, s.hops = s.groups[:0], s.hops[:0]
	r := s.newRouter()
	for i := range s.switches {
		r.install(int32(i))
	}
}

// RerouteSwitch gives one switch a new table from what is up now, while the others
// keep theirs: until they follow, frames may go round in circles. All paths are computed
// once a change, not once a switch.
func (s *Sim) RerouteSwitch(n NodeID) {
	id := s.nodes[n].sw
	if id < 0 {
		return
	}
	if s.paths == nil {
		s.paths = s.newRouter()
	}
	s.paths.install(id)
	if len(s.groups) > maxGroupsKept && len(s.groups) > 2*s.liveGroups() {
		s.compactGroups()
	}
}

// maxGroupsKept is how many ECMP groups may pile up before those that no table refers
// to are thrown away.
const maxGroupsKept = 1024

func (s *Sim) liveGroups() int {
	n := 0
	for i := range s.switches {
		n += int(s.switches[i].groupCount)
	}
	return n
}

// compactGroups keeps only the groups of the present tables.
func (s *Sim) compactGroups() {
	groups, hops := make([]group, 0, s.liveGroups()), make([]PortID, 0, len(s.hops))
	for i := range s.switches {
		sw := &s.switches[i]
		base := int32(len(groups))
		for _, g := range s.groups[sw.groupBase : sw.groupBase+sw.groupCount] {
			groups = append(groups, group{off: int32(len(hops)), n: g.n})
			hops = append(hops, s.hops[g.off:g.off+g.n]...)
		}
		sw.groupBase = base
	}
	s.groups, s.hops = groups, hops
}

// stormState is a NIC gone mad: it pauses its switch without end.
type stormState struct {
	queues uint8
	until  Time
	every  Time
}

// Storm has a host's port send XOFF for the queues of the mask from now until the
// given time, repeating it every given time.
func (s *Sim) Storm(ep EndpointID, queues uint8, every, until Time) {
	pi := s.nics[ep].port
	s.portInfo[pi].storm = stormState{queues: queues, every: every, until: until}
	s.stormOn(pi)
}

func (s *Sim) stormOn(pi int32) {
	st := &s.portInfo[pi].storm
	pt := &s.ports[pi]
	over := s.now >= st.until
	for q := range int32(NumQueues) {
		if st.queues>>q&1 == 0 {
			continue
		}
		ig := &s.ingress[pi*NumQueues+q]
		ig.xoff = !over
		ig.quanta = 0
		if s.pfcOf(pt).Quanta > 0 {
			ig.quanta = 0xffff // the longest pause, but one that runs out: the last XON may be lost
		}
		pt.pfcWant |= 1 << q
	}
	if over {
		st.queues = 0
	} else {
		s.schedule(min(s.now+st.every, st.until), evStorm, pi)
	}
	s.needTx(pi, pt)
}
