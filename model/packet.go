package model

import "fmt"

// kind tells what a frame is.
type kind uint8

const (
	kindData kind = iota
	kindAck
	kindNack
	kindCNP
	kindPFC   // 802.1Qbb priority flow control; flow is the index of its times
	kindPause // 802.3x PAUSE; psn is the time in quanta
	kindRaw   // a control plane's frame; flow is the index of its bytes
	kindProbe // measures the round trip of a queue pair; with flagAnswer its answer
	numKinds
)

var kindNames = [numKinds]string{"data", "ack", "nack", "cnp", "pfc", "pause", "control", "probe"}

func (k kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ECN codepoints, the low two bits of a frame's traffic class byte (RFC 3168).
const (
	ecnMask = 3
	ecnECT  = 2
	ecnCE   = 3
)

// Layout of packet.kf: the kind, two flags, and the 802.1p priority.
const (
	kindMask  = 7
	flagShift = 3
	flagMask  = 3
	prioShift = 5
	prioMask  = 7 << prioShift

	flagCNP    = 1 << 0 // an ACK that also carries a congestion notification
	flagAnswer = 1 << 0 // a probe on its way back
	flagTell   = 1 << 0 // a data frame that asks for an ACK at once
	flagLost   = 1 << 1 // it was on a wire whose carrier went
)

// hopBits is the width of the hop count in packet.way; what is left numbers the
// ports of one switch.
const (
	hopBits  = 6
	maxHops  = 1<<hopBits - 1 // the time to live of a frame in switches
	maxPorts = 1 << (16 - hopBits)
)

// MaxPorts is how many ports a node may have.
const MaxPorts = maxPorts

// packet is one frame in the fabric: 32 bytes, two a cache line, addressed by its
// index in the pool. next links it into a queue or a wire.
type packet struct {
	at   Time // arrival at the far end, while on a wire
	next int32
	flow int32  // queue pair
	psn  uint32 // sequence number in frames
	hash uint32 // of the flow in this direction, for ECMP
	dst  uint16 // column of the switch it is for; who at that switch, its queue pair says
	size uint16 // bytes on the wire
	way  uint16 // ingress port within the switch it is queued in << hopBits | switches passed
	tos  uint8  // DSCP << 2 | ECN
	kf   uint8  // kind, flags, and the class in which the last node sent it
}

func (p *packet) kind() kind   { return kind(p.kf & kindMask) }
func (p *packet) flags() uint8 { return p.kf >> flagShift & flagMask }

// kindFlags gives packet.kf of a frame that a host sends in class q.
func kindFlags(k kind, flags, q uint8) uint8 {
	return uint8(k) | flags<<flagShift | q<<prioShift
}

// pool holds all frames. Those that are free are a stack: the one used last, which is the one most
// likely still in the cache, is taken first, and taking it does not wait for what it holds.
type pool struct {
	pkts []packet
	free []int32 // room for as many as pkts can be; the first n are free
	n    int
	live int
	peak int
}

// get takes a frame with undefined content.
func (p *pool) get() int32 {
	p.live++
	if p.n > 0 {
		p.n--
		return p.free[p.n]
	}
	return p.grow()
}

// grow stays out of line so that get does not.
//
//go:noinline
func (p *pool) grow() int32 {
	p.peak = p.live
	n := len(p.pkts)
	if n < cap(p.pkts) {
		p.pkts = p.pkts[:n+1]
		return int32(n)
	}
	// Half as much again: doubling would leave up to half the peak unused.
	bigger := make([]packet, n+1, n+n/2+256)
	copy(bigger, p.pkts)
	p.pkts, p.free = bigger, make([]int32, cap(bigger))
	return int32(n)
}

func (p *pool) put(i int32) {
	p.live--
	p.free[p.n] = i
	p.n++
}
