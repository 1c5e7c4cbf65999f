package inof

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

type devZone struct {
	dev  netip.Addr
	zone string
}

// change collects, while one input is handled, the state before it of all that it
// touches. Who must be told what is the difference to the state after it.
type change struct {
	addrs    map[netip.Addr]entry
	interest map[devZone]bool             // was the device concerned with the zone
	zones    map[string]bool              // was the zone there
	faults   map[portKey]*FaultRecord     // nil: there was none
	why      map[zone.HostKey]snsd.Reason // of hosts that are gone
	settings bool
	repeat   bool         // also what is as before is told, as of a new state of its device
	placed   []zone.Host  // taken in: to be repeated to their device
	emptied  []netip.Addr // that nobody has any more
	asked    []asker      // questions that are new or asked again
	answers  []asker      // to whom something is to be answered, sorted

	left    map[string][]netip.Addr // devices that are no more concerned with a zone
	records batch
	plans   map[netip.Addr][]uint32  // records by number for each receiver
	actors  []netip.Addr             // only they are looked at, sorted; nil: all that may be concerned
	classes map[netip.Addr]*class    // for whom an actor acts, if not for itself
	listed  map[portKey][]netip.Addr // of faults: the addresses that may look different
	downs   []down                   // that do to some device
}

// down is an address behind a port that a device sees fail, or no more.
type down struct {
	dev  netip.Addr
	port portKey
	addr netip.Addr
	is   bool
}

// A record's number is its index with the kind of record in the upper bits.
const (
	numZone     uint32 = 1 << 28
	numHost     uint32 = 2 << 28
	numFault    uint32 = 3 << 28
	numSettings uint32 = 4 << 28
	numStanding uint32 = 5 << 28
	numKind     uint32 = 15 << 28
)

func (r *Reflector) begin() *change {
	return &change{
		addrs: map[netip.Addr]entry{}, interest: map[devZone]bool{}, zones: map[string]bool{},
		faults: map[portKey]*FaultRecord{}, why: map[zone.HostKey]snsd.Reason{},
	}
}

// touch keeps the state of an address before the change.
func (r *Reflector) touch(t *change, addr netip.Addr) {
	if _, ok := t.addrs[addr]; !ok {
		t.addrs[addr] = r.interest.addrs[addr]
	}
}

func (t *change) touchFault(d *device, port string) {
	k := portKey{d.id, port}
	if _, ok := t.faults[k]; ok {
		return
	}
	t.faults[k] = nil
	if e := d.faults[port]; e != nil {
		t.faults[k] = &e.rec
	}
}

func (r *Reflector) ownStamps(now time.Time) stamps {
	return stamps{origin: r.self, epoch: r.epoch, seq: r.nextSeq, sent: now, at: now, logged: true}
}

// causeStamps are ownStamps of a change that is itself an event: the zones were
// changed, the grace time of a device ended.
func (r *Reflector) causeStamps(at, now time.Time) stamps {
	s := r.ownStamps(now)
	s.fault, s.decided = at, now
	return s
}

// commit ends a change and gives what must be sent.
func (r *Reflector) commit(t *change, s stamps) []Delivery {
	for addr, before := range t.addrs {
		if !r.settle(t, addr, before) && !t.repeat {
			delete(t.addrs, addr)
		}
	}
	slices.SortFunc(t.emptied, netip.Addr.Compare)
	for _, addr := range t.emptied {
		r.interest.addrKeys.remove(addr, len(r.syncs) > 0)
	}
	t.left = map[string][]netip.Addr{}
	for k, before := range t.interest {
		now := r.interest.concerned(k.dev, k.zone)
		switch {
		case now == before:
			delete(t.interest, k)
		case before:
			t.left[k.zone] = append(t.left[k.zone], k.dev)
		}
		r.interest.tidy(k.zone)
	}
	t.plans = map[netip.Addr][]uint32{}
	r.review(t)
	r.listFaults(t)
	r.cast(t)
	if t.settings {
		t.records.Settings = r.settings()
		for id := range r.devices {
			r.plan(t, id, numSettings)
		}
	}
	r.planZones(t)
	r.planHosts(t)
	r.planFaults(t)
	r.planAnswers(t)
	for i := range t.placed {
		var num uint32
		r.plan(t, t.placed[i].Device, t.hostRecord(&num, HostRecord{Op: Put, Host: t.placed[i]}))
	}
	return r.group(t, s)
}

