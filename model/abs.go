package model

import "fmt"

// Point braking ("antilocking PFC"): no XOFF and XON. While an ingress queue is above
// its threshold the switch decides every period how long its peer must stand still:
//
//	t_stop = clamp((q - threshold)/B - stops ordered in the last 2T - period, 0, period)
//
// and sends it in a PFC frame; the peer goes on by itself. Counting what is ordered
// but not yet felt keeps the peak at B x 2T where XOFF/XON needs twice that.

//
// The published text gives no formula for t_stop; this one is ours.

// brakeOverlap is by how much a full stop outlasts its period, in bytes: a jumbo
// frame of the reverse direction may delay the next order.
const brakeOverlap = 9216 + frameGap

type brakeState struct {
	slots  []Time // stops ordered, one a period, the last 2T - period
	sum    Time
	at     int
	active bool
}

// setupABS finds how far each port's peer is and makes its history.
func (s *Sim) setupABS(sw *swtch) error {
	cfg := &sw.prof.PFC
	if cfg.ABS&^sw.lossless != 0 {
		return fmt.Errorf("%w %q: point braking on queues %#x of which not all are lossless", ErrProfile, sw.prof.Name, cfg.ABS)
	}
	s.brakes = growTo(s.brakes, len(s.ingress))
	for k := range sw.nports {
		pi := sw.portBase + k
		rtt := cfg.ABSRTT
		if rtt == 0 {
			rtt = 2 * s.ports[pi].delay
		}
		if n := (rtt - cfg.ABSEvery + cfg.ABSEvery - 1) / cfg.ABSEvery; n > 1<<16 {
			return fmt.Errorf("%w %q: %d braking periods in a round trip, at most 65536", ErrProfile, sw.prof.Name, n)
		}
		for q := range int32(NumQueues) {
			if cfg.ABS>>q&1 != 0 {
				n := max(1, int((rtt-1)/cfg.ABSEvery))
				s.brakes[pi*NumQueues+q] = brakeState{slots: make([]Time, n)}
			}
		}
	}
	return nil
}

func growTo[T any](v []T, n int) []T {
	if len(v) < n {
		v = append(v, make([]T, n-len(v))...)
	}
	return v
}

// armBrake starts the periodic decision when the queue passes its threshold.
func (s *Sim) armBrake(in int32, q int32) {
	b := &s.brakes[in*NumQueues+q]
	if !b.active {
		b.active = true
		s.brake(in*NumQueues + q)
	}
}

func (s *Sim) brake(i int32) {
	b := &s.brakes[i]
	pi, q := i/NumQueues, i%NumQueues
	pt := &s.ports[pi]
	sw := &s.switches[pt.sw]
	cfg := &sw.prof.PFC
	ig := &s.ingress[i]
	over := int64(ig.used+ig.hdrm)*int64(sw.prof.Cells.Cell) - cfg.ABSOver
	if over <= 0 && b.sum == 0 {
		b.active = false
		return
	}
	stop := Time(0)
	if over > 0 {
		stop = Time(uint64(over)*pt.psb>>serBits) - b.sum
		stop = min(max(stop, 0), cfg.ABSEvery)
	}
	b.sum += stop - b.slots[b.at]
	b.slots[b.at] = stop
	b.at = (b.at + 1) % len(b.slots)
	if stop > 0 {
		if stop == cfg.ABSEvery {
			// The next order continues this one. A gap between them, be it of a
			// picosecond, would let a whole frame through each period.
			stop += Time(brakeOverlap * pt.psb >> serBits)
		}
		unit := pt.quanta(1)
		ig.quanta = uint16(min((stop+unit-1)/unit, 0xffff))
		pt.pfcWant |= 1 << q
		s.needTx(pi, pt)
	}
	s.schedule(s.now+cfg.ABSEvery, evABS, i)
}
