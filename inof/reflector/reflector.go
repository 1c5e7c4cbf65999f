package reflector

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Config bounds and tunes a Reflector; zero values mean the defaults.
type Config struct {
	MaxClients     int
	MaxZones       int
	MaxHosts       int
	MaxMemberships int
	MaxDeviceHosts int // of one device; zero: MaxHosts
	// Bindings say which hosts devices may have; one that is not in it may have any.
	Bindings  map[netip.Addr]wire.Binding
	Declared  []wire.DeclaredHost // hosts that register nothing, for all devices
	Grace     time.Duration       // for devices that left, and after the own start for known ones
	BFD       wire.BFDSettings    // handed to every client
	FeedPosts int                 // kept for clients that come back; zero: 65,536
	// Paced says that what is to be told waits for Pull and Step; without it every call gives
	// all that follows from it at once.
	Paced bool
	// SyncStep is how many records a step of a full sync tells, how many devices are given something
	// in one, and how many hosts are dropped; zero: as many as fit.
	SyncStep int
	// Known are the devices that had records here before the last stop
	// (KnownDevices, kept by the daemon): no End-of-Sync before they are back.
	Known []netip.Addr
	// Unsure says that Known may lack devices. Then a client that has seen this
	// reflector before gets no End-of-Sync within the grace time: it holds records of
	// devices that may not be back yet.
	Unsure bool
}

// Reflector is the reflector side of a device: it holds the records of all
// devices and passes each client what concerns it.
//
// A client is concerned with a zone in which a host of its own is a member, or for
// which one of its ports is configured; it gets the hosts in that zone,
// and of all zones their names and members. All of a change is worked out before anything is sent:
// what a client holds after it is taken from the tables, not from the change.
type Reflector struct {
	self  netip.Addr
	epoch uint64
	cfg   Config

	dir      *zone.Directory
	interest interest
	devices  map[netip.Addr]*device
	hosts    int                    // records of all devices
	short    map[netip.Addr]*device // of which hosts are refused
	feed     feed
	cluster  wire.ClusterStamp // whose zones these are
	members  []netip.Addr      // of that cluster
	moves    uint64            // changes of who follows changes
	each     bool              // every device is looked at, none acts for others; for tests

	awaited  map[netip.Addr]struct{} // known from before the start and not yet synced
	patience time.Time               // until when they are awaited
	next     time.Time               // end of a grace time or of patience
	ageing   int                     // devices of which some hosts are dropped, and others not yet
	dropped  time.Time               // when hosts were dropped last, of which there are more

	owing   []*device  // with a backlog, or without one any more; who waits longest first
	handing []*handing // what some were given, and others not yet
	more    bool       // a Step may find somebody ready
	work    int        // Work
	losses  Losses
	ends    bool                 // an End-of-Sync may be due
	unended map[*device]struct{} // those with a session to which one may be
	spare   wire.Batch           // without records: memory for those of a full sync
	ended   *change              // the last one, empty again; nil: none
	keys    map[feedKey]news     // of the last backlog, empty again; nil: none
	downs   wire.Downs           // of the last message, empty again; nil: none

	halt     wire.Halt // handed to every client
	counters Counters
}

// New gives a reflector with a zone configuration. Now starts the time
// for which End-of-Sync is held back for cfg.Known.
func New(self netip.Addr, epoch uint64, set zone.Set, cfg Config, now time.Time) (*Reflector, error) {
	cfg.MaxClients = cmp.Or(cfg.MaxClients, wire.DefaultMaxClients)
	cfg.MaxZones = cmp.Or(cfg.MaxZones, wire.DefaultMaxZones)
	cfg.MaxHosts = cmp.Or(cfg.MaxHosts, wire.DefaultMaxHosts)
	cfg.MaxMemberships = cmp.Or(cfg.MaxMemberships, wire.DefaultMaxMemberships)
	cfg.MaxDeviceHosts = cmp.Or(cfg.MaxDeviceHosts, cfg.MaxHosts)
	if cfg.Grace == 0 {
		cfg.Grace = wire.DefaultGrace
	}
	r := &Reflector{
		self: self, epoch: epoch, cfg: cfg,
		dir:      zone.NewDirectory(self),
		interest: newInterest(),
		devices:  map[netip.Addr]*device{},
		awaited:  map[netip.Addr]struct{}{},
		short:    map[netip.Addr]*device{},
		unended:  map[*device]struct{}{},
		feed:     feed{most: cmp.Or(cfg.FeedPosts, maxFeedPosts)},
	}
	for _, d := range cfg.Known {
		r.awaited[d] = struct{}{}
	}
	if len(r.awaited) > 0 || cfg.Unsure {
		r.patience = now.Add(cfg.Grace)
	}
	if _, err := r.SetZones(set, now); err != nil {
		return nil, err
	}
	r.schedule()
	return r, nil
}

// Receive takes a message of an established session. Deliveries are valid also
// when the error is a *RefusedError: records of another device and those over a
// limit are left out and counted, the rest of the message is taken.
func (r *Reflector) Receive(dev netip.Addr, m wire.Message, now time.Time) ([]wire.Delivery, error) {
	d := r.devices[dev]
	if d == nil || !d.up {
		r.counters.UnknownPeer++
		return nil, fmt.Errorf("%v of device %v, which has no session", m.Type(), dev)
	}
	r.work = 0
	switch m := m.(type) {
	case *wire.Update:
		before := len(d.refused)
		err := r.update(d, m, now)
		d.untold = d.untold || len(d.refused) > before
		r.tellRefusal(d)
		r.invite()
		return r.out(now), err
	case *wire.EndOfSync:
		r.endOfSync(d, m, now)
		r.tellRefusal(d)
		r.invite()
		return r.out(now), nil
	}
	r.counters.UnexpectedTypes++
	return nil, &wire.ProtocolError{Code: wire.CodeUnexpected, Where: m.Type().String(), Detail: "no message for a reflector"}
}

// Tick does what is due: grace times that passed.
func (r *Reflector) Tick(now time.Time) []wire.Delivery {
	if r.next.IsZero() || now.Before(r.next) {
		return r.out(now)
	}
	r.leaveAlone(now)
	r.leaveZones(now)
	r.endSyncs(now)
	r.ageOut(now)
	if !r.patience.IsZero() && !now.Before(r.patience) {
		clear(r.awaited)
		r.cfg.Unsure = false
	}
	r.ends = true
	r.schedule()
	r.invite()
	return r.out(now)
}

// leaveAlone lets the claims of devices that are gone for a while yield to others.
func (r *Reflector) leaveAlone(now time.Time) {
	t := r.begin()
	for _, d := range r.due(now, (*device).goesAway) {
		d.away = true
		r.touchContested(t, r.dir.SetAway(d.id, true))
	}
	if len(t.addrs) > 0 {
		r.commit(t, r.ownCause())
	}
}

// leaveZones lets devices leave the zones that they lingered in for long enough.
func (r *Reflector) leaveZones(now time.Time) {
	t := r.begin()
	for _, d := range r.due(now, func(d *device) time.Time { return d.lingersUntil }) {
		r.lingersNot(t, d)
	}
	if len(t.interest) > 0 {
		r.commit(t, r.ownCause())
	}
}