// plan gives a record to a device, if it follows changes.
func (r *Reflector) plan(t *change, dev netip.Addr, num uint32) {
	if d := r.devices[dev]; d != nil && d.follows() {
		t.plans[dev] = append(t.plans[dev], num)
	}
}

// before tells what concerned told before the change.
func (r *Reflector) before(t *change, dev netip.Addr, name string) bool {
	if v, ok := t.interest[devZone{dev, name}]; ok {
		return v
	}
	return r.interest.concerned(dev, name)
}

// knew tells what knows told before the change.
func (r *Reflector) knew(t *change, dev, addr netip.Addr) bool {
	e := r.was(t, addr)
	if e.attachedTo(dev) {
		return true
	}
	for _, z := range e.zones {
		if r.before(t, dev, z) {
			return true
		}
	}
	return false
}

// was is an address before the change.
func (r *Reflector) was(t *change, addr netip.Addr) entry {
	if e, ok := t.addrs[addr]; ok {
		return e
	}
	return r.interest.addrs[addr]
}

// devicesOf appends those concerned with a zone before or after the change.
func (r *Reflector) devicesOf(t *change, dst []netip.Addr, name string) []netip.Addr {
	if t.actors != nil {
		return append(dst, t.actors...)
	}
	if a := r.interest.areas[name]; a != nil {
		for dev := range a.devs {
			dst = append(dst, dev)
		}
	}
	for dev := range r.interest.all {
		dst = append(dst, dev)
	}
	return append(dst, t.left[name]...)
}

// audience are the devices that know an address before or after the change, sorted.
func (r *Reflector) audience(t *change, dst []netip.Addr, addr netip.Addr) []netip.Addr {
	dst = dst[:0]
	if t.actors != nil {
		return append(dst, t.actors...)
	}
	before, now := r.was(t, addr), r.interest.addrs[addr]
	for _, atts := range [...][]zone.Host{before.atts, now.atts} {
		for i := range atts {
			dst = append(dst, atts[i].Device)
		}
	}
	for _, z := range now.zones {
		dst = r.devicesOf(t, dst, z)
	}
	for _, z := range before.zones {
		if !slices.Contains(now.zones, z) {
			dst = r.devicesOf(t, dst, z)
		}
	}
	slices.SortFunc(dst, netip.Addr.Compare)
	return slices.Compact(dst)
}

func (r *Reflector) planZones(t *change) {
	names := map[string]struct{}{}
	for name := range t.zones {
		names[name] = struct{}{}
	}
	for k := range t.interest {
		names[k.zone] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		had, changed := t.zones[name]
		z, have := r.interest.zones[name]
		if !changed {
			had = have
		}
		put, withdraw := uint32(0), uint32(0)
		devs := r.devicesOf(t, nil, name) // one may be there twice: it asks for everything too
		slices.SortFunc(devs, netip.Addr.Compare)
		for _, dev := range slices.Compact(devs) {
			held := had && r.before(t, dev, name)
			holds := have && r.interest.concerned(dev, name)
			switch {
			case holds && (changed || !held):
				r.plan(t, dev, t.zoneRecord(&put, ZoneRecord{Op: Put, Zone: z}))
			case held && !holds:
				r.plan(t, dev, t.zoneRecord(&withdraw, ZoneRecord{Op: Withdraw, Zone: zone.Zone{Name: name}}))
			}
		}
	}
}

// zoneRecord gives the number of a record, adding it when num is still 0.
func (t *change) zoneRecord(num *uint32, z ZoneRecord) uint32 {
	if *num == 0 {
		*num = numZone | uint32(len(t.records.Zones))
		t.records.Zones = append(t.records.Zones, z)
	}
	return *num
}

