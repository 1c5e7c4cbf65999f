package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/store"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Config is what a Core needs to know of the configuration.
type Config struct {
	Self   netip.Addr
	Access bool // has access ports: learns hosts, tells hosts
	// Ports are the access ports that the configuration names; none: every one that the
	// dataplane has. RemovalHold is how long the hosts of one that it names no more stay.
	Ports       fabric.Names
	RemovalHold time.Duration
	Reflect     bool // reflects for clients; a device with Access then is its own client too
	Zones       zone.Set
	LLDP        lldp.Limits
	Transmit    *lldp.TxConfig // nil: no LLDPDUs of our own
	ErrorDown   errdown.Config
	Notify      hostnotify.Config
	Reflector   reflector.Config
	// Reflectors is how many this device has, its own included; zero: one. Where
	// their zones differ Agreement decides. Wait is how long after the first sync a
	// reflector that was never heard is waited for.
	Reflectors int
	// Addresses of the configured ones, by which a member of a cluster is known before it
	// is heard; may be empty.
	Addresses   []netip.Addr
	Agreement   client.Agreement
	Wait        time.Duration
	InterestAll bool // the device asks its reflectors for everything
	Mesh        MeshConfig
	// PathSecret is what a reflector makes keys of paths from; zero: it hands out none.
	PathSecret reflector.PathSecret
	Hosts      HostsConfig
	Observe    bool // mode: observe
	HardZoning hardzone.Config
	Fence      fence.Config
	Epoch      uint64 // of this start of the process
	// Keep takes what is to be kept over a restart, Store what reflectors say; nil: nothing is.
	Keep  keep.Sink
	Store store.Sink
}

// Counters count what no room of its own counts.
type Counters struct {
	FramesLLDP      uint64 `json:"frames_lldp"`
	FramesNTS       uint64 `json:"frames_nts"`
	FramesUnknown   uint64 `json:"frames_unknown"`
	FramesNoSource  uint64 `json:"frames_no_source"`
	FramesNoPort    uint64 `json:"frames_no_port"`  // of a port that is gone
	FramesObserved  uint64 `json:"frames_observed"` // of a port that would be shut, if the device did not observe
	FramesLate      uint64 `json:"frames_late"`     // LLDP from before its port lost the carrier, read after that
	LLDPErrors      uint64 `json:"lldp_errors"`
	NTSErrors       uint64 `json:"nts_errors"`
	NTSUnexpected   uint64 `json:"nts_unexpected"`  // notices that a host sent us
	AcksForeign     uint64 `json:"acks_foreign"`    // acks from a machine that has not the address on that port
	QueriesForeign  uint64 `json:"queries_foreign"` // zone queries for an address not registered on that port, not answered
	QueriesEarly    uint64 `json:"queries_early"`   // zone queries answered before their address registered
	QueriesHeld     uint64 `json:"queries_held"`    // zone queries for an address that a host has elsewhere, not answered
	Conflicts       uint64 `json:"conflicts"`       // local hosts whose address another one claims too
	AddressesMoved  uint64 `json:"addresses_moved"` // local hosts that lost their address to another claim, as they did not answer
	AnswersIgnored  uint64 `json:"answers_ignored"` // ARP and IPv6 frames that say nothing about who has an address
	RecordsRefused  uint64 `json:"records_refused"`
	NQNsShared      uint64 `json:"nqns_shared"`    // hosts whose NQN another machine says too
	NQNsElsewhere   uint64 `json:"nqns_elsewhere"` // hosts that say an NQN which zones bind to other places
	ProtocolErrors  uint64 `json:"protocol_errors"`
	ExpiryPostponed uint64 `json:"expiry_postponed"` // ageing put off because the process had been stopped
	PortsMoved      uint64 `json:"ports_moved"`      // ports that lost their carrier while the daemon was away: their hosts were told all
	PathKeysGiven   uint64 `json:"path_keys_given"`  // to clients
	FencesCut       uint64 `json:"fences_cut"`       // fenced hosts of which others are not notified, because an array has too many
	PortsUnproved   uint64 `json:"ports_unproved"`   // ports of which that is not known: all was repeated to their hosts
}

