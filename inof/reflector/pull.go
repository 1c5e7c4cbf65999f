package reflector

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

const (
	syncVisits = 2048 // records of tables that a step of a full sync looks at
	// About the least bytes of a zone and a host on the wire, for how many fit a message.
	dumpedZone = 32
	dumpedHost = 64
	// Of a device that is concerned with no more hosts than this only those are looked at.
	fewMost = 1024
)

// Waiting tells whether something has changed that was not pulled yet.
func (r *Reflector) Waiting() bool { return r.feed.fresh < len(r.feed.posts) || r.ends }

// Owing tells whether a Step can go on.
func (r *Reflector) Owing() bool { return r.more || len(r.handing) > 0 }

// Owed appends the devices that have more to be told than they were given.
func (r *Reflector) Owed(dst []netip.Addr) []netip.Addr {
	for _, d := range r.owing {
		if d.owed != nil {
			dst = append(dst, d.id)
		}
	}
	return dst
}

// Drained says that the session of a device that was not ready is.
func (r *Reflector) Drained() { r.more = len(r.owing) > 0 }

// Losses are the devices of which a change that was not pulled yet tells a loss (a fault, or
// a host that has gone): none, one, or several.
type Losses struct {
	Any, Several bool
	One          netip.Addr // the first
}

func (l *Losses) add(dev netip.Addr) {
	l.Several = l.Several || l.Any && l.One != dev
	if !l.Any {
		l.Any, l.One = true, dev
	}
}

// Losses are those among what waits for Pull.
func (r *Reflector) Losses() Losses { return r.losses }

// Work is how many records the reflector has looked at because of the last message that was
// received, beside those that it has.
func (r *Reflector) Work() int { return r.work }

// post lets devices hear of something.
func (r *Reflector) post(list []news, to receivers, by *cause) {
	r.feed.post(list, to, by)
	if !r.losses.Several && slices.ContainsFunc(list, func(n news) bool { return n.loss() }) {
		r.losses.add(by.origin)
	}
}

// Pull gives what has changed since the last Pull: to each device that it concerns and whose
// session is ready to take it, about a message full. What is more than that, and what
// concerns others, they are given by later Steps; a loss they are given at once. Ready is asked for
// each device; nil: all are.
func (r *Reflector) Pull(ready func(dev netip.Addr) bool, now time.Time) []wire.Delivery {
	var out []wire.Delivery
	r.losses = Losses{}
	for _, s := range r.feed.handOut() {
		b := s.owed
		switch {
		case b == nil:
			b = &backlog{users: len(s.devices)}
		case b.users > len(s.devices):
			b = b.clone(len(s.devices))
			for _, d := range s.devices {
				d.owed = b
			}
		}
		for _, i := range s.posts {
			b.add(&r.feed.posts[i])
		}
		switch {
		case s.owed == nil && b.patient():
			r.owe(s.devices, b)
			r.more = true
		case s.owed == nil || b.urgent():
			out = r.give(out, b, s.devices, s.owed != nil, ready, now)
		}
	}
	r.feed.trim()
	return r.tell(out, now)
}

// Step goes on with what some devices were given and others not yet. Without such it gives the next
// about 32 KiB to the device that waits longest, and to those who have the same to be told, if their
// sessions are ready.
func (r *Reflector) Step(ready func(dev netip.Addr) bool, now time.Time) []wire.Delivery {
	var out []wire.Delivery
	if len(r.handing) > 0 {
		return r.tell(r.handOn(out, r.handing[0]), now)
	}
	r.more = false
	for n := len(r.owing); n > 0; n-- {
		d := r.owing[0]
		r.owing = r.owing[1:]
		if d.owing = d.owed != nil; !d.owing {
			continue
		}
		r.owing = append(r.owing, d)
		if ready != nil && !ready(d.id) {
			continue
		}
		devs := []*device{d}
		if b := d.owed; b.users > 1 {
			devs = slices.DeleteFunc(slices.Clone(r.owing), func(o *device) bool { return o.owed != b })
			slices.SortFunc(devs, compareDevices)
		}
		r.more = n > 1
		r.counters.Steps++
		out = r.give(out, d.owed, devs, false, ready, now)
		break
	}
	return r.tell(out, now)
}

// give lets those of some devices that are ready have about a message full of their backlog,
// or of the losses in it.
func (r *Reflector) give(out []wire.Delivery, b *backlog, devs []*device, losses bool, ready func(netip.Addr) bool, now time.Time) []wire.Delivery {
	can := devs
	var cannot []*device
	for i, d := range devs {
		if ready == nil || ready(d.id) {
			if len(cannot) > 0 {
				can = append(can, d)
			}
			continue
		}
		if len(cannot) == 0 {
			can = slices.Clone(devs[:i])
		}
		cannot = append(cannot, d)
	}
	r.owe(cannot, b)
	if len(can) == 0 {
		return out
	}
	if len(can) < b.users {
		b = b.clone(len(can))
	}
	out = r.handAll(out, can)
	urgent := b.urgent()
	h := r.take(b, can[0], losses, now)
	if h.to = can; urgent {
		h.most = len(can)
	}
	if len(can) == 1 && len(h.msgs) == 1 {
		h.form[0].Done = func() { r.used(h.of) }
	}
	r.counters.UpdatesOut += uint64(len(h.msgs))
	out = r.hand(out, h)
	if b.empty() {
		b, r.ends = nil, true
	} else {
		r.more = true
	}
	r.owe(can, b)
	return out
}

