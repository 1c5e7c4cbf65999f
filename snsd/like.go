package snsd

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// Habits of the existing agent that Agent does not have. Times were measured on it.
const (
	// DefaultLikeQueue is how many notices wait in it; more are lost.
	DefaultLikeQueue = 1000
	// DefaultLikeTask is how long it takes for one notice: 2,000 of them took 3.7 s.
	DefaultLikeTask = 1850 * time.Microsecond
	// DefaultLikeConnect is how long its one worker takes to connect to one target.
	DefaultLikeConnect = 20 * time.Millisecond
	// DefaultLikeMove is how long after a change of address it registers the new one.
	DefaultLikeMove = 113 * time.Second

	// likeFrameLost is the length of a frame, in bytes with its Ethernet header, from
	// which it is lost: its buffer is one byte shorter than it should be.
	likeFrameLost = 1514

	// Its flood guard: that many frames within the window make it deaf for a while.
	floodFrames = 500
	floodWindow = 500 * time.Millisecond
	floodDeaf   = 10 * time.Second
)

// LikeConfig says what a host with the existing agent is. Zero values mean the defaults
// above.
type LikeConfig struct {
	AgentConfig
	Queue   int           // notices that wait, at most
	Task    time.Duration // for one notice
	Connect time.Duration // for one connection
	Move    time.Duration // from a change of address to its registration
}

// LikeAgent is a host with the habits of the existing agent, the troublesome ones
// included; what a switch does must suit it, since it will not change. Like Agent it
// is a pure machine with one owner. Its habits are
//
//   - IPv4 and RoCE only;
//   - it registers every 30 s and when it starts, and asks for its zones when it starts; a
//     link that comes back is no occasion for either, and what it was told and does
//     stays as it is without a link;
//   - each notice is a task in a queue of 1,000 that is served one by one; the ack leaves
//     when its turn comes, and a repeated notice is a task like any other;
//   - it connects 3 s after the last active notice of a target, one target at a time: each
//     repeated one begins those 3 s anew;
//   - it is deaf for 10 s after 500 frames within 500 ms, and never sees a frame of
//     1,514 bytes or more;
//   - what a notice says of an initiator is acked and dropped, also that it is inactive.
type LikeAgent struct {
	base
	like LikeConfig

	started bool
	tasks   []likeTask
	free    time.Time // when the next task can begin
	worker  time.Time // when the next connection can begin
	moved   map[netip.Addr]time.Time

	windowAt  time.Time
	window    int // frames since windowAt
	deafUntil time.Time
}

type likeTask struct {
	notice Notice
	at     time.Time // its frame was received
}

// NewLikeAgent gives an agent that has not started: it does with its first link.
// Errors are of type *Error.
func NewLikeAgent(cfg LikeConfig) (*LikeAgent, error) {
	if err := checkLikeAddrs(cfg.Addrs); err != nil {
		return nil, err
	}
	switch {
	case cfg.Service.Protocol == ProtocolUnknown:
		cfg.Service.Protocol = ProtocolRoCE
	case cfg.Service.Protocol != ProtocolRoCE:
		return nil, refuse("agent", "protocol", fmt.Sprintf("%s, the existing agent has RoCE only", cfg.Service.Protocol), ErrValue)
	}
	cfg.Extensions, cfg.Elsewhere = 0, nil
	b, err := newBase(cfg.AgentConfig)
	if err != nil {
		return nil, err
	}
	num := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	num(&cfg.Task, DefaultLikeTask)
	num(&cfg.Connect, DefaultLikeConnect)
	num(&cfg.Move, DefaultLikeMove)
	if cfg.Queue <= 0 {
		cfg.Queue = DefaultLikeQueue
	}
	return &LikeAgent{base: b, like: cfg, moved: make(map[netip.Addr]time.Time)}, nil
}

func checkLikeAddrs(addrs []netip.Addr) error {
	for _, a := range addrs {
		if !a.Is4() {
			return refuse("agent", "address", fmt.Sprintf("%s, the existing agent has IPv4 only", a), ErrFamily)
		}
	}
	return nil
}

// Waiting is how many notices wait for their turn.
func (l *LikeAgent) Waiting() int { return len(l.tasks) }

// LinkUp starts the agent with the first link; a later one is no news to it.
func (l *LikeAgent) LinkUp(now time.Time) AgentOutput {
	var out AgentOutput
	l.up = true
	if !l.started {
		l.started = true
		clear(l.moved)
		l.announce(&out, now)
		l.query(&out)
	}
	return out
}

// LinkDown keeps the agent from sending; it goes on otherwise.
func (l *LikeAgent) LinkDown(now time.Time) AgentOutput {
	l.up = false
	return AgentOutput{}
}

// Shutdown ends the agent, which tells nobody.
func (l *LikeAgent) Shutdown(now time.Time) AgentOutput { return l.LinkDown(now) }

// Tick does what is due: registrations, notices whose turn it is, and connections.
func (l *LikeAgent) Tick(now time.Time) AgentOutput {
	var out AgentOutput
	l.announce(&out, now)
	l.work(&out, now)
	l.connect(&out, now)
	return out
}

