package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
	"github.com/openinof/inof/internal/bfdd"
	"github.com/openinof/inof/internal/cgroup"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/store"
	"github.com/openinof/inof/internal/syslog"
)

// Env is what a Daemon needs of the world. Zero fields mean the real one.
type Env struct {
	Dataplane fabric.Dataplane
	Stats     func() any // counters of the dataplane; may be nil
	// HardZoning opens what enforces zones: an error beside a dataplane says what is not as it
	// should be. EndHardZoning ends what a process before this one left in force. Nil: the
	// dataplane cannot filter.
	HardZoning    func(hardzone.Config) (hardzone.Dataplane, error)
	EndHardZoning func(hardzone.Config) error
	// PortGuard opens what keeps LLDP and SNSD frames from passing between hosts: an error beside
	// a guard says what it lacks. Nil: this kernel forwards nothing.
	PortGuard func() (fabric.PortGuard, error)
	// Fence opens what blocks frames of a path that its host leaves, at the ports that PortGuard
	// guards. Nil: nothing can.
	Fence func() (fence.Dataplane, error)
	// Listen and Dial open the transport of the sessions.
	Listen func(ctx context.Context, addr netip.AddrPort) (net.Listener, error)
	Dial   func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// Manage opens the management socket.
	Manage func(cfg config.Management) (net.Listener, error)
	Now    func() time.Time
	Log    *slog.Logger
	Level  *slog.LevelVar // changed by a reload; may be nil
	Ready  func()         // told once everything runs
	// Load reads the configuration again, for a reload that is asked for by the API.
	Load  func() (*config.Config, error)
	Paths PathsEnv
	// Unsaved is how the names of the files begin that hold, in memory, what the disk does not
	// have yet; empty: beside the state.
	Unsaved string
	Boot    string // changes with each start of the machine; empty: the kernel's
	// Storage opens what a member of a cluster keeps below a directory.
	Storage func(dir string) (*cluster.Storage, error)
	Memory  cgroup.Limit // of the process; the zero value is none
	// OtherLLDP reports whether another LLDP daemon speaks on this device; nil: looks for one.
	OtherLLDP func() bool
}

// Daemon is one configured device with all its tasks.
type Daemon struct {
	env     Env
	cfg     atomic.Pointer[config.Config]
	started time.Time
	epoch   uint64
	log     *api.EventLog
	device  *Device
	zones   zoneKeeper // nil on a device that is a client only
	// zonesRefused counts changes of them that were.
	zonesRefused atomic.Uint64
	cluster      *clusterStore // zones, on a member of a cluster
	keeper       *keep.Keeper
	store        *store.Store
	kept         device.State // what the last process kept; given up once the device has it
	zoneRows     []keep.Row   // kept versions of the zones; given up once they are read
	returning    []netip.Addr // devices that had hosts at this reflector before the start
	unsure       bool         // as a reflector: there may have been another one in its place
	lock         *dirLock
	auth         atomic.Pointer[link.Auth]
	// passwords belongs to New and Reload.
	passwords passwords
	// failing are the listeners of the management that cannot be opened.
	failing failing
	// descriptors keep some for the management socket.
	descriptors descriptors
	certs       *certificates // of mode tls
	server      *link.Server  // nil: it is no reflector
	dialers     []*link.Dialer
	paths       *bfdd.Client // nil: none are watched
	hard        *hardZoning  // nil: there are no access ports
	guard       *portGuard   // nil: there are none, or this kernel does not forward between them
	fence       *fencing     // nil: there are no access ports
	known       *known
	web         *web           // nil: management.http is off
	gnmi        *telemetryTask // nil: management.gnmi is off
	gate        *api.Gate      // see door
	netconf     *netconfTask   // nil: management.netconf is off
	reloads     reloads
	otherLLDP   bool          // as the transmitter was made; belongs to New and to who holds reloads.one
	configs     configs       // what was committed and may go back
	logged      atomic.Uint64 // events the log could not follow
	syslogs     []*syslog.Sender
	// incidents are the events that raise warnings.
	incidents incidents
	// audit keeps what operators do; auditBad: it cannot be written.
	audit    *audit.Log
	auditBad atomic.Bool
}

// task is something that runs as long as the daemon does.
type task interface {
	Run(ctx context.Context) error
	String() string
}

// every does something from time to time until ctx ends, which is no error.
func every(ctx context.Context, d time.Duration, do func()) error {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do()
		}
	}
}

