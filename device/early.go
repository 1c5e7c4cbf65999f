package device

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A host whose address has changed may ask for its zones at once and register the new
// address later: the existing agent up to 113 s. If the frame is of a machine that is registered on
// that port, the new address is told what the zones that are known here say of it. Nobody
// is told of it, here or elsewhere, before it registers: it is in no table of hosts.

const (
	// EarlyLife is how long such an address has to register before it is forgotten.
	EarlyLife = 150 * time.Second
	// MaxEarly is how many of them a port may have.
	MaxEarly = 16
)

// early is the Directory as the notifier asks it: with the addresses that asked before they
// registered, but only for whom they share zones with.
type early struct {
	*zone.Directory
	hosts map[netip.Addr]earlyHost
	due   time.Time // when the first of them is forgotten; zero: there are none
}

type earlyHost struct {
	zone.Host
	until time.Time // when it is forgotten; zero once it has registered
	// registered: it has, and no reflector has taken it in yet. They may have taken the hosts of
	// its zones from here when the old address left, which is no news to the new one.
	registered bool
}

// Share implements hostnotify.Directory.
func (e *early) Share(a, b netip.Addr) bool {
	if h, asked := e.hosts[a]; asked && !h.registered {
		return e.ShareFor(h.Host, b)
	}
	return e.Directory.Share(a, b)
}

// Peers implements hostnotify.Directory. Those of a known host include the ones that asked: they
// are to hear of it, while it hears of nobody who is not known. One that asked here may be known
// where it was before: who shares zones with it there is to hear of it.
func (e *early) Peers(addr netip.Addr) iter.Seq[netip.Addr] {
	if h, asked := e.hosts[addr]; asked && !h.registered {
		return func(yield func(netip.Addr) bool) {
			for p := range e.PeersFor(h.Host) {
				if !yield(p) {
					return
				}
			}
			for p := range e.Directory.Peers(addr) {
				if !e.ShareFor(h.Host, p) && !yield(p) {
					return
				}
			}
		}
	}
	if len(e.hosts) == 0 {
		return e.Directory.Peers(addr)
	}
	return func(yield func(netip.Addr) bool) {
		for p := range e.Directory.Peers(addr) {
			if !yield(p) {
				return
			}
		}
		for _, a := range e.sorted() {
			if h := e.hosts[a]; !h.registered && e.ShareFor(h.Host, addr) && !yield(a) {
				return
			}
		}
	}
}

func (e *early) sorted() []netip.Addr {
	return slices.SortedFunc(maps.Keys(e.hosts), netip.Addr.Compare)
}

// dropEarly ends it for an address that asked.
func (c *Core) dropEarly(addr netip.Addr) {
	delete(c.early.hosts, addr)
	c.early.plan()
	c.forgetEarly(addr)
}

func (e *early) plan() {
	e.due = time.Time{}
	for _, h := range e.hosts {
		e.due = sooner(e.due, h.until)
	}
}

// mayAsk reports whether a zone query for an address that is not registered on the port is
// answered, and then has the notifier know it.
func (c *Core) mayAsk(addr netip.Addr, f *fabric.Frame, now time.Time) bool {
	if h, asked := c.early.hosts[addr]; asked && h.HostKey.Port == f.Port && h.MAC == f.Src {
		c.counters.QueriesEarly++
		return true
	}
	if at := c.View().Attachments(addr); len(at) > 0 {
		c.counters.QueriesHeld++
		c.refuseQuery(addr, f, fmt.Sprintf("the host %s on device %s port %s has it", at[0].MAC, at[0].Device, at[0].HostKey.Port), now)
		return false
	}
	machine := slices.DeleteFunc(c.table.Registered(f.Port, f.Src), func(h lldp.HostInfo) bool {
		return !h.Subscribes || h.MAC != f.Src || !c.dir.Holds(zone.HostKey{Addr: h.Addr, Device: c.self, Port: f.Port})
	})
	many := 0
	for _, h := range c.early.hosts {
		if h.HostKey.Port == f.Port {
			many++
		}
	}
	_, elsewhere := c.early.hosts[addr]
	var why string
	switch {
	case len(machine) == 0:
		why = "no host is registered there with that MAC address"
	case elsewhere:
		why = "another host asked for it a moment ago"
	case many >= MaxEarly:
		why = fmt.Sprintf("%d addresses of that port have asked and not registered, which is the limit", many)
	case snsd.CheckAddr(addr) != nil:
		why = "it is no host address"
	}
	asked := zone.Host{HostKey: zone.HostKey{Addr: addr, Device: c.self, Port: f.Port}, MAC: f.Src, Subscribes: true}
	if why == "" {
		asked.Service = serviceNow(machine)
		why = c.client.Outside(&asked)
	}
	if why != "" {
		c.counters.QueriesForeign++
		c.refuseQuery(addr, f, why, now)
		return false
	}
	c.counters.QueriesEarly++
	c.addEarly(asked, now)
	return true
}

