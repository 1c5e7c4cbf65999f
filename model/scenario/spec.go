package scenario

import "github.com/openinof/inof/model"

// File is one experiment.
type File struct {
	Line       int
	Name       string      `yaml:"name"`
	About      string      `yaml:"about"`
	Seed       uint64      `yaml:"seed"`
	Duration   model.Time  `yaml:"duration"`
	UntilIdle  bool        `yaml:"until-idle"` // stop when all flows are done
	NSClock    bool        `yaml:"ns-clock"`
	NSPaths    bool        `yaml:"ns-paths"`
	Topology   Topology    `yaml:"topology"`
	Switch     Switch      `yaml:"switch"`
	NIC        NIC         `yaml:"nic"`
	Congestion Choice      `yaml:"congestion" part:"congestion"` // of all hosts; its marking thresholds hold where a switch has no `ecn`
	Uplinks    *Uplinks    `yaml:"uplink-group"`
	Traffic    []Traffic   `yaml:"traffic"`
	Faults     []Fault     `yaml:"faults"`
	Control    *Control    `yaml:"control"`
	Reroute    *model.Time `yaml:"reroute"`        // from a fault to new tables; none = tables never change
	Spread     model.Time  `yaml:"reroute-spread"` // the first switch follows at once, the last this much later
	Record     Record      `yaml:"record"`
	Expect     []Expect    `yaml:"expect"`

	// Cores is how many cores a run may use; the result is the same. Where something needs the
	// whole fabric all the time (a control plane), it uses one, and Result.OneCore says why.
	Cores int
	// Live is called as model.Sim.OnProgress is, with what tells how the run stands.
	Live func(look func() Look)
	// Film has the run recorded for looking at it again: Result.Film.
	Film bool

	// Trace keeps a hash of every event, to compare runs.
	Trace bool

	path   string
	memory int64 // bytes that a run may take; 0 = what the machine can spare
}

// Topology is a built-in fabric, or an explicit one.
type Topology struct {
	Line     int
	Kind     string `yaml:"kind"` // star, leaf-spine, clos, ring, testbed, two-sites, explicit
	Hosts    []int  `yaml:"hosts"`
	Leaves   int    `yaml:"leaves"`
	Spines   int    `yaml:"spines"`
	Pods     int    `yaml:"pods"`
	Tors     int    `yaml:"tors"`
	Aggs     int    `yaml:"aggs"`
	Cores    int    `yaml:"cores"`
	Switches int    `yaml:"switches"`
	Link     *Link  `yaml:"link"`
	Uplink   *Link  `yaml:"uplink"`
	Nodes    []Node `yaml:"nodes"`
	Links    []Link `yaml:"links"`
}

// Node is a switch or host of an explicit topology.
type Node struct {
	Line   int
	Name   string  `yaml:"name"`
	Kind   string  `yaml:"kind"` // switch or host
	NIC    *NIC    `yaml:"nic"`
	Switch *Switch `yaml:"switch"`
	// of this host, in place of the file's
	Congestion Choice `yaml:"congestion" part:"congestion"`
}

// Link is a cable; A and B only in an explicit topology, as "node" or "node:port".
type Link struct {
	Line     int
	A        string     `yaml:"a"`
	B        string     `yaml:"b"`
	Rate     model.Rate `yaml:"rate"`
	Delay    model.Time `yaml:"delay"`
	KM       float64    `yaml:"km"` // instead of delay: 5 us a kilometre
	Overhead int32      `yaml:"overhead"`
	Loss     float64    `yaml:"loss"`
}

// Switch is a switch profile.
type Switch struct {
	Line      int
	Model     Choice    `yaml:"model" part:"model"` // default reference
	Buffer    Size      `yaml:"buffer"`
	Lossless  []int     `yaml:"lossless"` // queues, default [3]; [] = none
	DSCP      []DSCPMap `yaml:"dscp"`
	Trust     string    `yaml:"trust"`         // dscp (default) or 802.1p
	Prio      []PrioMap `yaml:"dot1p"`         // 802.1p priority to queue
	PortPrio  int       `yaml:"port-priority"` // of frames that a host sends untagged
	Remark    bool      `yaml:"remark-dscp"`   // write the class's DSCP into what leaves
	PFC       PFC       `yaml:"pfc"`
	Cells     *Cells    `yaml:"cells"`
	ECN       *ECN      `yaml:"ecn"`
	WDRR      []Weight  `yaml:"wdrr"`
	Low       []int     `yaml:"low-priority"`
	Deadlock  *Deadlock `yaml:"deadlock"`
	Balancer  Choice    `yaml:"balancer" part:"balancer"`
	Scheduler Choice    `yaml:"scheduler" part:"scheduler"`
	Stages    []Choice  `yaml:"stages" part:"stages"` // in the order in which frames pass them
	Tuners    []Choice  `yaml:"tuners" part:"tuners"`
}

