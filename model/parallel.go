package model

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Several cores: the fabric is cut into shards, each with its own clock, events and
// frames. A frame that crosses a cut arrives no earlier than the link's delay after
// it was sent, so shards may run that far on their own; then they exchange what
// crossed. Ties are broken by entity and not by order of scheduling, so the run is
// the same event for event as on one core.

// shardsPerCore is above 1 so that a core whose shard has little to do takes another. A large
// fabric is cut finer, and on one core too: each shard works within the core's own cache for a
// window, where the whole fabric would fetch from memory for each frame.
const (
	shardsPerCore = 4
	maxShards     = 256
	portsPerShard = 256
	minSpan       = 16 // windows that are worth cutting the fabric for
)

// ErrShards is wrapped by errors about running on several cores.
var ErrShards = errors.New("shards")

// flight is the wire of a cut link at its receiving shard, with the flags of its sender.
type flight struct {
	head, tail int32
	peer       int32
	flags      uint8
}

// mail is a frame on its way to another shard.
type mail struct {
	pkt  packet
	port int32
}

// box is what one shard has for another at the end of a window.
type box struct {
	mails []mail
	times [][NumQueues]uint16 // of the PFC frames among them, in their order
	raws  [][]byte            // contents of the control frames among them, in their order
	dues  []announced         // messages that will come there
}

// announced is a message whose frames come no earlier than the next window.
type announced struct {
	msgs int32
	due
}

func (b *box) empty() {
	clear(b.raws)
	b.mails, b.times, b.raws, b.dues = b.mails[:0], b.times[:0], b.raws[:0], b.dues[:0]
}

// announce tells the receiving end of a message what will be complete when.
func (s *Sim) announce(msgs int32, to int16, d due) {
	if to == s.shard {
		s.dues[msgs].list = append(s.dues[msgs].list, d)
		return
	}
	b := &s.out[s.box][to]
	b.dues = append(b.dues, announced{msgs, d})
}

// post gives a launched frame to the shard of the peer.
func (s *Sim) post(pi int32, pt *port, pk int32, p *packet) {
	b := &s.out[s.box][s.owner[pt.peer]]
	switch p.kind() {
	case kindPFC:
		b.times = append(b.times, s.pfcTimes[p.flow])
		s.pfcFree = append(s.pfcFree, p.flow)
	case kindRaw:
		b.raws = append(b.raws, s.raws[p.flow])
		s.forgetContent(p)
	}
	b.mails = append(b.mails, mail{port: pi, pkt: *p})
	s.mailAt = min(s.mailAt, p.at)
	s.pool.put(pk)
}

// accept takes the frames that other shards sent.
func (s *Sim) accept(b *box) {
	pfc, raw := 0, 0
	for i := range b.mails {
		m := &b.mails[i]
		pk := s.pool.get()
		p := &s.pool.pkts[pk]
		*p = m.pkt
		p.next = -1
		switch p.kind() {
		case kindPFC:
			p.flow = s.newTimes()
			s.pfcTimes[p.flow] = b.times[pfc]
			pfc++
		case kindRaw:
			p.flow = s.keepRaw(b.raws[raw])
			raw++
		}
		f := &s.flight[m.port]
		if f.tail >= 0 {
			s.pool.pkts[f.tail].next = pk
		} else {
			f.head = pk
			s.schedule(p.at, evArrive, m.port)
		}
		f.tail = pk
	}
	for _, a := range b.dues {
		s.dues[a.msgs].list = append(s.dues[a.msgs].list, a.due)
	}
}

// arriveCut is arrive for a link whose sender is in another shard.
func (s *Sim) arriveCut(pi int32) {
	f := &s.flight[pi]
	pk := f.head
	p := &s.pool.pkts[pk]
	f.head = p.next
	if f.head < 0 {
		f.tail = -1
	} else {
		s.schedule(s.pool.pkts[f.head].at, evArrive, pi)
	}
	qt := &s.ports[f.peer]
	if ((f.flags|qt.flags)&(portLossy|portDown|portMute) != 0 || p.kf&(flagLost<<flagShift) != 0) && s.lostOnWire(pi, f.flags, f.peer, p) {
		s.pool.put(pk)
		return
	}
	switch k := p.kind(); {
	case k == kindPFC || k == kindPause:
		s.receivePFC(f.peer, qt, pk)
	case k == kindRaw:
		s.arriveRaw(f.peer, qt, pk)
	case qt.sw >= 0:
		s.forward(f.peer, qt, pk)
	case qt.flags&portSlow == 0 || !s.holdForHost(f.peer, qt, pk):
		s.consume(f.peer, qt, pk)
	}
}

