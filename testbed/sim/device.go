package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/bfd"
	core "github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/zone"
)

// device is a switch or a reflector: its hardware, what its disk holds, and while
// it runs a Core.
type device struct {
	w        *world
	id       netip.Addr
	name     string
	ports    []*cable // access ports
	reflects bool
	member   *member // of a cluster; nil: it stands alone
	clone    bool    // of another one

	running bool
	stopped time.Duration // when it ran last
	life    uint64
	epoch   uint64
	core    *core.Core

	disk     keep.Memory
	store    keep.Memory         // of what reflectors said: a kill takes what is not on the disk
	diskSeen table               // naive: as of the disk
	tailSeen []seenOp            // since then
	dark     bool                // it has no power
	holding  bool                // the disk was lost: others may still hold of before what is no more
	ever     map[netip.Addr]bool // addresses that were heard here
	saving   bool                // a transaction of the disk is planned

	dialed   map[netip.Addr]*end
	accepted map[netip.Addr]*end
	draining map[netip.Addr]bool          // sessions that still take what they were given
	blocked  map[netip.Addr]time.Duration // no connection to that reflector before

	tick  virtual.Look
	spins int // ticks at one moment
	spun  time.Duration

	zonesAt time.Duration // reflector: when the last known change is in force
	version int           // reflector: of the zones in force
	want    int           // reflector: of those that are to be
	had     []int         // reflector: every version that ever was in force
	// held is the oldest zone version that may be in force here, by reflector.
	held map[netip.Addr]int
	seen table // naive: who was heard here
}

func (d *device) access() bool { return len(d.ports) > 0 }

// start runs the process with what the disk holds.
func (d *device) start() {
	w := d.w
	if d.running {
		return
	}
	if d.member != nil && !d.member.open() {
		w.after(10*time.Millisecond, d.start)
		return
	}
	d.life++
	d.epoch = uint64(w.now)<<16 | w.rng.Uint64()&0xffff | 1 // a later start has a greater one
	d.dialed, d.accepted = map[netip.Addr]*end{}, map[netip.Addr]*end{}
	d.draining = map[netip.Addr]bool{}
	if w.quorum != nil {
		clear(d.held) // a member that lags is heard by one that heard no other yet
	}
	st := d.load()
	if d.dark {
		d.dark = false
		for _, l := range d.ports {
			l.refresh()
		}
	}
	cfg := core.Config{
		Self: d.id, Access: d.access(), Reflect: d.reflects, Epoch: d.epoch, Reflectors: len(w.reflectors), Wait: client.DefaultReflectorWait,
		Notify:    hostnotify.Config{FirstSeq: uint32(d.epoch >> 16), History: 16},
		Reflector: reflector.Config{Known: st.Known, Unsure: st.Incomplete || d.life == 1, Paced: true, SyncStep: 1 + int(w.cfg.Seed%3)}, Agreement: w.agree,
	}
	cfg.Hosts.MultiPort = w.multiPort()
	cfg.Reflector.Bindings = w.bindings()
	for _, r := range w.reflectors {
		cfg.Addresses = append(cfg.Addresses, r.id)
	}
	if d.reflects {
		cfg.Zones = w.zones.at(d.version).Set
	}
	if !w.cfg.NoSave || d.reflects {
		cfg.Keep, cfg.Store = &d.disk, &d.store
	}
	c, err := core.New(cfg, d, w.time())
	if err == nil && d.member != nil {
		_, stamp := d.member.node.Zones()
		c.SetCluster(stamp)
	}
	if err == nil {
		err = c.Restore(st, w.time())
	}
	if err != nil {
		w.failf("%s does not start: %v", d.name, err)
		return
	}
	d.core, d.running = c, true
	d.tick.Forget()
	if d.holding = d.holding || st.Incomplete; d.holding {
		d.lapse()
	}
	d.saving = false
	w.tracef("%s starts with %d neighbours and %d hosts that were told things", d.name, len(st.Neighbours), len(st.Told.Hosts))
	d.diskSeen, d.tailSeen = d.kept(), nil
	had := d.seen
	d.seen = d.diskSeen.restored(w.now)
	w.turned(had, d.seen)
	for _, l := range d.ports {
		l.proved()
	}
	for _, l := range d.ports {
		d.portEvent(l, fabric.PortAdded)
	}
	c.Start(w.time())
	if d.member != nil {
		d.member.run()
	}
	d.settle()
	for _, r := range w.reflectors {
		if d.access() && r != d {
			life := d.life
			w.after(w.short(100*time.Millisecond), func() {
				if d.running && d.life == life {
					d.dial(r, 0)
				}
			})
		}
	}
	d.marks()
}

