package inof

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// ReflectorConfig bounds and tunes a Reflector; zero values mean the defaults.
type ReflectorConfig struct {
	MaxClients     int
	MaxZones       int
	MaxHosts       int
	MaxMemberships int
	MaxDeviceHosts int // of one device; zero: MaxHosts
	// Bindings say which hosts devices may have; one that is not in it may have any.
	Bindings  map[netip.Addr]Binding
	Grace     time.Duration // for devices that left, and after the own start for known ones
	BFD       BFDSettings   // handed to every client
	FeedPosts int           // kept for clients that come back; zero: 65,536
	// Paced says that what is to be told waits for Pull and Step; without it every call gives
	// all that follows from it at once.
	Paced    bool
	SyncStep int // records that a step of a full sync tells; zero: about a message full
	// Known are the devices that had records here before the last stop
	// (KnownDevices, kept by the daemon): no End-of-Sync before they are back.
	Known []netip.Addr
	// Unsure says that Known may lack devices. Then a client that has seen this
	// reflector before gets no End-of-Sync within the grace time: it holds records of
	// devices that may not be back yet.
	Unsure bool
}

// ReflectorCounters count what a Reflector did.
type ReflectorCounters struct {
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
	HeldBack        uint64 `json:"held_back"`   // syncs of clients that had started without their state
	Steps           uint64 `json:"sync_steps"`  // messages for clients that had more to be told than one of them
}

// DeviceStatus is one device as the reflector sees it.
type DeviceStatus struct {
	Device  netip.Addr `json:"device"`
	Up      bool       `json:"up"`      // it has a session
	Synced  bool       `json:"synced"`  // it has completed its full sync in this session
	Told    bool       `json:"told"`    // it has got our End-of-Sync in this session
	Stale   bool       `json:"stale"`   // it left; its records are kept until Expires
	Expires time.Time  `json:"expires"` // end of the grace time of a stale device
	Hosts   int        `json:"hosts"`
	Faults  int        `json:"faults"`
	Zones   int        `json:"zones"` // zones it is concerned with
	Out     ResumeKind `json:"-"`     // how the session began, what it was sent
	In      ResumeKind `json:"-"`     // and what it sent
}

// Reflector is the reflector side of a device: it holds the records of all
// devices and passes each client what concerns it.
//
// A client is concerned with a zone in which a host of its own is a member, or for
// which one of its ports is configured; it gets that zone, the hosts in it and
// their faults. All of a change is worked out before anything is sent: what a
// client holds after it is taken from the tables, not from the change.
type Reflector struct {
	self  netip.Addr
	epoch uint64
	cfg   ReflectorConfig

	dir      *zone.Directory
	interest interest
	devices  map[netip.Addr]*device
	hosts    int                    // records of all devices
	short    map[netip.Addr]*device // of which hosts are refused
	feed     feed
	cluster  ClusterStamp // whose zones these are
	members  []netip.Addr // of that cluster
	moves    uint64       // changes of who follows changes
	each     bool         // every device is looked at, none acts for others; for tests

	awaited  map[netip.Addr]struct{} // known from before the start and not yet synced
	patience time.Time               // until when they are awaited
	next     time.Time               // end of a grace time or of patience

	owing  []*device // with a backlog, or without one any more; who waits longest first
	more   bool      // a Step may find somebody ready
	told   int       // ToldSender
	losses Losses
	ends   bool // an End-of-Sync may be due

	counters ReflectorCounters
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
	faults  map[string]*faultEntry    // by port
	refused map[zone.HostKey]struct{} // hosts for which there is no room
	limit   int                       // that says so
	outside map[zone.HostKey]string   // hosts outside of the device's binding, and why
	// tellRefused: the device has not been told yet of what is refused now.
	tellRefused bool
	sayAgain    bool    // it has not been told that it is to say everything again
	stamp       Stamp   // of its last message: the state its records are of
	clean       bool    // stamp covers all that it said: it may resume after it
	offered     *Resume // after which stamp our Open said that it may resume
	whole       bool    // it holds, or the log has, all that concerns it
	holds       bool    // it holds what an earlier start of this reflector said
	// forgot is the session since which it says what it knows after a start without its
	// state: it may not know all its records yet. 0: it does.
	forgot  uint32
	out, in ResumeKind
	// missed is set from the beginning of a session that resumes to the device's
	// End-of-Sync: what comes after this number of the log waits for what it has to say itself.
	missed  *uint64
	resumes bool           // it is told what it had missed
	owed    *backlog       // what it is still to be told; nil: nothing
	owing   bool           // it is in Reflector.owing
	turn    *turn          // while fresh posts are handed out
	zones   map[string]int // zones it is concerned with: attachments and configured ports in them
}

