package model

import "math/bits"

// How a fabric is cut into shards and put together again: parallel.go runs them.

// cutting is one way to cut the fabric, which its wiring decides.
type cutting struct {
	shards int
	owner  []int16  // shard of each port
	cut    []uint64 // bit of each port whose peer is in another shard
	look   Time     // how far shards may run apart: the least delay of a cut link
}

// cutInto cuts the fabric into n shards; nil = there is nothing to cut.
func (s *Sim) cutInto(n int) *cutting {
	if c := s.cutting; c != nil && c.shards == n {
		return c
	}
	c := &cutting{shards: n, owner: s.assign(n), cut: make([]uint64, (len(s.ports)+63)/64), look: never}
	for i := range s.ports {
		if pt := &s.ports[i]; c.owner[i] != c.owner[pt.peer] {
			c.cut[i>>6] |= 1 << (i & 63)
			c.look = min(c.look, pt.delay)
		}
	}
	if c.look == never {
		return nil
	}
	s.cutting = c
	return c
}

// split makes shards of the fabric; shard 0 is s.
func (s *Sim) split(c *cutting) (shards []*Sim) {
	n := c.shards
	s.owner, s.cut = c.owner, c.cut
	s.flight = make([]flight, len(s.ports))
	for i := range s.ports {
		if s.isCut(int32(i)) {
			s.ports[i].flags |= portCut
		}
	}
	oldHeap, oldStarts := s.heap, s.starts
	for i := range n {
		sh := s
		if i > 0 {
			sh = &Sim{opt: s.opt, now: s.now, ports: s.ports, queues: s.queues, lost: s.lost, ingress: s.ingress, switches: s.switches, nics: s.nics, qps: s.qps, rx: s.rx, controls: s.controls, innerECN: s.innerECN, longestRTT: s.longestRTT, ints: s.ints, telemetry: s.telemetry, receivers: s.receivers,
				routes: s.routes, home: s.home, local: s.local, homes: s.homes, groups: s.groups, hops: s.hops, pauses: s.pauses, portInfo: s.portInfo, nodes: s.nodes, links: s.links, flows: s.flows, brakes: s.brakes, tuners: s.tuners,
				msgs: s.msgs, dues: s.dues, handler: s.handler, owner: s.owner, cut: s.cut, flight: s.flight, sorted: true, running: true}
		}
		sh.shard, sh.trip = int16(i), never
		sh.heap = wheel{}
		sh.heap.init(s.eventRate() / float64(n))
		sh.out = [2][]box{make([]box, n), make([]box, n)}
		sh.starts = nil
		shards = append(shards, sh)
	}
	for _, id := range oldStarts {
		sh := shards[s.owner[s.nics[s.qps[id].nic].port]]
		sh.starts = append(sh.starts, id)
	}
	s.rehome(shards, &oldHeap)
	for _, sh := range shards {
		sh.planStart()
	}
	return shards
}

// isCut reports whether a port's peer is in another shard.
func (s *Sim) isCut(pi int32) bool { return s.cut[pi>>6]>>(pi&63)&1 != 0 }

// assign gives each port a shard: access switches in order, so that hosts are shared
// evenly, their hosts with them, and each further switch where most of its wires go
// unless that shard has its share of the fabric's bandwidth already.
func (s *Sim) assign(n int) []int16 {
	of := make([]int, len(s.switches))
	hosts := make([]int, len(s.switches))
	weight := make([]float64, len(s.switches))
	load := make([]float64, n)
	total, share := 0, 0.0
	for i := range of {
		of[i] = -1
		sw := &s.switches[i]
		for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
			weight[i] += float64(s.portInfo[pi].rate)
			if s.ports[s.ports[pi].peer].nic >= 0 {
				hosts[i]++
			}
		}
		total += hosts[i]
		share += weight[i] / float64(n)
	}
	seen := 0
	for i := range of {
		if hosts[i] > 0 {
			of[i] = min((seen+hosts[i]/2)*n/total, n-1)
			seen += hosts[i]
			load[of[i]] += weight[i]
		}
	}
	for again := true; again; {
		again = false
		for i := range of {
			if of[i] < 0 {
				if best := s.vote(i, of, load, share-weight[i]/2); best >= 0 {
					of[i] = best
					load[best] += weight[i]
					again = true
				}
			}
		}
	}
	owner := make([]int16, len(s.ports))
	for i := range s.ports {
		sw := s.ports[i].sw
		if sw < 0 {
			sw = s.ports[s.ports[i].peer].sw
		}
		if sw >= 0 && of[sw] > 0 {
			owner[i] = int16(of[sw])
		}
	}
	return s.joinHosts(owner)
}

// vote gives the shard of most of a switch's neighbours among those below the limit,
// else the one of least load; -1 if no neighbour has a shard yet.
func (s *Sim) vote(i int, of []int, load []float64, limit float64) int {
	votes := make([]int, len(load))
	any := false
	sw := &s.switches[i]
	for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
		if p := s.ports[s.ports[pi].peer].sw; p >= 0 && of[p] >= 0 {
			votes[of[p]]++
			any = true
		}
	}
	if !any {
		return -1
	}
	best, least := -1, 0
	for k := range votes {
		if load[k] < load[least] {
			least = k
		}
		if load[k] <= limit && (best < 0 || votes[k] > votes[best] || votes[k] == votes[best] && load[k] < load[best]) {
			best = k
		}
	}
	if best < 0 {
		return least
	}
	return best
}

// joinHosts puts all ports of a host into the shard of its first.
func (s *Sim) joinHosts(owner []int16) []int16 {
	for i := range s.nodes {
		nd := &s.nodes[i]
		for k := int32(1); nd.sw < 0 && k < nd.nports; k++ {
			owner[nd.portBase+k] = owner[nd.portBase]
		}
	}
	return owner
}