// owe says what devices are still to be told, nil: nothing.
func (r *Reflector) owe(devs []*device, b *backlog) {
	for _, d := range devs {
		if d.owed = b; b != nil && !d.owing {
			d.owing = true
			r.owing = append(r.owing, d)
		}
	}
}

// disown forgets what a device is still to be told.
func (r *Reflector) disown(d *device) {
	if d.owed != nil {
		d.owed.users--
		d.owed = nil
	}
	r.takeBack(d)
}

// taking collects what is told next.
type taking struct {
	wire.Batch
	refused *wire.Refusal
	downs   wire.Downs
	room    int // bytes
	visits  int // records
}

// spareRoom is what the last record of a message may need: with less left it is full, so that no
// message of one record follows each.
const spareRoom = 512

func (t *taking) on() bool { return t.room > spareRoom && t.visits > 0 }

// used takes back the memory of records that nobody has any more, for the next message of a full
// sync: it would be most of the garbage of one.
func (r *Reflector) used(of wire.Batch) {
	clear(of.Zones)
	clear(of.Hosts)
	r.spare = wire.Batch{Zones: of.Zones[:0], Hosts: of.Hosts[:0]}
}

// take makes the next messages of a backlog, as they are for one of its devices, and says how many
// devices are given them in a step.
func (r *Reflector) take(b *backlog, d *device, losses bool, now time.Time) *handing {
	t := taking{room: wire.SyncChunk, visits: math.MaxInt, downs: wire.Downs{}}
	if n := r.cfg.SyncStep; n > 0 && b.full {
		t.visits = n
	} else if b.dump != nil {
		t.visits = syncVisits
	}
	if b.dump != nil {
		t.Batch, r.spare = r.spare, wire.Batch{}
	}
	last := ranks - 1
	if losses {
		last = rankDown
	}
	for k := range last + 1 {
		switch {
		case k == rankDumpZones && b.dump != nil:
			r.dumpZones(b.dump, &t)
		case k == rankDumpHosts && b.dump != nil:
			if r.dumpHosts(b.dump, d, &t); b.dump.zones == 0 && b.dump.hosts == 0 {
				b.dump = nil
			}
		}
		for t.on() {
			n, ok := b.next(k)
			if !ok {
				break
			}
			t.visits--
			r.say(d, n, &t)
		}
	}
	t.Downs = t.downs.Records()
	h := &handing{msgs: r.messages(b, &t, now), of: t.Batch, most: r.cfg.SyncStep}
	if h.form = make([]wire.Form, len(h.msgs)); h.most == 0 {
		h.most = handBytes / max(1, wire.SyncChunk-t.room)
	}
	return h
}

// messages are the Updates of what was taken. While zones or settings wait that are not in
// them the zones told so far are not the whole of a state.
func (r *Reflector) messages(b *backlog, t *taking, now time.Time) []*wire.Update {
	like := wire.Update{Origin: r.self, Epoch: r.epoch, Seq: r.feed.handed, SentAt: now, ReflectedAt: now, More: b.zonesWait()}
	if c := b.cause; c != nil {
		like.FaultAt, like.DecidedAt, like.ReflectorAt = c.fault, c.decided, c.came
		if l := b.last; l.origin != r.self {
			like.Origin, like.Epoch, like.Seq, like.SentAt = l.origin, l.epoch, l.seq, c.sent
		}
	}
	out := t.Updates(&like, &r.counters.TooLarge)
	if len(out) == 0 && (t.refused != nil || b.more && !like.More) {
		out = append(out, &like)
	}
	if len(out) == 0 {
		return nil
	}
	b.more = like.More
	out[0].Anew, out[0].Refused = b.anew, t.refused
	b.anew = false
	for i, u := range out {
		u.StampDevices(r.stampOf)
		u.Partial = b.full || !b.empty() || i < len(out)-1
		if u.Cluster = r.cluster; u.More {
			u.Cluster = r.cluster.Within()
		}
		if !u.Partial && u.Origin != r.self {
			u.Pos = wire.Stamp{Epoch: r.epoch, Seq: r.feed.handed}
		}
	}
	return out
}

// stampOf is the state of a device of which its records here are.
func (r *Reflector) stampOf(dev netip.Addr) wire.Stamp {
	if d := r.devices[dev]; d != nil {
		return d.stamp
	}
	return wire.Stamp{}
}