// New builds a daemon; nothing runs yet, but the state directory is locked. Warnings
// are what an operator should know and the daemon can live with; they are in the
// event log too.
func New(cfg *config.Config, env Env) (*Daemon, error) {
	d := &Daemon{env: env}
	d.configs.one, d.reloads.one = newTurns(), newTurns()
	d.cfg.Store(cfg)
	if d.env.Now == nil {
		d.env.Now = time.Now
	}
	if d.env.Log == nil {
		d.env.Log = slog.New(slog.DiscardHandler)
	}
	d.env.defaults(cfg)
	d.descriptors.most = mostDescriptors()
	d.env.Listen = d.descriptors.listen(d.env.Listen)
	d.otherLLDP = d.env.OtherLLDP()
	d.started = d.env.Now()
	d.log = api.NewEventLog(cfg.Management.Events, d.started)
	d.log.OnAppend(d.incidents.note)
	d.certs = d.newCertificates(cfg.Device.ID)
	if err := d.openState(cfg); err != nil {
		return nil, err
	}
	d.claimEpoch()
	for _, w := range cfg.UnknownVariables() {
		d.env.Log.Warn(w)
	}
	if err := d.build(cfg); err != nil {
		if d.cluster != nil {
			err = errors.Join(err, d.cluster.node.Close())
		}
		d.keeper.Abandon()
		d.lock.release()
		return nil, err
	}
	return d, nil
}

func (e *Env) defaults(cfg *config.Config) {
	if e.Load == nil {
		e.Load = func() (*config.Config, error) { return config.LoadWith(cfg.File, cfg.Given) }
	}
	if e.Boot == "" {
		b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it every port counts as not proved
		e.Boot = strings.TrimSpace(string(b))
	}
	if e.OtherLLDP == nil {
		e.OtherLLDP = otherLLDPDaemon
	}
	if e.Listen == nil {
		e.Listen = func(ctx context.Context, addr netip.AddrPort) (net.Listener, error) {
			var lc net.ListenConfig
			return lc.Listen(ctx, "tcp", addr.String())
		}
	}
	if e.Dial == nil {
		dialer := net.Dialer{Timeout: cfg.Session.ConnectTimeout, KeepAlive: -1}
		if cfg.Client.Source.IsValid() {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(cfg.Client.Source, 0))
		}
		e.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr.String())
		}
	}
	if e.Manage == nil {
		e.Manage = func(m config.Management) (net.Listener, error) { return api.Listen(m.Socket, m.Mode, m.Group) }
	}
}

// build makes the device and its sessions.
func (d *Daemon) build(cfg *config.Config) error {
	if err := d.openZones(cfg); err != nil {
		return err
	}
	state := d.kept
	dp := d.env.Dataplane
	if dp == nil || !cfg.Device.Roles.Access() {
		dp = noPorts{ready: closed()}
		if cfg.Device.Roles.Access() {
			return errors.New("no dataplane is given for a device with access ports")
		}
	}
	owner, err := NewDevice(dp, d.log, d.env.Now, func(out device.Actions) (*device.Core, error) {
		cc := d.coreConfig(cfg, state.Known)
		cc.Reflector.Unsure, cc.Keep, cc.Store = d.unsure, d.keeper, d.store
		c, err := device.New(cc, out, d.env.Now())
		if err != nil {
			return nil, err
		}
		if d.cluster != nil {
			c.SetCluster(d.cluster.stamp)
		}
		d.warn("state", c.Restore(state, d.env.Now()))
		return c, nil
	})
	if err != nil {
		return err
	}
	d.device = owner
	d.device.keeper, d.device.store, d.kept = d.keeper, d.store, device.State{}
	d.returning = state.Known
	if cfg.Device.Roles.Access() {
		d.hard = newHardZoning(d, cfg)
		d.device.hard = d.hard
		if d.env.PortGuard != nil {
			d.guard = newPortGuard(d)
			d.device.guard = d.guard
		}
		d.fence = newFencing(d)
		d.device.fence = d.fence
	}
	d.buildPaths(cfg)
	d.known = newKnown(d)
	d.syslogs = d.newSyslogs(&cfg.Log.Syslog)
	if cfg.Management.HTTP.Listen.IsValid() {
		d.web = d.newWeb(cfg.Management.HTTP)
	}
	if cfg.Management.GNMI.IsValid() {
		d.gnmi = d.newGNMI()
	}
	if cfg.Management.Netconf.IsValid() {
		if d.netconf, err = d.newNetconf(); err != nil {
			return err
		}
	}
	return d.buildSessions(cfg)
}

