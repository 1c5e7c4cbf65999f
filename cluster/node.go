package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// MaxMembers is how many members a cluster may have. More only slow it down: five
// survive the loss of two.
const MaxMembers = 7

// Defaults of Config.
const (
	DefaultHeartbeat         = time.Second
	DefaultElection          = time.Second
	DefaultSnapshotEntries   = 8192
	DefaultSnapshotInterval  = 2 * time.Minute
	DefaultTrailing          = 10240
	minTimer                 = 10 * time.Millisecond
	commitTimeout            = 50 * time.Millisecond
	leaseShare               = 2 // the leader's lease is the heartbeat time divided by this
	appendsAtOnce            = 64
	keptSnapshots            = 2
	changePatience           = 4 // of these, for which a change is tried at all: the leader may be known and out of reach
	patienceWithoutLeader    = 3 // heartbeat and election times for which a change waits for a leader
	publishWait              = 2 * time.Second
	memberStatusWait         = time.Second
	maxConcurrentChangesHere = 256
)

// Member is where a device's member of the cluster is reached.
type Member struct {
	Device  netip.Addr
	Address netip.AddrPort
}

// Config is what a Node needs. Zero timers mean the defaults.
type Config struct {
	Self netip.Addr
	// Members are those of the first start, this one included; later the cluster
	// itself knows who its members are.
	Members []Member
	Listen  netip.AddrPort // zero: the own address in Members
	Storage *Storage
	TLS     func() *link.CredentialStore // asked at each new connection
	// Seed gives the first zones and switches, Rules what zones may be, both for the
	// first start of the whole cluster only.
	Seed  func() (zone.Set, error)
	Rules zone.Rules

	Heartbeat        time.Duration // without a word of the leader before an election
	Election         time.Duration // of an election before the next one
	SnapshotEntries  uint64        // log entries after which a snapshot is made
	SnapshotInterval time.Duration // how often that is looked at
	Trailing         uint64        // log entries that are kept behind a snapshot

	ListenOn func(ctx context.Context, addr netip.AddrPort) (net.Listener, error)
	Dial     func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	Event    func(Event)   // must not wait; nil: none
	Applied  func(Applied) // each entry of the log, once it is applied here; nil: none
	Log      *slog.Logger  // of the library; nil: none
}

// Event is something operators should know.
type Event struct {
	Text   string
	Fields map[string]string
}

// Applied is an entry that was applied, or a snapshot that took the place of all up to it.
type Applied struct {
	Entry    *Entry // nil: it could not be read, or is in a snapshot
	Snapshot bool
	Result   Result
}

// Counters count what a Node did.
type Counters struct {
	Changes       uint64 `json:"changes"`         // made through this member
	Refused       uint64 `json:"changes_refused"` // decided by the cluster
	Unavailable   uint64 `json:"changes_unavailable"`
	Uncertain     uint64 `json:"changes_uncertain"`
	Repeated      uint64 `json:"changes_repeated"` // attempts beyond the first
	Forwarded     uint64 `json:"changes_forwarded"`
	Served        uint64 `json:"changes_served"` // for other members, as the leader
	Applied       uint64 `json:"entries_applied"`
	Restored      uint64 `json:"snapshots_restored"`
	LeaderChanges uint64 `json:"leader_changes"`
	QuorumLost    uint64 `json:"quorum_lost"`
	DiskErrors    uint64 `json:"disk_errors"`
}

// Node is a member of a cluster: the edge around a Machine.
type Node struct {
	cfg     Config
	self    MemberID
	address netip.AddrPort
	session uint64 // of this start: origin of its changes
	number  atomic.Uint64
	trans   *transport
	ready   chan struct{} // closed once raft is there
	listens chan struct{} // closed once the other members can connect
	raft    *raft.Raft
	// That of the machine, for requests that must not wait while it applies something
	// large: heartbeats among them.
	cluster atomic.Uint64
	heard   atomic.Pointer[map[netip.Addr]bool] // members as others named them, see inquire

	mu       sync.Mutex
	machine  *Machine
	feed     []Edit
	kick     chan struct{}
	applied  chan struct{} // closed and replaced whenever published grows
	done     uint64        // index of what the reader of the feed has brought into force
	view     view
	strayed  bool     // the cluster knows this device by an earlier incarnation
	told     []Member // members as the reader of the feed knows them
	waiting  string   // what a member that is in no cluster waits for
	unseeded string   // why the first entry cannot be made
	counters Counters
	refused  map[string]time.Time // addresses of refused peers, and the time of their event

	configuring chan struct{} // holds one while members are changed: one change at a time
	changes     chan struct{}
}

