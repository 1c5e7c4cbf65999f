package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
)

// askPresent sends the questions that are due, and takes the address from who does not answer.
func (c *Core) askPresent(now time.Time) {
	send, lost := c.presence.Due(now)
	for _, k := range send {
		p := c.ports[k.Port]
		if p == nil || !p.present {
			c.presence.Drop(k)
			continue
		}
		if c.presence.LastTry(k) { // behind a VLAN tag it hears notices only
			c.notify.Nudge(k.Addr, now)
		}
		c.out.SendFrame(k.Port, presence.Question(p.MAC, k.Addr))
	}
	for _, k := range lost {
		if c.rivalled(k) {
			c.yield(k, now)
		} else {
			c.contend(k.Addr, now)
		}
	}
}

// yield withdraws the host that has an address on a port, which passes to another claim. If
// the host is there after all its next registration is a claim of its own.
func (c *Core) yield(k presence.Key, now time.Time) {
	macs := c.table.Claimants(k.Port, k.Addr)
	if len(macs) == 0 {
		return
	}
	c.counters.AddressesMoved++
	c.event(api.Event{Time: now, Kind: "conflict", Port: k.Port, Addr: k.Addr.String(),
		Text:   fmt.Sprintf("address %s has moved: %s on port %s did not answer for it, and another host claims it", k.Addr, macs[0], k.Port),
		Fields: map[string]string{"change": "moved", "mac": macs[0].String()}})
	c.neighboursChanged(c.table.Forget(k.Port, k.Addr, macs[0], snsd.ReasonIPChanged, now), now)
}

// receiveAnswer takes a frame by which a host may say that it has an address.
func (c *Core) receiveAnswer(f *fabric.Frame, now time.Time) {
	a, err := presence.ParseAnswer(f.EtherType, f.Src, f.Payload)
	if err != nil {
		c.counters.AnswersIgnored++
		return
	}
	c.present(f.Port, a.Addr, a.MAC, now)
	c.answered(f, a, now)
}
