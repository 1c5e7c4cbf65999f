package snsd

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// base is what Agent and LikeAgent share: what a port registers, what it was told, and which
// connections it holds back.
type base struct {
	cfg      AgentConfig
	up       bool
	register time.Time // next registration
	pairs    map[pair]*peer
	queue    []pending  // connections held back, by time
	agreed   Extensions // understood, and offered since the link came up: announced in each frame
	count    AgentCounters
}

// pair is a path: from an own address to a subject.
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

func newBase(cfg AgentConfig) (base, error) {
	if err := cfg.complete(); err != nil {
		return base{}, err
	}
	return base{cfg: cfg, pairs: make(map[pair]*peer)}, nil
}

// complete checks a configuration and fills in the defaults.
func (cfg *AgentConfig) complete() error {
	if err := cfg.check(); err != nil {
		return err
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
	return nil
}

// Counters gives a copy of the totals.
func (b *base) Counters() AgentCounters { return b.count }

// notices reads a frame and gives each notice in it that is for an own address, with the time at
// which the frame was received.
func (b *base) notices(out *AgentOutput, f fabric.Frame, now time.Time, each func(n *Notice, at time.Time)) {
	at := received(f, now)
	p, err := ParsePacket(f.Payload)
	b.count.Received.Note(p, err)
	if err != nil {
		out.Events = append(out.Events, AgentEvent{Kind: AgentRefused, At: at, Err: err})
	}
	if len(p.Notices) > 0 { // else no switch sent it
		b.agreed |= p.Extensions & b.cfg.Extensions
	}
	for i := range p.Notices {
		n := &p.Notices[i]
		if !slices.Contains(b.cfg.Addrs, n.Host) && !b.detour(n) {
			b.count.NotOurs++
			err := refuse("notify", "own address", n.Host, ErrAddress)
			out.Events = append(out.Events, AgentEvent{Kind: AgentRefused, At: at, Notice: *n, Err: err})
			continue
		}
		each(n, at)
	}
}

// detour reports whether a notice is of the fence of a path of another port.
func (b *base) detour(n *Notice) bool {
	return n.State == Inactive && n.Fence != nil && b.cfg.Elsewhere != nil && b.cfg.Elsewhere(n.Host)
}

// received is when a frame was.
func received(f fabric.Frame, now time.Time) time.Time {
	if f.At.IsZero() {
		return now
	}
	return f.At
}

// teller tells events of a notice.
func teller(out *AgentOutput, n *Notice, acked bool, at time.Time) func(AgentEventKind) {
	return func(k AgentEventKind) {
		out.Events = append(out.Events, AgentEvent{Kind: k, At: at, Notice: *n, Acked: acked})
	}
}

// peer gives what is known of a notice's subject, nil where nothing is to be done about it: it is
// an initiator, or there is no room for one more. To leave a path nothing need be known of it, and
// then nothing is kept.
func (b *base) peer(n *Notice, tell func(AgentEventKind)) (pair, *peer) {
	who := pair{n.Host, n.Subject}
	if n.Service.Role == RoleInitiator {
		b.count.Ignored++
		tell(AgentIgnored)
		return who, nil
	}
	p := b.pairs[who]
	if p == nil {
		p = new(peer)
		switch {
		case len(b.pairs) < MaxAgentPairs:
			b.pairs[who] = p
		case n.State == Active:
			b.count.TableFull++
			tell(AgentIgnored)
			return who, nil
		}
	}
	return who, p
}

// hold has a subject connected when the restraint is over.
func (b *base) hold(who pair, p *peer, now time.Time) {
	p.gen++
	p.waiting = true
	if len(b.queue) >= 2*MaxAgentPairs { // most are outdated: there is one of each pair that is not
		b.queue = slices.DeleteFunc(b.queue, func(q pending) bool { return !b.due(q) })
	}
	b.queue = append(b.queue, pending{now.Add(b.cfg.Restraint), who, p.gen})
}

// due reports whether an entry of the queue still holds.
func (b *base) due(q pending) bool {
	p := b.pairs[q.who]
	return p != nil && p.gen == q.gen && p.waiting
}

// leave is what an inactive notice leads to.
func (p *peer) leave(tell func(AgentEventKind)) {
	p.waiting, p.connected = false, false
	if p.last.Reason.Disconnects() {
		tell(AgentDisconnect)
	} else {
		tell(AgentProbe) // the kernel fails over, and reconnects by itself
	}
}

// prune takes off the head of the queue what is not to be connected any more.
func (b *base) prune() {
	for len(b.queue) > 0 && !b.due(b.queue[0]) {
		b.queue = b.queue[1:]
	}
}

// next takes the head of the queue, whose restraint is over.
func (b *base) next() (*peer, time.Time) {
	head := b.queue[0]
	b.queue = b.queue[1:]
	p := b.pairs[head.who]
	p.waiting, p.connected = false, true
	return p, head.at
}

// acks decides whether the next notice is acked.
func (b *base) acks() bool {
	if b.cfg.Silent {
		return false
	}
	if b.cfg.LoseAcks > 0 && b.cfg.Rand() < b.cfg.LoseAcks {
		b.count.AcksLost++
		return false
	}
	return true
}