// RunOn is Run on n cores with the same result. Where something looks at the whole fabric at one
// moment, as timers do, the shards meet before, and it happens on one core. A Handler has to say
// what it looks at otherwise (Divisible).
func (s *Sim) RunOn(n int, until Time) error {
	_, err := s.runOn(n, until, nil)
	return err
}

// Divisible is what a Handler may implement so that the fabric that it handles may be cut. Divided
// reports whether, from now until the next timer of At, all that it does when it is told of a flow,
// a message, a control frame or a timer of AtPort is with what belongs to the host or switch where
// that happens, by the Sim that it is told by; several goroutines will then tell it, each of other
// hosts. It is asked again after each timer of At, and says no where it goes on only for a while:
// that is then run on one core.
type Divisible interface {
	Divided() bool
}

// Balance is how the work of a run on several cores fell, in the units of the clock it
// was measured with.
type Balance struct {
	Cores    int
	Shards   int
	Windows  int           // times all shards met
	Work     time.Duration // of all shards
	Longest  time.Duration // of the busiest core, summed over the windows
	Together time.Duration // of the meetings, when one core works and the others wait
}

// Speedup gives how many times as fast n cores are that do not disturb each other.
func (b Balance) Speedup() float64 {
	return float64(b.Work+b.Together) / float64(b.Longest+b.Together)
}

// MeasureShards is RunOn with the shards run one after the other on the calling goroutine, each
// measured by the clock (processor time, if others use the machine), to tell what several
// cores could gain at most.
func (s *Sim) MeasureShards(n int, until Time, clock func() time.Duration) (Balance, error) {
	return s.runOn(n, until, clock)
}

func (s *Sim) runOn(n int, until Time, clock func() time.Duration) (Balance, error) {
	b := Balance{Cores: n, Shards: 1}
	if n < 1 || n > 64 || until < s.now {
		return b, fmt.Errorf("%w: %d cores until %v", ErrShards, n, until)
	}
	shards := s.shardsFor(n)
	if shards < 2 {
		return b, s.Run(until)
	}
	parts, ok := s.handler.(Divisible)
	if s.handler != nil && !ok {
		if n == 1 {
			return b, s.Run(until)
		}
		return b, fmt.Errorf("%w: the handler is not made for parts of a fabric", ErrShards)
	}
	s.sortStarts()
	cut := s.cutInto(shards)
	if cut != nil && s.leastTrip() < cut.look {
		cut = nil
	}
	for {
		whole := s.firstWhole()
		end := min(until, whole-1)
		if cut == nil || end-s.now < minSpan*cut.look || parts != nil && !parts.Divided() {
			end = min(until, whole)
			if err := s.Run(end); err != nil {
				return b, err
			}
		} else if err := s.runCut(&b, cut, end, clock); err != nil {
			return b, err
		}
		if s.now == until {
			return b, nil
		}
	}
}

// runCut runs the fabric in shards up to and including a moment, or until something concerns the
// whole of it: then it is put together, and the time is what it has come to.
func (s *Sim) runCut(b *Balance, cut *cutting, until Time, clock func() time.Duration) error {
	b.Shards = cut.shards
	c := &crew{shards: s.split(cut), clock: clock, bal: b, loads: make([]time.Duration, b.Cores)}
	c.order = slices.Clone(c.shards)
	c.changed.L = &c.mu
	at, due, err := c.together(s, b.Cores, cut.look, until)
	s.merge(c.shards)
	s.now = at
	if due {
		s.stop.progress(s.now, s.events)
	}
	return err
}

// shardsFor gives how many shards n cores should work on; 1 = the fabric is better left whole.
func (s *Sim) shardsFor(n int) int {
	if len(s.switches) < n {
		return 1
	}
	k := len(s.ports) / portsPerShard
	switch {
	case n > 1:
		k = max(k, shardsPerCore*n)
	case k < shardsPerCore:
		return 1
	}
	return min(k, len(s.switches), maxShards)
}

// OneCore tells why RunOn would run a fabric on one core; "" = it would not.
func (s *Sim) OneCore(n int) string {
	shards := s.shardsFor(n)
	if shards < 2 {
		return fmt.Sprintf("%d switches are too few for %d cores", len(s.switches), n)
	}
	if c := s.cutInto(shards); c != nil && s.leastTrip() < c.look {
		return fmt.Sprintf("deadlock control may take a port down %v after a pause began, sooner than a frame passes a link: %v", s.leastTrip(), c.look)
	}
	return ""
}

// crew is the cores at work on the shards of one window: each takes the next shard
// nobody has taken, those that had most to do in the last window first.
type crew struct {
	shards []*Sim
	order  []*Sim
	taken  atomic.Int32
	end    Time // of the window, inclusive
	box    int  // which of the two boxes of mail is written in it
	epoch  atomic.Uint32
	over   atomic.Bool
	busy   atomic.Int32 // helpers still at work

	mu      sync.Mutex
	changed sync.Cond

	clock func() time.Duration // measuring: one goroutine does all
	bal   *Balance
	loads []time.Duration
}