// Core is the control state of one device. All methods belong to one goroutine.
type Core struct {
	cfg    Config
	self   netip.Addr
	out    Actions
	table  *lldp.Table
	speak  *lldp.Transmitter
	faults *errdown.Monitor
	dir    *zone.Directory
	notify *hostnotify.Notifier
	client *client.Client
	refl   *reflector.Reflector

	ports      map[string]*port
	local      map[zone.HostKey]zone.Host // hosts on own ports
	localAddrs map[netip.Addr]int         // attachments in local by address
	outside    map[zone.HostKey]string    // of local, that reflectors do not let this device have, and why
	contests   map[zone.HostKey]contest   // of these, whose address another host claims too
	presence   *presence.Asker
	yields     []presence.Key // addresses that pass to another claim once the input is through
	said       []wire.Message // to this device by its own reflector, not taken in yet
	early      early
	declared   declared
	replan     map[string]bool // ports whose health may be needed in another way
	holdExpiry time.Time       // no LLDP ageing before
	tests      []*testNotice   // not acked yet
	testSeq    uint32          // of the last one
	drainDue   time.Time       // when to look after the ports that are drained; zero: there are none
	keep       keeping
	saving     saving
	counters   Counters
	nts        snsd.ParseCounters
	limiter    eventLimiter
	unsaid     []func() api.Event // for operators, in order; Say makes them known
	restoring  bool               // hosts are put back, not learned: no events
	reflector  netip.Addr         // that we had a session with last; for operators
	agreement  agreement
	stages     stages
	stopwatch  Stopwatch   // nil: none
	left       []time.Time // when each frame of a Poll left
	mesh       mesh
	observe    observing
	hard       hard
	fence      fencing
	reports    map[netip.Addr]*wire.Report // by client: what is wrong there
	synced     bool                        // as the notifier was told
	unformed   bool                        // the reflector is of a cluster that has no zones yet
}

// New builds a device's control state. Now starts the grace time for the
// devices a reflector knew.
func New(cfg Config, out Actions, now time.Time) (*Core, error) {
	c := &Core{
		cfg:        cfg,
		self:       cfg.Self,
		out:        out,
		dir:        zone.NewDirectory(cfg.Self),
		ports:      make(map[string]*port),
		local:      make(map[zone.HostKey]zone.Host),
		localAddrs: make(map[netip.Addr]int),
		outside:    make(map[zone.HostKey]string),
		contests:   make(map[zone.HostKey]contest),
		presence:   presence.NewAsker(),
		declared: declared{asker: presence.NewAsker(), all: map[netip.Addr]*declaredHost{}, ports: map[string]bool{}, addrs: map[netip.Addr]bool{},
			stale: cfg.Access && len(cfg.Hosts.Declared) > 0},
		replan:  make(map[string]bool),
		reports: make(map[netip.Addr]*wire.Report),
	}
	c.mesh.configure(cfg.Mesh)
	c.observe.configured = cfg.Observe
	c.hard.cfg = cfg.HardZoning
	c.keep.start(cfg.Keep)
	c.saving = saving{to: cfg.Store, in: map[savedRow]bool{}, zones: map[savedRow]*zone.Zone{}}
	c.dir.SetMultiPort(cfg.Hosts.MultiPort)
	c.stopwatch, _ = out.(Stopwatch)
	if cfg.Access {
		c.table = lldp.NewTable(cfg.LLDP)
		c.table.SetMaxTTL(cfg.Hosts.MaxTTL)
		c.table.SetOwnAddrs(append([]netip.Addr{cfg.Self}, cfg.Addresses...))
		c.table.SetBeliefs(cfg.Hosts.Beliefs, now)
		c.faults = errdown.NewMonitor(cfg.ErrorDown)
		cfg.Notify.Keep = cfg.Keep != nil
		c.early = early{Directory: c.dir, hosts: map[netip.Addr]earlyHost{}}
		c.notify = hostnotify.New(cfg.Notify, &c.early)
		c.client = client.New(cfg.Self, cfg.Epoch)
		c.client.SetReflectors(max(1, cfg.Reflectors), cfg.Agreement, cfg.Wait)
		c.client.SetReflectorAddresses(cfg.Addresses)
		c.fence.configure(cfg.Fence, c.dir, cfg.Self)
		c.notify.SetFences(&c.fence)
		c.fenceMode()
		if cfg.Transmit != nil {
			c.speak = lldp.NewTransmitter(*cfg.Transmit)
		}
	}
	if cfg.Reflect {
		r, err := reflector.New(cfg.Self, cfg.Epoch, cfg.Zones, cfg.Reflector, now)
		if err != nil {
			return nil, fmt.Errorf("zones of reflector %s: %w", cfg.Self, err)
		}
		c.refl = r
		c.refl.SetMultiPort(cfg.Hosts.MultiPort, now)
	}
	c.followMode(now)
	return c, nil
}

