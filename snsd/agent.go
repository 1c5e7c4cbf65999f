package snsd

import (
	"cmp"
	"fmt"
	"maps"
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
	// MaxAgentPairs is how many pairs of own address and subject an agent keeps, of each port.
	MaxAgentPairs = 16384
)

// AgentConfig says what a host is. Zero times mean the defaults above.
type AgentConfig struct {
	Interface  string // its name of the port, part of the Port ID
	MAC        fabric.MAC
	Addrs      []netip.Addr // 1..MaxAgentAddrs
	Subscribes bool         // asks for notices, and queries its zones
	Service    Service      // role, protocol, service port and NQN that it registers
	// Services are those of addresses that have others.
	Services map[netip.Addr]Service

	Interval  time.Duration // between two registrations of one address
	TTL       uint16        // seconds
	Restraint time.Duration
	Legacy    bool // speak NTS version 0
	// Extensions are those that the agent understands. It announces them to a switch that offers
	// them, and to no other; LikeAgent never does.
	Extensions Extensions
	// Elsewhere reports whether another port of this host has an address: when that port lost its
	// link, the switch notifies of the fences of its paths at this one. nil: none has.
	Elsewhere func(netip.Addr) bool

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
	for a, s := range c.Services {
		if err := CheckNQN(s.NQN); err != nil {
			return refuse("agent", fmt.Sprintf("NQN of %v", a), fmt.Sprintf("%q", s.NQN), err)
		}
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
	AgentDeaf                                 // too many frames: everything is dropped for a while (LikeAgent)
	AgentDropped                              // there is no room for it: neither acked nor acted upon
	AgentFenced                               // the fence of a subject that is inactive, and was before, has risen
)

var agentEventNames = []string{"unknown", "received", "duplicate", "ignored", "refused", "connect", "disconnect", "probe", "deaf", "no-room", "fenced"}

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
	Detours       uint64        `json:"detours"`    // notices of a fence for an address of another port of this host
	TableFull     uint64        `json:"table_full"` // notices of a new subject for which there is no room (AgentDropped; LikeAgent acks them)
	Deaf          uint64        `json:"deaf"`       // frames dropped by the flood guard (LikeAgent)
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
	base
	numbers map[netip.Addr]int // NN of each address: its own for as long as it is there
	tidied  time.Time          // when pairs were last forgotten to make room
}

// NewAgent gives an agent whose link is down. Errors are of type *Error.
func NewAgent(cfg AgentConfig) (*Agent, error) {
	b, err := newBase(cfg)
	if err != nil {
		return nil, err
	}
	a := &Agent{base: b}
	a.number()
	return a, nil
}

// Config gives what the agent is now.
func (a *Agent) Config() AgentConfig {
	c := a.cfg
	c.Addrs = slices.Clone(c.Addrs)
	return c
}

// Agreed are the extensions that the agent understands and that the switch offered.
func (a *Agent) Agreed() Extensions { return a.agreed }

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
	a.agreed = 0
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
		p, at := a.next()
		out.Events = append(out.Events, AgentEvent{Kind: AgentConnect, At: at, Notice: p.last})
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

// Set replaces the settings, but for the interface and its MAC, and registers the addresses at
// once. An address keeps its number, so that no other one is ever registered in its place while it
// is there; numbers that are not used any more are shut down. What was told to addresses that are
// gone is forgotten, and nothing else.
func (a *Agent) Set(cfg AgentConfig, now time.Time) (AgentOutput, error) {
	var out AgentOutput
	cfg.Interface, cfg.MAC = a.cfg.Interface, a.cfg.MAC
	if err := cfg.complete(); err != nil {
		return out, err
	}
	old := maps.Clone(a.numbers)
	was := a.cfg
	a.cfg = cfg
	a.number()
	for _, addr := range was.Addrs {
		if !a.uses(old[addr]) {
			a.registration(&out, addr, old[addr], 0)
		}
	}
	for k := range a.pairs {
		if !slices.Contains(cfg.Addrs, k.host) {
			delete(a.pairs, k)
		}
	}
	if a.up {
		a.announce(&out, now)
	}
	return out, nil
}

