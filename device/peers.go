package device

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// ClientUp says that a client's session to this reflector is established.
func (c *Core) ClientUp(dev netip.Addr, now time.Time) { c.ClientResumes(dev, nil, nil, now) }

// ClientResumes is ClientUp for a client whose Open says what it has seen of us, and
// to which ours said what we have seen of it.
func (c *Core) ClientResumes(dev netip.Addr, seen, offered *wire.Resume, now time.Time) {
	if c.refl == nil {
		return
	}
	c.keepClient(dev)
	c.fromReflector(c.refl.Resume(dev, seen, offered, now), now)
	c.peerEvent(dev, "client", "up", nil, now)
}

// ClientAsks says what a client that connects asks for: everything, or only what
// concerns it.
func (c *Core) ClientAsks(dev netip.Addr, everything bool) {
	if c.refl != nil {
		c.refl.SetInterest(dev, everything)
	}
}

// ClientDown says that a client's session ended; its records become stale.
func (c *Core) ClientDown(dev netip.Addr, why error, now time.Time) {
	if c.refl == nil {
		return
	}
	delete(c.reports, dev)
	c.fromReflector(c.refl.Leave(dev, now), now)
	c.keepLeft(dev)
	c.peerEvent(dev, "client", "down", why, now)
}

// PullChanges tells clients what has changed since the last call: those for whom ready says that
// their session can take it. Without CoreConfig.Reflector.Paced nothing waits for it.
func (c *Core) PullChanges(ready func(dev netip.Addr) bool, now time.Time) {
	if c.Waiting() {
		c.fromReflector(c.refl.Pull(c.orSelf(ready), now), now)
	}
}

// PullStep tells one of the clients that have more to be told than a message the next of it.
func (c *Core) PullStep(ready func(dev netip.Addr) bool, now time.Time) {
	if c.Owing() {
		c.fromReflector(c.refl.Step(c.orSelf(ready), now), now)
	}
}

// orSelf is ready, and that this device itself always is.
func (c *Core) orSelf(ready func(dev netip.Addr) bool) func(netip.Addr) bool {
	if ready == nil {
		return nil
	}
	return func(dev netip.Addr) bool { return dev == c.self || ready(dev) }
}

// Waiting reports whether PullChanges has something to tell, Owing whether PullStep may have.
func (c *Core) Waiting() bool { return c.refl != nil && c.refl.Waiting() }
func (c *Core) Owing() bool   { return c.refl != nil && c.refl.Owing() }

// Owed appends the clients that have more to be told than they were given.
func (c *Core) Owed(dst []netip.Addr) []netip.Addr {
	if c.refl == nil {
		return dst
	}
	return c.refl.Owed(dst)
}

// Losses are those among what PullChanges has to tell.
func (c *Core) Losses() reflector.Losses {
	if c.refl == nil {
		return reflector.Losses{}
	}
	return c.refl.Losses()
}

// Work is how many records the reflector has looked at because of the last message of a client,
// beside those that it has.
func (c *Core) Work() int {
	if c.refl == nil {
		return 0
	}
	return c.refl.Work()
}

// ClientDrained says that the session of a client that was not ready is.
func (c *Core) ClientDrained() {
	if c.refl != nil {
		c.refl.Drained()
	}
}

// ClientMessage takes a message of a client.
func (c *Core) ClientMessage(dev netip.Addr, m wire.Message, now time.Time) {
	if c.refl == nil {
		return
	}
	if report, ok := m.(*wire.Report); ok {
		c.reports[dev] = report
		return
	}
	if q, ok := m.(*wire.PathKeys); ok {
		c.answerPathKeys(dev, q)
		return
	}
	named := c.newNQNs(m)
	ds, err := c.refl.Receive(dev, m, now)
	c.measureReflected(m, len(ds) > 0 || c.refl.Waiting(), now)
	c.fromReflector(ds, now)
	c.judgeNQNs(named, now)
	c.protocolError(dev, err, now)
	if u, ok := m.(*wire.Update); ok && err == nil && c.client == nil { // else the client's side tells
		c.downEvents(u.Downs, now)
	}
}

// ReflectorUp says that the session to a reflector is established.
func (c *Core) ReflectorUp(dev netip.Addr, now time.Time) { c.ReflectorResumes(dev, nil, now) }

// ReflectorResumes is ReflectorUp for a reflector whose Open says what it has seen of us.
func (c *Core) ReflectorResumes(dev netip.Addr, seen *wire.Resume, now time.Time) {
	if c.client == nil {
		return
	}
	c.reflector = dev
	before := c.client.Epoch()
	c.fromClient(c.client.Resume(dev, seen, now), now)
	if c.client.Epoch() != before {
		c.out.Event(api.Event{Time: now, Kind: "error", Device: dev.String(), Fields: map[string]string{"room": "peer"},
			Text: fmt.Sprintf("reflector %s has seen a later start of this device: the clock was set back and the last epoch was lost; going on behind it", dev)})
	}
	c.pathSession(dev, true)
	c.peerEvent(dev, "reflector", "up", nil, now)
}

