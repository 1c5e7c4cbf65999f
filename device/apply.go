package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// apply brings what a reflector said into the Directory and has the local hosts
// told of the outcome, as one change.
func (c *Core) apply(a *client.Applied, now time.Time) {
	var changes zone.Changes
	add := func(more zone.Changes) { changes = append(changes, more...) }
	if s := a.Settings; s != nil {
		c.dir.SetHard(s.Hard)
		add(c.dir.SetAutoJoin(s.AutoJoin))
		add(c.meshSettings(s.BFD, now))
	}
	for _, z := range a.Reserved {
		if z.Op == wire.Put {
			add(c.dir.Reserve(z.Zone.Name, z.Zone.Members))
		}
	}
	for _, z := range a.Zones {
		if z.Op == wire.Put {
			add(c.dir.PutZone(z.Zone))
		} else {
			add(c.dir.DeleteZone(z.Zone.Name))
		}
	}
	for _, z := range a.Reserved {
		if z.Op == wire.Withdraw {
			add(c.dir.Reserve(z.Zone.Name, nil))
		}
	}
	for i := range a.Hosts {
		h := &a.Hosts[i]
		if h.Op == wire.Put {
			add(c.dir.PutHost(h.Host))
		} else {
			h.Why = c.whyGone(h)
			add(c.dir.RemoveHost(h.Host.HostKey, h.Why))
		}
	}
	for _, h := range a.Claims {
		add(c.dir.PutHost(h))
	}
	for _, d := range a.Downs {
		add(c.dir.SetDown(d.Device, d.Port, d.Addrs, d.Down))
	}
	fenced := make([][]netip.Addr, len(a.Fences))
	for i := range a.Fences {
		fenced[i] = c.fence.put(a.Fences[i].Key(), a.Fences[i].Peers)
	}
	c.changedBy(changes, c.causeOf(a), now)
	c.saveApplied(a)
	for i := range a.Fences {
		c.refenced(a.Fences[i].Key(), fenced[i], now)
	}
	if a.Bound {
		c.rebind(now)
		c.declared.stale = true
	}
	if len(a.Zones) > 0 || len(a.Reserved) > 0 || a.Settings != nil {
		c.rezoneEarly(now)
	}
	c.endRegistered(a, now)
	for i := range a.Hosts { // a rival claim changes nothing in the Directory
		c.contend(a.Hosts[i].Host.Addr, now)
	}
	for i := range a.Claims {
		c.contend(a.Claims[i].Addr, now)
	}
	for _, d := range a.Downs {
		if d.Is() {
			c.fallen(d.Device, d.Port, d.Addrs, now)
		}
	}
	c.measureApplied(a, now)
	c.appliedEvents(a, now)
	if s := c.client.Synced(); s != c.synced {
		c.synced = s
		c.notify.SetSynced(s)
	}
	c.watchAgreement(now)
	if a.Synced {
		c.event(api.Event{Time: now, Kind: "sync", Device: a.From.String(),
			Text:   fmt.Sprintf("synchronized with reflector %s", a.From),
			Fields: map[string]string{"sync": c.syncWith(a.From)}})
	}
}

// whyGone is why a host is withdrawn, zones being up to date. One that a full sync left out
// goes without a word: where no local host shares a zone with it the reflector need not speak
// of it, so that it has left their zones; else its device has it no more.
func (c *Core) whyGone(h *wire.HostRecord) snsd.Reason {
	if h.Why != snsd.ReasonNone {
		return h.Why
	}
	for _, z := range c.dir.ZonesOf(h.Host.Addr) {
		if c.dir.CountOf(c.self, z) > 0 {
			return snsd.ReasonAgedOut
		}
	}
	return snsd.ReasonZoneChanged
}

// appliedEvents tells operators what was learned; a full sync is told as one event above.
func (c *Core) appliedEvents(a *client.Applied, now time.Time) {
	if !c.client.Synced() {
		return
	}
	for _, z := range a.Zones {
		c.event(api.Event{Time: now, Kind: "zone", Device: a.From.String(),
			Text:   fmt.Sprintf("zone %s: %s by reflector %s", z.Zone.Name, z.Op, a.From),
			Fields: map[string]string{"zone": z.Zone.Name, "change": z.Op.String()}})
	}
	for i := range a.Hosts {
		h := &a.Hosts[i]
		text := fmt.Sprintf("remote host %s on device %s port %s", h.Host.Addr, h.Host.Device, h.Host.HostKey.Port)
		if h.Op == wire.Withdraw {
			text += " is gone: " + h.Why.String()
		}
		c.event(api.Event{Time: now, Kind: "host", Text: text, Device: h.Host.Device.String(), Port: h.Host.HostKey.Port,
			Addr: h.Host.Addr.String(), Fields: map[string]string{"change": h.Op.String()}})
	}
	c.downEvents(a.Downs, now)
}

// rezoneEarly has the addresses that asked told what other zones say of them.
func (c *Core) rezoneEarly(now time.Time) {
	var all zone.Changes
	for _, a := range c.early.sorted() {
		all = append(all, zone.Change{Addr: a, Peers: true})
	}
	c.changed(all, now, now)
}

// downEvents tells operators of other devices' hosts that cannot be reached, or can again.
func (c *Core) downEvents(downs []wire.DownRecord, now time.Time) {
	for _, d := range downs {
		c.say(func() api.Event { return downEvent(&d, now) })
	}
}

func downEvent(d *wire.DownRecord, now time.Time) api.Event {
	text := fmt.Sprintf("device %s port %s: %s, %d host address(es) unreachable", d.Device, d.Port, d.Why, len(d.Addrs))
	if !d.Is() {
		text = fmt.Sprintf("device %s port %s: %d host address(es) can be reached again", d.Device, d.Port, len(d.Addrs))
	}
	return api.Event{Time: now, Kind: "fault", Text: text, Device: d.Device.String(), Port: d.Port,
		Fields: map[string]string{"change": d.Op().String(), "reason": d.Why.String()}}
}
