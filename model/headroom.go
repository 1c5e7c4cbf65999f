package model

// Headroom computes how much a lossless class must be able to take after XOFF is
// decided, following the sum of 802.1Qbb annex O: what the peer sends until the pause
// takes effect there, and what is on the wire in both directions meanwhile.
type Headroom struct {
	Rate     Rate
	Delay    Time  // one way
	MTU      int32 // largest frame on the wire in bytes
	Reaction Time  // of the peer, from the arrival of the PFC frame to silence
	Cell     int32 // bytes of a buffer cell; frames fill whole ones. 0 = bytes are counted
}

// cells gives the bytes of buffer that n bytes of largest frames take.
func (h Headroom) cells(n int64) int64 {
	if h.Cell <= 1 {
		return n
	}
	c := (h.MTU + h.Cell - 1) / h.Cell * h.Cell
	return (n*int64(c) + int64(h.MTU) - 1) / int64(h.MTU)
}

// Bytes gives the headroom:
//
//	2 x delay x rate       on the wire both ways
//	+ one MTU              that this side has just begun to send when XOFF is decided
//	+ the PFC frame itself
//	+ reaction x rate
//	+ one MTU              that the peer has just begun
//	+ one MTU              that crosses the threshold: it is admitted whole
func (h Headroom) Bytes() int64 {
	return h.cells(h.Rate.Bytes(2*h.Delay+h.Reaction) + 3*int64(h.MTU) + pfcFrame + 1)
}

// KM gives the one-way delay of a fibre: 5 us a kilometre.
func KM(km float64) Time { return Time(km * float64(5*Microsecond)) }

// Xoff gives the XOFF threshold from which the queue does not run dry while the peer
// is woken: B x 2T, the reaction, and a few frames of hysteresis.
func (h Headroom) Xoff() int64 {
	return h.cells(h.Rate.Bytes(2*h.Delay+h.Reaction) + 4*int64(h.MTU))
}

// ClassicBuffer gives what XOFF/XON needs in an ingress queue for no loss and no
// idling of the drain: XOFF at B x 2T and as much again as headroom.
func (h Headroom) ClassicBuffer() int64 { return h.Xoff() + h.Bytes() }

// brakedFrames is how many frames slip through while braking sets in: an order that
// arrives while a frame is being sent stops the sender only after it.
const brakedFrames = 12

// BrakedBuffer gives what point braking needs: B x 2T, one decision period, the
// threshold, some frames, and half a period for what partial stops let through: a sender that
// is stopped for part of a period stops after the frame it is sending (found by
// simulation, up to 0.49 periods between 10 and 300 km and 10G and 400G).
func (h Headroom) BrakedBuffer(period Time, threshold int64) int64 {
	return h.cells(h.Rate.Bytes(2*h.Delay+h.Reaction+period*3/2)+brakedFrames*int64(h.MTU)+pfcFrame) + threshold
}

// Pause quanta of IEEE 802.3 for 100G: clause 31B.3.7 allows a MAC 394 quanta to obey
// a pause; table 80-3 allows the BASE-R FEC 240 quanta in each PHY.
const (
	quanta100Response = 394
	quanta100PHY      = 240
	frameGap          = 20 // preamble and inter-frame gap in bytes
)

// QbbReaction is the longest time from the arrival of a PFC frame to silence that the standards
// allow at 100G: the response of the MAC (802.3 clause 31B.3.7) and the PHYs of both ends, as
// in the sum of 802.1Qbb annex O. What they allow at other speeds is shorter.
const QbbReaction = Time(quanta100Response+2*quanta100PHY) * 5120 * Picosecond