// ownerOf gives the shard that handles an event.
func (s *Sim) ownerOf(key uint32) int16 {
	return s.owner[events[key>>keyBits].port(s, int32(key&keyMask))]
}

// firstWhole gives the time of the first event that belongs, or may belong, to the whole fabric.
func (s *Sim) firstWhole() Time {
	first := never
	s.heap.each(func(e event) {
		if kind := e.key >> keyBits; events[kind].port == nil || kind == evDetect && s.mayTrip(int32(e.key&keyMask)) {
			first = min(first, e.at)
		}
	})
	return first
}

// rehome gives events and frames of s to the shards that own them; s itself is shard 0.
func (s *Sim) rehome(shards []*Sim, from *wheel) {
	for {
		e, ok := from.next(never)
		if !ok {
			break
		}
		switch kind := e.key >> keyBits; {
		case kind == evStart: // each shard plans its own
		case events[kind].port == nil:
			s.held = append(s.held, e)
		default:
			shards[s.ownerOf(e.key)].heap.schedule(e.at, e.key)
		}
	}
	for pi := range s.ports {
		pt := &s.ports[pi]
		if pt.flags&portCut != 0 {
			sh := shards[s.owner[pt.peer]]
			f := &s.flight[pi]
			*f = flight{flags: pt.flags, head: pt.flHead, tail: pt.flTail, peer: pt.peer}
			sh.move(s, &f.head, &f.tail)
			pt.flHead, pt.flTail = -1, -1
		} else if sh := shards[s.owner[pi]]; sh != s {
			sh.move(s, &pt.flHead, &pt.flTail)
		}
		if sh := shards[s.owner[pi]]; sh != s {
			sh.moveHeld(s, int32(pi))
		}
	}
}

// moveHeld takes over what a port holds other than on its wire.
func (s *Sim) moveHeld(from *Sim, pi int32) {
	for m := s.ports[pi].ready; m != 0; m &= m - 1 {
		qu := &s.queues[pi*NumQueues+int32(bits.TrailingZeros8(m))]
		s.move(from, &qu.head, &qu.tail)
	}
	for i, pk := range s.portInfo[pi].react {
		tail := pk
		s.move(from, &pk, &tail)
		s.portInfo[pi].react[i] = pk
	}
	if pt := &s.ports[pi]; pt.nic >= 0 {
		n := &s.nics[pt.nic]
		s.move(from, &n.slow.head, &n.slow.tail)
	}
}

// move takes a list of frames from another shard's pool into the own.
func (s *Sim) move(from *Sim, head, tail *int32) {
	if s == from {
		return
	}
	last := *tail
	first, prev := int32(-1), int32(-1)
	for pk := *head; pk >= 0; {
		p := from.pool.pkts[pk]
		n := s.pool.get()
		switch p.kind() {
		case kindPFC:
			t := s.newTimes()
			s.pfcTimes[t] = from.pfcTimes[p.flow]
			from.forgetContent(&p)
			p.flow = t
		case kindRaw:
			i := s.keepRaw(from.raws[p.flow])
			from.forgetContent(&p)
			p.flow = i
		}
		from.pool.put(pk)
		next := p.next
		if pk == last {
			next = -1
		}
		p.next = -1
		s.pool.pkts[n] = p
		if prev >= 0 {
			s.pool.pkts[prev].next = n
		} else {
			first = n
		}
		prev = n
		pk = next
	}
	*head, *tail = first, prev
}

// merge takes everything back into shard 0.
func (s *Sim) merge(shards []*Sim) {
	for pi := range s.ports {
		pt := &s.ports[pi]
		sh := shards[s.owner[pi]]
		if pt.flags&portCut != 0 {
			to := shards[s.owner[pt.peer]]
			f := &s.flight[pi]
			s.move(to, &f.head, &f.tail)
			pt.flHead, pt.flTail = f.head, f.tail
			pt.flags &^= portCut
		} else {
			s.move(sh, &pt.flHead, &pt.flTail)
		}
		if sh != s {
			s.moveHeld(sh, int32(pi))
		}
	}
	peak := s.pool.peak
	own := s.heap
	s.heap = wheel{}
	s.heap.init(s.eventRate())
	s.takeEvents(&own)
	for _, sh := range shards[1:] {
		s.takeEvents(&sh.heap)
		s.starts = append(s.starts, sh.starts...)
		s.events += sh.events
		s.hash += sh.hash
		s.active += sh.active
		s.finished += sh.finished
		peak += sh.pool.peak
		for k := range s.made {
			s.made[k] += sh.made[k]
			s.ended[k] += sh.ended[k]
		}
		for k := range s.sent {
			s.sent[k] += sh.sent[k]
		}
		for r := range s.drops {
			s.drops[r].add(&sh.drops[r])
		}
	}
	s.peak = max(s.peak, peak)
	for _, e := range s.held {
		s.heap.schedule(e.at, e.key)
	}
	s.held = s.held[:0]
	s.cut, s.flight, s.out, s.owner = nil, nil, [2][]box{}, nil
	s.sorted = false
}

// takeEvents takes all events of a wheel but starts of flows, which are planned again.
func (s *Sim) takeEvents(from *wheel) {
	for {
		e, ok := from.next(never)
		if !ok {
			return
		}
		if e.key>>keyBits != evStart {
			s.heap.schedule(e.at, e.key)
		}
	}
}

func (d *dropCount) add(o *dropCount) {
	d.frames += o.frames
	d.bytes += o.bytes
	for k := range d.kinds {
		d.kinds[k] += o.kinds[k]
	}
}
