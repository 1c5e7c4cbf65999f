package presence

import (
	"cmp"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/internal/timerheap"
)

// Timing of a question.
const (
	// Patience is how long after the first question the host may answer.
	Patience = 200 * time.Millisecond
	// between is the distance of the questions: one that is lost must not cost a host its
	// address.
	between   = 50 * time.Millisecond
	questions = 3
	// A holder that has answered is asked again while the other claim lasts: it may leave
	// later. The distances double from FirstAgain to MostAgain.
	FirstAgain = 5 * time.Second
	MostAgain  = time.Minute
	// Least is how long a holder that has answered is not asked again, whatever happens.
	Least = time.Second
	// MostAsked is how many hosts are asked at a time; the others wait their turn.
	MostAsked = 256
)

// Key is an address behind a port.
type Key struct {
	Port string
	Addr netip.Addr
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Port, b.Port), a.Addr.Compare(b.Addr))
}

// Counters count what an Asker did.
type Counters struct {
	Asked      uint64 `json:"asked"`      // hosts that were asked whether they still have an address that is claimed twice
	Questions  uint64 `json:"questions"`  // frames that asked
	Answered   uint64 `json:"answered"`   // hosts that answered
	Unanswered uint64 `json:"unanswered"` // hosts that did not and lost the address
}

// Asker asks hosts whether they are there. It has one owner; it is not safe for concurrent use.
type Asker struct {
	asks  map[Key]*ask
	busy  timerheap.Heap[ask, *ask] // hosts that are asked now
	rest  timerheap.Heap[ask, *ask] // the others
	base  time.Time                 // what the times in both count from
	count Counters
}

type ask struct {
	key   Key
	at    time.Time // when something is due: the next question, the end, or the next round
	began time.Time // of this round; zero: the host rests
	sent  int
	rest  time.Duration // after the last round
	most  time.Duration // the longest rest; zero: asked for no more once nobody answered
	quiet bool          // nobody answered in the last round
	timerheap.Place[ask]
}

// Ahead breaks ties, so that the order of questions does not depend on chance.
func (q *ask) Ahead(o *ask) bool { return compareKeys(q.key, o.key) < 0 }

// NewAsker gives an Asker that asks nobody.
func NewAsker() *Asker { return &Asker{asks: map[Key]*ask{}} }

// Counters gives a copy.
func (a *Asker) Counters() Counters { return a.count }

// Ask begins to ask for an address, and repeats it until Drop; one that is asked for
// already is left alone.
func (a *Asker) Ask(k Key, now time.Time) { a.begin(k, 0, now) }

// Watch is Ask for an address that may not be there yet: it is asked for until Drop whether
// anybody answers or not, and rests for most at most between two rounds.
func (a *Asker) Watch(k Key, most time.Duration, now time.Time) { a.begin(k, most, now) }

func (a *Asker) begin(k Key, most time.Duration, now time.Time) {
	if q := a.asks[k]; q != nil {
		q.most = most
		return
	}
	if a.base.IsZero() {
		a.base = now
	}
	q := &ask{key: k, most: most}
	a.asks[k] = q
	a.due(q, now)
}

// due puts q where it belongs: something is to be done at a time.
func (a *Asker) due(q *ask, at time.Time) {
	q.at = at
	heap := &a.rest
	if !q.began.IsZero() {
		heap = &a.busy
	}
	heap.Put(q, int64(at.Sub(a.base)))
}

// Watches reports whether an address is asked for.
func (a *Asker) Watches(k Key) bool { return a.asks[k] != nil }

// Len is how many addresses are asked for.
func (a *Asker) Len() int { return len(a.asks) }

// Again asks for an address without waiting for the rest to end: something has happened to the
// other claim. It reports whether the address is asked for at all.
func (a *Asker) Again(k Key, now time.Time) bool {
	q := a.asks[k]
	if q == nil {
		return false
	}
	if q.began.IsZero() && q.rest > Least {
		at := q.at.Add(Least - q.rest)
		q.rest = Least
		a.due(q, at)
	}
	return true
}

// Drop ends the questions for an address.
func (a *Asker) Drop(k Key) {
	if q := a.asks[k]; q != nil {
		a.end(q)
		a.rest.Remove(q)
		delete(a.asks, k)
	}
}

// end ends a round.
func (a *Asker) end(q *ask) {
	if !q.began.IsZero() {
		a.busy.Remove(q)
		q.began, q.sent = time.Time{}, 0
	}
}

// pause ends a round in which a host was there, or was not, and plans the next one.
func (a *Asker) pause(q *ask, quiet bool, least, most time.Duration, now time.Time) {
	a.end(q)
	if q.quiet != quiet {
		q.quiet, q.rest = quiet, 0
	}
	q.rest = min(max(2*q.rest, least), most)
	a.due(q, now.Add(q.rest))
}

// Asking reports whether an answer is waited for.
func (a *Asker) Asking(k Key) bool {
	q := a.asks[k]
	return q != nil && !q.began.IsZero()
}

// LastTry reports whether the last question for an address has left: it is time to try otherwise.
func (a *Asker) LastTry(k Key) bool {
	q := a.asks[k]
	return q != nil && q.sent == questions
}

// Heard takes evidence that the host with the address is there. It reports whether that was
// waited for.
func (a *Asker) Heard(k Key, now time.Time) bool {
	q := a.asks[k]
	if q == nil || q.began.IsZero() {
		return false
	}
	a.count.Answered++
	a.pause(q, false, FirstAgain, cmp.Or(q.most, MostAgain), now)
	return true
}

// Paused says that nobody could listen for a while: who is asked is asked anew.
func (a *Asker) Paused(now time.Time) {
	for _, q := range a.asks {
		if !q.began.IsZero() {
			a.end(q)
			a.due(q, now)
		}
	}
}

// Next is when Due has something to do; zero: nothing.
func (a *Asker) Next() (next time.Time) {
	if a.busy.Len() > 0 {
		q, _ := a.busy.First()
		next = q.at
	}
	if a.rest.Len() > 0 && a.busy.Len() < MostAsked { // else a turn comes when another one's ends
		if q, _ := a.rest.First(); next.IsZero() || q.at.Before(next) {
			next = q.at
		}
	}
	return next
}

// Due gives the addresses to ask for now, and those for which nobody answered: these are
// asked for no more, except those of Watch.
func (a *Asker) Due(now time.Time) (send, lost []Key) {
	for a.busy.Len() > 0 {
		q, _ := a.busy.First()
		if q.at.After(now) {
			break
		}
		switch {
		case q.sent < questions:
			send = append(send, a.question(q, now))
			continue
		case q.most > 0:
			a.pause(q, true, min(Least, q.most), q.most, now)
		default:
			a.Drop(q.key)
		}
		a.count.Unanswered++
		lost = append(lost, q.key)
	}
	for a.rest.Len() > 0 && a.busy.Len() < MostAsked {
		q, _ := a.rest.First()
		if q.at.After(now) {
			break
		}
		a.rest.Remove(q)
		q.began = now
		a.count.Asked++
		send = append(send, a.question(q, now))
	}
	return send, lost
}

func (a *Asker) question(q *ask, now time.Time) Key {
	a.count.Questions++
	q.sent++
	at := now.Add(between)
	if q.sent == questions {
		// Not before the whole patience has passed, however late this one is.
		at = now.Add(max(q.began.Add(Patience).Sub(now), between))
	}
	a.due(q, at)
	return q.key
}
