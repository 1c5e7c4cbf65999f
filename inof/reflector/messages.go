package reflector

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// What a backlog has for some devices becomes messages: the present state of its keys.

const (
	syncVisits = 2048 // records of tables that a step of a full sync looks at
	// About the least bytes of a zone and a host on the wire, for how many fit a message.
	dumpedZone = 32
	dumpedHost = 64
)

// taking collects what is told next.
type taking struct {
	wire.Batch
	refused *wire.Refusal
	downs   wire.Downs
	room    int    // bytes
	visits  int    // records
	by      *cause // of what is told: with the earliest fault, or the last one
}

// follows takes what a key that is told waited for.
func (t *taking) follows(c *cause) {
	if c != nil && (t.by == nil || t.by.fault.IsZero() || !c.fault.IsZero() && c.fault.Before(t.by.fault)) {
		t.by = c
	}
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
	t := taking{room: wire.SyncChunk, visits: math.MaxInt, downs: r.downs}
	if r.downs = nil; t.downs == nil {
		t.downs = wire.Downs{}
	}
	if n := r.cfg.SyncStep; n > 0 && (b.full || b.walks()) {
		t.visits = n
	} else if b.dump != nil || b.walks() {
		t.visits = syncVisits
	}
	if b.dump != nil || b.walks() {
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
		if k == rankDumpHosts {
			r.dumpKnown(b, d, &t)
		}
		for t.on() {
			n, ok := b.next(k)
			if !ok {
				break
			}
			t.follows(n.by)
			if t.visits--; n.kind == keyArea {
				b.known, b.area = math.MaxInt, false
				continue
			}
			keyKinds[n.kind].say(r, d, n, &t)
		}
	}
	if t.Downs = t.downs.Records(); len(t.downs) <= smallChange {
		clear(t.downs)
		r.downs = t.downs
	}
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
	if c := t.by; c != nil {
		like.FaultAt, like.DecidedAt, like.ReflectorAt = c.fault, c.decided, c.came
	}
	if l := b.last; l != nil && l.origin != r.self {
		like.Origin, like.Epoch, like.Seq, like.SentAt = l.origin, l.epoch, l.seq, cmp.Or(t.by, l).sent
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
		t.others(r, row, d)
	}
}

// dumpKnown tells all hosts that a device knows since it came to a zone, those of its other zones
// too: a host may leave the zone meanwhile for one of them, and nothing else would tell it.
func (r *Reflector) dumpKnown(b *backlog, d *device, t *taking) {
	list := r.interest.addrRows.list
	for b.known = min(b.known, len(list)); b.known > 0 && t.on(); t.visits-- {
		b.known--
		if row := list[b.known]; r.interest.knows(d.id, row.addr) {
			t.others(r, row, d)
		}
	}
}

// fenceWith adds what is fenced at a host that is put, if anything is.
func (t *taking) fenceWith(r *Reflector, k zone.HostKey) {
	if f := r.fenceOf(k); len(f.Peers) > 0 {
		t.fence(f)
	}
}

func (t *taking) fence(f wire.FenceRecord) {
	t.Fences = append(t.Fences, f)
	t.room -= f.Size()
}

// others adds what hosts at other devices have an address.
func (t *taking) others(r *Reflector, row *addrRow, d *device) {
	for i := range row.atts {
		if h := &row.atts[i]; h.Device != d.id {
			t.host(wire.HostRecord{Op: wire.Put, Host: *h})
			t.fenceWith(r, h.HostKey)
		}
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