type faultEntry struct {
	rec FaultRecord // Addrs sorted
	gen uint32
}

// NewReflector gives a reflector with a zone configuration. Now starts the time
// for which End-of-Sync is held back for cfg.Known.
func NewReflector(self netip.Addr, epoch uint64, set zone.Set, cfg ReflectorConfig, now time.Time) (*Reflector, error) {
	cfg.MaxClients = orDefault(cfg.MaxClients, DefaultMaxClients)
	cfg.MaxZones = orDefault(cfg.MaxZones, DefaultMaxZones)
	cfg.MaxHosts = orDefault(cfg.MaxHosts, DefaultMaxHosts)
	cfg.MaxMemberships = orDefault(cfg.MaxMemberships, DefaultMaxMemberships)
	cfg.MaxDeviceHosts = orDefault(cfg.MaxDeviceHosts, cfg.MaxHosts)
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	r := &Reflector{
		self: self, epoch: epoch, cfg: cfg,
		dir:      zone.NewDirectory(self),
		interest: newInterest(),
		devices:  map[netip.Addr]*device{},
		awaited:  map[netip.Addr]struct{}{},
		short:    map[netip.Addr]*device{},
		feed:     feed{most: orDefault(cfg.FeedPosts, maxFeedPosts)},
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

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// out gives what a call leads to at once.
func (r *Reflector) out(now time.Time) []Delivery {
	if r.cfg.Paced {
		return nil
	}
	out := r.Pull(nil, now)
	for r.more {
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

// Join says that the session of a device is established: Resume with nothing to
// resume from.
func (r *Reflector) Join(dev netip.Addr, now time.Time) []Delivery {
	return r.Resume(dev, nil, nil, now)
}

// ResumePoint is what our Open to a device says was seen of it; nil when everything
// is needed.
func (r *Reflector) ResumePoint(dev netip.Addr) *Resume {
	d := r.devices[dev]
	if d == nil || !d.clean || !d.stamp.Known() {
		return nil
	}
	return &Resume{Epoch: d.stamp.Epoch, Seq: d.stamp.Seq}
}

// Resume says that the session of a device is established; seen is what its Open
// says it has seen of us, offered what ours said. When seen is still in the log it
// gets what it has missed. Otherwise it gets the settings and all that concerns it
// by what is known of it; the End-of-Sync follows when the device has completed its
// own sync and every awaited device is back.
func (r *Reflector) Resume(dev netip.Addr, seen, offered *Resume, now time.Time) []Delivery {
	if d := r.devices[dev]; (d == nil || !d.up) && r.joined() >= r.cfg.MaxClients {
		r.counters.ClientsRefused++
		err := LimitError{What: "clients", Key: "device " + dev.String(), Limit: r.cfg.MaxClients}
		return []Delivery{{To: []netip.Addr{dev}, Msg: &Notification{Code: CodeLimit, Text: err.Error()}}}
	}
	d := r.device(dev)
	if offered != nil && (!d.clean || d.stamp.Epoch != offered.Epoch || d.stamp.Seq < offered.Seq) {
		// Its records ran out between the Open and now: it would not send them.
		r.counters.ResumeLost++
		return []Delivery{{To: []netip.Addr{dev}, Msg: &Notification{Code: CodeCease, Text: "there is nothing to resume from any more; try again"}}}
	}
	if offered == nil { // it says everything again
		r.unrefuse(d, nil)
		d.outside = nil
	}
	d.tellRefused, d.sayAgain = len(d.outside) > 0 || len(d.refused) > 0, false
	d.up, d.synced, d.told = true, false, false
	r.moves++
	d.in, d.offered = ResumeKind{}, offered
	d.holds = seen != nil && seen.Epoch != r.epoch
	d.gen++
	d.expires = time.Time{}
	r.schedule()
	if d.out = checkResume(seen, r.epoch, r.feed.base, r.feed.seq); d.out.Resumed && !d.whole {
		d.out = full(whyForgot)
	}
	d.missed, d.resumes = nil, false
	r.disown(d)
	if d.out.Resumed {
		r.counters.Resumed++
		d.missed = &seen.Seq
	} else {
		r.beginSync(d)
	}
	return r.out(now)
}

// catchUp tells a device whose session resumes what it has missed. Not before its
// own sync: what it missed may follow from what it had said before, and be undone by
// what it says now; of each record only the latest state is told.
func (r *Reflector) catchUp(d *device, now time.Time) {
	if d.missed == nil {
		return
	}
	seq := *d.missed
	d.missed = nil
	r.moves++
	if seq < r.feed.base { // trimmed meanwhile
		d.out = full(whyTrimmed)
		r.beginSync(d)
		return
	}
	d.resumes = true
	if b := r.feed.since(seq, d); b.empty() {
		r.ends = true
	} else {
		// What comes late because of an outage is not measured, as in a full sync.
		late := &cause{origin: b.last.origin, epoch: b.last.epoch, seq: b.last.seq, sent: now}
		b.users, b.last, b.cause = 1, late, late
		r.owe([]*device{d}, b)
		r.more = true
	}
}

// follows tells whether a device is told of changes: now, or by the feed when it is
// back in time.
func (d *device) follows() bool { return d.up || d.whole }

// hears tells whether a device is told of a change at once.
func (d *device) hears() bool { return d.up && d.missed == nil }

func (r *Reflector) joined() int {
	n := 0
	for _, d := range r.devices {
		if d.up {
			n++
		}
	}
	return n
}

// Leave says that the session of a device ended: its records become stale and are
// withdrawn when it is not back within the grace time.
func (r *Reflector) Leave(dev netip.Addr, now time.Time) []Delivery {
	d := r.devices[dev]
	if d == nil || !d.up {
		return nil
	}
	d.up, d.synced, d.told, d.left = false, false, false, now
	d.missed, d.resumes = nil, false
	r.disown(d)
	r.moves++
	if d.empty() && !d.whole {
		r.forget(d)
	} else {
		d.expires = now.Add(r.cfg.Grace)
	}
	r.schedule()
	return r.out(now)
}

func (d *device) empty() bool {
	return len(d.hosts) == 0 && len(d.faults) == 0
}

// forget drops a device without records. The zones that name its ports remember
// it by themselves.
func (r *Reflector) forget(d *device) {
	d.whole, d.clean = false, false
	r.moves++
	r.unrefuse(d, nil)
	d.outside = nil
	delete(r.interest.all, d.id)
	if len(d.zones) == 0 {
		delete(r.devices, d.id)
		return
	}
	d.expires = time.Time{}
}

// Receive takes a message of an established session. Deliveries are valid also
// when the error is a *RefusedError: records of another device and those over a
// limit are left out and counted, the rest of the message is taken.
func (r *Reflector) Receive(dev netip.Addr, m Message, now time.Time) ([]Delivery, error) {
	d := r.devices[dev]
	if d == nil || !d.up {
		r.counters.UnknownPeer++
		return nil, fmt.Errorf("%v of device %v, which has no session", m.Type(), dev)
	}
	r.told = 0
	switch m := m.(type) {
	case *Update:
		before := len(d.refused)
		err := r.update(d, m, now)
		d.tellRefused = d.tellRefused || len(d.refused) > before
		r.tellRefusal(d)
		r.invite()
		return r.out(now), err
	case *EndOfSync:
		r.endOfSync(d, m, now)
		r.tellRefusal(d)
		r.invite()
		return r.out(now), nil
	}
	r.counters.UnexpectedTypes++
	return nil, &ProtocolError{Code: CodeUnexpected, Where: m.Type().String(), Detail: "no message for a reflector"}
}

func (r *Reflector) update(d *device, u *Update, now time.Time) error {
	r.counters.UpdatesIn++
	if u.Epoch != d.stamp.Epoch || u.Seq > d.stamp.Seq {
		d.stamp = Stamp{u.Epoch, u.Seq}
	}
	d.clean = !u.Partial && (d.clean || d.synced)
	r.counters.RecordsIn += uint64(len(u.Hosts) + len(u.Faults) + len(u.Zones))
	t := r.begin()
	r.isBack(t, d)
	// What a device that resumes sends has changed meanwhile, maybe back to what is
	// known here: those who heard of it from elsewhere must hear this.
	t.repeat = u.Partial && d.offered != nil && !d.synced
	var refused RefusedError
	refuse := func(err error, counter *uint64) {
		*counter++
		if refused.Refused++; refused.First == nil {
			refused.First = err
		}
	}
	if u.Settings != nil || len(u.Zones) > 0 {
		refuse(&OwnerError{Record: "zone configuration", Owner: "reflectors", Sender: d.id.String()}, &r.counters.NotOwned)
	}
	for i := range u.Hosts {
		if counter, err := r.takeHost(t, d, &u.Hosts[i]); err != nil {
			refuse(err, counter)
		}
	}
	for i := range u.Faults {
		if f := &u.Faults[i]; f.Device != d.id {
			refuse(&OwnerError{Record: "fault of port " + f.Port, Owner: f.Device.String(), Sender: d.id.String()}, &r.counters.NotOwned)
		} else {
			whole := d.faultAfter(f)
			if err := cmp.Or(d.faultFits(&whole), r.listFits(d, &whole)); err != nil {
				refuse(err, &r.counters.OverLimit)
				continue
			}
			r.takeFault(t, d, &whole)
		}
	}
	came := u.ReceivedAt
	if came.IsZero() {
		came = now
	}
	r.commit(t, &cause{origin: d.id, epoch: u.Epoch, seq: u.Seq, fault: u.FaultAt, decided: u.DecidedAt, sent: u.SentAt, came: came})
	if refused.Refused > 0 {
		return &refused
	}
	return nil
}

func (r *Reflector) takeHost(t *change, d *device, h *HostRecord) (*uint64, error) {
	k := h.Host.HostKey
	_, known := d.hosts[k]
	switch {
	case k.Device != d.id:
		return &r.counters.NotOwned, &OwnerError{Record: "host " + k.Addr.String(), Owner: k.Device.String(), Sender: d.id.String()}
	case h.Op == Withdraw:
		if known {
			r.removeHost(t, d, k, h.Why)
		}
		r.unrefuse(d, &k)
		r.inside(d, k)
		return nil, nil
	case (zone.Rules{AllowLoopback: true}).CheckAddr(k.Addr) != nil:
		return &r.counters.BadRecords, malformed("host", "%v is no address of a host", k.Addr)
	}
	if err := r.bound(t, d, &h.Host); err != nil {
		return &r.counters.Outside, err
	}
	if !known {
		if err := r.hostFits(d, k); err != nil {
			return &r.counters.OverLimit, err
		}
		r.unrefuse(d, &k)
		r.hosts++
	}
	if d.hosts == nil {
		d.hosts = map[zone.HostKey]uint32{}
	}
	d.hosts[k] = d.gen
	if d.forgot != 0 {
		r.unfault(t, d, k)
	}
	if t.repeat {
		r.touch(t, k.Addr)
	}
	r.putHost(t, &h.Host)
	t.placed = append(t.placed, k)
	return nil, nil
}

func (r *Reflector) removeHost(t *change, d *device, k zone.HostKey, why snsd.Reason) {
	delete(d.hosts, k)
	r.hosts--
	r.dropHost(t, k, why)
}

// endOfSync removes what the device did not repeat in this session, unless it
// needed not, or has started without its state and does not know yet what it has.
func (r *Reflector) endOfSync(d *device, m *EndOfSync, now time.Time) {
	r.counters.Syncs++
	d.stamp, d.clean = Stamp{m.Epoch, m.Seq}, true
	d.in = ResumeKind{Done: true, Resumed: m.Resumed}
	t := r.begin()
	r.isBack(t, d)
	switch {
	case m.Resumed && (d.offered == nil || d.offered.Epoch != m.Epoch):
		r.counters.HeldBack++
		d.in = full(whyHolds)
		d.forgot = d.gen // it stays awaited: others are not told of what it lacks
		for _, k := range slices.SortedFunc(maps.Keys(d.hosts), compareKeys) {
			if d.hosts[k] == d.gen {
				r.unfault(t, d, k)
			}
		}
	case m.Resumed:
		r.counters.ResumedIn++
	default:
		d.forgot = 0
		r.counters.Swept += r.drop(t, d, func(gen uint32) bool { return gen != d.gen })
	}
	r.commit(t, r.ownCause())
	d.synced, r.ends = true, true
	if d.forgot == 0 {
		delete(r.awaited, d.id)
	}
	r.schedule()
	r.catchUp(d, now)
}

// drop removes the records of a device whose session number is chosen, as aged out.
func (r *Reflector) drop(t *change, d *device, chosen func(gen uint32) bool) (n uint64) {
	// In order: who has an address may depend on which claim goes first.
	for _, k := range slices.SortedFunc(maps.Keys(d.hosts), compareKeys) {
		if chosen(d.hosts[k]) {
			r.removeHost(t, d, k, snsd.ReasonAgedOut)
			n++
		}
	}
	for _, port := range slices.Sorted(maps.Keys(d.faults)) {
		if chosen(d.faults[port].gen) {
			t.touchFault(d, port)
			delete(d.faults, port)
			r.noteFault(t, d, port)
			n++
		}
	}
	return n
}

// tell gives the End-of-Sync to every device that is due: it was told all there was. In a
// full sync its own one is done, so that all its zones are known here, and no awaited
// device is missing, nor may one be that nobody remembers.
func (r *Reflector) tell(out []Delivery, now time.Time) []Delivery {
	if !r.ends || r.feed.fresh < len(r.feed.posts) { // which may concern them
		return out
	}
	r.ends = false
	early := now.Before(r.patience)
	missing := len(r.awaited) > 0 && early
	var to, resumed []netip.Addr
	for _, d := range r.devices {
		switch {
		case !d.up || d.owed != nil || d.told || d.missed != nil:
			continue
		case d.resumes:
			resumed = append(resumed, d.id)
		case d.synced && !missing && !(early && r.cfg.Unsure && d.holds):
			to = append(to, d.id)
		default:
			continue
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
			out = append(out, Delivery{To: end.to, Msg: r.endOfSyncNow(end.resumed)})
		}
	}
	return out
}

// Tick does what is due: grace times that passed.
func (r *Reflector) Tick(now time.Time) []Delivery {
	if r.next.IsZero() || now.Before(r.next) {
		return r.out(now)
	}
	r.leaveAlone(now)
	var due []*device
	for _, d := range r.devices {
		if !d.expires.IsZero() && !now.Before(d.expires) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *device) int { return a.id.Compare(b.id) })
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
		for _, at := range [...]time.Time{d.expires, d.goesAway()} {
			if !at.IsZero() && (r.next.IsZero() || at.Before(r.next)) {
				r.next = at
			}
		}
	}
}