// number gives each address a number, the lowest that is free where it has none.
func (a *Agent) number() {
	kept := make(map[netip.Addr]int, len(a.cfg.Addrs))
	for _, addr := range a.cfg.Addrs {
		if n, ok := a.numbers[addr]; ok {
			kept[addr] = n
		}
	}
	a.numbers = kept
	for _, addr := range a.cfg.Addrs {
		if _, ok := kept[addr]; ok {
			continue
		}
		n := 1
		for a.uses(n) {
			n++
		}
		kept[addr] = n
	}
}

// uses reports whether an address has a number.
func (a *Agent) uses(number int) bool {
	for _, n := range a.numbers {
		if n == number {
			return true
		}
	}
	return false
}

// announce registers every address and sets the time of the next registration.
func (a *Agent) announce(out *AgentOutput, now time.Time) {
	a.register = now.Add(a.cfg.Interval)
	for _, addr := range a.cfg.Addrs {
		a.registration(out, addr, a.numbers[addr], a.cfg.TTL)
	}
}

// SetAddrs is Set of other addresses.
func (a *Agent) SetAddrs(addrs []netip.Addr, now time.Time) (AgentOutput, error) {
	cfg := a.cfg
	cfg.Addrs = addrs
	return a.Set(cfg, now)
}

// Shutdown gives one shutdown LLDPDU for each address (the existing agent has none)
// and takes the link as down.
func (a *Agent) Shutdown(now time.Time) AgentOutput {
	var out AgentOutput
	for _, addr := range a.cfg.Addrs {
		a.registration(&out, addr, a.numbers[addr], 0)
	}
	a.LinkDown(now)
	return out
}

// Frame takes one frame that the port received.
func (a *Agent) Frame(f fabric.Frame, now time.Time) AgentOutput {
	var out AgentOutput
	var acks []Ack
	if f.EtherType != fabric.EtherTypeNTS {
		return out
	}
	a.notices(&out, f, now, func(n *Notice, at time.Time) {
		if !slices.Contains(a.cfg.Addrs, n.Host) { // a fence, of another port's path
			a.count.Detours++
			acks = append(acks, Ack{n.Subject, n.Host, n.Seq})
			teller(&out, n, true, at)(AgentFenced)
			return
		}
		if !a.room(n, now) {
			a.count.TableFull++
			teller(&out, n, false, at)(AgentDropped)
			return
		}
		acked := a.acks()
		if acked {
			acks = append(acks, Ack{n.Subject, n.Host, n.Seq})
		}
		a.act(&out, n, acked, at, now)
	})
	a.sendAcks(&out, acks)
	return out
}

// tidyEvery bounds how often pairs are forgotten to make room, whatever a switch says meanwhile.
const tidyEvery = time.Second

// room reports whether a notice can be acted upon: its subject is known or can be, or nothing need
// be kept of it, as of a path that is to be left. Pairs whose subject is gone for good give way.
func (a *Agent) room(n *Notice, now time.Time) bool {
	if n.Service.Role == RoleInitiator || n.State == Inactive || a.pairs[pair{n.Host, n.Subject}] != nil || len(a.pairs) < MaxAgentPairs {
		return true
	}
	if now.Sub(a.tidied) >= tidyEvery {
		a.tidied = now
		maps.DeleteFunc(a.pairs, func(_ pair, p *peer) bool { return p.last.State == Inactive && p.last.Reason.Disconnects() })
	}
	return len(a.pairs) < MaxAgentPairs
}

// act decides what a notice for an own address leads to.
func (a *Agent) act(out *AgentOutput, n *Notice, acked bool, at, now time.Time) {
	tell := teller(out, n, acked, at)
	who, p := a.peer(n, tell)
	switch {
	case p == nil:
		return
	case p.last.Equal(n):
		a.count.Duplicates++
		tell(AgentDuplicate)
		return
	}
	rises := p.last.fenced(n)
	p.last = *n
	if rises {
		tell(AgentFenced)
		return
	}
	tell(AgentReceived)
	if n.State == Active {
		if !p.connected && !p.waiting {
			a.hold(who, p, now)
		}
		return
	}
	p.leave(tell)
}

// Peers lists the last notice about each subject, by own address and subject.
func (a *Agent) Peers() []Notice {
	list := make([]Notice, 0, len(a.pairs))
	for _, p := range a.pairs {
		list = append(list, p.last)
	}
	slices.SortFunc(list, func(x, y Notice) int {
		return cmp.Or(x.Host.Compare(y.Host), x.Subject.Compare(y.Subject))
	})
	return list
}
