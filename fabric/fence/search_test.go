package fence

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// This file searches all interleavings of one old write with everything that may happen to it, over
// the real machine of the array's switch and small models of the rest: copies of the write at the
// host (h), in the network (n) and in the port's queue (q, a part of n), in the array's receive queue
// (r) and in execution (x). The host sends the write again on another path, and a later write is
// acknowledged there, in the moment in which its agent leaves. Then
//
//   - after level array no old copy is executed,
//   - after level network none is that was at h or n when the host left,
//   - no pair is blocked that has no other path.
//
// Each rule of fencing is then taken out, and the search has to find how data are lost.

const (
	expiry = 4 // ticks after which an array that hears nothing ends the connection: 3 x KATO
	hold   = expiry + 2
	second = time.Second // a tick
)

// place is where a copy is.
type place uint8

const (
	nowhere place = iota
	atHost
	inNet
	inQueue
	received
	executing
	dropped
	executed
)

// rule is one that is taken out.
type rule uint8

const (
	none             rule = iota
	queueForgotten        // 1: a drop before a queue counts as a fence of that queue
	holdTooShort          // 2: the block ends before the array has ended the connection
	holdFromBegin         // 2: the hold counts from the begin of the block, however long the queue took
	oneWay                // 3: the array's RST passes
	networkIsArray        // 4: level network counts as level array
	lastPath              // 5: the last path is blocked too
	notKept               // 5: a restart of the daemon ends the blocks
	openAtOnce            // the table: a port is open as soon as its link is back
	executionIgnored      // 3b: the target answers before its commands have ended
)

var ruleNames = map[rule]string{
	none: "all rules", queueForgotten: "rule 1 (the queue is emptied)", holdTooShort: "rule 2 (a block ends by 3 x KATO + 2 s)",
	holdFromBegin: "rule 2 (counted from when the queue is empty)", oneWay: "rule 3 (both ways)", networkIsArray: "rule 4 (network is not array)",
	lastPath: "rule 5 (never the last path)", notKept: "rule 5 (kept over a restart)", openAtOnce: "the port stays closed after a loss of carrier",
	executionIgnored: "the target waits for its commands",
}

var (
	arrayAddr = netip.MustParseAddr("192.0.2.51")
	otherAddr = netip.MustParseAddr("192.0.2.52") // of the same subsystem, at another switch
	hostAddr  = netip.MustParseAddr("192.0.2.11")
	begin     = time.Unix(1_700_000_000, 0)
	pairKey   = Key{"p", arrayAddr, hostAddr}
	portKey   = Key{Port: "p"}
)

// fabricState is everything except the machine; it can be compared.
type fabricState struct {
	tick    int
	copies  [2]place
	guarded [2]bool // must no longer be executed
	paused  bool    // the array pauses the queue
	noLink  bool    // of the array's port
	failed  bool    // the path to the host's switch
	other   bool    // the other path is there
	closed  bool    // the array has ended the connection
	silent  int     // ticks since the array heard something
	left    bool    // the host has left the path
	dead    bool    // the daemon
	target  uint8   // the target's agent: 1 drops the pair, 2 has destroyed its sockets, 3 has answered
	until   int     // its drop ends
	blocks  [2]struct {
		on           bool
		since, until int
	} // in the dataplane: of the pair, of the port
	used event // what happens at most once
}

// world is one state of the search.
type world struct {
	fabricState
	m     *Machine
	steps []Step // with the dataplane
	from  *world
	did   string
	depth int
	bad   string
}

// search is one run.
type search struct {
	out    rule
	need   snsd.FenceLevel // with which the agent leaves
	events event           // that may happen
	slow   bool            // it begins with a copy in the queue, which is paused, and one at the host
}

func (s *search) at(w *world) time.Time { return begin.Add(time.Duration(w.tick) * second) }

// worldView is the table of hosts at the array's switch.
type worldView struct {
	w   *fabricState
	lie bool
}

func (v worldView) Host(a netip.Addr) (Host, bool) {
	switch a {
	case arrayAddr:
		return Host{Addr: a, NQN: "sub", Role: snsd.RoleTarget, Ports: []string{"p"}, Up: !v.w.noLink, Why: snsd.ReasonLinkDown}, true
	case otherAddr:
		return Host{Addr: a, NQN: "sub", Role: snsd.RoleTarget, Up: v.w.other || v.lie}, true
	case hostAddr:
		return Host{Addr: a, NQN: "host", Role: snsd.RoleInitiator, Up: !v.w.failed, Why: snsd.ReasonBFDDown}, true
	}
	return Host{}, false
}

