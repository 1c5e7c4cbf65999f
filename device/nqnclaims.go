package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone"
)

// What a host says of its NQN is a claim: any host can say any. This file tells operators of
// a reflector of names that several machines say, and of hosts that say one that zones bind
// elsewhere.

// newNQNs are the hosts of a message that say an NQN which they did not say before.
func (c *Core) newNQNs(m wire.Message) (list []zone.Host) {
	u, ok := m.(*wire.Update)
	if !ok {
		return nil
	}
	for i := range u.Hosts {
		if h := &u.Hosts[i].Host; u.Hosts[i].Op == wire.Put && h.NQN != "" && !c.refl.Directory().Says(h.HostKey, h.NQN) {
			list = append(list, *h)
		}
	}
	return list
}

// judgeNQNs tells of hosts that were taken, and whose NQN is another's too, or bound elsewhere.
func (c *Core) judgeNQNs(list []zone.Host, now time.Time) {
	dir := c.refl.Directory()
	for _, h := range list {
		if !dir.Says(h.HostKey, h.NQN) {
			continue // it was refused
		}
		if dir.BoundElsewhere(h) {
			c.counters.NQNsElsewhere++
			c.nqnEvent(h, now, "bound-elsewhere", fmt.Sprintf("host %s on port %s of device %s says NQN %s, which zones bind to other places: it is no member by that name",
				h.Addr, h.HostKey.Port, h.Device, h.NQN))
			continue
		}
		if o, second := dir.OtherByNQN(h); second {
			c.counters.NQNsShared++
			c.nqnEvent(h, now, "second-holder", fmt.Sprintf("host %s on port %s of device %s says NQN %s, as %s on port %s of device %s does: two ports of one host, or a host that passes for another",
				h.Addr, h.HostKey.Port, h.Device, h.NQN, o.Addr, o.HostKey.Port, o.Device))
		}
	}
}

func (c *Core) nqnEvent(h zone.Host, now time.Time, what, text string) {
	skipped, ok := c.limiter.pass("nqn "+what+" "+h.Device.String(), now)
	if !ok {
		return
	}
	if skipped > 0 {
		text += fmt.Sprintf(" (and %d more like it were not shown)", skipped)
	}
	c.event(api.Event{Time: now, Kind: "host", Device: h.Device.String(), Port: h.HostKey.Port, Addr: h.Addr.String(), Text: text,
		Fields: map[string]string{"change": what, "nqn": h.NQN}})
}