// Open reads what the disk has. Zones and Stamp are those of the last run before
// anybody else is heard.
func Open(cfg Config) (*Node, error) {
	n := &Node{cfg: withDefaults(cfg), ready: make(chan struct{}), listens: make(chan struct{}), refused: map[string]time.Time{}, kick: make(chan struct{}, 1), applied: make(chan struct{}),
		changes: make(chan struct{}, maxConcurrentChangesHere), configuring: make(chan struct{}, 1)}
	for _, m := range cfg.Members {
		if m.Device == cfg.Self {
			n.address = m.Address
		}
	}
	if !n.address.IsValid() {
		return nil, fmt.Errorf("device %s is not among the members of its cluster", cfg.Self)
	}
	if !n.cfg.Listen.IsValid() {
		n.cfg.Listen = n.address
	}
	inc, err := cfg.Storage.incarnation()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	n.self = MemberID{cfg.Self, inc}
	if n.machine, err = cfg.Storage.replay(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	n.done = n.machine.Index()
	n.cluster.Store(n.machine.Cluster())
	n.session = random()
	timeout := max(2*n.cfg.Election, 250*time.Millisecond)
	n.trans = newTransport(transportConfig{Self: n.self, Address: n.address, TLS: cfg.TLS, Dial: cfg.Dial, Timeout: timeout, Log: newLogger(n.cfg.Log),
		state: n.helloState, trusts: n.trusts, votes: n.votes, applied: n.progress, strayed: n.noteStrayed, serve: n.serve, refused: n.noteRefused})
	return n, nil
}

func withDefaults(cfg Config) Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
		*d = max(*d, minTimer)
	}
	def(&cfg.Heartbeat, DefaultHeartbeat)
	def(&cfg.Election, DefaultElection)
	def(&cfg.SnapshotInterval, DefaultSnapshotInterval)
	if cfg.SnapshotEntries == 0 {
		cfg.SnapshotEntries = DefaultSnapshotEntries
	}
	if cfg.Trailing == 0 {
		cfg.Trailing = DefaultTrailing
	}
	if cfg.Event == nil {
		cfg.Event = func(Event) {}
	}
	if cfg.Applied == nil {
		cfg.Applied = func(Applied) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// String implements the daemon's task.
func (n *Node) String() string { return "cluster member " + n.self.String() }

// Self is this member.
func (n *Node) Self() MemberID { return n.self }

// Zones gives the zones and switches that are committed as far as this member knows.
func (n *Node) Zones() (zone.Set, wire.ClusterStamp) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Set(), n.stamp()
}

// Book gives what operators write of zones, as of the last entry that was applied here.
func (n *Node) Book() *change.Book {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Book()
}

// Settings gives the settings of the cluster.
func (n *Node) Settings() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Settings()
}

// Run is the member until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	l, err := n.cfg.ListenOn(ctx, n.cfg.Listen)
	if err != nil {
		return errors.Join(err, n.cfg.Storage.Close())
	}
	n.trans.Open()
	if err = n.start(); err == nil {
		running.Go(func() { n.trans.Serve(ctx, l) })
		close(n.listens)
		running.Go(func() { n.watch(ctx) })
		running.Go(func() { n.duties(ctx) })
		<-ctx.Done()
		n.cfg.Storage.stop()
		err = n.raft.Shutdown().Error()
	}
	cancel()
	err = errors.Join(err, l.Close(), n.trans.Close())
	running.Wait()
	return errors.Join(err, n.cfg.Storage.Close())
}

// Ready is closed once Run listens for the other members.
func (n *Node) Ready() <-chan struct{} { return n.listens }

// Close gives free what Open has opened, of a Node that does not Run.
func (n *Node) Close() error { return n.cfg.Storage.Close() }

// start makes the Raft.
func (n *Node) start() error {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(n.self.String())
	conf.HeartbeatTimeout, conf.ElectionTimeout = n.cfg.Heartbeat, n.cfg.Election
	conf.LeaderLeaseTimeout = max(n.cfg.Heartbeat/leaseShare, 5*time.Millisecond)
	conf.CommitTimeout = min(commitTimeout, n.cfg.Heartbeat/4)
	conf.MaxAppendEntries = appendsAtOnce
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = n.cfg.SnapshotInterval, n.cfg.SnapshotEntries, n.cfg.Trailing
	conf.ShutdownOnRemove = false        // one that was removed may be added again
	conf.NoSnapshotRestoreOnStart = true // replay did that
	conf.NoLegacyTelemetry = true
	conf.Logger = newLogger(n.cfg.Log)
	r, err := raft.NewRaft(conf, (*fsm)(n), n.cfg.Storage.patientLogs(n), n.cfg.Storage.patientStable(n), n.cfg.Storage.Snapshots, n.trans)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	n.raft = r
	close(n.ready)
	return nil
}

// Counters returns copies.
func (n *Node) Counters() (Counters, TransportCounters) {
	n.mu.Lock()
	c := n.counters
	n.mu.Unlock()
	return c, n.trans.Counters()
}
