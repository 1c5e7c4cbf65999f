package model

import "fmt"

// Receiver decides what a NIC answers to frames that come out of their turn. Those that come in
// turn are acknowledged, one answer for AckEvery of them.
type Receiver interface {
	// Ahead takes a frame beyond the expected one.
	Ahead(r RX, psn uint32) Reply
	// Filled is asked when the expected frame has come and RX.Fill has moved on over those
	// that were kept; more tells that there are others beyond the next hole.
	Filled(r RX, more bool) Reply
}

// Reply is an answer to a frame.
type Reply uint8

// Answers.
const (
	ReplyNone Reply = iota // nothing now
	ReplyAck               // what is expected, at once
	ReplyNack              // send again from what is expected on
)

// ReceiverSettings make the Receiver of a NIC; it keeps no state of its own, that is in RX.
type ReceiverSettings interface {
	Settings
	Receiver(mtu int32) Receiver
}

// RX is the receiving end of a queue pair.
type RX struct {
	s   *Sim
	r   *rxqp
	gap Time // least time between NACKs for one frame
}

// Expect gives the frame that comes next in turn.
func (x RX) Expect() uint32 { return x.r.expect }

// Keep stores a frame that came before its turn, if it is not too far ahead.
func (x RX) Keep(psn uint32) { x.r.keep(psn) }

// NackDue reports whether a NACK for the expected frame may be sent, and takes it as sent.
func (x RX) NackDue() bool {
	if x.r.lastNack == x.r.expect && x.s.now < x.r.nackAt {
		return false
	}
	x.Asked()
	return true
}

// Asked notes that the expected frame was asked for with this answer.
func (x RX) Asked() { x.r.lastNack, x.r.nackAt = x.r.expect, x.s.now+x.gap }

var goBackNMechanism = Mechanism{Part: PartReceiver, Kind: "go-back-n",
	About: "forgets frames that come before their turn and asks once for the expected one",
	New:   func() Settings { return &GoBackN{} }}

// GoBackN is what most RDMA NICs do.
type GoBackN struct{}

// Check has nothing to refuse.
func (*GoBackN) Check() error { return nil }

// Receiver gives itself: it has no values.
func (g *GoBackN) Receiver(int32) Receiver { return g }

// Ahead asks again.
func (*GoBackN) Ahead(r RX, _ uint32) Reply {
	if r.NackDue() {
		return ReplyNack
	}
	return ReplyNone
}

// Filled cannot be: nothing is kept.
func (*GoBackN) Filled(RX, bool) Reply { return ReplyAck }

var selectiveMechanism = Mechanism{Part: PartReceiver, Kind: "selective-repeat",
	About: "keeps frames that come before their turn and asks for one hole after the other",
	New:   func() Settings { return &Selective{} }}

// Selective is selective repeat.
type Selective struct{}

// Check has nothing to refuse.
func (*Selective) Check() error { return nil }

// Receiver gives itself: it has no values.
func (g *Selective) Receiver(int32) Receiver { return g }

// Ahead keeps the frame.
func (*Selective) Ahead(r RX, psn uint32) Reply {
	r.Keep(psn)
	if r.NackDue() {
		return ReplyNack
	}
	return ReplyNone
}

// Filled asks for the next hole.
func (*Selective) Filled(r RX, more bool) Reply {
	if !more {
		return ReplyAck
	}
	r.Asked()
	return ReplyNack
}

var reorderMechanism = Mechanism{Part: PartReceiver, Kind: "reorder",
	About: "keeps frames that overtook others within a window and takes them for lost only beyond it",
	New:   func() Settings { return &Reorder{Window: 64_000} }}

// Reorder is a NIC with a reorder window, for fabrics that spray.
type Reorder struct {
	Window Size `yaml:"window" about:"bytes by which a frame may overtake the expected one before that is taken for lost"`
}

// Check refuses windows that the bitmap does not hold.
func (g *Reorder) Check() error {
	if g.Window < 1 || g.Window > aheadFrames*64 {
		return fmt.Errorf("window of %d bytes, want 1..%d", g.Window, aheadFrames*64)
	}
	return nil
}

// Receiver counts the window in frames.
func (g *Reorder) Receiver(mtu int32) Receiver {
	return reorder(min(max(1, int64(g.Window)/int64(mtu)), aheadFrames-1))
}

type reorder uint32

// Ahead keeps the frame, and asks for the expected one when this one is too far beyond.
func (w reorder) Ahead(r RX, psn uint32) Reply {
	r.Keep(psn)
	if psn-r.Expect() > uint32(w) && r.NackDue() {
		return ReplyNack
	}
	return ReplyNone
}

// Filled acknowledges what is whole.
func (reorder) Filled(RX, bool) Reply { return ReplyAck }

// receiverOf gives the number of a receiver among those at work.
func (s *Sim) receiverOf(set ReceiverSettings, mtu int32) uint8 {
	for i := range s.receivers {
		if s.receivers[i].set == set && s.receivers[i].mtu == mtu {
			return uint8(i)
		}
	}
	s.receivers = append(s.receivers, receiver{set, mtu, set.Receiver(mtu)})
	return uint8(len(s.receivers) - 1)
}

type receiver struct {
	set ReceiverSettings
	mtu int32
	rcv Receiver
}

// How NICs of the two built-in kinds receive.
var (
	goBackN   = &GoBackN{}
	selective = &Selective{}
)

// receiver gives the settings by which a NIC receives.
func (p *NICProfile) receiver() ReceiverSettings {
	switch {
	case p.Receiver != nil:
		return p.Receiver
	case p.Selective:
		return selective
	}
	return goBackN
}
