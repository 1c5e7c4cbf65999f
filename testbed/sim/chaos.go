package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file breaks things.

// chaos strikes again and again until the given time is over.
func (w *world) chaos(d time.Duration) bool {
	w.rough = true
	w.lossy = pick(w, []float64{0, 0, 0.02, 0.1})
	w.tracef("chaos for %v, loss %v", d, w.lossy)
	for end := w.now + d; w.now < end; {
		strike(w)
		w.faults++
		if !w.run(w.short(6 * time.Second)) {
			return false
		}
	}
	return w.heal()
}

// fault is something that is done to the fabric.
type fault struct {
	weight int
	strike func(*world)
}

// strikes are the faults with their weights.
var strikes = []fault{
	{6, (*world).cutSession},
	{2, (*world).partition},
	{2, (*world).stall},
	{4, (*world).restartSwitch},
	{2, (*world).restartReflector},
	{8, (*world).pullCable},
	{4, (*world).moveHost},
	{3, (*world).silence},
	{3, (*world).restartAgent},
	{3, (*world).newAddress},
	{1, (*world).stealAddress},
	{8, (*world).changeZone},
	{1, (*world).toggleAutoJoin},
	{2, (*world).lie},
}

func strike(w *world) {
	total := 0
	for _, s := range w.strikes {
		total += s.weight
	}
	n := w.rng.IntN(total)
	for _, s := range w.strikes {
		if n -= s.weight; n < 0 {
			s.strike(w)
			return
		}
	}
}

// heal ends what would otherwise last: every process runs again. Cables and hosts
// stay as they are.
func (w *world) heal() bool {
	if w.rough = false; w.lossy > 0 {
		w.lossy, w.changed = 0, w.now // what was lost is still to be repeated
	}
	w.tracef("the faults stop")
	if w.quorum != nil {
		w.quorum.heal()
	}
	for _, d := range w.all {
		clear(d.blocked)
		if !d.running {
			d.start()
		}
	}
	w.endBad()
	if w.differ() && (w.agree == client.AgreeUnion || w.chance(0.5)) {
		w.unify()
	}
	return len(w.fails) == 0
}

func (w *world) someConn() *conn {
	d, r := pick(w, w.devices), pick(w, w.reflectors)
	return d.connOf(r.id)
}

func (w *world) cutSession() {
	if c := w.someConn(); c != nil {
		w.tracef("session of %s is cut", c.dials.name())
		c.sever(w.chance(0.3))
	}
}

func (w *world) partition() {
	d, r := pick(w, w.devices), pick(w, w.reflectors)
	d.blocked[r.id] = w.now + w.short(150*time.Second)
	w.tracef("%s and %s are apart until %v", d.name, r.name, d.blocked[r.id])
	if c := d.connOf(r.id); c != nil {
		c.sever(w.chance(0.5))
	}
}

// stall holds up one direction of a connection.
func (w *world) stall() {
	if c := w.someConn(); c != nil {
		e := pick(w, []*end{c.dials, c.takes})
		e.last = max(e.last, w.now+w.short(12*time.Second))
		w.tracef("%s stalls until %v", e.name(), e.last)
	}
}

// restart stops a process and starts it again after a while.
func (w *world) restart(d *device, orderly bool, away time.Duration) {
	if !d.running {
		return
	}
	d.stop(orderly)
	w.after(away, func() {
		if !d.running {
			d.start()
		}
	})
}

func (w *world) restartSwitch() {
	w.restartMaybeLost(pick(w, w.devices), 60*time.Second)
}

func (w *world) restartReflector() {
	w.restartMaybeLost(pick(w, w.reflectors), 150*time.Second)
}

// restartMaybeLost restarts a process; sometimes its state is gone then.
func (w *world) restartMaybeLost(d *device, most time.Duration) {
	w.restart(d, w.chance(0.3), w.short(most))
	switch {
	case d.running:
	case w.chance(0.15):
		d.lose()
	case w.disks.chance(0.2):
		d.powerCut()
	}
}

