package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Duration is a time.Duration that is a number of seconds in JSON; the names of
// such fields end in _s.
type Duration time.Duration

// MarshalJSON gives seconds, with a fraction down to the microsecond.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(d).Round(time.Microsecond)/time.Microsecond) / 1e6)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s float64
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	ns := math.Round(s * 1e9)
	if math.Abs(ns) > math.MaxInt64/2 {
		return fmt.Errorf("duration of %v seconds is out of range", s)
	}
	*d = Duration(ns)
	return nil
}

// Status is the device at a glance.
type Status struct {
	Device  netip.Addr `json:"device"`
	Name    string     `json:"name"`
	Roles   []string   `json:"roles"` // empty: standalone
	Version string     `json:"version"`
	PID     int        `json:"pid"`
	Started time.Time  `json:"started"`
	Uptime  Duration   `json:"uptime_s"`
	Mode    Mode       `json:"mode"`
	Synced  bool       `json:"synced"` // false while a client still waits for its reflector's end of sync
	// HeldBack is until when the device, which has started without its state, takes
	// nothing back that it may have told its reflectors before.
	HeldBack *time.Time `json:"held_back_until,omitempty"`
	// LastSync is when the device was in step with a reflector last, while it decides by what was
	// known then because none has answered since its start.
	LastSync *time.Time `json:"not_synchronized_since,omitempty"`
	Counts   Counts     `json:"counts"`
	// Carrier is how losses of carrier are heard; nil: the device has no ports.
	Carrier  *CarrierSource `json:"carrier,omitempty"`
	Memory   *Memory        `json:"memory,omitempty"`
	Warnings Warnings       `json:"warnings"`           // what an operator should look at; empty: healthy
	Counters map[string]any `json:"counters,omitempty"` // by room: "lldp", "inof", "hostnotify", ...
}

// Memory is what the daemon may take, and what its configuration needs.
type Memory struct {
	Limit uint64 `json:"limit_bytes"`    // of its control group; 0: none
	File  string `json:"file,omitempty"` // that says so
	Least uint64 `json:"least_bytes"`
}

// CarrierSource says by what a loss of carrier is heard before netlink tells it.
type CarrierSource struct {
	Source string `json:"source"`        // fentry, kprobe, tracepoint, or netlink: by nothing
	Why    string `json:"why,omitempty"` // there is nothing better
}

// Counts of what the device holds.
type Counts struct {
	HostsLocal  int `json:"hosts_local"`
	HostsRemote int `json:"hosts_remote"`
	Conflicts   int `json:"conflicts"`
	Zones       int `json:"zones"` // configured ones
	Peers       int `json:"peers"`
	Established int `json:"peers_established"`
	Ports       int `json:"ports"`
	PortsUp     int `json:"ports_up"`
	Neighbours  int `json:"neighbours"`
	Faults      int `json:"faults"`
	// Paths to other devices.
	Paths PathCounts `json:"paths"`
}

// Counter is one number of what a room counts.
type Counter struct {
	Room  string  `json:"room"`
	Name  string  `json:"name"` // with a dot in it for what is within another
	Value float64 `json:"value"`
}

// Leaf is one value of telemetry.
type Leaf struct {
	Path  string    `json:"path"`
	Value any       `json:"value"` // times in nanoseconds
	Unit  string    `json:"unit,omitempty"`
	Class string    `json:"class"` // event, counter, gauge or config
	Time  time.Time `json:"time"`  // when it was read
}

// HostType reports whether a host is attached to this device.
type HostType string

// The values of Host.Type.
const (
	Local  HostType = "local"
	Remote HostType = "remote"
)

// HardState is what hard zoning does for a host.
type HardState string

// The values of Host.Hard.
const (
	HardOff        HardState = "off"        // hard zoning is not asked for
	HardNormal     HardState = "normal"     // this device enforces it
	HardProcessing HardState = "processing" // a change is on its way into the dataplane
	HardAbnormal   HardState = "abnormal"   // it is not enforced as it should be; HardWhy says why
	HardElsewhere  HardState = "elsewhere"  // this device forwards nothing: the host's switch does
)

// The sources of local hosts.
const (
	SourceLLDP       = "lldp"
	SourceConfigured = "configured"
)

// LearnedLocal is the LearnedFrom of what this device learned or was configured with itself.
const LearnedLocal = "local"

// LearnedLast is the LearnedFrom of what a device knows of the last sync before its start, and no
// reflector has said since.
const LearnedLast = "last-sync"