// DSCPMap moves one DSCP to a queue.
type DSCPMap struct {
	Line  int
	DSCP  int `yaml:"dscp"`
	Queue int `yaml:"queue"`
}

// PrioMap moves one 802.1p priority to a queue.
type PrioMap struct {
	Line     int
	Priority int `yaml:"priority"`
	Queue    int `yaml:"queue"`
}

// PFC is flow control of a switch or NIC.
type PFC struct {
	Line     int
	Off      bool       `yaml:"off"`
	Pause    bool       `yaml:"pause"` // 802.3x instead
	Quanta   uint16     `yaml:"quanta"`
	Refresh  uint16     `yaml:"refresh"`
	Reaction model.Time `yaml:"reaction"`
	ABS      []int      `yaml:"braking"` // queues with point braking
	Period   model.Time `yaml:"braking-period"`
	Over     Size       `yaml:"braking-threshold"`
}

// Cells are the limits of the cell model.
type Cells struct {
	Line         int
	Cell         int32 `yaml:"cell"`
	Guaranteed   Size  `yaml:"guaranteed"`
	Egress       Size  `yaml:"egress-guaranteed"`
	Headroom     Size  `yaml:"headroom"`
	HeadroomPool Size  `yaml:"headroom-pool"`
	Xoff         Size  `yaml:"xoff"`
	XoffAlpha    uint8 `yaml:"xoff-alpha"`
	XonOffset    Size  `yaml:"xon-offset"`
	XonFloor     Size  `yaml:"xon-floor"`
	Limit        Size  `yaml:"limit"`
	LimitAlpha   uint8 `yaml:"limit-alpha"`
	LosslessMax  Size  `yaml:"lossless-limit"`
}

// ECN is WRED/ECN of all ports of a switch.
type ECN struct {
	Line       int
	When       string     `yaml:"when"` // dequeue (default) or enqueue
	Queues     []int      `yaml:"queues"`
	Low        Size       `yaml:"low"`
	High       Size       `yaml:"high"`
	Percent    float64    `yaml:"percent"`
	PerRate    model.Rate `yaml:"per-rate"`
	DropNonECT bool       `yaml:"drop-non-ect"`
}

// Weight makes a queue WDRR.
type Weight struct {
	Line   int
	Queue  int `yaml:"queue"`
	Weight int `yaml:"weight"`
}

// Deadlock is the watchdog.
type Deadlock struct {
	Line    int
	Detect  model.Time `yaml:"detect"`
	Poll    model.Time `yaml:"poll"`
	Recover model.Time `yaml:"recover"`
	Discard bool       `yaml:"discard"`
	TurnOff int        `yaml:"turn-off"`
	// ErrorDown has the count of turn-off take the port down instead.
	ErrorDown bool       `yaml:"error-down"`
	Window    model.Time `yaml:"window"`
}

// NIC is a host's port.
type NIC struct {
	Line      int
	MTU       int32      `yaml:"mtu"`
	Header    int32      `yaml:"header"`
	Ack       int32      `yaml:"ack"`
	AckEvery  int32      `yaml:"ack-every"`
	AckDSCP   *int       `yaml:"ack-dscp"`
	RTO       model.Time `yaml:"rto"`
	Selective bool       `yaml:"selective-repeat"` // instead of go-back-N
	Receiver  Choice     `yaml:"receiver" part:"receiver"`
	Window    int32      `yaml:"window"`
	CNPGap    model.Time `yaml:"np-port-gap"` // least time between the CNPs of all flows of a NIC
	PFC       PFC        `yaml:"pfc"`
	RxRate    model.Rate `yaml:"rx-rate"`
	RxBuffer  Size       `yaml:"rx-buffer"`
}

