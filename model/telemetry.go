package model

import (
	"math/bits"
	"sync/atomic"
)

// In-band telemetry: each switch that a frame leaves writes time, bytes sent and depth of the
// port. The records of the frames in flight belong to their queue pair, so that a frame stays
// 32 bytes; the receiver's ACK brings the sender to the record of the frame that it answers.

// intHops is how many hops a frame has room for.
const intHops = 5

// intHop is what one hop wrote, in the steps of the wire format.
type intHop struct {
	at     Time // whole nanoseconds
	sent   uint64
	queued int64
	rate   Rate
}

type intRecord struct {
	hop [intHops]intHop
	n   int32
	off atomic.Bool // the frame was sent again: its record is of no frame
}

// intRing holds the records of one queue pair by sequence number.
type intRing struct {
	rec  []intRecord
	mask uint32
}

// intStage writes telemetry at a switch.
type intStage struct{ passive }

func (*intStage) Tapped() bool { return true }

// Leave writes what the frame leaves behind it.
func (*intStage) Leave(sw Switch, f Frame, _, out PortID, _ int, _ int64) {
	s, p := sw.s, f.packet()
	if p.kind() != kindData {
		return
	}
	ring := s.ints[p.flow]
	if ring == nil {
		return
	}
	r := &ring.rec[p.psn&ring.mask]
	if r.off.Load() || r.n >= intHops {
		return
	}
	rate := sw.Rate(out)
	m := max(1, int64(rate/(25*Gbps)))
	r.hop[r.n] = intHop{at: s.now - s.now%Nanosecond, sent: sw.Sent(out) / uint64(128*m) * uint64(128*m), queued: sw.Depth(out) / (80 * m) * (80 * m), rate: rate}
	r.n++
}

// useTelemetry has all switches write it.
func (s *Sim) useTelemetry() {
	for i := range s.switches {
		s.addStage(int32(i), &intStage{})
	}
}

// newRecord begins the record of a frame that is sent.
func (s *Sim) newRecord(id int32, psn uint32, again bool) {
	ring := s.ints[id]
	if ring == nil {
		n := uint32(1)
		for n <= uint32(s.qps[id].win)+1 || n < 16 {
			n *= 2
		}
		ring = &intRing{rec: make([]intRecord, n), mask: n - 1}
		s.ints[id] = ring
	}
	r := &ring.rec[psn&ring.mask]
	r.n = 0
	r.off.Store(again)
}

// telemetry gives what the hops of a frame wrote.
func (q QP) telemetry(psn uint32) (*intRecord, bool) {
	ring := q.s.ints[q.id]
	if ring == nil {
		return nil, false
	}
	r := &ring.rec[psn&ring.mask]
	return r, !r.off.Load() && r.n > 0
}

// fullWindow gives line rate x longest base round trip in bytes.
func (q QP) fullWindow() float64 { return float64(q.Line()) / 8 * q.BaseRTT().Seconds() }

// windowFor bounds the payload in flight to rate x longest base round trip, one frame at least.
func (q QP) windowFor(r Rate) {
	bytes := int64(float64(r) / 8 * q.BaseRTT().Seconds())
	mtu := int64(q.MTU())
	q.SetWindow(int32(max(1, (bytes+mtu-1)/mtu)))
}

// cutBy gives rate (1 - share), share in units of 1/alphaOne.
func cutBy(rate, share uint64) uint64 {
	hi, lo := bits.Mul64(rate, alphaOne-share)
	return hi<<32 | lo>>32
}