// Host is one attachment of a host address.
type Host struct {
	Addr        netip.Addr    `json:"addr"`
	Type        HostType      `json:"type"`
	Role        snsd.Role     `json:"role"`
	Protocol    snsd.Protocol `json:"protocol"`
	ServicePort uint16        `json:"service_port"`
	NQN         string        `json:"nqn,omitempty"`
	Device      netip.Addr    `json:"device"` // access device
	Port        string        `json:"port"`   // access port
	MAC         fabric.MAC    `json:"mac"`
	Subscribes  bool          `json:"subscribes"`
	State       snsd.State    `json:"state"`
	Reason      snsd.Reason   `json:"reason"` // why State is inactive, else none
	Zones       []string      `json:"zones"`
	Hard        HardState     `json:"hard_zoning"`
	HardWhy     []string      `json:"hard_zoning_why,omitempty"`
	LearnedFrom string        `json:"learned_from"`      // "local" or a reflector's address
	Source      string        `json:"source,omitempty"`  // of a local host: lldp, or configured (hosts.bindings, reflector.hosts)
	Since       time.Time     `json:"since"`             // first learned by its access device
	Expires     *time.Time    `json:"expires,omitempty"` // end of the LLDP time to live; local hosts only
	Conflict    bool          `json:"conflict"`          // another host claimed the address earlier: this one is ignored
	// Removal is set when the host's port was removed from the configuration; local hosts only.
	Removal *Removal `json:"removal,omitempty"`
	// Doubt: its frames come from another MAC address than they say, see hosts.frame-source.
	Doubt bool `json:"doubt,omitempty"`
	// Refused says who does not take the host, and why; empty: it is taken.
	Refused []string `json:"refused,omitempty"`
}

// Removal is what becomes of the hosts of a port that is no longer looked after: they
// stay as they are until ToldAt; then others are told that they left.
type Removal struct {
	Why    string    `json:"why"`
	ToldAt time.Time `json:"told_at"`
}

// RemovedFromConfiguration is the Why of a port that ports.access does not name any more.
const RemovedFromConfiguration = "removed from configuration"

// Reloaded is what became of a configuration that was read again.
type Reloaded struct {
	File     string   `json:"file"`
	Changed  []string `json:"changed"`  // settings that are in force now
	Restart  []string `json:"restart"`  // settings that only a restart changes
	Problems []string `json:"problems"` // of sections that stay as they were
}

// DrainOrder asks for ports to be taken out of service in order, or put back.
type DrainOrder struct {
	Port string `json:"port,omitempty"` // empty: all of the device
	Undo bool   `json:"undo,omitempty"`
	// Wait is the longest time until the port is shut, 0: at once; absent: 10 s.
	Wait *Duration `json:"wait_s,omitempty"`
}

// Drained is what was done.
type Drained struct {
	Ports []string `json:"ports"`
	Hosts int      `json:"hosts"` // addresses behind them
}

// TestNotice is what became of a harmless notice to one host.
type TestNotice struct {
	Host  netip.Addr `json:"host"`
	Port  string     `json:"port"`
	MAC   fabric.MAC `json:"mac"`
	Sent  int        `json:"sent"` // frames
	Acked bool       `json:"acked"`
	// RoundTrip is from the frame handed to the port to its ack, in microseconds; nil: no ack.
	RoundTrip *int64 `json:"round_trip_us,omitempty"`
	Error     string `json:"error,omitempty"` // why nothing could be sent
}

// HostCleared is a host that was forgotten on a port.
type HostCleared struct {
	Host netip.Addr   `json:"host"`
	Port string       `json:"port"`
	MACs []fabric.MAC `json:"macs"` // that announced the address; the one that had it first
}

// PortHosts are the host addresses of one port.
type PortHosts struct {
	Port  string       `json:"port"`
	Hosts []netip.Addr `json:"hosts"`
}

// Zone is a zone with what is in it.
type Zone struct {
	Name        string       `json:"name"`
	Members     []string     `json:"members"` // as configured, canonical; empty for default
	Hosts       []netip.Addr `json:"hosts"`   // known hosts in it, sorted
	LearnedFrom string       `json:"learned_from"`
	// Inconsistent: the reflectors differ about the zone; Words is what each says.
	Inconsistent bool       `json:"inconsistent"`
	Words        []ZoneWord `json:"words,omitempty"`
}

// ZoneWord is what one reflector says of a zone.
type ZoneWord struct {
	Reflector netip.Addr `json:"reflector"`
	Said      bool       `json:"said"` // false: it has no such zone for this device
	Members   []string   `json:"members"`
}

// PeerState is the state of a session, named as in the source documents.
type PeerState string

// The states of a session.
const (
	PeerConnect     PeerState = "Connect"
	PeerOpenSend    PeerState = "OpenSend"
	PeerOpenConfirm PeerState = "OpenConfirm"
	PeerEstablished PeerState = "Established"
)