// openZones opens the zone file, or what this member of a cluster has of its log.
func (d *Daemon) openZones(cfg *config.Config) (err error) {
	switch {
	case !cfg.Device.Roles.OwnsZones():
	case cfg.Reflector.Cluster.Enabled():
		if d.cluster, err = d.newClusterStore(cfg); err != nil {
			return err
		}
		d.zones = d.cluster
	default:
		file := newZoneStore(cfg)
		file.now = d.env.Now
		warning, err := file.load(d.zoneRows)
		if err != nil {
			return err
		}
		file.start(d.keeper)
		d.zones = file
		d.warn("zones", warning)
	}
	d.zoneRows = nil
	return nil
}

// warn puts something the daemon can live with into the event log.
func (d *Daemon) warn(room string, err error) {
	if err != nil {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "error", Text: err.Error(), Fields: map[string]string{"room": room}})
	}
}

// tasks lists everything that runs. The first ones outlive the others at a stop:
// the device still says goodbye through them.
func (d *Daemon) tasks(socket net.Listener) (late, early []task) {
	late = []task{d.keeper, d.store, logWriter{d}}
	for _, s := range d.syslogs {
		late = append(late, s)
	}
	if d.env.Dataplane != nil {
		late = append(late, d.env.Dataplane)
		early = append(early, speakerWatch{d})
		if dp, ok := d.env.Dataplane.(fabric.LossReader); ok {
			early = append(early, lossWatch{d, dp})
		}
	}
	switch {
	case d.server == nil:
	case d.cluster != nil:
		early = append(early, gated{d.server, d.cluster.formed})
	default:
		early = append(early, d.server)
	}
	if d.cluster != nil {
		d.cluster.device = d.device
		early = append(early, d.cluster.node, d.cluster)
	}
	for _, c := range d.dialers {
		early = append(early, c)
	}
	if d.hard != nil {
		early = append(early, d.hard, d.fence)
	}
	if d.guard != nil {
		early = append(early, d.guard)
	}
	early = append(early, healthWatch{d}, configReturns{d})
	if d.zones != nil {
		early = append(early, zoneReturns{d})
	}
	if d.paths != nil {
		early = append(early, d.paths)
	}
	early = append(early, d.known, manage{d, socket})
	if d.web != nil {
		early = append(early, d.web)
	}
	if d.gnmi != nil {
		early = append(early, d.gnmi)
	}
	if d.netconf != nil {
		early = append(early, d.netconf)
	}
	return late, early
}

// Run runs the daemon until ctx ends or a task fails.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.lock.release()
	socket, err := d.env.Manage(d.cfg.Load().Management)
	if err != nil {
		d.keeper.Abandon()
		return err
	}
	late, early := d.tasks(socket)
	// A failure anywhere ends everything, in order: the sessions and the API, then
	// the device, then what it needs to say goodbye.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	start := func(parent context.Context, tasks ...task) (stop func() error) {
		inner, cancel := context.WithCancel(parent)
		g, inner := errgroup.WithContext(inner)
		for _, t := range tasks {
			g.Go(func() error {
				err := t.Run(inner)
				if err != nil && !errors.Is(err, context.Canceled) {
					err = fmt.Errorf("%s: %w", t, err)
					fail(err)
					return err
				}
				return nil
			})
		}
		return func() error { cancel(); return g.Wait() }
	}
	stopLate := start(context.Background(), late...)
	stopDevice := start(context.Background(), d.device)
	var stopEarly func() error
	select {
	case <-d.device.Ready():
		stopEarly = start(ctx, early...)
		if !d.listening(ctx) {
			break
		}
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "daemon", Text: fmt.Sprintf("device %s (%s) is running", d.cfg.Load().Device.ID, d.cfg.Load().Device.Roles)})
		if d.env.Ready != nil {
			d.env.Ready()
		}
	case <-ctx.Done():
		socket.Close()
	}
	<-ctx.Done()
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "daemon", Text: "stopping"})
	if stopEarly != nil {
		_ = stopEarly()
	}
	_ = stopDevice()
	_ = stopLate()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Device gives the owner goroutine, for tests and simulations.
func (d *Daemon) Device() *Device { return d.device }

// manage serves the management API.
type manage struct {
	d *Daemon
	l net.Listener
}

func (m manage) Run(ctx context.Context) error {
	return api.Serve(ctx, m.l, m.d.handler())
}

func (m manage) String() string { return "management API" }
