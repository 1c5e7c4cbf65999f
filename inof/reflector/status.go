package reflector

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Counters count what a Reflector did.
type Counters struct {
	UpdatesIn       uint64 `json:"updates_in"`
	RecordsIn       uint64 `json:"records_in"`
	UpdatesOut      uint64 `json:"updates_out"`    // messages made, each for one or more clients
	DeliveriesOut   uint64 `json:"deliveries_out"` // messages times receivers
	NotOwned        uint64 `json:"records_not_owned"`
	OverLimit       uint64 `json:"records_over_limit"`
	BadRecords      uint64 `json:"bad_records"`
	UnknownPeer     uint64 `json:"unknown_device"`
	UnexpectedTypes uint64 `json:"unexpected_types"`
	Syncs           uint64 `json:"syncs"`
	Swept           uint64 `json:"records_swept"`    // a returning device did not repeat them
	AgedOut         uint64 `json:"records_aged_out"` // the grace time of their device passed
	ClientsRefused  uint64 `json:"clients_refused"`
	Outside         uint64 `json:"outside"` // hosts outside of what their device is bound to
	TooLarge        uint64 `json:"records_too_large"`
	Resumed         uint64 `json:"resumed"`     // sessions in which a client got only what it had missed
	ResumedIn       uint64 `json:"resumed_in"`  // sessions in which a client sent only what it had to
	ResumeLost      uint64 `json:"resume_lost"` // sessions that had to be begun again
	ZonesAlike      uint64 `json:"zones_alike"` // full syncs without zones: the client holds the same
	HeldBack        uint64 `json:"held_back"`   // syncs of clients that had started without their state
	Steps           uint64 `json:"sync_steps"`  // messages for clients that had more to be told than one of them
}

// KnownDevices are the devices that this reflector Knows, sorted; to be kept by the
// daemon over a restart.
func (r *Reflector) KnownDevices() []netip.Addr {
	known := maps.Clone(r.awaited)
	for id := range r.devices {
		if r.Knows(id) {
			known[id] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(known), netip.Addr.Compare)
}

// Knows reports whether a device has a session or records, or is still awaited.
func (r *Reflector) Knows(dev netip.Addr) bool {
	if _, awaited := r.awaited[dev]; awaited {
		return true
	}
	d := r.devices[dev]
	return d != nil && (d.up || !d.empty())
}

// Awaited is a device without a session whose records are kept until a deadline.
type Awaited struct {
	Device netip.Addr
	Until  time.Time
	Hosts  int // records that are kept; of one awaited since the start of this process none is known
}

// Awaited are the devices that had a session, here or before this process was started,
// and have none, with the time at which they are given up, sorted by device id.
func (r *Reflector) Awaited() []Awaited {
	var out []Awaited
	for _, d := range r.devices {
		if !d.up && !d.expires.IsZero() {
			out = append(out, Awaited{Device: d.id, Until: d.expires, Hosts: len(d.hosts)})
		}
	}
	for id := range r.awaited {
		if d := r.devices[id]; !r.patience.IsZero() && (d == nil || !d.up && d.expires.IsZero()) {
			out = append(out, Awaited{Device: id, Until: r.patience})
		}
	}
	slices.SortFunc(out, func(a, b Awaited) int { return a.Device.Compare(b.Device) })
	return out
}

// Sessions tells how the present session with a device began: what it sent to us, and
// what we sent.
func (r *Reflector) Sessions(dev netip.Addr) (in, out wire.ResumeKind) {
	if d := r.devices[dev]; d != nil && d.up {
		in, out = d.in, d.out
	}
	return in, out
}

// Directory is the reflector's table of all hosts; to be read only.
func (r *Reflector) Directory() *zone.Directory { return r.dir }

// Counters returns a copy.
func (r *Reflector) Counters() Counters { return r.counters }
