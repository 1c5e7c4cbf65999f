package model

import (
	"fmt"
	"math/bits"
)

var tcpMechanism = Mechanism{Part: PartCongestion, Kind: "tcp",
	About: "a window of TCP: slow start, NewReno or CUBIC, fast retransmit after three duplicate ACKs; not paced",
	New:   func() Settings { return &TCP{First: 10, Most: 4096} },
	Sets: []Set{
		{"reno", "NewReno (RFC 5681, RFC 6582)", func() Settings { return &TCP{First: 10, Most: 4096} }},
		{"cubic", "CUBIC (RFC 9438)", func() Settings { return &TCP{First: 10, Most: 4096, Cubic: true} }},
	}}

// TCP holds the parameters of a plain TCP sender. Its NIC needs a time-out.
type TCP struct {
	First int32 `yaml:"first-window" about:"frames in flight at the start"`
	Most  int32 `yaml:"most" about:"greatest window in frames: what the receiver offers"`
	Cubic bool  `yaml:"cubic" about:"grows as CUBIC does instead of by a frame a round trip"`
}

// Check refuses windows that cannot be.
func (c *TCP) Check() error {
	if c.First < 1 || c.Most < c.First || c.Most > aheadFrames {
		return fmt.Errorf("tcp: windows of %d and %d frames, want 1 <= first-window <= most <= %d", c.First, c.Most, aheadFrames)
	}
	return nil
}

// Marking is none.
func (c *TCP) Marking() ECN { return ECN{} }

// Answer: frames that cannot be marked, and duplicate ACKs.
func (c *TCP) Answer() Answer { return Answer{NoECT: true, Receiver: duplicateACKs} }

// Controller begins without flows.
func (c *TCP) Controller() Controller { return &tcpSender{par: c} }

type tcpSender struct {
	hearsNothing
	par *TCP
	qps []tcp
}

// tcp is one connection; windows in 1/256 of a frame.
type tcp struct {
	cwnd, ssthresh int64
	dups           uint32
	recover        uint32 // recovery ends with an ACK beyond
	recovering     bool
	epoch          Time // CUBIC: of the last cut
	top            int64
	st             ControlState
}

const tcpFrame = 256

func (t *tcpSender) Hears() Hear { return HearAcks }

func (t *tcpSender) Open(q QP) {
	t.qps = perQP(t.qps, q)
	t.qps[q.ID()] = tcp{cwnd: int64(t.par.First) * tcpFrame, ssthresh: int64(t.par.Most) * tcpFrame}
	q.SetWindow(t.par.First)
}

// Ack grows the window, or counts duplicates.
func (t *tcpSender) Ack(q QP, a Ack) {
	c := &t.qps[q.ID()]
	switch {
	case a.New == 0 && a.Psn == q.Unacked() && a.Psn < q.Next():
		c.dups++
		if c.recovering {
			c.cwnd += tcpFrame
		} else if c.dups == 3 {
			t.cut(q, c, int64(q.Next()-a.Psn)*tcpFrame/2)
			c.recovering, c.recover = true, q.Next()
			c.cwnd = c.ssthresh + 3*tcpFrame
			q.Resend()
		}
	case a.New == 0:
		return
	case c.recovering && a.Psn < c.recover: // a part: the next hole
		c.cwnd = max(c.cwnd-int64(a.New)*tcpFrame+tcpFrame, tcpFrame)
		q.Resend()
	case c.recovering:
		c.recovering, c.dups = false, 0
		c.cwnd = c.ssthresh
	default:
		c.dups = 0
		t.grow(q, c, int64(a.New))
	}
	t.window(q, c)
}

func (t *tcpSender) grow(q QP, c *tcp, frames int64) {
	c.st.Ups++
	switch {
	case c.cwnd < c.ssthresh:
		c.cwnd += frames * tcpFrame
	case t.par.Cubic:
		if target := c.cubic(q.Now()); target > c.cwnd {
			c.cwnd += max(1, (target-c.cwnd)*frames*tcpFrame/c.cwnd)
		} else {
			c.cwnd += max(1, frames*tcpFrame*tcpFrame/(100*c.cwnd))
		}
		c.cwnd += frames * tcpFrame * tcpFrame / c.cwnd / 2 // not slower than Reno in short networks
	default:
		c.cwnd += max(1, frames*tcpFrame*tcpFrame/c.cwnd)
	}
}

// cubic gives W(t) = 0.4 (t - K)^3 + top in 1/256 frames, t in seconds, K = cbrt(0.75 top):
// in integers, so that every machine has the same window.
func (c *tcp) cubic(now Time) int64 {
	ms := int64((now - c.epoch) / Millisecond)
	k := cbrt(uint64(c.top) * 3 / 4 * 1_000_000_000 / tcpFrame) // ms: cbrt(frames) x 1000
	d := min(max(ms-int64(k), -100_000), 100_000)
	return c.top + d*d*d/1_000_000*tcpFrame*2/5/1000
}

// cbrt gives the integer cube root.
func cbrt(v uint64) uint64 {
	if v == 0 {
		return 0
	}
	x := uint64(1) << ((bits.Len64(v) + 2) / 3)
	for {
		y := (2*x + v/(x*x)) / 3
		if y >= x {
			return x
		}
		x = y
	}
}

func (t *tcpSender) cut(q QP, c *tcp, to int64) {
	c.st.Cuts++
	c.epoch, c.top = q.Now(), c.cwnd
	if t.par.Cubic {
		to = c.cwnd * 7 / 10
	}
	c.ssthresh = max(to, 2*tcpFrame)
}

// TimedOut begins again with one frame.
func (t *tcpSender) TimedOut(q QP) {
	c := &t.qps[q.ID()]
	t.cut(q, c, c.cwnd/2)
	c.cwnd, c.dups, c.recovering = tcpFrame, 0, false
	t.window(q, c)
}

func (t *tcpSender) window(q QP, c *tcp) {
	c.cwnd = min(c.cwnd, int64(t.par.Most)*tcpFrame)
	q.SetWindow(int32(max(1, c.cwnd/tcpFrame)))
}

func (t *tcpSender) State(q QP) ControlState { return t.qps[q.ID()].st }

var duplicateACKsMechanism = Mechanism{Part: PartReceiver, Kind: "duplicate-acks",
	About: "keeps frames that come before their turn and acknowledges again what is whole, as TCP does",
	New:   func() Settings { return &DuplicateACKs{} }}

// DuplicateACKs is TCP's receiver.
type DuplicateACKs struct{}

var duplicateACKs = &DuplicateACKs{}

// Check has nothing to refuse.
func (*DuplicateACKs) Check() error { return nil }

// Receiver gives itself: it has no values.
func (g *DuplicateACKs) Receiver(int32) Receiver { return g }

// Ahead acknowledges what is whole.
func (*DuplicateACKs) Ahead(r RX, psn uint32) Reply {
	r.Keep(psn)
	return ReplyAck
}

// Filled acknowledges what is whole.
func (*DuplicateACKs) Filled(RX, bool) Reply { return ReplyAck }