func (c *crew) run() {
	for {
		i := int(c.taken.Add(1)) - 1
		if i >= len(c.order) {
			return
		}
		if c.clock == nil {
			c.order[i].window(c)
			continue
		}
		t := c.clock()
		c.order[i].window(c)
		t = c.clock() - t
		c.bal.Work += t
		*slices.MinFunc(pointers(c.loads), func(a, b *time.Duration) int { return int(*a - *b) }) += t
	}
}

func pointers[T any](v []T) []*T {
	out := make([]*T, len(v))
	for i := range v {
		out[i] = &v[i]
	}
	return out
}

// spins is how often a core that waits for the others looks before it goes to sleep: some
// microseconds. Sleeping and being woken costs more than that, waiting longer would take
// the processor from others.
const spins = 4096

// wait returns when done says so; whoever changes that calls tell afterwards.
func (c *crew) wait(done func() bool) {
	for range spins {
		if done() {
			return
		}
	}
	c.mu.Lock()
	for !done() {
		c.changed.Wait()
	}
	c.mu.Unlock()
}

func (c *crew) tell() {
	c.mu.Lock() // whoever looked before the change waits by now
	c.changed.Broadcast()
	c.mu.Unlock()
}

// help is what each core but the first does.
func (c *crew) help() {
	seen := uint32(0)
	for {
		c.wait(func() bool { return c.epoch.Load() != seen })
		seen++
		over := c.over.Load()
		if !over {
			c.run()
		}
		if c.busy.Add(-1) == 0 {
			c.tell()
		}
		if over {
			return
		}
	}
}

// together runs the shards window by window on n cores, up to and including a moment, or until
// progress is due to be told or deadlock control may take a port down. It gives the time to which
// everything has happened.
func (c *crew) together(s *Sim, n int, look, until Time) (at Time, due bool, err error) {
	if c.clock != nil {
		n = 1
	}
	for range n - 1 {
		go c.help()
	}
	for _, sh := range c.shards {
		sh.first = sh.heap.first()
	}
	handled := 0
	for at = until; ; {
		first := never
		for _, sh := range c.shards {
			first = min(first, sh.first)
			until = min(until, sh.trip-1)
		}
		if first > until {
			at = until
			break
		}
		if due = s.stop.progress != nil && handled >= s.stop.cutEvery; due || err != nil {
			at = c.end
			break
		}
		c.end = min(first+look-1, until)
		c.box ^= 1
		c.taken.Store(0)
		c.busy.Store(int32(n - 1))
		c.epoch.Add(1)
		c.tell()
		c.run()
		c.wait(func() bool { return c.busy.Load() == 0 })
		handled += c.meet()
		if s.stop.asked.Swap(false) {
			err = ErrStopped
		}
	}
	c.over.Store(true)
	c.busy.Store(int32(n - 1))
	c.epoch.Add(1)
	c.tell()
	c.wait(func() bool { return c.busy.Load() == 0 })
	c.box ^= 1
	for _, sh := range c.shards {
		sh.collect(c)
	}
	return at, due, err
}

// meet is what is done between two windows. It gives how many events the last one had.
func (c *crew) meet() (events int) {
	var t time.Duration
	if c.clock != nil {
		t = c.clock()
	}
	if len(c.loads) > 1 {
		slices.SortFunc(c.order, func(a, b *Sim) int { return b.lastWindow - a.lastWindow })
	}
	c.bal.Windows++
	if c.clock != nil {
		c.bal.Longest += slices.Max(c.loads)
		clear(c.loads)
		c.bal.Together += c.clock() - t
	}
	for _, sh := range c.shards {
		events += sh.lastWindow
	}
	return events
}

// collect takes the frames that other shards sent in the last window.
func (s *Sim) collect(c *crew) {
	for _, from := range c.shards {
		s.accept(&from.out[c.box^1][s.shard])
	}
}

// window handles all events of one shard up to and including the end.
func (s *Sim) window(c *crew) {
	s.collect(c)
	s.box, s.mailAt = c.box, never
	for to := range s.out[s.box] { // read by all in the last window
		s.out[s.box][to].empty()
	}
	before := s.events
	for s.batch(c.end, stopEvery) {
	}
	s.lastWindow = int(s.events - before)
	s.first = min(s.heap.first(), s.mailAt)
}

// first gives the time of the first event.
func (w *wheel) first() Time {
	if e, ok := w.next(-1); ok || e.at > 0 || w.len() > 0 {
		return e.at
	}
	return never
}
