package health

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// Facts are what the rules look at, gathered at one moment. Zero fields mean that there is
// nothing to say: a device that has no sessions, say, has no Peers.
type Facts struct {
	Now      time.Time
	Mode     api.Mode
	Synced   bool
	HeldBack *time.Time
	LastSync *time.Time // when it was in step last, while it decides by what was known then
	Counts   api.Counts
	Peers    []api.Peer
	// Awaited are the devices without a session whose hosts are still kept.
	Awaited []Awaited
	// Reports are what clients say is wrong there.
	Reports []Reported
	// Paths is the watching of the paths to other devices; nil: this device watches none.
	Paths *Paths
	// Silent are local hosts that were told something and have acked nothing for a while.
	Silent []Silent
	// Removed are the ports with hosts that the configuration does not name any more,
	// IdleNames the entries of ports.access that name no port there is.
	Removed   []RemovedPort
	IdleNames []string
	// Drained are the ports that are drained.
	Drained []DrainedPort
	// Why something does not work now; empty: it does.
	Reload string // the configuration was read again and could not (wholly) be used
	Zones  string // the zone file is not in force
	// Cluster is why this member of a cluster takes no part, or accepts no change of the zones.
	Cluster string
	State   []string // what of the state cannot be written
	// Certificates are what is to be said of this device's own.
	Certificates []string
	// Exposed are the files with secrets that everybody may read.
	Exposed []string
	// Refused are devices of which this reflector refuses hosts, and reflectors that refuse
	// hosts of this device.
	Refused []Refused
	// Waits is the age of the message that waits longest to be handled, WaitsOf whose it is;
	// but for those of devices that have said more than they may, of which Rests and RestsOf
	// tell the same.
	Waits, Rests     time.Duration
	WaitsOf, RestsOf netip.Addr
	// Doubts are what the dataplane cannot confirm; Blind are the ports on which a cause of
	// error-down is on and cannot see.
	Doubts []fabric.Doubt
	Blind  map[string][]string
	// HardZoning is what keeps zones from being enforced; HardSuspended: an operator said so.
	HardZoning    []string
	HardSuspended bool
	// PortGuard is why ports are not guarded.
	PortGuard []string
	Declared  []Declared
	Fence     string // what keeps blocks from beginning or ending
	// EventsNotLogged is how many events did not get into the log since the start.
	EventsNotLogged uint64
	// Syslog is what keeps events from syslog servers.
	Syslog []string
	// NoDescriptors is how many connections were closed for want of descriptors, if one was just now.
	NoDescriptors uint64
	// Listeners are those of the management that cannot be opened.
	Listeners []string
}

// Awaited is a device that had a session with this reflector and has none now.
type Awaited struct {
	Device netip.Addr
	Until  time.Time // its hosts are kept, and told as they are, until then
	Hosts  int       // that are known of it
}

// Refused are hosts that a reflector refuses.
type Refused struct {
	Device netip.Addr
	Own    bool // the hosts are this device's, and Device is the reflector
	Hosts  int  // for which there is no room
	Limit  int
	// Outside is how many are outside of what the device is bound to, Named are some of them.
	Outside int
	Named   []netip.Addr
}

// Declared is a declared host that answers where it should not: at Stray, which its declaration
// does not name, or at First and Second at once.
type Declared struct {
	Host                 netip.Addr
	Ports                string // that the declaration names
	Stray, First, Second string
}

// Paths is what the BFD process says, and how often it was lost.
type Paths struct {
	api.BFD
	Device   netip.Addr // the id, on which packets come in
	Lost     uint64     // times since the daemon was started
	LastLost time.Time  // zero: never
}

// Silent is a local host that leaves notices unacked.
type Silent struct {
	Host    netip.Addr
	Port    string
	Notices int       // sent and not acked
	Since   time.Time // of the last ack, or of the first of these notices
}

// DrainedPort is a port that an operator takes out of service in order.
type DrainedPort struct {
	Port   string
	Since  time.Time
	Closed bool // shut: its hosts have left
}

// RemovedPort is a port that the configuration does not name any more.
type RemovedPort struct {
	Port   string
	Hosts  int       // host addresses there
	ToldAt time.Time // when others are told that they left
}
