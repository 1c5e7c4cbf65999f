package snsd

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// Times of the existing host agent.
const (
	DefaultRegisterInterval = 30 * time.Second
	DefaultRegisterTTL      = 120             // seconds
	DefaultRestraint        = 3 * time.Second // from an active notice to the connection

	// MaxAgentAddrs is how many addresses one port can register: NN is 01..64.
	MaxAgentAddrs = 64
	// MaxAgentPairs is how many pairs of own address and subject an agent keeps.
	MaxAgentPairs = 8192

	// The flood guard of the existing agent: that many frames within the window
	// make it deaf for a while.
	floodFrames = 500
	floodWindow = 500 * time.Millisecond
	floodDeaf   = 10 * time.Second
)

// AgentConfig says what a host is. Zero times mean the defaults above.
type AgentConfig struct {
	Interface  string // its name of the port, part of the Port ID
	MAC        fabric.MAC
	Addrs      []netip.Addr // 1..MaxAgentAddrs, in the order of their numbers
	Subscribes bool         // asks for notices, and queries its zones
	Service    Service      // role, protocol, service port and NQN that it registers

	Interval  time.Duration // between two registrations of one address
	TTL       uint16        // seconds
	Restraint time.Duration
	Legacy    bool // speak NTS version 0

	// LoseAcks is the share of notices, 0..1, that are taken but not acked, as if
	// the ack were lost. Rand gives numbers in 0..1 and is needed when LoseAcks is set.
	LoseAcks float64
	Rand     func() float64
	// Silent makes the agent listen but send nothing.
	Silent bool
}

func (c *AgentConfig) check() error {
	if c.LoseAcks < 0 || c.LoseAcks > 1 || (c.LoseAcks > 0 && c.Rand == nil) {
		return refuse("agent", "share of lost acks", c.LoseAcks, ErrValue)
	}
	if err := CheckNQN(c.Service.NQN); err != nil {
		return refuse("agent", "NQN", fmt.Sprintf("%q", c.Service.NQN), err)
	}
	if n := len(AgentPortID(c.Interface, 1)); c.Interface == "" || n > 255 {
		return refuse("agent", "interface name", fmt.Sprintf("%q", c.Interface), ErrLength)
	}
	return checkAgentAddrs(c.Addrs)
}

func checkAgentAddrs(addrs []netip.Addr) error {
	if len(addrs) < 1 || len(addrs) > MaxAgentAddrs {
		return refuse("agent", "addresses", fmt.Sprintf("%d of them, want 1..%d", len(addrs), MaxAgentAddrs), ErrValue)
	}
	for i, a := range addrs {
		if err := CheckAddr(a); err != nil {
			return refuse("agent", "address", a, err)
		}
		if slices.Contains(addrs[:i], a) {
			return refuse("agent", "address", a, ErrDuplicate)
		}
	}
	return nil
}

// AgentEventKind tells what an agent has to say.
type AgentEventKind uint8

const (
	AgentReceived   AgentEventKind = iota + 1 // a notice for an own address, acted upon
	AgentDuplicate                            // the same notice again: acked again, nothing else
	AgentIgnored                              // about an initiator: acked, nothing else
	AgentRefused                              // malformed, or for an address that is not ours: not acked
	AgentConnect                              // it would connect to the subject now
	AgentDisconnect                           // it would remove the controller now
	AgentProbe                                // it would send NVMe Keep Alive commands now
	AgentDeaf                                 // too many frames: everything is dropped for a while
	AgentDropped                              // its queue is full: neither acked nor acted upon (LikeAgent)
)

var agentEventNames = []string{"unknown", "received", "duplicate", "ignored", "refused", "connect", "disconnect", "probe", "deaf", "queue-full"}

