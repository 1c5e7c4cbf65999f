package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
)

// sampler reads the health of ports for the detectors, outside of the owner
// goroutine: a driver may take its time. Each port is read as often as its needs
// say, as far as that stays cheap. What takes a module milliseconds has a lane of
// its own, so that it does not hold up the counters.
type sampler struct {
	dp    fabric.Dataplane
	now   func() time.Time
	begun time.Time // where the beat of every pace begins, see beat
	// out gives the readings of a round. The receiver must be done with them before it
	// receives again: their memory is used again.
	out   chan []sample
	lanes [2]*lane
	count samplerCounters
}

// sample is one reading of one port.
type sample struct {
	port   string
	want   fabric.Fields
	health fabric.Health
}

type samplerCounters struct {
	rounds, reads, errors, untold, stuck, late atomic.Uint64
}

// SamplerCounters count the reading of the health of ports.
type SamplerCounters struct {
	Rounds uint64 `json:"rounds"`
	Reads  uint64 `json:"reads"`
	Errors uint64 `json:"errors"`
	Untold uint64 `json:"untold"` // reads that told nothing of what was wanted
	Stuck  uint64 `json:"stuck"`  // reads that took longer than readLimit; the port is left out until they return
	Late   uint64 `json:"late"`   // rounds put off to stay below the share of a core
	// What a round over all ports costs, as a moving average.
	CounterRoundNS uint64 `json:"counter_round_ns"`
	ModuleRoundNS  uint64 `json:"module_round_ns"`
}

const (
	// readLimit is how long one read may take before the others go on without it.
	readLimit = 2 * time.Second
	// errorRetry is how long to wait after a read that failed, at least.
	errorRetry = time.Second
	// untoldRetry is how long a port whose driver does not tell what is wanted is
	// left alone: modules are changed, drivers are not.
	untoldRetry = 30 * time.Second
	// counterShare and moduleShare bound the time spent reading to 1/110 and 1/10
	// of all time (modules make us wait, which costs no CPU).
	counterShare, moduleShare = 110, 10
	// debtBurst is what rounds may cost at once without the next one waiting for it:
	// four times what 128 ports take.
	debtBurst = 10 * time.Millisecond
	// dearRound is how many times the average a round is charged for at most: one that took longer
	// was held up, by a process that was stopped or a machine that is busy, and must not keep ports
	// from being watched for a hundred times as long. Drivers that have become slow raise the
	// average within some rounds.
	dearRound = 4
)

func newSampler(dp fabric.Dataplane, now func() time.Time) *sampler {
	s := &sampler{dp: dp, now: now, begun: now(), out: make(chan []sample)}
	for i, share := range [...]int{counterShare, moduleShare} {
		s.lanes[i] = &lane{s: s, share: time.Duration(share), kick: make(chan struct{}, 1), stuck: map[string]bool{}}
	}
	return s
}

// set says what is to be read of a port from now on; no needs: nothing.
func (s *sampler) set(port string, needs []errdown.Need) {
	for i, l := range s.lanes {
		var list []*portNeed
		for _, n := range needs {
			fields := n.Fields &^ fabric.FieldsOfModule
			if i == 1 {
				fields = n.Fields & fabric.FieldsOfModule
			}
			if fields != 0 {
				list = append(list, &portNeed{port: port, fields: fields, every: n.Every, need: n})
			}
		}
		l.set(port, list)
	}
}

// run reads until ctx ends. It does not wait for a read under way.
func (s *sampler) run(ctx context.Context) {
	for _, l := range s.lanes {
		l.begin(ctx)
	}
	_ = every(ctx, readLimit/2, func() {
		for _, l := range s.lanes {
			l.watch(ctx)
		}
	})
}

func (s *sampler) counters() SamplerCounters {
	return SamplerCounters{
		Rounds: s.count.rounds.Load(), Reads: s.count.reads.Load(), Errors: s.count.errors.Load(),
		Untold: s.count.untold.Load(), Stuck: s.count.stuck.Load(), Late: s.count.late.Load(),
		CounterRoundNS: uint64(s.lanes[0].cost.Load()), ModuleRoundNS: uint64(s.lanes[1].cost.Load()),
	}
}

