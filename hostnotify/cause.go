package hostnotify

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/latency"
	"github.com/openinof/inof/snsd"
)

// Cause is the event behind a change and its way to this device: what an operator is
// shown, and what the figures are made of. Times that are not known are zero. Those of
// other devices are by their clocks.
type Cause struct {
	// Origin is the device that saw the event; zero: this one.
	Origin    netip.Addr `json:"origin,omitzero"`
	FaultAt   time.Time  `json:"fault_at,omitzero"` // seen; zero when it was no event (a query, a registration)
	DecidedAt time.Time  `json:"origin_decided_at,omitzero"`
	SentAt    time.Time  `json:"origin_sent_at,omitzero"`
	// ReflectorAt and ReflectedAt are when the reflector read the message and when it
	// passed it on, ReceivedAt when this device read it.
	ReflectorAt time.Time `json:"reflector_at,omitzero"`
	ReflectedAt time.Time `json:"reflected_at,omitzero"`
	ReceivedAt  time.Time `json:"received_at,omitzero"`
}

// cause is a Cause by our clock; one for all pairs that an event concerns.
type cause struct {
	Cause
	at     stamp // of the event
	skewed bool  // that cannot be right: the clocks of the devices differ
}

// cause gives nil when there was no event.
func (n *Notifier) cause(by Cause, now time.Time) *cause {
	if by.FaultAt.IsZero() {
		return nil
	}
	got := by.ReceivedAt
	if got.IsZero() {
		got = now
	}
	// Up to here by the clocks of two devices, from here on by our monotonic one.
	before := got.Sub(by.FaultAt)
	return &cause{
		Cause:  by,
		at:     n.now - stamp(now.Sub(got)) - stamp(before),
		skewed: before < 0 || by.skewed(got),
	}
}

// skewed reports whether the event's time cannot be right by our clock. Only the ways
// from one device to another tell, both together, since a reflector's clock does not
// matter: what takes long within a device is slow.
func (by *Cause) skewed(got time.Time) bool {
	if !by.Origin.IsValid() {
		return false
	}
	left := by.FaultAt // the origin, by its clock
	for _, at := range []time.Time{by.DecidedAt, by.SentAt} {
		if at.IsZero() {
			continue
		}
		if at.Before(left) {
			return true
		}
		left = at
	}
	ways := got.Sub(left)
	if !by.ReflectorAt.IsZero() && !by.ReflectedAt.IsZero() {
		ways -= max(0, by.ReflectedAt.Sub(by.ReflectorAt))
	}
	return latency.Skewed(ways)
}

// Latencies are the distributions of what a notice takes. Left out, and counted as
// held, are notices whose host had no usable port meanwhile: they wait for its cable, and
// for how long is a distribution of its own.
type Latencies struct {
	Frame latency.Series // from the decision here to the frame that was handed over
	Ack   latency.Series // from that to the ack, retries included
	// The same of notices whose host had no usable port meanwhile.
	HeldFrame, HeldAck latency.Series
	// From the event to the frame and to the ack, by the reason told; see ReasonSlot.
	Notice, Acked [ReasonSlots]latency.Series
}

// ReasonSlots is how many reasons are told apart.
const ReasonSlots = int(snsd.ReasonBFDDown) + 2

// ReasonSlot is the index of what was told: 0 for an active notice, the reason's number
// for an inactive one, the last for a reason that has no number of its own.
func ReasonSlot(state snsd.State, r snsd.Reason) int {
	switch {
	case state == snsd.Active:
		return 0
	case r == snsd.ReasonNone:
		return ReasonSlots - 1
	}
	return min(int(r), ReasonSlots-1)
}

// Handed makes known when a frame of the last Poll was handed to the dataplane: only
// then are its notices measured. Without it they count as sent by that Poll.
func (n *Notifier) Handed(o Out, at time.Time) {
	now := n.stamp(at)
	for _, p := range n.packed[o.first:o.end] {
		p.told.at, p.flight.left = now, now
		n.history.sent(p.told.rec, at)
		n.measureFrame(p)
	}
}

func (n *Notifier) measureFrame(p *pair) {
	total := &n.latency.Notice[ReasonSlot(p.told.state, p.told.reason)]
	if p.told.life != p.sub.life {
		n.latency.Frame.Hold()
		n.latency.HeldFrame.Record(time.Duration(p.told.at - p.waits.since))
		if p.told.by != nil {
			total.Hold()
		}
		return
	}
	n.latency.Frame.Record(time.Duration(p.told.at - p.waits.since))
	switch by := p.told.by; {
	case by == nil && !p.told.isActive():
		n.counters.Unmeasured++
	case by == nil:
	case by.skewed:
		n.counters.ClockSkewed++
		total.Skip()
	default:
		total.Record(time.Duration(p.told.at - by.at))
	}
}

func (n *Notifier) measureAck(p *pair, at stamp) {
	by := p.told.by
	p.told.by = nil
	if p.told.at == never { // told before a restart
		return
	}
	total := &n.latency.Acked[ReasonSlot(p.told.state, p.told.reason)]
	if p.told.life != p.sub.life {
		n.latency.Ack.Hold()
		n.latency.HeldAck.Record(time.Duration(at - p.told.at))
		if by != nil {
			total.Hold()
		}
		return
	}
	n.latency.Ack.Record(time.Duration(at - p.told.at))
	switch {
	case by == nil:
	case by.skewed:
		total.Skip()
	default:
		total.Record(time.Duration(at - by.at))
	}
}
