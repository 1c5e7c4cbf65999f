package reflector

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
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
	Grace     time.Duration    // for devices that left, and after the own start for known ones
	BFD       wire.BFDSettings // handed to every client
	FeedPosts int              // kept for clients that come back; zero: 65,536
	// Paced says that what is to be told waits for Pull and Step; without it every call gives
	// all that follows from it at once.
	Paced    bool
	SyncStep int // records that a step of a full sync tells, and devices that are given something in one; zero: as many as fit
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
// and of all zones their names and members. All of a change is worked out before anything is sent: what a
// client holds after it is taken from the tables, not from the change.
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

	owing   []*device  // with a backlog, or without one any more; who waits longest first
	handing []*handing // what some were given, and others not yet
	more    bool       // a Step may find somebody ready
	work    int        // Work
	losses  Losses
	ends    bool       // an End-of-Sync may be due
	spare   wire.Batch // without records: memory for those of a full sync

	counters Counters
}

// device is one client, with or without a session.
type device struct {
	id      netip.Addr
	up      bool
	synced  bool
	told    bool
	gen     uint32    // number of its session, from 1
	left    time.Time // when its session ended
	away    bool      // for so long that its claims yield to others
	expires time.Time
	hosts   map[zone.HostKey]uint32   // the session that said it last
	refused map[zone.HostKey]struct{} // hosts for which there is no room
	were    map[zone.HostKey]struct{} // refused before it began to say everything again
	limit   int                       // that says so
	beyond  bool                      // more were refused than are remembered
	asked   bool                      // to say everything again, and it has not
	outside map[zone.HostKey]string   // hosts outside of the device's binding, and why
	// spared are the devices, sorted, of which some hosts may be missing here since before the
	// End-of-Sync of its last full sync, which named them.
	spared []netip.Addr
	// endsSpared: one of them is whole, or gone, and the device has to hear of that.
	endsSpared bool
	// tellRefused: the device has not been told yet of what is refused now.
	tellRefused bool
	sayAgain    bool         // it has not been told that it is to say everything again
	stamp       wire.Stamp   // of its last message: the state its records are of
	clean       bool         // stamp covers all that it said: it may resume after it
	offered     *wire.Resume // after which stamp our Open said that it may resume
	whole       bool         // it holds, or the feed has, all that concerns it
	holds       bool         // it holds what an earlier start of this reflector said
	// forgot is the session since which it says what it knows after a start without its
	// state: it may not know all its records yet. 0: it does.
	forgot  uint32
	out, in wire.ResumeKind
	zoned   wire.ZoneDigest // the zones that it held of us when this session began
	// missed is set from the beginning of a session that resumes to the device's
	// End-of-Sync: what comes after this number of the feed waits for what it has to say itself.
	missed  *uint64
	resumes bool     // it is told what it had missed
	owed    *backlog // what it is still to be told; nil: nothing
	owing   bool     // it is in Reflector.owing
	handing *handing // what it is given next, before anything else; nil: nothing
	turn    *turn    // while fresh posts are handed out
	lately  lately
	// zones it is concerned with: attachments and configured ports in them, and one while it lingers.
	zones        map[string]int
	lingers      map[string]struct{} // zones that it is about to leave
	lingersUntil time.Time
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

// out gives what a call leads to at once.
func (r *Reflector) out(now time.Time) []wire.Delivery {
	if r.cfg.Paced {
		return nil
	}
	out := r.Pull(nil, now)
	for r.Owing() {
		out = append(out, r.Step(nil, now)...)
	}
	return out
}

func (r *Reflector) device(id netip.Addr) *device {
	d := r.devices[id]
	if d == nil {
		d = &device{id: id, zones: map[string]int{}}
		r.devices[id] = d
	}
	return d
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
		d.tellRefused = d.tellRefused || len(d.refused) > before
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

// tell gives the End-of-Sync to every device that is due: it was told all there was. In a
// full sync its own one is done, so that all its zones are known here, and no awaited
// device is missing, nor may one be that nobody remembers.
func (r *Reflector) tell(out []wire.Delivery, now time.Time) []wire.Delivery {
	if !r.ends || r.feed.fresh < len(r.feed.posts) { // which may concern them
		return out
	}
	r.ends = false
	early := now.Before(r.patience)
	missing := len(r.awaited) > 0 && early
	var to, resumed []netip.Addr
	for _, d := range r.devices {
		switch {
		case !d.up || d.owed != nil || d.handing != nil || d.missed != nil || d.told && !d.endsSpared:
			continue
		case d.told:
			to = append(to, d.id)
		case d.resumes:
			resumed = append(resumed, d.id)
			if d.endsSpared {
				to = append(to, d.id)
			}
		case d.synced && !missing && !(early && r.cfg.Unsure && d.holds):
			to = append(to, d.id)
		default:
			continue
		}
		if d.endsSpared = false; !d.resumes && !d.told {
			d.spared, _ = r.shortOnes()
		}
		d.told, d.whole = true, true
		r.moves++
	}
	for _, end := range [...]struct {
		to      []netip.Addr
		resumed bool
	}{{resumed, true}, {to, false}} {
		if len(end.to) > 0 {
			slices.SortFunc(end.to, netip.Addr.Compare)
			out = append(out, wire.Delivery{To: end.to, Msg: r.endOfSyncNow(end.resumed)})
		}
	}
	return out
}

// Tick does what is due: grace times that passed.
func (r *Reflector) Tick(now time.Time) []wire.Delivery {
	if r.next.IsZero() || now.Before(r.next) {
		return r.out(now)
	}
	r.leaveAlone(now)
	r.leaveZones(now)
	var due []*device
	for _, d := range r.devices {
		if !d.expires.IsZero() && !now.Before(d.expires) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, compareDevices)
	t := r.begin()
	first := now
	for _, d := range due {
		if d.expires.Before(first) {
			first = d.expires
		}
		d.whole, d.clean = false, false
		r.moves++
		r.counters.AgedOut += r.drop(t, d, func(uint32) bool { return true })
	}
	r.commit(t, r.eventCause(first, now))
	for _, d := range due {
		r.forget(d)
	}
	if !r.patience.IsZero() && !now.Before(r.patience) {
		clear(r.awaited)
		r.cfg.Unsure = false
	}
	r.ends = true
	r.schedule()
	r.invite()
	return r.out(now)
}

// Next is when Tick has something to do; zero: nothing.
func (r *Reflector) Next() time.Time { return r.next }

func (r *Reflector) schedule() {
	r.next = time.Time{}
	if len(r.awaited) > 0 || r.cfg.Unsure {
		r.next = r.patience
	}
	for _, d := range r.devices {
		for _, at := range [...]time.Time{d.expires, d.goesAway(), d.lingersUntil} {
			if !at.IsZero() && (r.next.IsZero() || at.Before(r.next)) {
				r.next = at
			}
		}
	}
}