// Next is when Tick has something to do; zero when nothing is due.
func (l *LikeAgent) Next() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if l.started {
		sooner(l.register)
	}
	for _, at := range l.moved {
		sooner(at)
	}
	if len(l.tasks) > 0 {
		sooner(l.free)
	}
	if l.prune(); len(l.queue) > 0 {
		at := l.queue[0].at
		if at.Before(l.worker) {
			at = l.worker
		}
		sooner(at)
	}
	return next
}

// announce registers what is due: each address that was not just given to the host, and
// those that were when their time has come. What is due without a link is lost.
func (l *LikeAgent) announce(out *AgentOutput, now time.Time) {
	all := l.started && !l.register.After(now)
	for i, a := range l.cfg.Addrs {
		at, isNew := l.moved[a]
		if isNew && !at.After(now) {
			delete(l.moved, a)
			isNew = false
			l.registration(out, a, i+1, l.cfg.TTL)
		} else if all && !isNew {
			l.registration(out, a, i+1, l.cfg.TTL)
		}
	}
	if all {
		l.register = now.Add(l.cfg.Interval)
	}
}

// SetAddrs replaces the addresses. Notices for those that are gone are refused at once; new
// ones are registered after LikeConfig.Move.
func (l *LikeAgent) SetAddrs(addrs []netip.Addr, now time.Time) error {
	if err := checkAgentAddrs(addrs); err != nil {
		return err
	}
	if err := checkLikeAddrs(addrs); err != nil {
		return err
	}
	for a := range l.moved {
		if !slices.Contains(addrs, a) {
			delete(l.moved, a)
		}
	}
	for _, a := range addrs {
		if !slices.Contains(l.cfg.Addrs, a) {
			l.moved[a] = now.Add(l.like.Move)
		}
	}
	l.cfg.Addrs = slices.Clone(addrs)
	return nil
}

// Frame takes one frame that the port received.
func (l *LikeAgent) Frame(f fabric.Frame, now time.Time) AgentOutput {
	var out AgentOutput
	if f.EtherType != fabric.EtherTypeNTS {
		return out
	}
	if fabric.EthernetHeaderLen+len(f.Payload) >= likeFrameLost {
		l.count.TooLong++
		return out
	}
	if l.flooded(&out, received(f, now), now) {
		return out
	}
	l.notices(&out, f, now, func(n *Notice, at time.Time) {
		if len(l.tasks) >= l.like.Queue {
			l.count.QueueFull++
			out.Events = append(out.Events, AgentEvent{Kind: AgentDropped, At: at, Notice: *n})
			return
		}
		l.tasks = append(l.tasks, likeTask{*n, at})
	})
	l.work(&out, now)
	return out
}

// work serves the tasks whose turn it is.
func (l *LikeAgent) work(out *AgentOutput, now time.Time) {
	for len(l.tasks) > 0 && !l.free.After(now) {
		t := l.tasks[0]
		l.tasks = l.tasks[1:]
		begun := l.free
		if begun.Before(t.at) {
			begun = now
		}
		l.free = begun.Add(l.like.Task)
		acked := l.up && l.acks()
		if acked {
			l.sendAcks(out, []Ack{{t.notice.Subject, t.notice.Host, t.notice.Seq}})
		}
		l.act(out, &t.notice, acked, t.at, now)
	}
}

// flooded is its guard against a storm of frames.
func (l *LikeAgent) flooded(out *AgentOutput, at, now time.Time) bool {
	if now.Before(l.deafUntil) {
		l.count.Deaf++
		return true
	}
	if now.Sub(l.windowAt) >= floodWindow {
		l.windowAt, l.window = now, 0
	}
	if l.window++; l.window < floodFrames {
		return false
	}
	l.deafUntil, l.window = now.Add(floodDeaf), 0
	l.count.Deaf++
	out.Events = append(out.Events, AgentEvent{Kind: AgentDeaf, At: at})
	return true
}

// act does what the notice says, whether it was said before or not.
func (l *LikeAgent) act(out *AgentOutput, n *Notice, acked bool, at, now time.Time) {
	tell := teller(out, n, acked, at)
	who, p := l.peer(n, tell)
	if p == nil {
		return
	}
	if p.last.Equal(n) {
		l.count.Duplicates++
	}
	p.last = *n
	tell(AgentReceived)
	p.gen++
	p.waiting = false
	switch {
	case n.State == Inactive:
		p.leave(tell)
	case !p.connected:
		l.hold(who, p, now)
	}
}

// connect has the one worker connect to the targets whose restraint is over.
func (l *LikeAgent) connect(out *AgentOutput, now time.Time) {
	for l.prune(); len(l.queue) > 0 && !l.queue[0].at.After(now) && !l.worker.After(now); l.prune() {
		p, _ := l.next()
		l.worker = now.Add(l.like.Connect)
		out.Events = append(out.Events, AgentEvent{Kind: AgentConnect, At: now, Notice: p.last})
	}
}