func (k AgentEventKind) String() string               { return name(k, agentEventNames) }
func (k AgentEventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (k *AgentEventKind) UnmarshalText(b []byte) error {
	return unname(k, "agent event", agentEventNames, b)
}

// AgentEvent is one thing that an agent tells its program.
type AgentEvent struct {
	Kind   AgentEventKind `json:"kind"`
	At     time.Time      `json:"at"` // when the frame was received, or when the action was due
	Notice Notice         `json:"notice"`
	Acked  bool           `json:"acked"` // an ack is among the frames
	Err    error          `json:"-"`     // for AgentRefused
}

// AgentOutput is what an agent wants done: frames (Ethernet header included) to be
// sent, in this order, and events.
type AgentOutput struct {
	Frames [][]byte
	Events []AgentEvent
}

// AgentCounters are an agent's totals.
type AgentCounters struct {
	Received      ParseCounters `json:"received"`
	Registrations uint64        `json:"registrations"`
	Queries       uint64        `json:"queries"`
	Acks          uint64        `json:"acks"`
	AcksLost      uint64        `json:"acks_lost"` // not sent on purpose
	Duplicates    uint64        `json:"duplicates"`
	Ignored       uint64        `json:"ignored"`
	NotOurs       uint64        `json:"not_ours"`   // notices for an address that is not ours
	TableFull     uint64        `json:"table_full"` // notices acked but not remembered
	Deaf          uint64        `json:"deaf"`       // frames dropped by the flood guard
	QueueFull     uint64        `json:"queue_full"` // notices lost because too many waited (LikeAgent)
	TooLong       uint64        `json:"too_long"`   // frames lost because of their length (LikeAgent)
}

// Machine is what Agent and LikeAgent have in common.
type Machine interface {
	LinkUp(now time.Time) AgentOutput
	LinkDown(now time.Time) AgentOutput
	Tick(now time.Time) AgentOutput
	Next() time.Time
	Frame(f fabric.Frame, now time.Time) AgentOutput
	Shutdown(now time.Time) AgentOutput
	Counters() AgentCounters
}

// Agent is the logic of a storage host's agent: it registers its addresses, queries
// its zones, acks notices and decides what to do about controllers. It is a pure
// machine with one owner; it performs nothing itself.
type Agent struct {
	cfg      AgentConfig
	up       bool
	register time.Time // next registration
	pairs    map[pair]*peer
	queue    []pending // connections held back, by time
	count    AgentCounters

	windowAt  time.Time
	window    int // frames since windowAt
	deafUntil time.Time
}

type pair struct{ host, subject netip.Addr }

type peer struct {
	last      Notice
	waiting   bool // an entry of queue stands for a connection
	connected bool
	gen       uint32 // outdates entries of queue
}

type pending struct {
	at  time.Time
	who pair
	gen uint32
}

// NewAgent gives an agent whose link is down. Errors are of type *Error.
func NewAgent(cfg AgentConfig) (*Agent, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultRegisterInterval
	}
	if cfg.TTL == 0 {
		cfg.TTL = DefaultRegisterTTL
	}
	if cfg.Restraint <= 0 {
		cfg.Restraint = DefaultRestraint
	}
	cfg.Addrs = slices.Clone(cfg.Addrs)
	return &Agent{cfg: cfg, pairs: make(map[pair]*peer)}, nil
}

// Counters gives a copy of the totals.
func (a *Agent) Counters() AgentCounters { return a.count }

// Config gives what the agent is now.
func (a *Agent) Config() AgentConfig {
	c := a.cfg
	c.Addrs = slices.Clone(c.Addrs)
	return c
}

// LinkUp registers all addresses and queries their zones, at once.
func (a *Agent) LinkUp(now time.Time) AgentOutput {
	var out AgentOutput
	if a.up {
		return out
	}
	a.up = true
	a.announce(&out, now)
	a.query(&out)
	return out
}

// LinkDown forgets what it was told: the switch tells the present state when the
// link is back.
func (a *Agent) LinkDown(now time.Time) AgentOutput {
	a.up = false
	clear(a.pairs)
	a.queue = nil
	return AgentOutput{}
}

// Tick does what is due: registrations and connections held back.
func (a *Agent) Tick(now time.Time) AgentOutput {
	var out AgentOutput
	if a.up && !a.register.After(now) {
		a.announce(&out, now)
	}
	for a.prune(); len(a.queue) > 0 && !a.queue[0].at.After(now); a.prune() {
		head := a.queue[0]
		a.queue = a.queue[1:]
		p := a.pairs[head.who]
		p.waiting, p.connected = false, true
		out.Events = append(out.Events, AgentEvent{Kind: AgentConnect, At: head.at, Notice: p.last})
	}
	return out
}

// Next is when Tick has something to do; zero when nothing is due.
func (a *Agent) Next() time.Time {
	var next time.Time
	if a.up {
		next = a.register
	}
	if a.prune(); len(a.queue) > 0 && (next.IsZero() || a.queue[0].at.Before(next)) {
		next = a.queue[0].at
	}
	return next
}

// prune takes off the head of the queue what is not to be connected any more.
func (a *Agent) prune() {
	for len(a.queue) > 0 {
		head := a.queue[0]
		if p := a.pairs[head.who]; p != nil && p.gen == head.gen && p.waiting {
			return
		}
		a.queue = a.queue[1:]
	}
}

// Query sends the zone query again, which the existing agent does only at LinkUp.
func (a *Agent) Query(now time.Time) AgentOutput {
	var out AgentOutput
	if a.up {
		a.query(&out)
	}
	return out
}

