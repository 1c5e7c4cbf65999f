package sim

import (
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// hostileID is a device that authenticates and then says what is not its own to say.
var hostileID = netip.MustParseAddr("10.66.0.1")

// lie lets a hostile device connect to a reflector, speak of the hosts, ports and zones of
// others, list their addresses behind ports of its own, end syncs without end, and leave.
// The truth does not change, so that nobody may be told anything, which the judge sees to;
// and the reflector names who lies.
func (w *world) lie() {
	r := pick(w, w.reflectors)
	if !r.running {
		return
	}
	w.tracef("a hostile device lies to %s", r.name)
	now := w.time()
	r.core.ClientUp(hostileID, now)
	lies, seq := 0, uint64(0)
	say := func(fill func(u *wire.Update)) {
		seq++
		u := &wire.Update{Origin: hostileID, Epoch: 1, Seq: seq, FaultAt: now, SentAt: now}
		fill(u)
		r.core.ClientMessage(hostileID, u, now)
	}
	for range 1 + w.rng.IntN(30) {
		victim := pick(w, w.hosts)
		if len(victim.addrs) == 0 || victim.link == nil {
			continue
		}
		l := victim.link
		key := zone.HostKey{Addr: pick(w, victim.addrs), Device: l.dev.id, Port: l.port}
		var all []netip.Addr
		for _, h := range w.hosts {
			all = append(all, h.addrs...)
		}
		what := w.rng.IntN(7)
		if what != 4 && what != 6 {
			lies++
		}
		switch what {
		case 0:
			say(func(u *wire.Update) {
				u.Hosts = []wire.HostRecord{{Op: wire.Withdraw, Host: zone.Host{HostKey: key}, Why: snsd.ReasonAgedOut}}
			})
		case 1: // with another MAC, since always
			say(func(u *wire.Update) {
				u.Hosts = []wire.HostRecord{{Op: wire.Put, Host: zone.Host{HostKey: key, MAC: fabric.MAC{2, 6, 6, 6, 6, 6}}}}
			})
		case 2:
			say(func(u *wire.Update) {
				u.Downs = []wire.DownRecord{{Device: l.dev.id, Port: l.port, Down: zone.Down{Why: snsd.ReasonLinkDown, Since: now}, Addrs: all}}
			})
		case 3: // and that they can be reached again
			say(func(u *wire.Update) {
				u.Downs = []wire.DownRecord{{Device: l.dev.id, Port: l.port, Addrs: all}}
			})
		case 4: // its own port has the name of the victim's, and lists everybody
			say(func(u *wire.Update) {
				u.Downs = []wire.DownRecord{{Device: hostileID, Port: l.port, Down: zone.Down{Why: snsd.ReasonLinkDown, Since: now}, Addrs: all}}
			})
		case 5:
			say(func(u *wire.Update) {
				u.Settings = &wire.Settings{AutoJoin: true, Hard: true}
				for _, z := range w.agreed().InForce.Zones {
					u.Zones = append(u.Zones, wire.ZoneRecord{Op: wire.Withdraw, Zone: z})
				}
			})
		case 6:
			r.core.ClientMessage(hostileID, &wire.EndOfSync{Epoch: 1, Seq: seq, Resumed: w.chance(0.3)}, now)
		}
	}
	r.core.Say()
	if lies > 0 && w.named == 0 {
		w.failf("%s names nobody after %d lies of %s", r.name, lies, hostileID)
	}
	r.core.ClientDown(hostileID, nil, now)
	r.settle()
}