// ReflectorDown says that the session to a reflector ended. What is known stays in force.
func (c *Core) ReflectorDown(dev netip.Addr, why error, now time.Time) {
	if c.client == nil {
		return
	}
	c.pathSession(dev, false)
	a := c.client.Down(dev, now)
	c.apply(&a, now)
	c.peerEvent(dev, "reflector", "down", why, now)
}

// ReflectorMessage takes a message of a reflector.
func (c *Core) ReflectorMessage(dev netip.Addr, m wire.Message, now time.Time) {
	if c.client == nil {
		return
	}
	if k, ok := m.(*wire.PathKeys); ok {
		c.takePathKeys(dev, k)
		return
	}
	a, err := c.client.Receive(dev, m, now)
	if u, ok := m.(*wire.Update); ok {
		c.refusalEvent(dev, u.Refused, now)
	}
	c.apply(&a, now)
	c.protocolError(dev, err, now)
}

func (c *Core) peerEvent(dev netip.Addr, role, state string, why error, now time.Time) {
	text := fmt.Sprintf("session with %s %s is %s", role, dev, state)
	fields := map[string]string{"role": role, "state": state}
	if why != nil {
		text += ": " + why.Error()
		fields["error"] = why.Error()
	}
	c.out.Event(api.Event{Time: now, Kind: "peer", Text: text, Device: dev.String(), Fields: fields})
}

// protocolError counts and tells what was wrong with a peer's message.
func (c *Core) protocolError(dev netip.Addr, err error, now time.Time) {
	if err == nil {
		return
	}
	var refused *wire.RefusedError
	if errors.As(err, &refused) {
		c.counters.RecordsRefused += uint64(refused.Refused)
	} else {
		c.counters.ProtocolErrors++
	}
	c.Complain(now, "peer", dev.String(), fmt.Errorf("from device %s: %w", dev, err))
}

// flush sends what the client side has to tell.
func (c *Core) flush(now time.Time) {
	if c.client != nil {
		c.fromClient(c.client.Flush(now), now)
	}
}

// fromClient routes what this device tells its reflectors; itself it tells in process.
func (c *Core) fromClient(ds []wire.Delivery, now time.Time) {
	if len(ds) == 0 {
		return
	}
	c.out.ToReflectors(ds)
	c.measureOwn(ds, now)
	if c.refl == nil {
		return
	}
	for _, d := range ds {
		if slices.Contains(d.To, c.self) {
			named := c.newNQNs(d.Msg)
			out, err := c.refl.Receive(c.self, d.Msg, now)
			c.fromReflector(out, now)
			c.judgeNQNs(named, now)
			c.protocolError(c.self, err, now)
		}
	}
}

// fromReflector routes what this reflector tells its clients; itself it tells in process.
func (c *Core) fromReflector(ds []wire.Delivery, now time.Time) {
	if len(ds) == 0 {
		return
	}
	c.out.ToClients(ds)
	if c.client == nil {
		return
	}
	for _, d := range ds {
		if slices.Contains(d.To, c.self) {
			a, err := c.client.Receive(c.self, d.Msg, now)
			c.apply(&a, now)
			c.protocolError(c.self, err, now)
		}
	}
}

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
	c.changedBy(changes, c.causeOf(a), now)
	if a.Bound {
		c.rebind(now)
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
	c.measureApplied(a, now)
	c.appliedEvents(a, now)
	if s := c.client.Synced(); s != c.synced {
		c.synced = s
		c.notify.SetSynced(s)
	}
	c.watchAgreement(now)
	if a.Synced {
		c.out.Event(api.Event{Time: now, Kind: "sync", Device: a.From.String(),
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
		c.out.Event(api.Event{Time: now, Kind: "zone", Device: a.From.String(),
			Text:   fmt.Sprintf("zone %s: %s by reflector %s", z.Zone.Name, z.Op, a.From),
			Fields: map[string]string{"zone": z.Zone.Name, "change": z.Op.String()}})
	}
	for i := range a.Hosts {
		h := &a.Hosts[i]
		text := fmt.Sprintf("remote host %s on device %s port %s", h.Host.Addr, h.Host.Device, h.Host.HostKey.Port)
		if h.Op == wire.Withdraw {
			text += " is gone: " + h.Why.String()
		}
		c.out.Event(api.Event{Time: now, Kind: "host", Text: text, Device: h.Host.Device.String(), Port: h.Host.HostKey.Port,
			Addr: h.Host.Addr.String(), Fields: map[string]string{"change": h.Op.String()}})
	}
	c.downEvents(a.Downs, now)
}

// downEvents tells operators of other devices' hosts that cannot be reached, or can again.
func (c *Core) downEvents(downs []wire.DownRecord, now time.Time) {
	for i := range downs {
		d := &downs[i]
		text := fmt.Sprintf("device %s port %s: %s, %d host address(es) unreachable", d.Device, d.Port, d.Why, len(d.Addrs))
		if !d.Is() {
			text = fmt.Sprintf("device %s port %s: %d host address(es) can be reached again", d.Device, d.Port, len(d.Addrs))
		}
		c.out.Event(api.Event{Time: now, Kind: "fault", Text: text, Device: d.Device.String(), Port: d.Port,
			Fields: map[string]string{"change": d.Op().String(), "reason": d.Why.String()}})
	}
}