// Uplinks is deadlock prevention: the ports towards other switches of each named
// switch form its uplink group.
type Uplinks struct {
	Line     int
	Switches []string `yaml:"switches"`
	Rules    []Rule   `yaml:"rules"`
	OldPrio  bool     `yaml:"old-priority"` // pause the class the traffic came in, not the new one
}

// Rule rewrites a DSCP.
type Rule struct {
	Line int
	From int `yaml:"from"`
	To   int `yaml:"to"`
}

// Traffic is one group of flows.
type Traffic struct {
	Line   int
	Name   string     `yaml:"name"`
	Kind   string     `yaml:"kind"` // flows, incast, permutation, all-to-all, poisson, storage, allreduce
	From   []string   `yaml:"from"` // hosts: h0, h0..h15, "*"; h0/1 is the second port
	To     []string   `yaml:"to"`
	Shift  int        `yaml:"shift"` // permutation: host i sends to i + shift
	Bytes  Size       `yaml:"bytes"` // of each flow; 0 = until the run ends
	Start  model.Time `yaml:"start"`
	Copies int        `yaml:"copies"` // flows of each pair, default 1
	Every  model.Time `yaml:"every"`  // between the copies
	Gap    model.Time `yaml:"gap"`    // between the starts of the flows of a group
	DSCP   *int       `yaml:"dscp"`
	Prio   *int       `yaml:"priority"` // 802.1p, in a tag; none = untagged
	Rate   model.Rate `yaml:"rate"`
	NoCC   bool       `yaml:"no-congestion-control"`
	CC     Choice     `yaml:"congestion" part:"congestion"`
	NoECT  bool       `yaml:"no-ect"`
	Way    []int      `yaml:"way"`   // member of the first ECMP group that each flow takes
	Sizes  string     `yaml:"sizes"` // poisson: web-search or a file
	Load   float64    `yaml:"load"`  // poisson: of the host's link
	Until  model.Time `yaml:"until"` // poisson: last start
	Seed   uint64     `yaml:"seed"`

	// storage: from are initiators, to are targets
	Depth     int        `yaml:"depth"`  // I/Os outstanding of each initiator at each target
	Blocks    []Block    `yaml:"blocks"` // sizes and how often they are drawn
	Read      int        `yaml:"read"`   // percent
	Service   model.Time `yaml:"service"`
	KeepAlive model.Time `yaml:"keep-alive"`
	Reconnect model.Time `yaml:"reconnect"`

	// allreduce: from are the ranks, bytes the vector of each, a multiple of 4
	Method string     `yaml:"method"` // in-network (default): switches combine; ring: the hosts alone
	Op     string     `yaml:"op"`     // sum (default), max or min
	Slots  int        `yaml:"slots"`  // chunks of a rank on their way, default 128
	Resend model.Time `yaml:"resend"` // a rank without a result for so long sends again, default 100us
}

// Block is a size of I/O.
type Block struct {
	Line   int
	Bytes  Size `yaml:"bytes"`
	Weight int  `yaml:"weight"` // default 1
}

// Fault breaks or mends something.
type Fault struct {
	Line   int        `json:"-"`
	At     model.Time `yaml:"at" json:"-"`
	Kind   string     `yaml:"kind" json:"kind"`                         // link-down, link-up, switch-down, switch-up, daemon-down, daemon-up, storm, loss, black, clear, tell-down, tell-up
	Link   string     `yaml:"link" json:"link,omitempty"`               // "a-b"
	Switch string     `yaml:"switch" json:"switch,omitempty"`           // its name
	Host   string     `yaml:"host" json:"host,omitempty"`               // "t0/0"
	Queues []int      `yaml:"queues" json:"queues,omitempty"`           // of a storm
	Every  model.Time `yaml:"every" json:"every_ps,omitempty"`          // of a storm
	For    model.Time `yaml:"for" json:"for_ps,omitempty"`              // of a storm
	Loss   float64    `yaml:"probability" json:"probability,omitempty"` // of loss
}

// Record says what to sample over time.
type Record struct {
	Line   int
	Every  model.Time `yaml:"every"`
	Queues []string   `yaml:"queues"` // "s0>h16/3": the queue 3 of s0 towards h16
}

// Expect is what must come out: a metric and its bounds.
type Expect struct {
	Line   int
	Metric string   `yaml:"metric"`
	Min    *float64 `yaml:"min"`
	Max    *float64 `yaml:"max"`
}
