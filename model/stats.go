package model

import "fmt"

// Counters of the whole fabric.
type Totals struct {
	Events    uint64            `json:"events"`
	FrameHops uint64            `json:"frame_hops"` // frames put on a link, of any kind
	DataHops  uint64            `json:"data_hops"`  // data frames put on a link
	Created   map[string]uint64 `json:"created"`
	Delivered map[string]uint64 `json:"delivered"`
	Dropped   map[string]uint64 `json:"dropped"` // frames by reason
	Live      int               `json:"live"`    // frames in the fabric now
	PeakLive  int               `json:"-"`       // at most; of a run on several cores, the sum of their peaks
	Marks     uint64            `json:"ecn_marks"`
	TxXoff    uint64            `json:"tx_xoff"`
	Deadlocks uint64            `json:"deadlocks"`
	Lossless  uint64            `json:"lossless_drops"` // frames lost for want of buffer in lossless classes
}

// Totals gives the counters of the whole fabric.
func (s *Sim) Totals() Totals {
	t := Totals{Events: s.events, Created: map[string]uint64{}, Delivered: map[string]uint64{}, Dropped: map[string]uint64{}, Live: s.pool.live, PeakLive: max(s.peak, s.pool.peak, s.pool.live)}
	for i := range s.queues {
		t.Marks += uint64(s.queues[i].marks)
		t.TxXoff += s.pauses[i].txXoff
		t.Deadlocks += s.pauses[i].deadlocks
	}
	t.DataHops = s.sent[kindData]
	for _, n := range s.sent {
		t.FrameHops += n
	}
	for k := range numKinds {
		if s.made[k] > 0 {
			t.Created[k.String()] = s.made[k]
		}
		if s.ended[k] > 0 {
			t.Delivered[k.String()] = s.ended[k]
		}
	}
	for r := range numReasons {
		if n := s.drops[r].frames; n > 0 {
			t.Dropped[r.String()] = n
			if r.Lossless() {
				t.Lossless += n
			}
		}
	}
	return t
}

// CheckConservation verifies that every frame made was delivered, was dropped with a
// reason, or is in a queue or on a wire, and that the buffer accounting agrees with
// what the queues hold. It walks the whole fabric.
func (s *Sim) CheckConservation() error {
	var made, ended, dropped uint64
	for k := range numKinds {
		made += s.made[k]
		ended += s.ended[k]
	}
	for r := range numReasons {
		dropped += s.drops[r].frames
	}
	found := uint64(0)
	for pi := range s.ports {
		n, err := s.checkPort(int32(pi))
		if err != nil {
			return err
		}
		found += n
	}
	for i := range s.switches {
		if err := s.checkSwitch(&s.switches[i]); err != nil {
			return err
		}
	}
	if made != ended+dropped+found || uint64(s.pool.live) != found {
		return fmt.Errorf("at %v: %d frames made, %d delivered, %d dropped, %d found in queues and on wires, %d in the pool", s.now, made, ended, dropped, found, s.pool.live)
	}
	return nil
}

func (s *Sim) checkPort(pi int32) (uint64, error) {
	pt := &s.ports[pi]
	found := uint64(len(s.portInfo[pi].react))
	last := Time(0)
	for pk := pt.flHead; pk >= 0; pk = s.pool.pkts[pk].next {
		found++
		if at := s.pool.pkts[pk].at; at < last {
			return 0, fmt.Errorf("at %v: wire of port %d out of order", s.now, pi)
		} else {
			last = at
		}
	}
	for q := range int32(NumQueues) {
		qu := &s.queues[pi*NumQueues+q]
		n, bytes := int32(0), int32(0)
		for pk := qu.head; pk >= 0; pk = s.pool.pkts[pk].next {
			n++
			bytes += int32(s.pool.pkts[pk].size)
		}
		if n != qu.pkts || bytes != qu.bytes || (n > 0) != (pt.ready>>q&1 != 0) {
			return 0, fmt.Errorf("at %v: queue %d of port %d holds %d frames and %d bytes, its books say %d and %d", s.now, q, pi, n, bytes, qu.pkts, qu.bytes)
		}
		found += uint64(n)
	}
	if pt.nic >= 0 {
		for pk := s.nics[pt.nic].slow.head; pk >= 0; pk = s.pool.pkts[pk].next {
			found++
		}
	}
	return found, nil
}

// checkOther compares what the queues of a switch hold with what its buffer says.
func (s *Sim) checkOther(sw *swtch) error {
	sum := int64(-sw.own)
	for i := sw.portBase * NumQueues; i < (sw.portBase+sw.nports)*NumQueues; i++ {
		sum += int64(s.queues[i].bytes)
	}
	if used := sw.buffer.Used(); used != sum {
		return fmt.Errorf("at %v: switch %s: its buffer says %d bytes, its queues hold %d", s.now, s.nodes[sw.node].name, used, sum)
	}
	return nil
}

// checkSwitch compares ingress accounting with what stands in the egress queues.
func (s *Sim) checkSwitch(sw *swtch) error {
	if sw.mmu == MMUOther {
		return s.checkOther(sw)
	}
	want := make([]int64, sw.nports*NumQueues)
	own := int32(0)
	for k := range sw.nports {
		for q := range int32(NumQueues) {
			for pk := s.queues[(sw.portBase+k)*NumQueues+q].head; pk >= 0; pk = s.pool.pkts[pk].next {
				p := &s.pool.pkts[pk]
				if p.ownFrame() {
					own += int32(p.size)
					continue
				}
				n := int64(p.size)
				if sw.mmu == MMUCells {
					n = int64(sw.cells(int32(p.size)))
				}
				want[int32(p.way>>hopBits)*NumQueues+q] += n
			}
		}
	}
	if own != sw.own {
		return fmt.Errorf("at %v: switch %s: %d bytes of its own wait, its books say %d", s.now, s.nodes[sw.node].name, own, sw.own)
	}
	shared, headroom := int64(0), int64(0)
	for i := range want {
		ig := &s.ingress[int(sw.portBase)*NumQueues+i]
		if int64(ig.used)+int64(ig.hdrm) != want[i] || ig.used < 0 || ig.hdrm < 0 {
			return fmt.Errorf("at %v: switch %s ingress %d class %d: accounted %d + %d, queued %d", s.now, s.nodes[sw.node].name, i/NumQueues, i%NumQueues, ig.used, ig.hdrm, want[i])
		}
		reserve := sw.reserve[i%NumQueues]
		if sw.mmu == MMUCells {
			reserve = sw.cells(sw.prof.Cells.Guaranteed)
		}
		shared += max(0, int64(ig.used-reserve))
		headroom += int64(ig.hdrm)
	}
	if shared != int64(sw.shared) || shared > int64(sw.sharedCap) {
		return fmt.Errorf("at %v: switch %s: shared pool accounted %d of %d, ingresses hold %d", s.now, s.nodes[sw.node].name, sw.shared, sw.sharedCap, shared)
	}
	if headroom != int64(sw.hdrmUsed) {
		return fmt.Errorf("at %v: switch %s: headroom accounted %d, ingresses hold %d", s.now, s.nodes[sw.node].name, sw.hdrmUsed, headroom)
	}
	return nil
}