// beginSync lets a device be told everything that concerns it, but for the zones where those
// that it holds are still the same.
func (r *Reflector) beginSync(d *device) {
	r.disown(d)
	d.whole = false
	r.moves++
	b := &backlog{users: 1, full: true, anew: true, dump: r.dump(d)}
	if d.zoned.Known() && d.zoned == r.interest.digest {
		b.anew, b.dump.zones = false, 0
		r.counters.ZonesAlike++
	}
	b.put(news{feedKey: feedKey{kind: keySettings}})
	r.owe([]*device{d}, b)
	r.more = true
}

// dump gives what a full sync of a device goes through.
func (r *Reflector) dump(d *device) *dump {
	in := &r.interest
	most := fewMost
	if r.cfg.SyncStep > 0 {
		most = 0
	}
	if _, all := in.all[d.id]; all {
		most = -1
	}
	n := len(d.hosts)
	for name := range d.zones {
		if in.areas[name] != nil {
			n += len(in.areas[name].hosts)
		}
		if n > most {
			break
		}
	}
	if n > most {
		return &dump{zones: math.MaxInt, hosts: math.MaxInt}
	}
	addrs := map[netip.Addr]struct{}{}
	for k := range d.hosts {
		addrs[k.Addr] = struct{}{}
	}
	for name := range d.zones {
		for a := range in.areas[name].hosts {
			addrs[a] = struct{}{}
		}
	}
	few := slices.AppendSeq(make([]netip.Addr, 0, len(addrs)), maps.Keys(addrs))
	slices.SortFunc(few, netip.Addr.Compare)
	return &dump{zones: math.MaxInt, hosts: len(few), few: few}
}

func (r *Reflector) dumpZones(p *dump, t *taking) {
	list := r.interest.zoneRows.list
	t.Zones = slices.Grow(t.Zones, min(p.zones, len(list), t.room/dumpedZone))
	for p.zones = min(p.zones, len(list)); p.zones > 0 && t.on(); t.visits-- {
		p.zones--
		t.zone(list[p.zones].record())
	}
}

// dumpHosts comes after the zones: what waits for a rank of them may not be there yet.
func (r *Reflector) dumpHosts(p *dump, d *device, t *taking) {
	if p.zones > 0 {
		return
	}
	_, all := r.interest.all[d.id]
	list, n := r.interest.addrRows.list, len(r.interest.addrRows.list)
	if p.few != nil {
		n = len(p.few)
	}
	if all {
		t.Hosts = slices.Grow(t.Hosts, max(0, min(p.hosts, n, t.room/dumpedHost)))
	}
	for p.hosts = min(p.hosts, n); p.hosts > 0 && t.on(); t.visits-- {
		p.hosts--
		var row *addrRow
		if p.few == nil {
			row = list[p.hosts]
		} else if row = r.interest.addrs[p.few[p.hosts]]; row == nil {
			continue
		}
		if !(all && len(row.zones) > 0) && !r.interest.knows(d.id, row.addr) {
			continue
		}
		for i := range row.atts {
			h := &row.atts[i]
			if h.Device == d.id {
				continue
			}
			t.host(wire.HostRecord{Op: wire.Put, Host: *h})
		}
	}
}

// say adds the state of a key as a device sees it.
func (r *Reflector) say(d *device, n news, t *taking) {
	k := n.host
	switch n.kind {
	case keySettings:
		t.Settings = r.settings()
	case keyZone:
		rec := wire.ZoneRecord{Op: wire.Withdraw}
		rec.Zone.Name = k.Port
		if z, there := r.interest.zones[k.Port]; there {
			rec = z.record()
		}
		t.zone(rec)
	case keyHost:
		t.host(r.hostFor(d, n))
	case keyTaken:
		e := r.interest.at(k.Addr)
		if i, there := findAtt(e.atts, k); there {
			t.host(wire.HostRecord{Op: wire.Put, Host: e.atts[i]})
		}
	case keyDown:
		e := r.interest.at(k.Addr)
		if i, there := findAtt(e.atts, k); there && r.interest.knows(d.id, k.Addr) {
			t.down(k, e.atts[i].Down)
		}
	case keyRefused:
		t.refused = &wire.Refusal{Hosts: uint32(len(d.refused)), Limit: uint32(d.limit), Again: d.sayAgain, Outside: uint32(len(d.outside)), Named: d.outsideNamed()}
		d.sayAgain = false
	}
}

func (t *taking) zone(z wire.ZoneRecord) {
	t.Zones = append(t.Zones, z)
	t.room -= z.Size()
}

func (t *taking) host(h wire.HostRecord) {
	t.Hosts = append(t.Hosts, h)
	t.room -= h.Size()
}

// down says whether a host is down.
func (t *taking) down(k zone.HostKey, is zone.Down) {
	t.downs[k] = is
	t.room -= wire.AddrLen(k.Addr)
}
