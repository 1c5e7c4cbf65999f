package gnmi

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/telemetry"
)

// Bounds of what waits for a stream's client.
const (
	maxPending = 1 << 18 // values
	maxEvents  = 1024    // events
	// stuck is how long a client may leave a message lying.
	stuck = time.Minute
	// tooLong is the size of a notification from which on a further one is begun, in values.
	tooLong = 1000
)

// sub is one subscription.
type sub struct {
	origin string
	leaves map[*telemetry.Leaf]*wanted
	// interval, next: of samples; beats, nextBeat: of the heartbeat; 0: none.
	interval, beats time.Duration
	next, nextBeat  time.Time
	quick           bool // the interval is not one of whole beats of the hub
	suppress        bool
	sent            map[string]any // values as last sent, with suppress; by path
}

// wanted is a leaf of a subscription.
type wanted struct {
	asked
	onChange bool // else it is sampled
	depth    int  // most elements of a path below that of the query; 0: any number
}

// covers reports whether a value is asked for.
func (w *wanted) covers(keys []string) bool {
	d, ok := w.asked.covers(keys)
	return ok && (w.depth == 0 || len(w.elems)-d <= w.depth)
}

// stream is a client that follows, with what waits for it.
type stream struct {
	subs     []*sub
	encoding pb.Encoding
	target   string
	need     telemetry.Need
	pace     telemetry.Pace // of the platform's readings
	calm     func()         // ends it
	counts   *counters
	updates  *updates

	kick    chan struct{} // something waits
	sending atomic.Int64  // since when the client has not taken a message, Unix nanoseconds; 0: it has all

	mu      sync.Mutex
	waiting map[string]*entry // by place
	order   []*entry
	values  int
	events  []told
	failed  error
}

// told is an event.
type told struct {
	origin string
	tree   telemetry.Tree // its leaves in one container
}

// entry is what waits of an entry of a list, or of the leaves that are in none.
type entry struct {
	origin string
	node   *leafNode
	keys   []string
	gone   []gone // sent before the values
	values []waits
}

// find gives the place of a leaf among the values that wait, or -1.
func (e *entry) find(l *telemetry.Leaf) int {
	return slices.IndexFunc(e.values, func(w waits) bool { return w.Leaf == l })
}

type waits struct {
	telemetry.Value
	again uint32 // values in its place that were never sent
}

// id tells entries apart.
func (l *leafNode) id(keys []string) string {
	return l.list + "\x00" + strings.Join(keys, "\x00")
}

// entryOf gives the place where what happens to a value waits; it is called with the lock held.
func (s *stream) entryOf(origin string, n *leafNode, keys []string) *entry {
	id := origin + "\x00" + n.id(keys)
	e := s.waiting[id]
	if e == nil {
		e = &entry{origin: origin, node: n, keys: keys}
		if s.waiting == nil {
			s.waiting = map[string]*entry{}
		}
		s.waiting[id] = e
		s.order = append(s.order, e)
	}
	return e
}

// offer has a value wait; the newest of a path counts.
func (s *stream) offer(origin string, v *telemetry.Value) {
	e := s.entryOf(origin, theSchema.of[v.Leaf], v.Keys)
	if i := e.find(v.Leaf); i >= 0 {
		e.values[i].Value = *v
		e.values[i].again++
		s.counts.duplicates.Add(1)
		return
	}
	e.values = append(e.values, waits{Value: *v})
	if s.values++; s.values > maxPending && s.failed == nil {
		s.failed = status.Errorf(codes.ResourceExhausted, "more than %d values wait for this client: subscribe to less, or sample at a longer interval", maxPending)
	}
}

// drop has a delete wait, before what may come anew.
func (s *stream) drop(origin string, g *gone) {
	n := theSchema.of[g.leaf]
	e := s.entryOf(origin, n, g.keys)
	if g.whole {
		s.values -= len(e.values)
		e.values, e.gone = nil, []gone{*g}
		return
	}
	if i := e.find(g.leaf); i >= 0 {
		e.values = slices.Delete(e.values, i, i+1)
		s.values--
	}
	e.gone = append(e.gone, *g)
}

func (s *stream) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// take is told by the hub what is new.
func (s *stream) take(c *difference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	for _, u := range s.subs {
		for i := range c.gone {
			g := &c.gone[i]
			if w := u.leaves[g.leaf]; w != nil && !g.leaf.Each && w.covers(g.keys) {
				s.drop(u.origin, g)
				delete(u.sent, theSchema.of[g.leaf].id(g.keys)+"\x00"+g.leaf.Path)
			}
		}
		for i := range c.changed {
			v := &c.changed[i]
			if w := u.leaves[v.Leaf]; w != nil && w.onChange && !v.Leaf.Each && w.covers(v.Keys) {
				s.offer(u.origin, v)
			}
		}
	}
}

// tick is told by the hub that a beat has passed, or that quick samples are due.
func (s *stream) tick(now time.Time, tree telemetry.Tree, quick bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	for _, u := range s.subs {
		sample := u.interval > 0 && !now.Before(u.next)
		heart := u.beats > 0 && !now.Before(u.nextBeat)
		if u.quick != quick || !sample && !heart {
			continue
		}
		u.plan(now)
		for i := range tree {
			v := &tree[i]
			w := u.leaves[v.Leaf]
			if w == nil || !w.covers(v.Keys) || !heart && w.onChange {
				continue
			}
			if u.suppress && !w.onChange {
				place := theSchema.of[v.Leaf].id(v.Keys) + "\x00" + v.Leaf.Path
				if was, ok := u.sent[place]; ok && !heart && telemetry.Equal(was, v.V) {
					continue
				}
				u.sent[place] = v.V
			}
			s.offer(u.origin, v)
		}
	}
}

// plan sets when the next sample and heartbeat are due; what was held up comes back into its pace.
func (u *sub) plan(now time.Time) {
	for _, p := range []struct {
		next  *time.Time
		every time.Duration
	}{{&u.next, u.interval}, {&u.nextBeat, u.beats}} {
		if p.every > 0 && !now.Before(*p.next) {
			late := now.Sub(*p.next)
			*p.next = p.next.Add((late/p.every + 1) * p.every)
		}
	}
}

// event is told by the hub of each event.
func (s *stream) event(tree telemetry.Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.subs {
		var mine telemetry.Tree
		for i := range tree {
			v := &tree[i]
			if w := u.leaves[v.Leaf]; w != nil && w.onChange && w.covers(v.Keys) {
				if len(mine) > 0 && theSchema.of[v.Leaf].elems[0].name != theSchema.of[mine[0].Leaf].elems[0].name { // another container
					s.queue(u.origin, mine)
					mine = nil
				}
				mine = append(mine, *v)
			}
		}
		s.queue(u.origin, mine)
	}
	s.wake()
}

func (s *stream) queue(origin string, t telemetry.Tree) {
	if len(t) == 0 {
		return
	}
	if len(s.events) == maxEvents {
		s.events = s.events[1:]
		s.counts.eventsDropped.Add(1)
	}
	s.events = append(s.events, told{origin, t})
}

// missed counts events that the log did not hold any more.
func (s *stream) missed(n uint64) { s.counts.eventsDropped.Add(n) }

// taken gives what waits, and empties it.
func (s *stream) taken() (order []*entry, events []told, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, events, err = s.order, s.events, s.failed
	s.order, s.waiting, s.values, s.events = nil, nil, 0, nil
	return order, events, err
}
