package reflector

import (
	"net/netip"
	"slices"

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
	why      map[zone.HostKey]snsd.Reason // of hosts that are gone
	settings bool
	repeat   bool           // also what is as before is told, as of a new state of its device
	taken    []zone.HostKey // taken in: to be repeated to their device
	fenced   []zone.HostKey // where a device has fenced other hosts than before
	emptied  []*addrRow     // that nobody has any more
	lost     []news         // refused hosts that have gone

	left    map[string][]netip.Addr // devices that are no more concerned with a zone
	news    []news
	plans   map[netip.Addr][]uint32 // news by number for each receiver, from 1
	actors  []netip.Addr            // only they are looked at, sorted; nil: all that may be concerned
	classes map[netip.Addr]*class   // for whom an actor acts, if not for itself
}

// begin gives an empty change: the last one, if that was a small one. A fault that finds its tables
// where the last one left them makes little garbage, and little wait for memory.
func (r *Reflector) begin() *change {
	if t := r.ended; t != nil {
		r.ended = nil
		return t
	}
	return &change{
		addrs: map[netip.Addr]entry{}, interest: map[devZone]bool{}, zones: map[string]bool{},
		why: map[zone.HostKey]snsd.Reason{}, left: map[string][]netip.Addr{}, plans: map[netip.Addr][]uint32{},
	}
}

// smallChange is how many entries a table may have that is used again: to clear one takes as long
// as it ever was large.
const smallChange = 64

// end gives a change back that has been committed.
func (r *Reflector) end(t *change) {
	if max(len(t.addrs), len(t.interest), len(t.zones), len(t.why), len(t.left), len(t.plans), len(t.news), len(t.taken), len(t.fenced), len(t.emptied)) > smallChange {
		return
	}
	clear(t.addrs)
	clear(t.interest)
	clear(t.zones)
	clear(t.why)
	clear(t.left)
	clear(t.plans)
	clear(t.emptied)
	*t = change{addrs: t.addrs, interest: t.interest, zones: t.zones, why: t.why, left: t.left, plans: t.plans,
		taken: t.taken[:0], fenced: t.fenced[:0], emptied: t.emptied[:0], news: t.news[:0]}
	r.ended = t
}

// touch keeps the state of an address before the change.
func (r *Reflector) touch(t *change, addr netip.Addr) {
	if _, ok := t.addrs[addr]; !ok {
		t.addrs[addr] = r.interest.at(addr)
	}
}

// number gives the number of news, adding it when num is still 0.
func (t *change) number(num *uint32, n news) uint32 {
	if *num == 0 {
		t.news = append(t.news, n)
		*num = uint32(len(t.news))
	}
	return *num
}

// plan lets a device hear of something, if it follows changes.
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
	return r.interest.at(addr)
}

// touchChanged notes the hosts whose zones or state have changed in the Directory: of
// those that stay in a zone nothing is to be told.
func (r *Reflector) touchChanged(t *change, cs zone.Changes) {
	for _, c := range cs {
		r.touch(t, c.Addr)
	}
}

// touchContested notes the addresses of changes that more than one host claims: they may
// have passed from one to the other.
func (r *Reflector) touchContested(t *change, cs zone.Changes) {
	for _, c := range cs {
		if len(r.interest.at(c.Addr).atts) > 1 {
			r.touch(t, c.Addr)
		}
	}
}

// sortedKeys are those of a map, in one piece of memory.
func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}