// SetSilent changes Silent; an agent that speaks again registers at once.
func (a *Agent) SetSilent(silent bool, now time.Time) AgentOutput {
	var out AgentOutput
	was := a.cfg.Silent
	a.cfg.Silent = silent
	if was && !silent && a.up {
		a.announce(&out, now)
	}
	return out
}

// SetAddrs replaces the addresses and registers them at once, each under the number
// of its place; numbers that are no longer used are shut down. What was told to
// addresses that are gone is forgotten.
func (a *Agent) SetAddrs(addrs []netip.Addr, now time.Time) (AgentOutput, error) {
	var out AgentOutput
	if err := checkAgentAddrs(addrs); err != nil {
		return out, err
	}
	for n := len(addrs); n < len(a.cfg.Addrs); n++ {
		a.registration(&out, n, 0)
	}
	a.cfg.Addrs = slices.Clone(addrs)
	for k := range a.pairs {
		if !slices.Contains(addrs, k.host) {
			delete(a.pairs, k)
		}
	}
	if a.up {
		a.announce(&out, now)
	}
	return out, nil
}

// Shutdown gives one shutdown LLDPDU for each address (the existing agent has none)
// and takes the link as down.
func (a *Agent) Shutdown(now time.Time) AgentOutput {
	var out AgentOutput
	for i := range a.cfg.Addrs {
		a.registration(&out, i, 0)
	}
	a.LinkDown(now)
	return out
}

// Frame takes one frame that the port received.
func (a *Agent) Frame(f fabric.Frame, now time.Time) AgentOutput {
	var out AgentOutput
	if f.EtherType != fabric.EtherTypeNTS {
		return out
	}
	at := f.At
	if at.IsZero() {
		at = now
	}
	if a.flooded(&out, at, now) {
		return out
	}
	p, err := ParsePacket(f.Payload)
	a.count.Received.Note(p, err)
	if err != nil {
		out.Events = append(out.Events, AgentEvent{Kind: AgentRefused, At: at, Err: err})
	}
	var acks []Ack
	for i := range p.Notices {
		n := &p.Notices[i]
		if !slices.Contains(a.cfg.Addrs, n.Host) {
			a.count.NotOurs++
			err := refuse("notify", "own address", n.Host, ErrAddress)
			out.Events = append(out.Events, AgentEvent{Kind: AgentRefused, At: at, Notice: *n, Err: err})
			continue
		}
		acked := a.acks()
		if acked {
			acks = append(acks, Ack{n.Subject, n.Host, n.Seq})
		}
		a.act(&out, n, acked, at, now)
	}
	a.sendAcks(&out, acks)
	return out
}

// flooded is the guard of the existing agent against a storm of frames.
func (a *Agent) flooded(out *AgentOutput, at, now time.Time) bool {
	if now.Before(a.deafUntil) {
		a.count.Deaf++
		return true
	}
	if now.Sub(a.windowAt) >= floodWindow {
		a.windowAt, a.window = now, 0
	}
	if a.window++; a.window < floodFrames {
		return false
	}
	a.deafUntil, a.window = now.Add(floodDeaf), 0
	a.count.Deaf++
	out.Events = append(out.Events, AgentEvent{Kind: AgentDeaf, At: at})
	return true
}

// acks decides whether the next notice is acked.
func (a *Agent) acks() bool {
	if a.cfg.Silent {
		return false
	}
	if a.cfg.LoseAcks > 0 && a.cfg.Rand() < a.cfg.LoseAcks {
		a.count.AcksLost++
		return false
	}
	return true
}

// act decides what a notice for an own address leads to.
func (a *Agent) act(out *AgentOutput, n *Notice, acked bool, at, now time.Time) {
	tell := func(k AgentEventKind) {
		out.Events = append(out.Events, AgentEvent{Kind: k, At: at, Notice: *n, Acked: acked})
	}
	if n.Service.Role == RoleInitiator {
		a.count.Ignored++
		tell(AgentIgnored)
		return
	}
	who := pair{n.Host, n.Subject}
	p := a.pairs[who]
	if p == nil {
		if len(a.pairs) >= MaxAgentPairs {
			a.count.TableFull++
			tell(AgentIgnored)
			return
		}
		p = new(peer)
		a.pairs[who] = p
	} else if p.last == *n {
		a.count.Duplicates++
		tell(AgentDuplicate)
		return
	}
	p.last = *n
	tell(AgentReceived)
	switch {
	case n.State == Active:
		if !p.connected && !p.waiting {
			p.gen++
			p.waiting = true
			a.queue = append(a.queue, pending{now.Add(a.cfg.Restraint), who, p.gen})
		}
	case n.Reason.Disconnects():
		p.waiting, p.connected = false, false
		tell(AgentDisconnect)
	default:
		p.waiting, p.connected = false, false // the kernel fails over and reconnects when told active
		tell(AgentProbe)
	}
}