// lane is one goroutine that reads, one port after the other.
type lane struct {
	s     *sampler
	share time.Duration
	kick  chan struct{}
	cost  atomic.Int64
	// debt is what rounds have cost above the share until settled; it belongs to the
	// goroutine in charge.
	debt    time.Duration
	settled time.Time
	// given is the list that the receiver has, spare one that nobody has. They are of the
	// goroutine in charge too: one that hangs keeps what it fills.
	given, spare []sample

	mu      sync.Mutex
	needs   []*portNeed // by port
	turn    int         // of the goroutine that is in charge; one that hung is replaced
	reading string      // port
	since   time.Time
	stuck   map[string]bool
	todo    []portRead // memory for the next round
}

// portNeed is what somebody needs to know of a port, and how often.
type portNeed struct {
	port   string
	fields fabric.Fields
	every  time.Duration
	next   time.Time // zero: at once
	need   errdown.Need
	blind  time.Time // since when readings do not have what the cause needs; zero: they have
}

// blindAfter is for how long nothing must have been seen for a cause to count as blind.
const blindAfter = 10 * time.Second

// blind returns the ports on which a cause is on and cannot see.
func (s *sampler) blind(now time.Time) map[string][]string {
	out := map[string][]string{}
	for _, l := range s.lanes {
		l.mu.Lock()
		for _, w := range l.needs {
			if c := w.need.Cause; c != "" && (l.stuck[w.port] || !w.blind.IsZero() && now.Sub(w.blind) >= blindAfter) {
				out[c.String()] = append(out[c.String()], w.port)
			}
		}
		l.mu.Unlock()
	}
	return out
}

func (l *lane) set(port string, list []*portNeed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others, have []*portNeed
	for _, w := range l.needs {
		if w.port == port {
			have = append(have, w)
		} else {
			others = append(others, w)
		}
	}
	if slices.EqualFunc(have, list, func(a, b *portNeed) bool { return a.fields == b.fields && a.every == b.every && a.need == b.need }) {
		return
	}
	l.needs = append(others, list...)
	slices.SortStableFunc(l.needs, func(a, b *portNeed) int { return strings.Compare(a.port, b.port) })
	l.wake()
}

func (l *lane) begin(ctx context.Context) {
	l.mu.Lock()
	l.turn++
	turn := l.turn
	l.mu.Unlock()
	go l.run(ctx, turn)
}

// watch replaces the goroutine of a read that hangs.
func (l *lane) watch(ctx context.Context) {
	l.mu.Lock()
	hangs := l.reading != "" && l.s.now().Sub(l.since) > readLimit
	if hangs {
		l.stuck[l.reading] = true
		l.reading = ""
		l.s.count.stuck.Add(1)
	}
	l.mu.Unlock()
	if hangs {
		l.begin(ctx)
	}
}

func (l *lane) run(ctx context.Context, turn int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rest time.Time // no round before
	for {
		select {
		case <-timer.C:
		case <-l.kick:
		case <-ctx.Done():
			return
		}
		begun := l.s.now()
		if todo := l.due(begun); len(todo) > 0 && !begun.Before(rest) {
			list, mine := l.round(todo, begun, turn)
			if !mine {
				return
			}
			rest = l.paid(begun)
			if len(list) > 0 {
				select {
				case l.s.out <- list:
					l.gave(list)
				case <-ctx.Done():
					return
				}
			}
		}
		timer.Reset(l.wait(rest))
	}
}

// paid notes what a round has cost and gives when the next one may be: what was spent
// above the share since is a debt, and rounds wait while it is more than the burst.
func (l *lane) paid(begun time.Time) (rest time.Time) {
	const weight = 7 // of the old value in the moving average
	now := l.s.now()
	old := time.Duration(l.cost.Load())
	cost := min(now.Sub(begun), max(dearRound*old, debtBurst))
	l.debt = max(0, l.debt-now.Sub(l.settled)/l.share) + cost
	l.settled = now
	if old > 0 {
		cost = (weight*old + cost) / (weight + 1)
	}
	l.cost.Store(int64(cost))
	l.s.count.rounds.Add(1)
	return now.Add(max(0, l.debt-debtBurst) * l.share)
}

