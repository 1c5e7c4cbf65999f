package sim

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file brings the fabric to rest and compares it with the truth.

// patience is how long the fabric may take to become calm: a grace time and more. After it nobody is
// waited for who may be asked whether it still has its address, and after twice that time it is a
// fault: agents that were stopped and hosts that fell silent are back long before.
const patience = 260 * time.Second

// calm is how long there is no news before a comparison: as long as it takes to tell a host that
// acks nothing, and a second for the way. What bad ones say of themselves may take all its places.
// After less, whoever waits for it, what is still to be told and will be is found missing.
func (w *world) calm() time.Duration {
	addrs := 0
	if w.cfg.Hostile {
		addrs = mostAddrs
	}
	return hostnotify.Config{}.Unheard(addrs) + time.Second
}

// settled reports whether every device runs and has exchanged everything with every
// reflector.
func (w *world) settled() (string, bool) {
	for _, d := range w.all {
		if !d.running {
			return d.name + " is down", false
		}
		if d.reflects && d.version != d.want {
			return d.name + " has old zones", false
		}
	}
	if w.quorum != nil {
		if why, ok := w.quorum.settled(); !ok {
			return why, false
		}
	}
	for _, d := range w.devices {
		for _, r := range w.reflectors {
			if r == d {
				continue
			}
			c := d.connOf(r.id)
			if c == nil || c.cut || !c.dials.Up || !c.takes.Up || !c.dials.heard || !c.takes.heard {
				return d.name + " is not in step with " + r.name, false
			}
			if max(c.dials.last, c.takes.last) > w.now+50*time.Millisecond {
				return "messages between " + d.name + " and " + r.name + " are held up", false
			}
		}
	}
	return "", true
}

// becomeCalm lets time pass until nothing has happened for a while; false when
// something was found wrong.
func (w *world) becomeCalm() bool {
	w.rough, w.lossy = false, 0
	for end := w.now + patience; ; {
		if !w.run(500 * time.Millisecond) {
			return false
		}
		why, ok := w.settled()
		if !ok {
			w.changed = w.now
		}
		w.truth() // notes what has run out
		news := w.changed
		if w.now <= end {
			news = max(news, w.unasked)
		}
		switch {
		case ok && w.now-news > w.calm():
			return true
		case w.now > end+patience:
			w.failf("the fabric does not come to rest: %s", cmp.Or(why, "something changes all the time"))
			return false
		}
	}
}

// compare checks what every host was told against the truth.
func (w *world) compare() {
	all := w.truth()
	w.tracef("compared with the truth")
	w.oneHolder(all)
	seen := map[*device]*facts{}
	for _, h := range w.hosts {
		if h.link == nil {
			continue
		}
		if seen[h.link.dev] == nil {
			seen[h.link.dev] = all.asSeenBy(h.link.dev)
		}
		t := seen[h.link.dev]
		for _, a := range h.addrs {
			p := t.subscriber(h, a)
			if p == nil {
				continue
			}
			for _, s := range w.subjects(t, h, a) {
				w.pair(t, h, a, s)
			}
		}
	}
}

// oneHolder checks that all devices take the same host for the holder of an address that can be
// reached.
func (w *world) oneHolder(t *facts) {
	for _, a := range t.addrs {
		if w.haunted(a) || !slices.ContainsFunc(t.claims[a], func(p place) bool { return p.reachable }) {
			continue // the switch that lost its state knows nothing of its own claim; who is not there has nothing
		}
		var first *device
		var is zone.Host
		for _, d := range w.devices {
			h, known := d.core.Directory().Host(a)
			switch {
			case !known:
			case first == nil:
				first, is = d, h
			case h.MAC != is.MAC || h.Device != is.Device && w.multiPort() != zone.MultiPortFabric: // there, its two places are one host
				w.failf("%s takes %s on %s port %s for the holder of %s, %s takes %s on %s port %s", first.name, is.MAC, is.Device, is.HostKey.Port, a, d.name, h.MAC, h.Device, h.HostKey.Port)
			}
		}
	}
}