// Peer is one session, or the attempt at one.
type Peer struct {
	Device      netip.Addr `json:"device"`  // device id; invalid while not known yet
	Address     string     `json:"address"` // remote address:port
	Role        string     `json:"role"`    // the peer's: reflector or client
	State       PeerState  `json:"state"`
	Since       time.Time  `json:"since"` // of State
	MessagesIn  uint64     `json:"messages_in"`
	MessagesOut uint64     `json:"messages_out"`
	BytesIn     uint64     `json:"bytes_in"`
	BytesOut    uint64     `json:"bytes_out"`
	Reconnects  uint64     `json:"reconnects"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	LastCode    string     `json:"last_code,omitempty"` // what kind of error, if the protocol has a code for it
	Auth        string     `json:"auth"`
	// Password is which of its passwords the session has, with auth hmac-sha256: current,
	// or new or old while there are two; removed: none in force. Never the password.
	Password string `json:"password,omitempty"`
	// SlowedSince is since when the peer sends more records than a device may, so that it is
	// not read as fast as it sends.
	SlowedSince *time.Time `json:"slowed_since,omitempty"`
	// CertificateExpires is that of the peer, with auth tls.
	CertificateExpires *time.Time `json:"certificate_expires,omitempty"`
	// Refused is a connection that did not become a session: nothing about the
	// peer is proved but its address. Listed for ten minutes.
	Refused   bool     `json:"refused,omitempty"`
	Keepalive Duration `json:"keepalive_s"` // negotiated once established
	Hold      Duration `json:"hold_s"`
	// How the session began in either direction: "resumed" (only what was missed) or
	// "full"; empty while it is not known.
	SyncIn     string `json:"sync_in,omitempty"`
	SyncOut    string `json:"sync_out,omitempty"`
	SyncOutWhy string `json:"sync_out_why,omitempty"`
}

// Port is one port the configuration names.
type Port struct {
	Name       string           `json:"name"`
	Index      int              `json:"index"`
	MAC        fabric.MAC       `json:"mac"`
	MTU        int              `json:"mtu"`
	AdminUp    bool             `json:"admin_up"`
	Carrier    bool             `json:"carrier"`
	State      string           `json:"state"` // up, down, error-down, draining, drained or removed
	Neighbours int              `json:"neighbours"`
	Hosts      int              `json:"hosts"` // host addresses learned there
	Flaps      uint64           `json:"flaps"`
	LastFlap   *time.Time       `json:"last_flap,omitempty"`
	Counters   *fabric.Counters `json:"counters,omitempty"` // nil when the dataplane could not say
	// Guard is how LLDP and SNSD frames between hosts are kept from the port; empty: they are not,
	// and Forbidden is nil. It counts those that were dropped.
	Guard     string         `json:"guard,omitempty"`
	Forbidden *PortForbidden `json:"frames_forbidden,omitempty"`
	// Removal is set on a port that was removed from the configuration while hosts were there.
	Removal *Removal `json:"removal,omitempty"`
}

// PortForbidden counts LLDP and SNSD frames that were dropped at a port: from its host to others, and
// from others to its host.
type PortForbidden struct {
	In  uint64 `json:"from_host"`
	Out uint64 `json:"to_host"`
}

// The values of Port.State.
const (
	PortUp        = "up"
	PortDown      = "down"
	PortErrorDown = "error-down"
	PortShutting  = "shutting" // by error-down; the dataplane has not confirmed it
	PortDraining  = "draining" // its hosts leave, then it is shut
	PortDrained   = "drained"
	PortRemoved   = "removed" // from the configuration; see Port.Removal
)

// Neighbour is one LLDP neighbour.
type Neighbour struct {
	Port      string       `json:"port"`
	ChassisID string       `json:"chassis_id"`
	PortID    string       `json:"port_id"`
	MAC       fabric.MAC   `json:"mac"` // source of its frames
	SysName   string       `json:"system_name,omitempty"`
	SysDesc   string       `json:"system_description,omitempty"`
	TTL       uint16       `json:"ttl_s"`
	Age       Duration     `json:"age_s"`        // since last heard
	ExpiresIn Duration     `json:"expires_in_s"` // until aged out
	Addresses []netip.Addr `json:"addresses"`
	Role      snsd.Role    `json:"role"`
	Confirmed bool         `json:"confirmed"`         // heard since the carrier came back
	Doubt     bool         `json:"doubt,omitempty"`   // its frames come from another MAC address than they say
	Refused   []string     `json:"refused,omitempty"` // addresses that it may not have, and why
}

// ErrorDown is a port with a fault, or one that flapped lately.
type ErrorDown struct {
	Port          string      `json:"port"`
	Cause         string      `json:"cause"` // empty: no fault now
	Reason        snsd.Reason `json:"reason"`
	Since         *time.Time  `json:"since,omitempty"`
	Recovery      Duration    `json:"recovery_s"`  // automatic recovery interval; 0: none
	TimeLeft      Duration    `json:"time_left_s"` // until automatic recovery; 0: none pending
	FlapsInWindow uint64      `json:"flaps_in_window"`
	Flaps         uint64      `json:"flaps"`
	LastFlap      *time.Time  `json:"last_flap,omitempty"`
}

// NoticeStatus is how far a notice has got.
type NoticeStatus string

// The values of Notice.Status.
const (
	NoticeQueued     NoticeStatus = "queued"
	NoticeSent       NoticeStatus = "sent"
	NoticeAcked      NoticeStatus = "acked"
	NoticeSuperseded NoticeStatus = "superseded" // a newer truth replaced it before it was acked
	NoticeGivenUp    NoticeStatus = "given-up"   // the host left
	NoticeObserved   NoticeStatus = "observed"   // recorded and not sent: the device observes
)

// Notice is one thing a local host was told.
type Notice struct {
	Seq     uint32      `json:"seq"`
	Host    netip.Addr  `json:"host"`
	Subject netip.Addr  `json:"subject"`
	State   snsd.State  `json:"state"`
	Reason  snsd.Reason `json:"reason"`
	Port    string      `json:"port"`
	// Fence is what the notice said of the fence, nil: nothing; Fenced is the same in words.
	Fence  *snsd.Fence `json:"fence,omitempty"`
	Fenced string      `json:"fenced,omitempty"`
	// The way of the event behind it, each time where it is known: those of Origin (none:
	// this device) and of the reflector are by their clocks.
	Origin      netip.Addr `json:"origin,omitzero"`
	FaultAt     *time.Time `json:"fault_at,omitempty"`          // the cause was seen at its device
	DecidedAt   *time.Time `json:"origin_decided_at,omitempty"` // taken up there
	SentAt      *time.Time `json:"origin_sent_at,omitempty"`    // handed to its sessions
	ReflectorAt *time.Time `json:"reflector_at,omitempty"`      // read by the reflector
	ReflectedAt *time.Time `json:"reflected_at,omitempty"`      // passed on
	ReceivedAt  *time.Time `json:"received_at,omitempty"`       // read by this device

	Queued  *time.Time   `json:"queued,omitempty"` // taken up, compared with what the host was told
	Sent    *time.Time   `json:"sent,omitempty"`   // first frame handed to the port
	Acked   *time.Time   `json:"acked,omitempty"`  // first ack received
	Retries int          `json:"retries"`
	Status  NoticeStatus `json:"status"`
	// Skewed: the clocks of the devices differ by too much to tell the time from FaultAt on.
	Skewed bool `json:"clocks_differ,omitempty"`
	// Microseconds; nil while not known. From FaultAt on by two clocks if there is an Origin.
	FaultToSent  *int64 `json:"fault_to_sent_us,omitempty"`
	SentToAcked  *int64 `json:"sent_to_acked_us,omitempty"`
	FaultToAcked *int64 `json:"fault_to_acked_us,omitempty"`
}

// Event is one thing that happened on the device.
type Event struct {
	ID     uint64    `json:"id"` // increasing, also across restarts of the daemon; set by EventLog
	Time   time.Time `json:"time"`
	Kind   string    `json:"kind"` // port, host, zone, peer, fault, notice, config, ...
	Text   string    `json:"text"` // one line for people
	Device string    `json:"device,omitempty"`
	Port   string    `json:"port,omitempty"`
	Addr   string    `json:"addr,omitempty"`
	// Warning names the rule of the warning that the event raises; see docs/warnings.md.
	Warning string            `json:"warning,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
}

// Fence is what stands between an array and a host, or a fault that was not answered by a block.
type Fence struct {
	Device    netip.Addr `json:"device"`          // whose block it is
	Port      string     `json:"port,omitempty"`  // of the array; empty: there is no block
	Array     netip.Addr `json:"array,omitzero"`  // zero: the port as a whole
	Host      netip.Addr `json:"host,omitzero"`   // zero: all hosts
	Since     *time.Time `json:"since,omitempty"` // when the block began
	Until     *time.Time `json:"until,omitempty"` // when it ends
	Confirmed bool       `json:"confirmed"`       // no copy that was in the network reaches the array
	Took      Duration   `json:"took,omitempty"`  // from the fault to that
	Fenced    string     `json:"fenced"`          // the same in words, or why not
	Dropped   *uint64    `json:"frames_dropped,omitempty"`
}
