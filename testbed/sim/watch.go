package sim

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/truth"
)

// This file checks every notice when a device puts it on the wire.

type pairKey struct{ dev, host, subject netip.Addr }

// spoken is the last notice of a pair that a device put on the wire.
type spoken struct {
	snsd.Notice
	said    truth.Said // this one and those before
	at      time.Duration
	active  time.Duration // when it was told active last
	acked   bool
	dropped bool // and forgot since the host was not registered for a while
	yielded bool // and then another claim had the host's address for a while
	unsaved bool // and forgot in a crash: all it had told, or what had not come to its disk when its power was cut
}

// grace is how long after the trouble of a host it may be told things again: its
// zone query is answered once a second, and what was under way is repeated.
const grace = 5 * time.Second

// putOff is how long a switch may put off the answer to a zone query.
const putOff = time.Second

// spoke looks at a frame of a device.
func (w *world) spoke(d *device, l *cable, frame []byte) {
	if uint16(frame[12])<<8|uint16(frame[13]) != fabric.EtherTypeNTS {
		return
	}
	if len(frame) >= 1514 {
		w.failf("%s sends a frame of %d bytes", l.name(), len(frame))
	}
	p, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:])
	if err != nil {
		w.failf("%s sends a frame that cannot be read: %v", l.name(), err)
		return
	}
	for _, n := range p.Notices {
		w.spokeOf(d, l, n)
	}
}

func (w *world) spokeOf(d *device, l *cable, n snsd.Notice) {
	if w.ofBad(n) {
		return
	}
	k := pairKey{d.id, n.Host, n.Subject}
	last := w.wire[k]
	next := &spoken{Notice: n, at: w.now}
	if last != nil {
		next.said, next.active = last.said, last.active
	}
	if n.State == snsd.Active {
		next.active = w.now
	}
	word := truth.Word{Active: n.State == snsd.Active, Reason: n.Reason.String(), Service: n.Service}
	is, why := next.said.Hear(n.Seq, word)
	forgot := last != nil && last.unsaved
	switch {
	case is == truth.Resent:
		return
	case is == truth.Behind && forgot:
		next.said.Take(n.Seq, word)
	case is == truth.Behind || is == truth.Wrong:
		w.failf("%s tells %s: %s %s %s #%d: %s", l.name(), n.Host, n.Subject, n.State, n.Reason, n.Seq, why)
		return
	}
	w.notices++
	if w.tracing() {
		w.tracef("%s tells %s: %s %s %s #%d", l.name(), n.Host, n.Subject, n.State, n.Reason, n.Seq)
	}
	if w.hush != "" && !d.holding && !w.contested(n.Host) && !w.contested(n.Subject) && !w.ambiguous(n.Subject) && !w.endsLate(d, n, last) {
		w.failf("%s tells %s: %s %s %s, but there was only %s", l.name(), n.Host, n.Subject, n.State, n.Reason, w.hush)
	}
	if !w.cfg.NoWatch {
		w.judge(d, l, n, last, is == truth.Again)
	}
	w.wire[k] = next
}

// judge checks one new notice, which says the last one again or not.
func (w *world) judge(d *device, l *cable, n snsd.Notice, last *spoken, again bool) {
	switch {
	case n.State == snsd.Active && w.isOwn(l.host, n):
		w.failf("%s tells %s about its own address %s", l.name(), n.Host, n.Subject)
	case n.State == snsd.Active && !w.mayShare(n.Host, n.Subject, d):
		switch {
		case w.contested(n.Host) || w.contested(n.Subject):
			w.excused[Contested]++
			return
		case !d.hearsAll() && w.bothUnzoned(n.Host, n.Subject, d):
			w.excused[MixedDefault]++
			return
		}
		w.failf("%s tells %s: %s is active, but no zones that may be in force there of versions up to %d put them together: %s",
			l.name(), n.Host, n.Subject, len(w.zones)-1, d.heldWords())
	case n.State == snsd.Active && !w.contested(n.Host) && !w.contested(n.Subject) && !w.meet(n.Host, n.Subject):
		w.failf("%s tells %s of %s, which has its own role", l.name(), n.Host, n.Subject)
	case last != nil && last.said.Replaces(truth.Word{Active: n.State == snsd.Active, Service: n.Service}) && !last.unsaved && !last.dropped && !w.contested(n.Host):
		w.failf("%s tells %s of the new service of %s before the old one was taken back", l.name(), n.Host, n.Subject)
	case n.State == snsd.Inactive && w.unfounded(n, last):
		w.failf("%s tells %s: %s is inactive (%s), which nothing has caused", l.name(), n.Host, n.Subject, n.Reason)
	case again && !w.mayRepeat(l, last):
		w.failf("%s tells %s twice: %s %s %s, as at %v", l.name(), n.Host, n.Subject, n.State, n.Reason, last.at)
	}
}

// endsLate reports whether a host that was told to keep trying to reach a subject is told that
// their zone has ended, by a switch that did not know the subject when it ended: it may hear of it
// any time later, when a contested address passes to a host of its own that shares a zone with it.
func (w *world) endsLate(d *device, n snsd.Notice, last *spoken) bool {
	kept := last != nil && last.State == snsd.Inactive && !last.Reason.Disconnects()
	hears := func(c claimant) bool { return w.contested(c.addr) && w.mayShare(c.addr, n.Subject, d) }
	if !kept || n.State != snsd.Inactive || n.Reason != snsd.ReasonZoneChanged || !slices.ContainsFunc(d.seen, hears) {
		return false
	}
	// It has to be so: the subject may have moved to a port that is not in their zone.
	t := w.truth()
	return len(t.places[n.Subject]) > 0 && !t.share(n.Host, n.Subject)
}