func (v worldView) Peers(a netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, p := range [...]netip.Addr{arrayAddr, otherAddr, hostAddr} {
			if p != a && !yield(p) {
				return
			}
		}
	}
}

func (v worldView) Share(a, b netip.Addr) bool { return true }

func (v worldView) Local() []netip.Addr { return arrays[:1] }

var (
	arrays = []netip.Addr{arrayAddr, otherAddr}
	itself = []netip.Addr{hostAddr}
)

func (v worldView) OfNQN(nqn string) []netip.Addr {
	if nqn == "sub" {
		return arrays
	}
	return itself
}

func (v worldView) Behind(string) []netip.Addr { return []netip.Addr{arrayAddr} }

// clone returns a copy to go on with.
func (s *search) clone(w *world, did string) *world {
	n := &world{fabricState: w.fabricState, from: w, did: did, depth: w.depth + 1, steps: slices.Clone(w.steps)}
	m := *w.m
	m.view = s.view(n)
	m.down, m.pairs, m.ports, m.noted = copyOf(m.down), copyOf(m.pairs), copyOf(m.ports), copyOf(m.noted)
	m.facts = map[factKey]struct{}{} // nobody reads them
	m.blocks = make(map[Key]*block, len(w.m.blocks))
	for k, b := range w.m.blocks {
		c := *b
		m.blocks[k] = &c
	}
	m.hosts = make(map[netip.Addr]map[netip.Addr]string, len(w.m.hosts))
	for h, a := range w.m.hosts {
		m.hosts[h] = copyOf(a)
	}
	m.queue = slices.Clone(m.queue)
	n.m = &m
	return n
}

func copyOf[K comparable, V any](m map[K]V) map[K]V {
	if len(m) == 0 {
		return map[K]V{}
	}
	return maps.Clone(m)
}

func (s *search) view(w *world) View { return worldView{&w.fabricState, s.out == lastPath} }

func (s *search) config() Config {
	c := Config{On: true, Hold: hold * second}
	if s.out == holdTooShort {
		c.Hold = 2 * second
	}
	return c
}

// key distinguishes states that have another future; times count from now.
func (w *world) key() string {
	b := make([]byte, 0, 64)
	bits := func(list ...bool) {
		v := byte(0)
		for _, on := range list {
			v <<= 1
			if on {
				v |= 1
			}
		}
		b = append(b, v)
	}
	bits(w.guarded[0], w.guarded[1], w.paused, w.noLink, w.failed, w.other, w.closed, w.left)
	b = append(b, byte(w.copies[0]), byte(w.copies[1]), byte(w.silent), w.target, byte(max(0, w.until-w.tick)), byte(w.used), byte(w.used>>8))
	for _, d := range w.blocks {
		if bits(d.on); d.on {
			b = append(b, byte(min(2, w.tick-d.since)), byte(d.until-w.tick))
		}
	}
	now := begin.Add(time.Duration(w.tick) * second)
	for _, k := range [...]Key{pairKey, portKey} {
		x := w.m.blocks[k]
		if bits(x != nil, w.dead); x != nil {
			bits(x.busy, x.confirmed.IsZero(), x.drained, x.next.After(now))
			b = append(b, byte(x.phase), byte(x.Until.Sub(now)/second))
		}
	}
	why, handled := w.m.hosts[hostAddr][arrayAddr]
	bits(w.m.ready, handled)
	b = append(b, byte(len(w.m.queue)), byte(len(w.m.down)), byte(len(why)), byte(len(w.m.ports["p"])))
	for _, st := range w.steps {
		b = append(b, byte(st.Op), byte(len(st.Array.String())))
	}
	return string(b)
}

// dropping reports whether a block of the dataplane stands between the two.
func (w *world) dropping() bool { return w.blocks[0].on || w.blocks[1].on }

// leave is that the host sends the write again elsewhere, and a later one is acknowledged.
func (w *world) leave(level snsd.FenceLevel) {
	w.left = true
	for i, p := range w.copies {
		w.guarded[i] = level == snsd.FenceArray || p == atHost || p == inNet || p == inQueue
	}
}

