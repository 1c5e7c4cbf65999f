package device

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// Why gathers what the owner goroutine knows of two hosts, with all notices of either
// about the other.
func (c *Core) Why(w *api.Why, a, b netip.Addr) {
	w.Synced, w.Everything, w.LastSync = c.Synced(), c.refl != nil, c.LastSync()
	w.Hosts = [2]api.WhyHost{{Addr: a}, {Addr: b}}
	for i := range w.Hosts {
		h := &w.Hosts[i]
		h.Attachments = c.AppendHosts(nil, h.Addr)
		h.Faults = c.faultsOf(h.Attachments)
	}
	zones := c.View().ZonesOf(b)
	for _, name := range c.View().ZonesOf(a) {
		if slices.Contains(zones, name) {
			w.Shared = append(w.Shared, name)
		}
	}
	c.whyHard(w)
	if c.notify == nil {
		return
	}
	for _, p := range [2][2]netip.Addr{{a, b}, {b, a}} {
		if c.localAddrs[p[0]] == 0 {
			continue
		}
		t := c.Told(p[0], p[1])
		w.Told = append(w.Told, api.Told{Host: p[0], Subject: p[1], Subscribes: t.Subscribes, Usable: t.Usable, Said: t.Said,
			State: t.State, Reason: t.Reason, Acked: t.Acked, Waiting: t.Waiting, Retries: t.Retries})
	}
	for _, n := range c.Notices() {
		if n.Host == a && n.Subject == b || n.Host == b && n.Subject == a {
			w.Notices = append(w.Notices, n)
		}
	}
}

// Told is what a local host was told of a subject last.
func (c *Core) Told(host, subject netip.Addr) hostnotify.Told { return c.notify.Told(host, subject) }

// faultsOf are the faults that stand at the attachments of a host, and on the paths to
// their devices.
func (c *Core) faultsOf(attachments []api.Host) (list []api.WhyFault) {
	for _, h := range attachments {
		if p := c.mesh.paths[h.Device]; p != nil && p.down {
			list = append(list, api.WhyFault{Device: h.Device, Reason: snsd.ReasonBFDDown, Since: stamp(p.since)})
		}
		if why, since, ok := c.portFaultOf(&h); ok {
			list = append(list, api.WhyFault{Device: h.Device, Port: h.Port, Reason: why, Since: stamp(since)})
		}
	}
	return list
}

// portFaultOf is the fault of a host's port, with the time of its begin where it is known.
func (c *Core) portFaultOf(h *api.Host) (why snsd.Reason, since time.Time, ok bool) {
	for _, a := range c.View().Attachments(h.Addr) {
		if a.Device == h.Device && a.HostKey.Port == h.Port {
			return a.Down.Why, a.Down.Since, a.Down.Is()
		}
	}
	return snsd.ReasonNone, time.Time{}, false
}