// stop ends the process; an orderly stop writes the state first.
func (d *device) stop(orderly bool) {
	w := d.w
	w.tracef("%s stops, orderly %v", d.name, orderly)
	if orderly {
		d.core.Goodbye(w.time())
		d.seen.expire(w.now, d)
		d.core.Pump(w.time())
		d.commit(d.disk.Pending(), len(d.tailSeen))
		d.core.SaveAll(w.time())
		d.store.Stop()
		d.disk.Stop()
	}
	d.store.PowerCut()
	d.seen.expire(w.now, d)
	for _, e := range d.ends() {
		if orderly && !e.c.cut {
			peer := e.peer
			e.post(func() { peer.close(fmt.Errorf("%s stops", d.name), false) })
		} else {
			e.c.sever(w.chance(0.2))
		}
		e.Closed = true
	}
	d.running, d.stopped, d.core = false, w.now, nil
	if d.member != nil {
		d.member.end()
	}
	d.forgotten()
}

// ends lists the connections in a stable order.
func (d *device) ends() []*end {
	var out []*end
	for _, m := range []map[netip.Addr]*end{d.dialed, d.accepted} {
		for _, o := range d.w.all {
			if e := m[o.id]; e != nil {
				out = append(out, e)
			}
		}
	}
	return out
}

// settle follows an event in the Core: frames that are due, the next tick, and
// whether there is something to save.
func (d *device) settle() {
	if !d.running {
		return
	}
	w := d.w
	d.pull()
	d.core.Pump(w.time())
	d.seen.expire(w.now, d) // or a power cut takes what the device had written long before
	d.save()
	next := d.core.Next()
	if next.IsZero() {
		return
	}
	life := d.life
	d.tick.Plan(w, next, func() bool { return d.running && d.life == life }, func() {
		if d.spun != w.now {
			d.spun, d.spins = w.now, 0
		}
		if d.spins++; d.spins > 1000 {
			w.failf("%s: its timers are due without end", d.name)
			return
		}
		d.core.Tick(w.time())
		d.settle()
	})
}

// pull tells clients what there is. A session that is owed more takes its time with each
// message.
func (d *device) pull() {
	ready := func(id netip.Addr) bool { return !d.draining[id] }
	for d.core.Waiting() || d.core.Owing() {
		d.core.PullChanges(ready, d.w.time())
		d.core.PullStep(ready, d.w.time())
		for _, id := range d.core.Owed(nil) {
			if d.draining[id] {
				continue
			}
			d.draining[id] = true
			life := d.life
			d.w.after(d.w.short(5*time.Millisecond), func() {
				if d.running && d.life == life {
					delete(d.draining, id)
					d.core.ClientDrained()
					d.settle()
				}
			})
		}
	}
}

// portEvent tells the Core of a port as it is now.
func (d *device) portEvent(l *cable, kind fabric.EventKind) {
	d.w.changed = d.w.now
	was := l.seen
	l.seen = l.carrier
	blinked := was && l.seen && kind == fabric.PortChanged && l.changes > l.known+1
	if blinked || !l.seen && (was || kind == fabric.PortAdded) {
		d.seen.expire(d.w.now, d)
		d.look(func() { d.seen.down(l.port) })
		l.lostParting()
		l.told = d.w.now
	}
	l.known = l.changes
	d.core.Port(fabric.Event{Kind: kind, At: d.w.time(), Changes: uint64(l.changes) + 1, Port: fabric.Port{
		Name: l.port, Index: l.index, MAC: l.mac, MTU: 1500, AdminUp: true, Carrier: l.carrier,
	}}, d.w.time())
}