// Start is called once, after Restore and the first port events: ports of restored
// hosts that are not there count as removed, and a device that is reflector and
// client at once is connected with itself.
func (c *Core) Start(now time.Time) {
	defer c.settle(now)
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		if p := c.ports[name]; !p.present {
			c.Port(fabric.Event{Kind: fabric.PortRemoved, Port: p.Port, At: now}, now)
		}
	}
	if !c.unformed {
		c.joinSelf(now)
	}
}

// Tick does what time has made due and sends the frames that are ready.
func (c *Core) Tick(now time.Time) {
	if c.client != nil {
		c.expire(now)
		c.causesChanged(c.faults.Tick(now), now)
		c.askPresent(now)
		c.askDeclared(now)
		c.endEarly(now)
		if next := c.client.Next(); !next.IsZero() && !now.Before(next) {
			a := c.client.Tick(now)
			c.apply(&a, now)
		}
		c.tickAgreement(now)
		c.tickMesh(now)
		c.tickDrains(now)
	}
	if c.refl != nil {
		c.fromReflector(c.refl.Tick(now))
	}
	c.settle(now)
	c.Pump(now)
	if len(c.observe.turned) > 0 { // as the kernel would: after what was to be sent has left
		c.turnPorts(now)
		c.Pump(now)
	}
}

// Pump sends the frames that are due now, notices first, and tells operators what happened. It is
// cheap when there is nothing.
func (c *Core) Pump(now time.Time) {
	if c.notify != nil {
		c.sendNotices(now)
	}
	c.notePartners(now)
	if c.speak != nil {
		for _, f := range c.speak.Due(now) {
			c.out.SendFrame(f.Port, f.Frame)
		}
	}
	c.Say()
	c.KeepRows(now)
	c.saveRows(now)
}

// Next is when Tick has something to do; zero: only after the next event.
func (c *Core) Next() time.Time {
	var next time.Time
	if c.client != nil {
		next = c.table.Next()
		if !next.IsZero() && next.Before(c.holdExpiry) {
			next = c.holdExpiry
		}
		next = sooner(next, c.faults.Next())
		next = sooner(next, c.notify.Next())
		next = sooner(next, c.client.Next())
		next = sooner(next, c.presence.Next())
		next = sooner(next, c.declared.asker.Next())
		next = sooner(next, c.early.due)
		next = sooner(next, c.agreement.due)
		next = sooner(next, c.mesh.next())
		next = sooner(next, c.drainDue)
		next = sooner(next, c.observe.turn)
		next = sooner(next, c.keep.notices)
		next = sooner(next, c.saving.due)
	}
	if c.speak != nil {
		next = sooner(next, c.speak.Next())
	}
	if c.refl != nil {
		next = sooner(next, c.refl.Next())
	}
	return next
}

// Paused tells the Core that the process had not run for a while. Frames that
// arrived meanwhile are still on their way through the sockets: nothing ages
// before they had time to be read.
func (c *Core) Paused(now time.Time) {
	c.holdExpiry = now.Add(pauseGrace)
	c.presence.Paused(now)
	c.declared.asker.Paused(now)
	c.counters.ExpiryPostponed++
}

// pauseGrace is how long after a pause of the process ageing waits.
const pauseGrace = time.Second

func (c *Core) expire(now time.Time) {
	if now.Before(c.holdExpiry) {
		return
	}
	c.neighboursChanged(c.table.Expire(now), now)
}

// Goodbye sends the frames that a device sends before it stops: shutdown LLDPDUs.
func (c *Core) Goodbye(now time.Time) {
	defer c.Say()
	if c.speak == nil {
		return
	}
	for _, f := range c.speak.Stop() {
		c.out.SendFrame(f.Port, f.Frame)
	}
}