// meet reports whether the hosts that claim two addresses have roles that concern each other.
func (w *world) meet(a, b netip.Addr) bool {
	return slices.ContainsFunc(w.claims[a], func(x claim) bool {
		return slices.ContainsFunc(w.claims[b], func(y claim) bool { return truth.Concern(x.host.svc.Role, y.host.svc.Role) })
	})
}

// acked takes an ack: the first one of what a host was told last shows that it is there. That of a
// machine that is not the one which has the address on that port shows nothing.
func (d *device) acked(l *cable, h *host, a snsd.Ack, arrived time.Duration) {
	last := d.w.wire[pairKey{d.id, a.Host, a.Subject}]
	if last == nil || last.Seq != a.Seq || last.acked || last.unsaved || d.seen.anothers(l, h, a.Host) {
		return
	}
	last.acked = true
	if arrived >= l.told {
		d.seen.expire(d.w.now, d)
		d.look(func() { d.seen.present(l, h, a.Host) })
	}
}

// isOwn reports whether the subject is an address of the told host and of no other. Where another
// host alone has ever claimed the address that is told, nobody knows that this one has it now.
func (w *world) isOwn(h *host, n snsd.Notice) bool {
	others := func(c claim) bool { return c.host != h }
	return h != nil && slices.Contains(h.addrs, n.Host) && w.registered(h, n.Subject) && !w.contested(n.Subject) && !slices.ContainsFunc(w.claims[n.Host], others)
}

// registered reports whether a host has ever registered one of its addresses.
func (w *world) registered(h *host, a netip.Addr) bool {
	return slices.Contains(h.addrs, a) && slices.ContainsFunc(w.claims[a], func(c claim) bool { return c.host == h })
}

// contested reports whether more than one host ever claimed the address.
func (w *world) contested(a netip.Addr) bool {
	cs := w.claims[a]
	return slices.ContainsFunc(cs, func(c claim) bool { return c.host != cs[0].host })
}

// mayRepeat reports whether the told host had trouble since the last notice or just now, was not
// registered for a while, its link was down, the device forgot that notice or took another claim
// for the holder of the address, it stopped with a zone query to answer, or two hosts contest an
// address: after a restart the device may hear of them one by one.
func (w *world) mayRepeat(l *cable, last *spoken) bool {
	addr := last.Host
	since := func(trouble time.Duration) bool { return trouble >= last.at || trouble+grace >= w.now }
	return last.unsaved || last.dropped || last.yielded || since(l.told) || w.contested(addr) || w.contested(last.Subject) || w.ambiguous(last.Subject) || w.recalled(l.dev, last) ||
		slices.ContainsFunc(w.claims[addr], func(c claim) bool {
			return since(c.host.stirred) || c.host.silent || !c.host.on || c.host.unanswered(l.dev, last)
		})
}

// recalled reports whether a device was started since, and the host has claims at two switches: of
// the other one the device knows from the last sync, but not whether its port was down. It may take
// that for the holder until a reflector answers.
func (w *world) recalled(d *device, last *spoken) bool {
	return last.at <= d.stopped && len(w.truth().claims[last.Host]) > 1
}

// unanswered reports whether a device stopped before it had to answer a zone query of the host, and
// has not done so since: which of what it told after the query it told because of that it does not
// keep, so that the host is told all again.
func (h *host) unanswered(d *device, last *spoken) bool {
	asked, ok := h.asked[last.Host]
	return ok && asked <= d.stopped && d.stopped < asked+putOff && last.at <= d.stopped
}

// ambiguous reports whether an address was registered with more than one name: of a
// host that moved a device may hear the old one again after its restart.
func (w *world) ambiguous(a netip.Addr) bool {
	cs := w.claims[a]
	return slices.ContainsFunc(cs, func(c claim) bool { return c.nqn != cs[0].nqn })
}

// gaveUp notes that a device dropped a registration, maybe of a host that is there.
func (w *world) gaveUp(c *claimant) {
	w.tracef("%s gives up %s", c.link.name(), c.addr)
	w.changed = w.now
	w.dropped(c.link.dev, c.addr)
	h := c.link.host
	if h == nil || h.mac != c.mac {
		return
	}
	h.givenUp[c.addr] = w.now
	h.stir()
}

// dropped notes that a device knows a host no longer, nor what it was told.
func (w *world) dropped(d *device, host netip.Addr) {
	for k, s := range w.wire {
		if k.dev == d.id && k.host == host {
			s.dropped = true
		}
	}
}

// movedTo notes that all devices but one know a host no longer, nor what it was told.
func (w *world) movedTo(d *device, host netip.Addr) {
	for k, s := range w.wire {
		if k.dev != d.id && k.host == host {
			s.dropped = true
		}
	}
}

// forgotten notes what a device that stopped does not know any more. What it told is
// kept; without a disk nothing is.
func (d *device) forgotten() {
	w := d.w
	lost := w.cfg.NoSave || d.disk.Look().None
	kept := d.kept()
	for k, s := range w.wire {
		if k.dev != d.id {
			continue
		}
		if s.acked = false; !lost { // it may be told once more, and ack it again
			continue
		}
		s.unsaved = true
		for _, h := range w.hosts {
			if e, ok := h.heard[heardKey{k.host, k.subject}]; ok && e.Seq == s.Seq && h.link != nil && h.link.dev == d {
				e.unsaved = true
				h.heard[heardKey{k.host, k.subject}] = e
			}
		}
	}
	for _, l := range d.ports {
		if l.host != nil && lost {
			clear(l.host.asked)
		}
	}
	for i := range d.seen {
		c := &d.seen[i]
		if !slices.ContainsFunc(kept, func(o claimant) bool { return o.link == c.link && o.key == c.key && o.addr == c.addr }) {
			w.gaveUp(c)
		}
	}
}