// wait is how long to sleep.
func (l *lane) wait(rest time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.now()
	next := now.Add(time.Hour)
	for _, w := range l.needs {
		if w.next.Before(next) && !l.stuck[w.port] {
			next = w.next
		}
	}
	if next.Before(rest) {
		next = rest
		l.s.count.late.Add(1)
	}
	return max(0, next.Sub(now))
}

// portRead is what is to be read of one port now, and for whom.
type portRead struct {
	port   string
	fields fabric.Fields
	needs  []*portNeed
}

func (l *lane) due(now time.Time) []portRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	todo := l.todo[:0]
	for i := 0; i < len(l.needs); {
		first, fields := i, fabric.Fields(0)
		port := l.needs[first].port
		for ; i < len(l.needs) && l.needs[i].port == port; i++ {
			if w := l.needs[i]; !now.Before(w.next) {
				fields |= w.fields
			}
		}
		if fields != 0 && !l.stuck[port] {
			todo = append(todo, portRead{port, fields, l.needs[first:i:i]})
		}
	}
	l.todo = nil // until the round is over: a goroutine that hangs keeps it
	return todo
}

// round reads what is due; mine is false when another goroutine has taken over
// because one of the reads took too long.
func (l *lane) round(todo []portRead, now time.Time, turn int) (list []sample, mine bool) {
	list = l.memory(len(todo))
	for i := range todo {
		t := &todo[i]
		l.mu.Lock()
		l.reading, l.since = t.port, l.s.now()
		l.mu.Unlock()

		list = append(list, sample{port: t.port, want: t.fields})
		h, err := &list[len(list)-1].health, error(nil)
		*h, err = fabric.ReadHealth(l.s.dp, t.port, t.fields, l.s.now)
		l.s.count.reads.Add(1)

		l.mu.Lock()
		if mine = l.turn == turn; mine {
			l.reading = ""
		} else {
			delete(l.stuck, t.port)
		}
		l.done(t.needs, h.Valid, err, now)
		l.mu.Unlock()
		if !mine {
			l.wake()
			return nil, false
		}
		if err != nil || h.Valid == 0 {
			list = list[:len(list)-1]
		}
	}
	l.mu.Lock()
	l.todo = todo
	l.mu.Unlock()
	return list, true
}

// memory gives an empty list for a round.
func (l *lane) memory(n int) []sample {
	list := l.spare[:0]
	if l.spare = nil; cap(list) < n {
		list = make([]sample, 0, n)
	}
	return list
}

// gave notes that the receiver has a list, and so is done with the one before.
func (l *lane) gave(list []sample) { l.spare, l.given = l.given, list }

// beat gives when something that was just read is read again: the pace has one beat for
// all ports, so that a round reads all of them, and those of several paces fall
// together. One that was held up comes back into it, but never within half a pace.
func (s *sampler) beat(now time.Time, every time.Duration) time.Time {
	passed := now.Sub(s.begun) + every/2
	return s.begun.Add((passed + every - 1) / every * every)
}

// done plans the next read for those for whom it was.
func (l *lane) done(needs []*portNeed, valid fabric.Fields, err error, now time.Time) {
	untold := false
	for _, w := range needs {
		if now.Before(w.next) {
			continue
		}
		every := w.every
		if w.need.Seen(valid) {
			w.blind = time.Time{}
		} else if w.blind.IsZero() {
			w.blind = now
		}
		switch {
		case err != nil:
			every = max(every, errorRetry)
		case valid&w.fields == 0:
			untold = true
			every = max(every, untoldRetry)
		}
		w.next = l.s.beat(now, every)
	}
	switch {
	case err != nil && !errors.Is(err, fabric.ErrNoPort):
		l.s.count.errors.Add(1)
	case untold:
		l.s.count.untold.Add(1)
	}
}

func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}