// level is what the host's switch knows.
func (w *world) level() snsd.FenceLevel {
	best := snsd.FenceNone
	for _, p := range w.m.peers(factKey{"p", arrayAddr}) {
		best = max(best, p.Level)
	}
	return best
}

// event is a kind of what may happen, for searches of some of it.
type event uint16

const (
	evRepeat event = 1 << iota // the host's TCP sends once more
	evPause                    // the array pauses its port
	evOther                    // the other path fails
	evPath                     // the path to the host fails
	evBack                     // it works again
	evLink                     // the array's port loses its carrier, and has it again
	evFail                     // the dataplane fails once
	evKill                     // the daemon is killed
	evTarget                   // the target's agent
)

// next returns all that may happen next.
func (s *search) next(w *world) (out []*world) {
	do := func(can bool, what string, change func(n *world)) {
		if can {
			n := s.clone(w, what)
			change(n)
			out = append(out, n)
		}
	}
	// once is for what happens at most once in a run.
	once := func(e event, can bool, what string, change func(n *world)) {
		do(can && s.events&e != 0 && w.used&e == 0, what, func(n *world) {
			n.used |= e
			change(n)
		})
	}
	for i, p := range w.copies {
		name := fmt.Sprintf("copy %d", i+1)
		do(p == atHost, name+" leaves the host", func(n *world) { n.copies[i] = inNet })
		do(p == inNet, name+" gets to the array's port", func(n *world) {
			n.copies[i] = inQueue
			if n.noLink || n.dropping() {
				n.copies[i] = dropped
			}
		})
		do(p == inQueue && !w.paused && !w.noLink, "the port sends "+name, func(n *world) {
			n.copies[i] = received
			if n.closed || n.target > 0 && n.until > n.tick {
				n.copies[i] = dropped
			}
			n.silent = 0
		})
		do(p == received, "the array begins "+name, func(n *world) { n.copies[i] = executing })
		do(p == executing, name+" is on the media", func(n *world) {
			n.copies[i] = executed
			if n.guarded[i] {
				n.bad = name + " overwrites what was acknowledged after it"
			}
		})
	}
	once(evRepeat, !w.left && w.copies[0] != executed, "the host's TCP repeats the write", func(n *world) { n.copies[1] = atHost })
	once(evPause, !w.paused, "the array pauses the port", func(n *world) { n.paused = true })
	do(w.paused, "the port is paused no more", func(n *world) { n.paused = false })
	once(evOther, w.other, "the other path fails", func(n *world) { n.other = false })
	once(evLink, !w.noLink, "the array's port loses its carrier", func(n *world) {
		n.noLink = true
		for i, p := range n.copies {
			if p == inQueue {
				n.copies[i] = dropped
			}
		}
		if !n.dead {
			s.watched(n, func() { n.m.PortDown("p", s.at(n), s.at(n)) })
		}
	})
	do(w.noLink, "its carrier is back", func(n *world) {
		if n.noLink = false; !n.dead {
			n.m.PortUp("p")
		}
	})
	noted := func(n *world) {
		if !n.dead {
			n.m.Note(hostAddr, s.at(n))
		}
	}
	once(evPath, !w.failed, "the path to the host fails", func(n *world) { n.failed = true; noted(n) })
	once(evBack, w.failed, "the path to the host works", func(n *world) { n.failed = false; noted(n) })
	if at := w.m.Next(s.at(w)); !w.dead && !at.IsZero() && !at.After(s.at(w)) {
		do(true, "the daemon decides", func(n *world) {
			s.watched(n, func() { n.steps = append(n.steps, n.m.Steps(s.at(n))...) })
		})
	}
	if len(w.steps) > 0 {
		do(true, "the dataplane: "+w.steps[0].Op.String(), func(n *world) { s.act(n, nil) })
		once(evFail, true, "the dataplane fails", func(n *world) { s.act(n, errors.New("no")) })
	}
	once(evKill, !w.dead, "the daemon is killed", func(n *world) {
		n.dead, n.steps = true, nil
		if s.out == notKept {
			clear(n.blocks[:])
		}
	})
	do(w.dead, "the daemon is started", func(n *world) { s.start(n) })
	if level := w.level(); !w.left && !w.dead && level != snsd.FenceNone && (level >= s.need || s.out == networkIsArray) {
		do(true, "the host's agent is notified: "+level.String(), func(n *world) {
			if s.out == networkIsArray {
				level = snsd.FenceArray
			}
			n.leave(level)
		})
	}
	if s.events&evTarget != 0 {
		s.targetMoves(w, do)
	}
	do(true, "a second passes", func(n *world) { s.pass(n) })
	return out
}