func (r *Reflector) planHosts(t *change) {
	var devs []netip.Addr
	for _, addr := range slices.SortedFunc(maps.Keys(t.addrs), netip.Addr.Compare) {
		w := r.watch(t, addr)
		devs = r.audience(t, devs, addr)
		for _, dev := range devs {
			w.tell(r, t, dev)
		}
	}
	// Hosts that are as before, but a device has come to a zone of theirs or left it.
	met := map[netip.Addr]map[netip.Addr]struct{}{}
	for k := range t.interest {
		a := r.interest.areas[k.zone]
		if d := r.devices[k.dev]; a == nil || d == nil || !d.follows() {
			continue
		}
		for addr := range a.hosts {
			if _, touched := t.addrs[addr]; touched {
				continue
			}
			if met[addr] == nil {
				met[addr] = map[netip.Addr]struct{}{}
			}
			met[addr][k.dev] = struct{}{}
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(met), netip.Addr.Compare) {
		w := r.watch(t, addr)
		for _, dev := range slices.SortedFunc(maps.Keys(met[addr]), netip.Addr.Compare) {
			w.tell(r, t, dev)
		}
	}
}

// watched is one address with the numbers of its records, 0 where there is none yet.
type watched struct {
	addr          netip.Addr
	old, now      entry
	puts, removes []uint32
}

func (r *Reflector) watch(t *change, addr netip.Addr) watched {
	w := watched{addr: addr, old: r.was(t, addr), now: r.interest.addrs[addr]}
	w.puts, w.removes = make([]uint32, len(w.now.atts)), make([]uint32, len(w.old.atts))
	return w
}

// tell works out what a device must be told about the address.
func (w *watched) tell(r *Reflector, t *change, dev netip.Addr) {
	d := r.devices[dev]
	if d == nil || !d.follows() {
		return
	}
	knew, knows := r.knew(t, dev, w.addr), r.interest.knows(dev, w.addr)
	if !knew && !knows {
		return
	}
	for i := range w.old.atts {
		h := &w.old.atts[i]
		_, still := findAtt(w.now.atts, h.HostKey)
		if h.Device == dev {
			continue
		}
		if !still {
			w.tellDown(r, t, dev, portKey{h.Device, h.HostKey.Port}, knew, knows)
		}
		if knew && (!knows || !still) {
			why := snsd.ReasonZoneChanged
			if !still {
				why = t.why[h.HostKey]
			}
			r.plan(t, dev, t.hostRecord(&w.removes[i], HostRecord{Op: Withdraw, Host: zone.Host{HostKey: h.HostKey}, Why: why}))
		}
	}
	for i := range w.now.atts {
		h := &w.now.atts[i]
		if h.Device == dev {
			continue
		}
		w.tellDown(r, t, dev, portKey{h.Device, h.HostKey.Port}, knew, knows)
		if !knows {
			continue
		}
		j, was := findAtt(w.old.atts, h.HostKey)
		if !knew || !was || t.repeat || !sameHost(h, &w.old.atts[j]) {
			r.plan(t, dev, t.hostRecord(&w.puts[i], HostRecord{Op: Put, Host: *h}))
		}
	}
}

func (t *change) hostRecord(num *uint32, h HostRecord) uint32 {
	if *num == 0 {
		*num = numHost | uint32(len(t.records.Hosts))
		t.records.Hosts = append(t.records.Hosts, h)
	}
	return *num
}

// group makes one message for all devices that are to get the same records.
func (r *Reflector) group(t *change, s stamps) []Delivery {
	groups := map[string][]netip.Addr{}
	var order []string
	var key []byte
	for _, dev := range slices.SortedFunc(maps.Keys(t.plans), netip.Addr.Compare) {
		nums := t.plans[dev]
		slices.Sort(nums)
		key = key[:0]
		for _, n := range nums {
			key = binary.BigEndian.AppendUint32(key, n)
		}
		actors, seen := groups[string(key)]
		groups[string(key)] = append(actors, dev)
		if !seen {
			order = append(order, string(key))
		}
	}
	var out []Delivery
	for _, key := range order {
		actors := groups[key]
		b := t.records.pick(t.plans[actors[0]])
		to, all := r.everyone(t, actors)
		out = r.deliver(out, &b, to, s, &all)
	}
	return out
}

// everyone are all for whom some actors act: those with a session, and for the log
// all of them.
func (r *Reflector) everyone(t *change, actors []netip.Addr) (to []netip.Addr, all receivers) {
	if len(actors) == 1 && t.classes[actors[0]] != nil {
		return r.expand(t.classes[actors[0]])
	}
	for _, dev := range actors {
		c := t.classes[dev]
		if c == nil {
			all.list = append(all.list, dev)
			continue
		}
		_, of := r.expand(c)
		for _, dev := range of.list {
			if !slices.Contains(of.not, dev) {
				all.list = append(all.list, dev)
			}
		}
	}
	if t.classes != nil {
		slices.SortFunc(all.list, netip.Addr.Compare)
	}
	return r.connected(all.list), all
}

// pick gives the records with the given numbers.
func (b *batch) pick(nums []uint32) batch {
	var out batch
	for _, n := range nums {
		switch i := n &^ numKind; n & numKind {
		case numSettings:
			out.Settings = b.Settings
		case numZone:
			out.Zones = append(out.Zones, b.Zones[i])
		case numHost:
			out.Hosts = append(out.Hosts, b.Hosts[i])
		case numFault:
			out.Faults = append(out.Faults, b.Faults[i])
		case numStanding:
			out.Standings = append(out.Standings, b.Standings[i])
		}
	}
	return out
}

// connected are those of the devices with a session.
func (r *Reflector) connected(devs []netip.Addr) []netip.Addr {
	for i, dev := range devs {
		if r.devices[dev].hears() {
			continue
		}
		up := slices.Clone(devs[:i])
		for _, dev := range devs[i+1:] {
			if r.devices[dev].hears() {
				up = append(up, dev)
			}
		}
		return up
	}
	return devs
}

// deliver cuts a batch into messages, for to now and in the log for all; those of a
// full sync (all is nil) are not logged. Where zones or settings change, hosts are
// withdrawn by a message before that: a host that left a zone must not look for a
// moment like one of the default zone.
func (r *Reflector) deliver(out []Delivery, b *batch, to []netip.Addr, s stamps, all *receivers) []Delivery {
	rest := *b
	var gone batch
	if b.Settings != nil || len(b.Zones) > 0 {
		gone, rest = b.partition()
	}
	var last *Update
	for _, part := range [...]*batch{&gone, &rest} {
		for _, u := range part.updates(s, &r.counters.TooLarge) {
			last, u.Cluster = u, r.cluster.within()
			u.stampDevices(r.stampOf)
			if all == nil {
				u.Partial = true
			} else {
				seq := u.Seq
				if !s.logged { // of a client; it may be our own
					seq = r.nextSeq()
					u.Pos = Stamp{r.epoch, seq}
				}
				r.log.add(u, *all, seq)
				r.keepForSyncs(u, all)
			}
			if len(to) == 0 {
				continue
			}
			out = append(out, Delivery{To: to, Msg: u})
			r.counters.UpdatesOut++
			r.counters.DeliveriesOut += uint64(len(to))
		}
	}
	if last != nil && !last.Partial {
		last.Cluster = r.cluster
	}
	return out
}

// stampOf is the state of a device of which its records here are.
func (r *Reflector) stampOf(dev netip.Addr) Stamp {
	if d := r.devices[dev]; d != nil {
		return d.stamp
	}
	return Stamp{}
}

// regroups tells whether a host that a batch withdraws could look like one of the
// default zone when the rest of the batch comes before that.
func (b *batch) regroups() bool {
	if b.Settings != nil {
		return b.Settings.AutoJoin
	}
	return len(b.Zones) > 0
}

// partition splits off the withdrawals of hosts with those of their faults.
func (b *batch) partition() (gone, rest batch) {
	rest.Settings, rest.Zones, rest.Standings = b.Settings, b.Zones, b.Standings
	for _, h := range b.Hosts {
		if h.Op == Withdraw {
			gone.Hosts = append(gone.Hosts, h)
		} else {
			rest.Hosts = append(rest.Hosts, h)
		}
	}
	for _, f := range b.Faults {
		if f.Op == Withdraw && len(gone.Hosts) > 0 {
			gone.Faults = append(gone.Faults, f)
		} else {
			rest.Faults = append(rest.Faults, f)
		}
	}
	return gone, rest
}