// SendFrame implements core.Actions.
func (d *device) SendFrame(port string, frame []byte) {
	i := slices.IndexFunc(d.ports, func(l *cable) bool { return l.port == port })
	if i < 0 {
		d.w.failf("%s sends on port %s, which it does not have", d.name, port)
		return
	}
	if d == d.w.bad.rogue {
		d.w.toRogue(frame)
		return
	}
	d.w.spoke(d, d.ports[i], frame)
	d.ports[i].toHost(frame)
}

// ToReflectors implements core.Actions.
func (d *device) ToReflectors(ds []wire.Delivery) { d.deliver(d.dialed, ds) }

// ToClients implements core.Actions.
func (d *device) ToClients(ds []wire.Delivery) { d.deliver(d.accepted, ds) }

func (d *device) deliver(to map[netip.Addr]*end, ds []wire.Delivery) {
	err := virtual.Deliver(ds, to, func(e *end, m wire.Message, enc *wire.Encoded) {
		if e.Up && !e.Closed {
			e.deliver(m, enc)
		}
	})
	if err != nil {
		d.w.failf("%s: a message cannot be encoded: %v", d.name, err)
	}
}

// SetAdmin implements core.Actions; no cause shuts ports here.
func (d *device) SetAdmin(port string, up bool) {
	d.w.failf("%s: port %s is set %v, which nobody asked for", d.name, port, up)
}

// WatchPaths implements core.Actions; the reflectors here do not ask for it.
func (d *device) WatchPaths([]bfd.Peer) {}

// frame takes a frame off an access link.
func (d *device) frame(l *cable, f *hostFrame, arrived time.Duration) {
	if !d.running {
		return
	}
	d.w.tracef("%s %s takes %s", d.name, l.port, f)
	if f.reg != nil && arrived >= l.told {
		d.seen.expire(d.w.now, d)
		d.look(func() { d.seen.heard(l, f, d.w.now) })
	}
	for _, a := range f.acks {
		d.acked(l, f.host, a, arrived)
	}
	for _, a := range f.queries {
		f.host.queried(a, d, l)
	}
	d.core.Frame(fabric.Frame{
		Port: l.port, At: virtual.Wall(arrived), Dst: fabric.MAC(f.bytes[0:6]), Src: fabric.MAC(f.bytes[6:12]),
		EtherType: uint16(f.bytes[12])<<8 | uint16(f.bytes[13]), Payload: slices.Clone(f.bytes[14:]),
	}, d.w.time())
	d.settle()
}

// describe is a message in one line.
func describe(m wire.Message) string {
	u, ok := m.(*wire.Update)
	if !ok {
		return m.Type().String()
	}
	s := "Update"
	if u.Settings != nil {
		s += fmt.Sprintf(" auto-join %v", u.Settings.AutoJoin)
	}
	for _, z := range u.Zones {
		s += fmt.Sprintf(" %v zone %s(%d)", z.Op, z.Zone.Name, len(z.Zone.Members))
	}
	for _, h := range u.Hosts {
		s += fmt.Sprintf(" %v %s@%s/%s", h.Op, h.Host.Addr, h.Host.Device, h.Host.HostKey.Port)
		switch {
		case h.Op == wire.Withdraw:
			s += "(" + h.Why.String() + ")"
		case h.Host.Claim == zone.ClaimRival:
			s += "(rival)"
		}
		if h.Op == wire.Put && h.Host.Doubt {
			s += "(doubt)"
		}
		if h.Op == wire.Put && h.Host.Down.Is() {
			s += "(" + h.Host.Down.Why.String() + ")"
		}
	}
	for _, d := range u.Downs {
		s += fmt.Sprintf(" %v down %s/%s%v", d.Op(), d.Device, d.Port, d.Addrs)
	}
	if u.More {
		s += " more"
	}
	return s
}