// subjects lists every address about which the host should or does know something.
func (w *world) subjects(t *facts, h *host, a netip.Addr) []netip.Addr {
	out := slices.Clone(t.addrs)
	for k := range h.heard {
		if k.host == a && !slices.Contains(t.addrs, k.subject) && !(w.cfg.Hostile && badPrefix.Contains(k.subject)) {
			out = append(out, k.subject)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// pair compares one subject of one host.
func (w *world) pair(t *facts, h *host, a, s netip.Addr) {
	w.checks++
	svc, want := t.active(h, a, s)
	got, told := h.heard[heardKey{a, s}]
	is := told && got.State == snsd.Active
	if is == want && (!want || got.Service == svc) {
		return
	}
	if e := w.excuse(t, h, a, s, want, is); e != "" {
		w.excused[e]++
		w.tracef("%s about %s is excused: %s", h, s, e)
		return
	}
	last := "nothing"
	if told {
		last = got.State.String() + " " + got.Reason.String() + " " + got.Service.NQN
	}
	wanted := "not active"
	if want {
		wanted = "active " + svc.NQN
	}
	w.failf("%s as %s was last told of %s: %s (at %v); the truth is %s, zones %v and %v, places %s",
		h, a, s, last, got.at, wanted, t.zones[a], t.zones[s], t.describe(s))
}

// excuse tells why a pair may differ from the truth, if it may.
func (w *world) excuse(t *facts, h *host, a, s netip.Addr, want, is bool) Excuse {
	got, told := h.heard[heardKey{a, s}]
	gave, given := h.givenUp[a]
	_, asked := h.asked[a]
	switch {
	case told && got.unsaved:
		return UnsavedTold
	case w.haunted(s) || w.haunted(a):
		return HeldBack
	case h.unseen && want && !told && !asked && w.toldBefore(h, a, s):
		return LostQuery
	case is && !want && given && gave >= got.sent: // what was on its way then came after it
		return GivenUp
	case w.contested(a) && (is || t.rivals[a]):
		return Contested
	}
	return ""
}

// toldBefore reports whether the switch told the host of the subject before the host
// forgot it.
func (w *world) toldBefore(h *host, a, s netip.Addr) bool {
	last := w.wire[pairKey{h.link.dev.id, a, s}]
	return last != nil && last.at <= h.forgot
}

func (t *facts) describe(a netip.Addr) string {
	s := "["
	for _, p := range t.claims[a] {
		s += " " + p.link.name()
		if !p.reachable {
			s += " unreachable"
		}
		if !p.here {
			s += " left"
		}
	}
	return s + " ]"
}

// rest checks, long after the last change, that nothing is left over anywhere.
func (w *world) rest() {
	t := w.truth()
	known := func(h zone.Host) bool {
		return h.Device != hostileID && slices.ContainsFunc(w.device(h.Device).seen, func(c claimant) bool { return c.link.port == h.HostKey.Port && c.addr == h.Addr })
	}
	for _, d := range w.all {
		if d.access() {
			n := d.core.Counters()["hostnotify"].(hostnotify.Counters)
			if n.Waiting != 0 || n.InFlight != 0 {
				w.failf("%s at rest: %d notices wait and %d are under way", d.name, n.Waiting, n.InFlight)
			}
			w.leftovers(d, "client", d.core.Directory(), t, known)
		}
		if d.reflects {
			_ = d.core.ChangeZones(func(r *reflector.Reflector) ([]wire.Delivery, error) {
				w.leftovers(d, "reflector", r.Directory(), t, known)
				w.complete(d, r.Directory(), t)
				return nil, nil
			}, w.time())
		}
	}
}

// leftovers finds what a Directory holds that is not there.
func (w *world) leftovers(d *device, what string, dir *zone.Directory, t *facts, known func(zone.Host) bool) {
	for h := range dir.AllHosts() {
		if !known(h) {
			w.failf("%s (%s) at rest still holds %s on %s port %s", d.name, what, h.Addr, h.Device, h.HostKey.Port)
		}
	}
	for _, z := range dir.Zones().Zones {
		if want, ok := t.agreed.InForce.Find(z.Name); !ok || !slices.Equal(z.Members, want.Canonical().Members) {
			w.failf("%s (%s) at rest has zone %s with %v", d.name, what, z.Name, z.Members)
		}
	}
	if dir.AutoJoin() != t.agreed.InForce.AutoJoin {
		w.failf("%s (%s) at rest has auto-join %v", d.name, what, dir.AutoJoin())
	}
	for _, f := range dir.Faults() {
		for _, a := range f.Addrs {
			if !slices.ContainsFunc(t.claims[a], func(p place) bool { return p.dev.id == f.Device && p.link.port == f.Port && !p.reachable }) {
				w.failf("%s (%s) at rest still has a fault of %s port %s with %s", d.name, what, f.Device, f.Port, a)
			}
		}
	}
}

// complete checks that a reflector holds everything.
func (w *world) complete(r *device, dir *zone.Directory, t *facts) {
	for _, a := range t.addrs {
		for _, p := range t.places[a] {
			if !slices.ContainsFunc(dir.Attachments(a), func(h zone.Host) bool { return h.Device == p.dev.id && h.HostKey.Port == p.link.port }) {
				w.failf("%s at rest does not know %s at %s", r.name, a, p.link.name())
			}
		}
	}
	if n := len(dir.Zones().Zones); n != len(t.agreed.InForce.Zones) {
		w.failf("%s at rest has %d zones, want %d", r.name, n, len(t.agreed.InForce.Zones))
	}
}
