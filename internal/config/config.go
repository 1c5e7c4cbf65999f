package config

import (
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hardzone"
)

// Limits and defaults that other rooms name.
const (
	DefaultPort    = 19516 // TCP port of the reflector
	DefaultHTTP    = 19518 // of management.http
	DefaultGNMI    = 9339  // of management.gnmi (IANA)
	DefaultNetconf = 830   // of management.netconf (RFC 6242 section 7)
	MinPort        = 10000 // smallest reflector port
	MaxPort        = 57999 // largest reflector port
	MinPassword    = 8     // characters
	MaxPassword    = 256   // bytes
	MaxDeviceName  = 63    // bytes
	MaxFileSize    = 1 << 20
	DefaultPath    = "/etc/inof/inofd.yaml"
	NoFile         = "flags and environment" // in place of a path
	DefaultSocket  = "/run/inof/inofd.sock"
	DefaultFabric  = "/run/inof/fabric.sock"
	DefaultState   = "/var/lib/inof"
	DefaultZones   = "zones.yaml" // below the state directory
	DefaultMaxHost = 80000
)

// Config is a whole, valid configuration of one device.
type Config struct {
	// File is the name the configuration was read from; NoFile: from none.
	File string
	// Given are flags and variables, which win over the file.
	Given *Given
	// From says of each key that is set where: FILE:LINE, flag --KEY or environment NAME.
	From map[string]string

	Device     Device
	Mode       Mode
	Dataplane  string // "linux" or "model"
	Model      Model  // zero unless Dataplane is "model"
	Ports      Ports
	LLDP       LLDP
	Hosts      Hosts
	HardZoning hardzone.Config
	Fence      Fence
	Reflector  Reflector // zero unless Device.Roles.Reflector
	Client     Client    // zero unless Device.Roles.Client
	Session    Session
	Zones      Zones // zero on a device that is a client only
	ErrorDown  errdown.Config
	BFD        BFD // zero on a standalone device
	Notify     Notify
	State      string // state-directory, absolute
	Management Management
	Metrics    Metrics
	Log        Log
}

// Mode says whether the device acts.
type Mode string

// The values of mode.
const (
	ModeAct     Mode = "act"
	ModeObserve Mode = "observe"
)

// Observe reports whether the device decides and records, and acts on nothing.
func (c *Config) Observe() bool { return c.Mode == ModeObserve }

// Device says who this device is.
type Device struct {
	ID            netip.Addr // the device id: its service address
	Name          string     // 1..63 bytes; the host name unless configured
	Roles         Roles
	AllowLoopback bool // loopback addresses are accepted as device, peer and host addresses
}

// Roles a device plays; none of them means standalone.
type Roles struct {
	Reflector bool
	Client    bool
}

// Standalone reports whether the device serves its own hosts alone, without any session.
func (r Roles) Standalone() bool { return !r.Reflector && !r.Client }

// Access reports whether the device has access ports of its own.
func (r Roles) Access() bool { return r.Client || r.Standalone() }

// OwnsZones reports whether zones are configured at this device: everywhere but on
// a device that is a client only.
func (r Roles) OwnsZones() bool { return r.Reflector || r.Standalone() }

// Names lists the roles as the configuration names them; empty for standalone.
func (r Roles) Names() []string {
	names := []string{}
	if r.Reflector {
		names = append(names, "reflector")
	}
	if r.Client {
		names = append(names, "client")
	}
	return names
}

// String gives "reflector", "client", "reflector+client" or "standalone".
func (r Roles) String() string {
	if r.Standalone() {
		return "standalone"
	}
	return strings.Join(r.Names(), "+")
}

// Model says which switch of which simulated fabric the device is.
type Model struct {
	Socket string // of the process that runs the fabric
	Device string // name of the switch there
}

// Ports says which ports hosts are attached to.
type Ports struct {
	Access []string // names, ranges or globs (fabric.Names), no duplicates
	Max    int      // most ports taken care of, 1..65536
	// RemovalHold is how long the hosts of a port that Access does not name any more
	// stay before they count as gone, 0..24 h.
	RemovalHold time.Duration
	// Counters are names of driver counters beyond those that are known.
	Counters []fabric.CounterName
	// SONiC is where the Redis server of a SONiC switch listens, HOST:PORT or an
	// absolute path; empty: this is none.
	SONiC string
	// SONiCGuard: rules of the ASIC keep LLDP and SNSD frames on their link.
	SONiCGuard bool
	// Carrier says by what a lost carrier is heard before netlink tells it.
	Carrier fabric.CarrierSource
}

// TransmitMode says whether the device sends LLDPDUs of its own.
type TransmitMode string

// The values of lldp.transmit.
const (
	TransmitAuto TransmitMode = "auto" // on, unless another LLDP daemon speaks on this device
	TransmitOn   TransmitMode = "on"
	TransmitOff  TransmitMode = "off"
)

// LLDP sets the learning of hosts and the own LLDPDUs.
type LLDP struct {
	Transmit             TransmitMode
	Interval             time.Duration // between own LLDPDUs, 1 s..1 h
	TTL                  time.Duration // whole seconds, above Interval, at most 65,535 s
	MaxNeighboursPerPort int           // 1..4096
	MaxHosts             int           // 8,000..80,000
	ManagementAddress    netip.Addr    // sent in own LLDPDUs; the device id unless configured
}