// start is that of the daemon, which finds what stands.
func (s *search) start(n *world) {
	n.dead, n.m = false, New(s.config(), s.view(n))
	s.watched(n, func() {
		if n.noLink {
			n.m.PortDown("p", s.at(n), s.at(n))
		}
		var list []Block
		for i, k := range [...]Key{pairKey, portKey} {
			if b := n.blocks[i]; b.on {
				list = append(list, Block{k, begin.Add(time.Duration(b.since) * second), begin.Add(time.Duration(b.until) * second)})
			}
		}
		n.m.Adopt(list, s.at(n))
	})
	if n.failed {
		n.m.Note(hostAddr, s.at(n))
	}
}

// targetMoves is the agent of the target: it drops the pair, destroys its sockets, waits for its
// commands, and answers.
func (s *search) targetMoves(w *world, do func(bool, string, func(*world))) {
	do(w.target == 0 && (w.failed || w.noLink), "the target drops the pair", func(n *world) { n.target, n.until = 1, n.tick+hold })
	do(w.target == 1, "the target destroys its sockets", func(n *world) {
		n.target = 2
		s.close(n)
		if s.out == oneWay && !n.left { // its RST moves the host
			n.leave(snsd.FenceArray)
		}
	})
	do(w.target == 2 && (s.out == executionIgnored || !slices.Contains(w.copies[:], executing)), "the target answers: array", func(n *world) {
		if n.target = 3; !n.left {
			n.leave(snsd.FenceArray)
		}
	})
}

// close ends the connection at the array: what was received is thrown away, what is executed is not.
func (s *search) close(n *world) {
	n.closed = true
	for i, p := range n.copies {
		if p == received {
			n.copies[i] = dropped
		}
	}
}

// watched has the machine decide, and checks that it does not block a last path.
func (s *search) watched(n *world, decide func()) {
	before := len(n.m.blocks)
	if decide(); len(n.m.blocks) > before && !n.other {
		for _, b := range n.m.blocks {
			if b.phase <= asked && b.Since.IsZero() {
				n.bad = "the last path of the pair is blocked"
			}
		}
	}
}

// act has the dataplane do its next step.
func (s *search) act(n *world, err error) {
	st := n.steps[0]
	n.steps = n.steps[1:]
	r := Result{Step: st, Err: err}
	i := 0
	if st.WholePort() {
		i = 1
	}
	b := &n.blocks[i]
	switch {
	case err != nil:
	case st.Op == OpBlock:
		until := int(st.Until.Sub(begin) / second)
		if !b.on {
			b.on, b.since = true, n.tick
		}
		b.until = max(b.until, until)
		if s.out == holdFromBegin {
			b.until = b.since + hold
		}
		if s.out == openAtOnce && i == 1 {
			b.on = false
		}
		r.Since, r.Until = begin.Add(time.Duration(b.since)*second), begin.Add(time.Duration(b.until)*second)
	case st.Op == OpDrained && !b.on:
		r.Err = errors.New("there is no such block")
	case st.Op == OpDrained:
		r.Drained = s.out == queueForgotten || !slices.Contains(n.copies[:], inQueue)
	case st.Op == OpLift:
		b.on, b.until = false, 0
	}
	n.m.Done(r, s.at(n))
}

// pass is a second.
func (s *search) pass(n *world) {
	n.tick++
	defer func() {
		for i := range n.blocks {
			if b := &n.blocks[i]; b.on && b.until <= n.tick {
				b.on, b.until = false, 0
			}
		}
	}()
	if n.silent++; !n.left && !n.dropping() && !n.noLink && !n.paused && n.target == 0 && !n.failed {
		n.silent = 0 // keep-alives
	}
	if n.silent >= expiry && !n.closed {
		s.close(n)
	}
	n.silent = min(n.silent, expiry)
}

