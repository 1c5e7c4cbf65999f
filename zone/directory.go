package zone

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Change is one address about which somebody may have to be told something new:
// its zones, its state, its service data or the machine that has it (the MAC) differ
// from before.
type Change struct {
	Addr netip.Addr `json:"addr"`
	// Why is the reason of the inactive state when the address is inactive or gone
	// now, ReasonZoneChanged when it left a zone, and 0 otherwise.
	Why snsd.Reason `json:"why"`
	// Peers is set when other hosts may concern it now: its zones, its service data or the
	// machine differ. Without it only others see a difference.
	Peers bool `json:"peers,omitempty"`
}

// Changes are sorted by address; each address is there once. A change of zones
// concerns pairs: who reads it looks at the address both as the one that is told
// about and as the one that is told.
type Changes []Change

// Conflict is an address that two hosts (two MAC addresses) claim.
type Conflict struct {
	Winner Host   `json:"winner"`
	Losers []Host `json:"losers"` // kept and shown, otherwise ignored
}

// Fault are hosts at one access port that cannot be reached, or a whole device.
type Fault struct {
	Device netip.Addr   `json:"device"`
	Port   string       `json:"port"` // empty: the whole device
	Why    snsd.Reason  `json:"why"`
	Addrs  []netip.Addr `json:"addrs"` // sorted; nil for a whole device
}

// Counters of a Directory. What is rejected is ignored and changes nothing.
type Counters struct {
	HostsRejected   uint64 `json:"hosts_rejected"`   // no unicast address, no device, a bad port name
	HostsOverLimit  uint64 `json:"hosts_over_limit"` // beyond Limits
	ZonesRejected   uint64 `json:"zones_rejected"`   // a bad name, or members for the default zone
	MembersRejected uint64 `json:"members_rejected"` // malformed
	FaultsRejected  uint64 `json:"faults_rejected"`  // no device
	Conflicts       uint64 `json:"conflicts"`        // attachments put beside another host's claim
}

// Limits of a Directory.
type Limits struct {
	Attachments int // in all
	PerAddress  int // of one address: a bond has a few, an address claimed everywhere is a mistake
}

// DefaultLimits are those of the largest fabric: 80,000 addresses with four
// attachments each, and 4,096 devices.
var DefaultLimits = Limits{Attachments: 320_000, PerAddress: 4096}

// Directory is the one table of a device about all hosts it knows: where each is
// attached, whether it can be reached, and with whom it shares a zone. Every
// change is incremental and says which addresses it concerns. It is not safe for
// concurrent use.
type Directory struct {
	self     netip.Addr
	limits   Limits
	autoJoin bool
	hard     bool

	multiPort MultiPort
	arrivals  uint64 // claims that arrived so far

	slots     []slot // by zone id; slots[0] is the default zone
	freeSlots []uint32
	dropped   []uint32          // zones deleted by the change under way; their ids must not mean another zone before it is over
	byName    map[string]uint32 // configured zones
	match     matcher
	split     splitter

	reserved       map[string]reservation // see Reserve
	reserveMatch   matcher
	lastReserve    uint32
	reserveScratch []uint32

	hosts     []host // by host id
	freeHosts []uint32
	byAddr    map[netip.Addr]uint32
	order     idList // all hosts
	byNQN     postings[string]
	byPort    postings[portKey]
	attached  int

	devs   []dev // by device id
	devID  map[netip.Addr]uint32
	faulty map[portKey]int // attachments there that are down
	// How often the answer of Partners has changed.
	partners uint64

	tx       []touched
	marks    uint32   // last value given to host.mark
	scratch  []uint32 // zone ids of the host that is matched
	counters Counters
}

// slot is one zone.
type slot struct {
	name  string
	parts parts
	hosts idList
	devs  []devCount // sorted by device id
}

type devCount struct{ dev, n uint32 }