func (w *world) pullCable() {
	h := pick(w, w.hosts)
	if h.link == nil || h.link.pulled {
		return
	}
	l := h.link
	if l.dev.running && w.chance(0.3) { // its last words are taken after the loss of carrier
		h.speak()
		w.run(2 * time.Millisecond)
		l.taken = w.now + 20*time.Millisecond
		h.speak()
		w.run(2 * time.Millisecond)
	}
	l.pulled = true
	l.refresh()
	w.after(w.short(60*time.Second), func() {
		l.pulled = false
		l.refresh()
	})
}

// moveHost takes a host to another port, after a while on the way.
func (w *world) moveHost() {
	h := pick(w, w.hosts)
	l := w.freePort()
	if l == nil {
		return
	}
	h.plug(nil)
	w.after(w.short(20*time.Second), func() {
		if l.host == nil && h.link == nil {
			h.plug(l)
		} else if f := w.freePort(); h.link == nil && f != nil {
			h.plug(f)
		}
	})
}

func (w *world) freePort() *cable {
	var free []*cable
	for _, l := range w.links {
		if l.host == nil && !l.pulled {
			free = append(free, l)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return pick(w, free)
}

func (w *world) silence() {
	h := pick(w, w.hosts)
	if h.silent {
		return
	}
	h.setSilent(true)
	w.after(w.short(300*time.Second), func() { h.setSilent(false) })
}

func (w *world) restartAgent() {
	h := pick(w, w.hosts)
	if !h.on {
		return
	}
	h.halt(w.chance(0.3))
	away := w.short(10 * time.Second)
	if w.chance(0.2) {
		away = w.short(300 * time.Second)
	}
	w.after(away, func() {
		if h.on {
			return
		}
		if w.chance(0.2) {
			h.svc.NQN = fmt.Sprintf("nqn.2026-11.sim:%s-%d", h.name, w.rng.IntN(3))
		}
		h.boot()
	})
}

func (w *world) newAddress() {
	h := pick(w, w.hosts)
	addrs := slices.Clone(h.addrs)
	addrs[w.rng.IntN(len(addrs))] = w.freshAddr(w.chance(0.3))
	h.readdress(addrs)
}

// stealAddress gives one host the address of another one.
func (w *world) stealAddress() {
	h, from := pick(w, w.hosts), pick(w, w.hosts)
	a := pick(w, from.addrs)
	if h == from || slices.Contains(h.addrs, a) {
		return
	}
	addrs := slices.Clone(h.addrs)
	addrs[w.rng.IntN(len(addrs))] = a
	h.readdress(addrs)
	if w.chance(0.7) { // somebody notices
		w.after(w.short(200*time.Second), func() {
			if i := slices.Index(h.addrs, a); i >= 0 {
				addrs := slices.Clone(h.addrs)
				addrs[i] = w.freshAddr(!a.Is4())
				h.readdress(addrs)
			}
		})
	}
}

// freshAddr gives an address; most often one that nobody had.
func (w *world) freshAddr(six bool) netip.Addr {
	w.lastAddr++
	n := w.lastAddr
	if six {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(n >> 8), 15: byte(n)})
	}
	return netip.AddrFrom4([4]byte{198, 18, byte(n >> 8), byte(n)})
}

func (w *world) toggleAutoJoin() {
	next := w.zones.now().Set
	next.AutoJoin = !next.AutoJoin
	w.configure(next, nil, cluster.Entry{Kind: cluster.KindSetting, Name: cluster.SettingAutoJoin, Value: strconv.FormatBool(next.AutoJoin)})
}