// serviceNow is what a machine is now, by its registrations, the last heard first: its agent may
// have been started with another role, and has not repeated the other ones. An NQN has to be that
// of all, since zones name it.
func serviceNow(machine []lldp.HostInfo) snsd.Service {
	s := machine[0].Service
	if slices.ContainsFunc(machine, func(h lldp.HostInfo) bool { return h.NQN != s.NQN }) {
		s.NQN = ""
	}
	return s
}

func (c *Core) refuseQuery(addr netip.Addr, f *fabric.Frame, why string, now time.Time) {
	c.Complain(now, "query", f.Port, fmt.Errorf("zone query for %s from %s on port %s is not answered: %s; it is once the address is registered by LLDP", addr, f.Src, f.Port, why))
}

// addEarly makes a new address of a known machine one that is told.
func (c *Core) addEarly(h zone.Host, now time.Time) {
	until := now.Add(EarlyLife)
	c.early.hosts[h.Addr] = earlyHost{Host: h, until: until}
	c.early.due = sooner(c.early.due, until)
	c.keepEarly(&h)
	c.notify.SubscribeAs(h.Addr, h.HostKey.Port, h.MAC, h.Role, now)
	if c.restoring {
		return
	}
	c.event(api.Event{Time: now, Kind: "host", Port: h.HostKey.Port, Addr: h.Addr.String(),
		Text: fmt.Sprintf("host %s (%s) on port %s asks for its zones before it has registered: it is told what they say, others hear of it when it registers",
			h.Addr, h.MAC, h.HostKey.Port),
		Fields: map[string]string{"change": "asked", "mac": h.MAC.String()}})
}

// restoreEarly goes on with the hosts that had asked when the last process ended, where their
// machine is known. How long ago that was nobody knows: each has the whole of its time again.
func (c *Core) restoreEarly(list []KeptEarly, now time.Time) {
	for _, x := range list {
		if c.ports[x.Port] == nil || c.localAddrs[x.Addr] > 0 {
			c.forgetEarly(x.Addr)
			continue
		}
		c.addEarly(zone.Host{HostKey: zone.HostKey{Addr: x.Addr, Device: c.self, Port: x.Port}, MAC: x.MAC, Subscribes: true, Service: x.Service}, now)
	}
}

// endEarly forgets the addresses that have not registered in time.
func (c *Core) endEarly(now time.Time) {
	if c.early.due.IsZero() || now.Before(c.early.due) {
		return
	}
	for _, a := range c.early.sorted() {
		h := c.early.hosts[a]
		if h.registered || now.Before(h.until) {
			continue
		}
		c.dropEarly(a)
		c.notify.Unsubscribe(a, h.HostKey.Port, now)
		c.event(api.Event{Time: now, Kind: "host", Port: h.HostKey.Port, Addr: a.String(),
			Text:   fmt.Sprintf("host %s (%s) on port %s asked for its zones and has not registered within %s: it is told nothing more", a, h.MAC, h.HostKey.Port, EarlyLife),
			Fields: map[string]string{"change": "not-registered", "mac": h.MAC.String()}})
	}
}

// noLongerEarly follows an address that is known now, or known of another host. One that has
// registered where it asked has been told already what its zones say. One that the machine left on
// another device, of which this one hears only now, still has to register here: what it was told
// stands. Any other is of somebody else.
func (c *Core) noLongerEarly(addr netip.Addr, now time.Time) {
	h, asked := c.early.hosts[addr]
	if !asked || !c.dir.Known(addr) {
		return
	}
	if _, here := c.local[h.HostKey]; here {
		h.until, h.registered = time.Time{}, true
		c.early.hosts[addr] = h
		c.early.plan()
		return
	}
	if c.leftElsewhere(h.Host) {
		return
	}
	c.dropEarly(addr)
	c.notify.Unsubscribe(addr, h.HostKey.Port, now)
}

// leftElsewhere reports whether the address is known only of the same machine on other devices.
func (c *Core) leftElsewhere(h zone.Host) bool {
	return c.localAddrs[h.Addr] == 0 && !slices.ContainsFunc(c.dir.Attachments(h.Addr), func(at zone.Host) bool { return at.MAC != h.MAC })
}

// returned goes on with a host that was withdrawn though it was there, maybe before the last restart:
// the reflectors may have taken the hosts of its zones from here meanwhile, which is no news to it.
func (c *Core) returned(h zone.Host, now time.Time) {
	c.early.hosts[h.Addr] = earlyHost{Host: h, registered: true}
	c.notify.SubscribeAs(h.Addr, h.HostKey.Port, h.MAC, h.Role, now)
}

// endRegistered ends it for hosts that have registered, when a reflector has taken them in or
// has said all that concerns this device.
func (c *Core) endRegistered(a *client.Applied, now time.Time) {
	for _, addr := range c.early.sorted() {
		if h := c.early.hosts[addr]; h.registered && (a.Synced || slices.Contains(a.Taken, h.HostKey)) {
			c.dropEarly(addr)
			c.notify.Settle(addr, now)
		}
	}
}

// Early is how many hosts asked for their zones and have not registered.
func (c *Core) Early() int { return len(c.early.hosts) }