// host is one address with at least one attachment.
type host struct {
	addr   netip.Addr
	atts   []attachment // the one that has the address first, then by arrival
	moves  uint32       // how often it passed to another claimant
	zones  []uint32     // sorted
	state  snsd.State
	reason snsd.Reason
	tx     uint32 // 1 + index into Directory.tx while a change is under way
	mark   uint32 // last candidate walk that met this host
}

// attachment is a Host without what the host record already says.
type attachment struct {
	dev        uint32
	down       Down // by its port, not by its device
	subscribes bool
	mac        fabric.MAC
	port       string
	service    snsd.Service
	since      time.Time
	claim      Claim
	doubt      bool
	order      uint64 // of its arrival
}

type dev struct {
	addr  netip.Addr
	fault snsd.Reason
	away  bool   // see SetAway
	hosts idList // addresses with an attachment here
	// common is how many zones have attachments both here and on our own device.
	common int
}

const defaultSlot = 0

// NewDirectory makes an empty table for the device self: no hosts, no zones,
// auto-join off until SetZones or SetAutoJoin says otherwise.
func NewDirectory(self netip.Addr) *Directory {
	return &Directory{
		self:   self.Unmap(),
		limits: DefaultLimits,
		slots:  []slot{{name: DefaultName}},
		byName: make(map[string]uint32),
		match:  newMatcher(),
		byAddr: make(map[netip.Addr]uint32),
		byNQN:  newPostings[string](),
		byPort: newPostings[portKey](),
		devID:  make(map[netip.Addr]uint32),
		faulty: make(map[portKey]int),
	}
}

// SetLimits changes the limits; what is there already stays.
func (d *Directory) SetLimits(l Limits) { d.limits = l }

// Self is the device id given to NewDirectory.
func (d *Directory) Self() netip.Addr { return d.self }

// Counters gives a copy of the counters.
func (d *Directory) Counters() Counters { return d.counters }

// SetHard notes whether isolation in the dataplane is asked for; it changes
// nothing of what hosts are told.
func (d *Directory) SetHard(on bool) { d.hard = on }

// Hard tells what SetHard or SetZones said last.
func (d *Directory) Hard() bool { return d.hard }

// AutoJoin reports whether hosts of no configured zone are in the default zone.
func (d *Directory) AutoJoin() bool { return d.autoJoin }

// at gives the address of a host id.
func (d *Directory) at(id uint32) netip.Addr { return d.hosts[id].addr }

func (d *Directory) lookup(a netip.Addr) (*host, bool) {
	id, ok := d.byAddr[a.Unmap()]
	if !ok {
		return nil, false
	}
	return &d.hosts[id], true
}

// newMark begins a walk that must meet each host once.
func (d *Directory) newMark() {
	if d.marks++; d.marks == 0 { // wrapped: old marks must not be taken for new ones
		for i := range d.hosts {
			d.hosts[i].mark = 0
		}
		d.marks = 1
	}
}

// device gives the id of a device address, making one when it is new.
func (d *Directory) device(a netip.Addr) uint32 {
	id, ok := d.devID[a]
	if !ok {
		id = uint32(len(d.devs))
		d.devs = append(d.devs, dev{addr: a})
		d.devID[a] = id
	}
	return id
}

// intern makes the record of an address; it has no attachment yet.
func (d *Directory) intern(a netip.Addr) uint32 {
	var id uint32
	if n := len(d.freeHosts); n > 0 {
		id = d.freeHosts[n-1]
		d.freeHosts = d.freeHosts[:n-1]
	} else {
		id = uint32(len(d.hosts))
		d.hosts = append(d.hosts, host{})
	}
	d.hosts[id] = host{addr: a}
	d.byAddr[a] = id
	d.order.add(id, d.at)
	return id
}

// forget frees the record of an address that has no attachment left.
func (d *Directory) forget(id uint32) {
	d.order.remove(id, d.at)
	delete(d.byAddr, d.hosts[id].addr)
	d.hosts[id] = host{}
	d.freeHosts = append(d.freeHosts, id)
}