// Reflector sets what a device with that role does.
type Reflector struct {
	Listen     []netip.AddrPort
	Grace      time.Duration // how long records of a device that left stay, 1 s..24 h
	MaxClients int           // 1..4096
	// MaxClientsPerAddress is for devices that do not prove their ids and are not in Clients: 1..4096
	MaxClientsPerAddress int
	MaxHostsPerDevice    int // 100..80,000
	// A client may send so many records a second, and so many at once.
	RecordsPerSecond, RecordsBurst int
	Monitors                       []netip.Prefix // device ids that may ask for all hosts
	Clients                        []BoundClient  // that may connect; empty: any with the right password
	Hosts                          []Declared     // that register nothing, for all devices
	Cluster                        Cluster
}

// Client sets what a device with that role does.
type Client struct {
	// Reflectors to keep a session to, MaxReflectors at most, itself counted on a device
	// that is a reflector too.
	Reflectors    []netip.AddrPort
	Agreement     Agreement     // where the zones of two reflectors differ
	ReflectorWait time.Duration // for a reflector that was never heard since the start, 0..10 m
	Interest      Interest
	Fence         FenceMode  // whether frames to arrays are blocked when a host loses a path
	Source        netip.Addr // local address of the sessions; invalid: the system's choice
}

// FenceMode is whether a device blocks.
type FenceMode string

// The values of client.fence.
const (
	FenceOn  FenceMode = "on"
	FenceOff FenceMode = "off"
)

// Fence is how copies of a write are kept from an array that its host has left.
type Fence struct {
	// Hold is how long a block stands; at least 3 x the keep-alive time-out of NVMe + 2 s.
	Hold       time.Duration
	OtherPaths OtherPaths
}

// OtherPaths is how a device knows that a pair has another path.
type OtherPaths string

// The values of fence.other-paths.
const (
	PathsKnown   OtherPaths = "known"
	PathsAssumed OtherPaths = "assumed"
)

// Agreement is when a zone member takes effect that not both reflectors name.
type Agreement string

// The values of client.zone-agreement.
const (
	AgreeIdentical Agreement = "identical"
	AgreeUnion     Agreement = "union"
)

// Interest is what a client asks its reflectors for.
type Interest string

// The values of client.interest.
const (
	InterestConcerned Interest = "concerned"
	InterestAll       Interest = "all"
)

// Auth is how sessions are authenticated.
type Auth string

// The values of session.auth.
const (
	AuthHMAC Auth = "hmac-sha256"
	AuthTLS  Auth = "tls"
	AuthNone Auth = "none"
)

// Session sets the sessions between clients and reflectors.
type Session struct {
	Auth           Auth
	Password       Secret        // empty when Auth is not hmac-sha256, on a standalone device, and after Parse of a password-file or password-credential
	OldPassword    Secret        // taken beside it while devices are moved; usually empty
	PasswordFrom   PasswordFrom  // where they come from
	TLS            TLS           // zero unless Auth is tls
	Keepalive      time.Duration // >= 100 ms
	Hold           time.Duration // >= 300 ms and >= 3 x Keepalive
	ConnectTimeout time.Duration // 100 ms..5 min
}

// Zones sets the zone configuration of a reflector or standalone device.
type Zones struct {
	File     string // absolute path of the zone file
	AutoJoin bool   // a host in no configured zone is in the zone "default"
	Hard     bool   // isolation is asked for
	// BoundNQNs: a zone member by NQN must be bound to a place (nqn-binding: required).
	BoundNQNs bool
	// MaxLoss is how many of a hundred pairs of hosts a change may take apart without --force,
	// 0..100.
	MaxLoss int
}

// NotifyPeers says of which hosts of its zones a host is told.
type NotifyPeers string

// Initiators of targets and targets of initiators (an unknown role counts as either), or
// all of all.
const (
	PeersByRole NotifyPeers = "by-role"
	PeersAll    NotifyPeers = "all"
)

// Notify sets the telling of hosts.
type Notify struct {
	RetryFirst      time.Duration // shortest wait for an ack before notices are repeated, 1 ms..10 s
	RetryMax        time.Duration // longest one, RetryFirst..1 min
	FramesPerWindow int           // most frames out of one port within Window, 1..499
	Window          time.Duration // 10 ms..10 s
	MaxInFlight     int           // most unacked notices per host, 1..1000
	Peers           NotifyPeers   // of which hosts of its zones a host is told
	History         int           // notices kept for `show notice`, 1..1,000,000
}

// Management sets the management API.
type Management struct {
	Socket string      // absolute path of the unix socket
	Mode   fs.FileMode // its permission bits
	Group  string      // that it belongs to, by name or number; empty: that of the process
	Events int         // events kept for readers, 16..1,000,000
	HTTP   HTTP
	GNMI   netip.AddrPort // gNMI; invalid: off
	// Netconf is where NETCONF is spoken over SSH; invalid: off.
	Netconf  netip.AddrPort
	UserFile string // of those who may come with a password, a certificate or an SSH key
}

// HTTP sets the API over a network, and who may come to whatever listens there; zero: off.
type HTTP struct {
	Listen netip.AddrPort // invalid: off
	// Certificate and key are needed but on loopback.
	CertificateFile, KeyFile string
	TokenFile                string // of those who may come, here and by NETCONF
	// ClientCAFile has the CAs whose certificates clients may show; empty: none counts.
	ClientCAFile string
}

// Metrics sets what Prometheus gets.
type Metrics struct {
	MaxSeries int // of one scrape, 100..1,000,000
}

// Log sets the daemon's log.
type Log struct {
	Level  slog.Level
	Format string // "text" or "json"
	Syslog Syslog
}
