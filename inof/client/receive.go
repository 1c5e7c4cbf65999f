package client

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
)

// Receive takes a message of an established session. The error tells of a message
// that was not expected; it changes nothing.
func (c *Client) Receive(reflector netip.Addr, m wire.Message, now time.Time) (Applied, error) {
	a := Applied{From: reflector, Origin: reflector}
	idx, ok := c.learned.index(reflector)
	if !ok {
		c.counters.UnknownPeer++
		return a, fmt.Errorf("%v of %v, which has no session", m.Type(), reflector)
	}
	s := &c.learned.list[idx]
	switch m := m.(type) {
	case *wire.Update:
		c.counters.UpdatesIn++
		a.Origin, a.FaultAt, a.SentAt, a.ReflectedAt = m.Origin, m.FaultAt, m.SentAt, m.ReflectedAt
		a.DecidedAt, a.ReflectorAt, a.ReceivedAt = m.DecidedAt, m.ReflectorAt, m.ReceivedAt
		err := c.apply(idx, m, &a, now)
		switch {
		case m.Partial:
			s.clean = false
		case m.Pos.Known():
			s.pos, s.clean = m.Pos, s.clean || s.synced
		case m.Origin == reflector:
			s.pos, s.clean = wire.Stamp{Epoch: m.Epoch, Seq: m.Seq}, s.clean || s.synced
		}
		if err != nil {
			return a, err
		}
	case *wire.EndOfSync:
		c.counters.Syncs++
		if !s.synced { // another one ends what the first one has spared
			s.kind, a.Synced = wire.ResumeKind{Done: true, Resumed: m.Resumed}, true
		}
		c.learned.complete(idx, m, &a, now)
		if !m.Resumed {
			c.counters.Swept += uint64(len(a.Hosts))
		}
		s.pos, s.clean = wire.Stamp{Epoch: m.Epoch, Seq: m.Seq}, true
	case *wire.Bound:
		a.Bound = c.bind(reflector, m)
	default:
		c.counters.UnexpectedTypes++
		return a, &wire.ProtocolError{Code: wire.CodeUnexpected, Where: m.Type().String(), Detail: "no message for a client"}
	}
	return a, nil
}

// apply takes the records of an Update. The error, a *RefusedError, tells of those for
// which there is no room.
func (c *Client) apply(idx int, u *wire.Update, a *Applied, now time.Time) error {
	var refused wire.RefusedError
	l, s := &c.learned, &c.learned.list[idx]
	c.counters.RecordsIn += uint64(u.Records())
	switch {
	case u.Refused == nil:
	default:
		if delete(c.refusals, s.id); !u.Refused.Empty() {
			c.refusals[s.id] = *u.Refused
		}
		if u.Refused.Again {
			c.again[s.id] = now
		}
	}
	l.hearZones(idx, s.trim(u, l.most, &refused), a)
	t := newTouched()
	for i := range u.Hosts {
		h := &u.Hosts[i]
		k := h.Host.HostKey
		if k.Device == c.self {
			if _, ours := c.hosts[k]; ours && h.Op == wire.Put {
				a.Taken = append(a.Taken, k)
			} else {
				c.counters.OwnIgnored++
			}
			continue
		}
		if refused.Add(s.hostFits(h, l.most)) {
			continue
		}
		switch stamp := u.StampOf(k.Device); {
		case h.Op == wire.Put:
			l.put(idx, &h.Host, stamp, t)
		case u.Origin == k.Device && h.Why != snsd.ReasonZoneChanged:
			l.endHost(idx, k, ending{stamp, now}, h.Why, t)
		default:
			l.withdraw(idx, k, stamp, h.Why, t)
		}
	}
	for i := range u.Downs {
		if d := &u.Downs[i]; d.Device == c.self {
			c.counters.OwnIgnored++
		} else {
			l.down(idx, d, u.StampOf(d.Device), t)
		}
	}
	l.decide(t, a, now)
	for i := range u.Fences {
		if f := &u.Fences[i]; f.Device == c.self {
			c.counters.OwnIgnored++
		} else {
			refused.Add(l.fence(idx, f, u.StampOf(f.Device), u.Origin == f.Device))
		}
	}
	l.decideFences(a)
	a.sort()
	c.counters.OverLimit += uint64(refused.Refused)
	if refused.Refused > 0 {
		return &refused
	}
	return nil
}
