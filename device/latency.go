package device

import (
	"cmp"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/latency"
	"github.com/openinof/inof/snsd"
)

// Stages lists the stages in the order of the way; of those told apart by reason
// only the ones that have happened.
func (c *Core) Stages() []api.Stage {
	list := []api.Stage{}
	add := func(scope api.Scope, name, from, to string, between bool, s *latency.Series) {
		list = append(list, stageOf(api.Stage{Scope: scope, Name: name, From: from, To: to, Between: between}, s))
	}
	t := &c.stages
	if c.client != nil {
		add(api.ScopeOwn, "decided", "fault seen", "taken up by this device", false, &t.ownDecided)
		add(api.ScopeOwn, "sent", "taken up by this device", "handed to the reflectors' sessions", false, &t.ownSent)
	}
	if c.refl != nil {
		add(api.ScopeReflector, "taken", "read from a client", "taken up by the reflector", false, &t.taken)
		add(api.ScopeReflector, "reflected", "read from a client", "handed to all clients' sessions", false, &t.reflected)
	}
	if c.notify == nil {
		return list
	}
	n := c.notify.Latencies()
	add(api.ScopeTold, "decided", "fault seen", "taken up by its device", false, &t.decided)
	add(api.ScopeTold, "sent", "taken up by its device", "handed to its sessions", false, &t.sent)
	add(api.ScopeTold, "at-reflector", "handed to its sessions", "read by the reflector", true, &t.atReflector)
	add(api.ScopeTold, "reflected", "read by the reflector", "passed on", false, &t.passedOn)
	add(api.ScopeTold, "received", "passed on", "read by this device", true, &t.received)
	add(api.ScopeTold, "applied", "read by this device", "taken up by it", false, &t.applied)
	add(api.ScopeTold, "frame", "taken up by this device", "frame handed to the port", false, &n.Frame)
	add(api.ScopeTold, "ack", "frame handed to the port", "ack received", false, &n.Ack)
	add(api.ScopeTold, "held-frame", "taken up by this device", "frame handed to the port, which was down for the host", false, &n.HeldFrame)
	add(api.ScopeTold, "held-ack", "frame handed to the port", "ack received, the port was down meanwhile", false, &n.HeldAck)
	return append(append(list, byReason("notice", "frame handed to the port", &n.Notice)...),
		byReason("acked", "ack received", &n.Acked)...)
}

func byReason(name, to string, slots *[hostnotify.ReasonSlots]latency.Series) []api.Stage {
	var list []api.Stage
	for i := range slots {
		if s := &slots[i]; !s.Empty() {
			list = append(list, stageOf(api.Stage{Scope: api.ScopeTold, Name: name, From: "fault seen", To: to, Reason: slotName(i), Between: true}, s))
		}
	}
	return list
}

// slotName is the inverse of hostnotify.ReasonSlot, for people.
func slotName(i int) string {
	switch i {
	case 0:
		return snsd.Active.String()
	case hostnotify.ReasonSlots - 1:
		return "other"
	}
	return snsd.Reason(i).String()
}

func stageOf(st api.Stage, s *latency.Series) api.Stage {
	x := s.Summary()
	st.Total, st.Newest = quantilesOf(x.Total), quantilesOf(x.Recent)
	st.Sum, st.Buckets, st.Skewed, st.Held = x.Sum.Seconds(), x.Cumulative, x.Skewed, x.Held
	return st
}

func quantilesOf(f latency.Figures) api.Quantiles {
	return api.Quantiles{Count: f.Count, P50: fineMicros(f.P50), P90: fineMicros(f.P90), P99: fineMicros(f.P99), Max: fineMicros(f.Max)}
}

// fineMicros are microseconds to a tenth.
func fineMicros(d time.Duration) float64 { return float64(d.Round(100)/100) / 10 }

func (c *Core) Clocks() []api.Clock {
	list := []api.Clock{}
	for dev, s := range c.stages.clocks {
		list = append(list, api.Clock{Reflector: dev, Ahead: fineMicros(s.ahead), RoundTrip: fineMicros(s.roundTrip), Measured: s.at})
	}
	slices.SortFunc(list, func(a, b api.Clock) int {
		return cmp.Or(a.Reflector.Compare(b.Reflector), a.Measured.Compare(b.Measured))
	})
	return list
}

// Unmeasured is how many notices had no time of their event.
func (c *Core) Unmeasured() uint64 {
	if c.notify == nil {
		return 0
	}
	return c.notify.Counters().Unmeasured
}

// noticeTimes adds the way of the event to what is shown of a notice.
func noticeTimes(a *api.Notice, n *hostnotify.Notice) {
	a.Origin = n.Origin
	a.FaultAt, a.DecidedAt, a.SentAt = stamp(n.FaultAt), stamp(n.DecidedAt), stamp(n.SentAt)
	a.ReflectorAt, a.ReflectedAt, a.ReceivedAt = stamp(n.ReflectorAt), stamp(n.ReflectedAt), stamp(n.ReceivedAt)
	a.Queued, a.Sent, a.Acked = stamp(n.Decided), stamp(n.Sent), stamp(n.Acked)
	a.SentToAcked, a.Skewed = micros(n.Sent, n.Acked), n.Skewed
	if !n.Skewed {
		a.FaultToSent, a.FaultToAcked = micros(n.FaultAt, n.Sent), micros(n.FaultAt, n.Acked)
	}
}