// changeZone adds, changes or removes a zone.
func (w *world) changeZone() {
	set := w.zones.now().Set
	next := zone.Set{AutoJoin: set.AutoJoin, Zones: slices.Clone(set.Zones)}
	n := len(next.Zones)
	var op func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error)
	var e cluster.Entry
	switch w.rng.IntN(5) {
	case 0: // a new one
		z := zone.Zone{Name: fmt.Sprintf("z%d", w.rng.IntN(40)), Members: w.members(1 + w.rng.IntN(5))}
		if slices.ContainsFunc(next.Zones, func(o zone.Zone) bool { return o.Name == z.Name }) {
			return
		}
		next.Zones = append(next.Zones, z)
		op, e = putZone(z), cluster.Entry{Kind: cluster.KindAddZone, Name: z.Name, Members: z.Members}
	case 1: // removed
		if n == 0 {
			return
		}
		i := w.rng.IntN(n)
		name := next.Zones[i].Name
		next.Zones = slices.Delete(next.Zones, i, i+1)
		op = func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) {
			return r.DeleteZone(name, now), nil
		}
		e = cluster.Entry{Kind: cluster.KindRemoveZone, Name: name}
	default: // other members
		if n == 0 {
			return
		}
		z := &next.Zones[w.rng.IntN(n)]
		z.Members = slices.Clone(z.Members)
		if len(z.Members) > 1 && w.chance(0.5) {
			i := w.rng.IntN(len(z.Members))
			e = cluster.Entry{Kind: cluster.KindRemoveMembers, Name: z.Name, Members: slices.Clone(z.Members[i : i+1])}
			z.Members = slices.Delete(z.Members, i, i+1)
		} else {
			e = cluster.Entry{Kind: cluster.KindAddMembers, Name: z.Name, Members: w.members(1)}
			z.Members = append(z.Members, e.Members...)
		}
		op = putZone(*z)
	}
	w.configure(next, op, e)
}

func putZone(z zone.Zone) func(*reflector.Reflector, time.Time) ([]wire.Delivery, error) {
	return func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) { return r.PutZone(z, now) }
}

// configure puts a zone configuration in force at every reflector, one a little
// later than the other, or at one only; it is on their disks even when they are down. A
// cluster is asked for the change e.
func (w *world) configure(next zone.Set, op func(*reflector.Reflector, time.Time) ([]wire.Delivery, error), e cluster.Entry) {
	if w.quorum != nil {
		w.quorum.propose(e)
		return
	}
	v := len(w.zones)
	w.zones = append(w.zones, next.Canonical())
	w.changed = w.now
	to := w.concerned()
	w.tracef("zones version %d at %d reflector(s): %v", v, len(to), next)
	for _, r := range to {
		r.want = v
		r.zonesAt = max(r.zonesAt, w.now+w.lag()) + 1
		w.at(r.zonesAt, func() { r.putInForce(v, op) })
	}
}

func (r *device) putInForce(v int, op func(*reflector.Reflector, time.Time) ([]wire.Delivery, error)) {
	w := r.w
	if r.version != v-1 {
		op = nil // it is about another configuration than the one there
	}
	r.inForce(v, func() error {
		return r.core.ChangeZones(func(x *reflector.Reflector) ([]wire.Delivery, error) {
			if op != nil && !w.chance(0.2) {
				return op(x, w.time())
			}
			return x.SetZones(w.zones.at(v).Set, w.time())
		}, w.time())
	})
}

// inForce brings a version into force at a reflector, by change if it runs.
func (r *device) inForce(v int, change func() error) {
	w := r.w
	r.version, r.had, w.zoned = v, append(r.had, v), w.now
	w.tracef("%s has zones version %d", r.name, v)
	if !r.running {
		return
	}
	if err := change(); err != nil {
		w.failf("%s: zones version %d: %v", r.name, v, err)
	}
	for _, e := range r.ends() {
		if !e.Dialer && e.told {
			e.owes = v
		}
	}
	r.settle()
}

// members makes zone members of every kind.
func (w *world) members(n int) []zone.Member {
	var out []zone.Member
	for range n {
		h := pick(w, w.hosts)
		a := pick(w, h.addrs)
		m := zone.Member{Kind: zone.MemberAddr, First: a}
		switch w.rng.IntN(8) {
		case 0:
			last := a
			for range w.rng.IntN(6) {
				last = last.Next()
			}
			m = zone.Member{Kind: zone.MemberRange, First: a, Last: last}
		case 1:
			m = zone.Member{Kind: zone.MemberNQN, NQN: h.svc.NQN}
		case 2:
			l := pick(w, w.links)
			m = zone.Member{Kind: zone.MemberPort, Device: l.dev.id, Port: l.port}
		}
		out = append(out, m.Canonical())
	}
	return out
}

// role of the n-th host: every third one is an initiator only.
func role(n int) snsd.Role {
	return []snsd.Role{snsd.RoleTarget, snsd.RoleInitiator, snsd.RoleBoth}[n%3]
}