// run searches to a depth, breadth first. It returns the first state that must not be.
func (s *search) run(depth int, deadline time.Time) (bad *world, states int, whole bool) {
	first := &world{fabricState: fabricState{copies: [2]place{atHost}, other: true}}
	if s.slow {
		first.copies, first.paused = [2]place{inQueue, atHost}, true
	}
	first.m = New(s.config(), s.view(first))
	first.m.Adopt(nil, begin)
	seen := map[string]struct{}{first.key(): {}}
	for level := []*world{first}; len(level) > 0; {
		var following []*world
		for _, w := range level {
			if w.depth == depth {
				continue
			}
			for _, n := range s.next(w) {
				if n.bad != "" {
					return n, len(seen), true
				}
				k := n.key()
				if _, before := seen[k]; !before {
					seen[k] = struct{}{}
					following = append(following, n)
				}
			}
			if len(seen)%1024 == 0 && time.Now().After(deadline) {
				return nil, len(seen), false
			}
		}
		level = following
	}
	return nil, len(seen), true
}

func (w *world) way() (list []string) {
	for ; w.from != nil; w = w.from {
		list = append(list, w.did)
	}
	slices.Reverse(list)
	return list
}

// searches are what happens together, and to which depth: how many things, one after the other.
var searches = []struct {
	what  string
	run   search
	depth int
}{
	{"a path fails, the port is paused", search{need: snsd.FenceNetwork, events: evPause | evPath}, 22},
	{"a port loses its carrier", search{need: snsd.FenceNetwork, events: evPause | evLink | evFail}, 18},
	{"a path fails, the daemon is killed", search{need: snsd.FenceNetwork, events: evPath | evKill}, 18},
	{"the target's agent", search{need: snsd.FenceArray, events: evPath | evTarget}, 18},
	{"the other path fails", search{need: snsd.FenceNetwork, events: evPath | evLink | evOther}, 10},
	{"a queue that is slow", search{need: snsd.FenceNetwork, events: evPath, slow: true}, 24},
	{"all, a path fails", search{need: snsd.FenceNetwork, events: evRepeat | evPause | evOther | evPath | evBack | evFail | evKill}, 10},
	{"all, a port loses its carrier", search{need: snsd.FenceNetwork, events: evRepeat | evPause | evOther | evLink | evFail | evKill}, 10},
	{"all, with the target's agent", search{need: snsd.FenceArray, events: evRepeat | evPause | evPath | evLink | evTarget}, 10},
}

// searchTime is how long all searches take at most: on a machine that is too slow they end before
// their depth, and say so.
const searchTime = 50 * time.Second

func TestNoOldCopyIsExecutedBehindAFence(t *testing.T) {
	end := time.Now().Add(searchTime)
	for _, s := range searches {
		begun := time.Now()
		bad, states, whole := s.run.run(s.depth, end)
		t.Logf("%s: %d states to depth %d, all of them: %v, %v", s.what, states, s.depth, whole, time.Since(begun).Round(time.Millisecond))
		if bad != nil {
			t.Errorf("%s: %s:\n  %s", s.what, bad.bad, strings.Join(bad.way(), "\n  "))
		}
	}
}

// Each rule is needed: without it the search finds how data are lost.
func TestWithoutARuleDataAreLost(t *testing.T) {
	for _, v := range []struct {
		out rule
		in  string // the search that finds it
	}{
		{queueForgotten, "a path fails, the port is paused"},
		{holdTooShort, "a path fails, the port is paused"},
		{holdFromBegin, "a queue that is slow"},
		{oneWay, "the target's agent"},
		{networkIsArray, "a path fails, the port is paused"},
		{lastPath, "the other path fails"},
		{notKept, "a path fails, the daemon is killed"},
		{openAtOnce, "a port loses its carrier"},
		{executionIgnored, "the target's agent"},
	} {
		for _, s := range searches {
			if s.what != v.in {
				continue
			}
			s.run.out = v.out
			bad, states, _ := s.run.run(s.depth, time.Now().Add(searchTime))
			if bad == nil {
				t.Errorf("without %s nothing is lost, in %d states to depth %d", ruleNames[v.out], states, s.depth)
				continue
			}
			t.Logf("without %s: %s:\n  %s", ruleNames[v.out], bad.bad, strings.Join(bad.way(), "\n  "))
		}
	}
}
