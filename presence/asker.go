package presence

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
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
	busy  int // hosts that are asked now
	count Counters
}

type ask struct {
	at    time.Time // when something is due: the next question, the end, or the next round
	began time.Time // of this round; zero: the host rests
	sent  int
	rest  time.Duration // after the last answer
}

// NewAsker gives an Asker that asks nobody.
func NewAsker() *Asker { return &Asker{asks: map[Key]*ask{}} }

// Counters gives a copy.
func (a *Asker) Counters() Counters { return a.count }

// Ask begins to ask for an address, and repeats it until Drop; one that is asked for
// already is left alone.
func (a *Asker) Ask(k Key, now time.Time) {
	if a.asks[k] == nil {
		a.asks[k] = &ask{at: now}
	}
}

// Again asks for an address without waiting for the rest to end: something has happened to the
// other claim. It reports whether the address is asked for at all.
func (a *Asker) Again(k Key, now time.Time) bool {
	q := a.asks[k]
	if q == nil {
		return false
	}
	if q.began.IsZero() && q.rest > Least {
		q.at, q.rest = q.at.Add(Least-q.rest), Least
	}
	return true
}

// Drop ends the questions for an address.
func (a *Asker) Drop(k Key) {
	if q := a.asks[k]; q != nil {
		a.end(q)
		delete(a.asks, k)
	}
}

func (a *Asker) end(q *ask) {
	if !q.began.IsZero() {
		q.began, q.sent = time.Time{}, 0
		a.busy--
	}
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
	a.end(q)
	a.count.Answered++
	q.rest = min(max(2*q.rest, FirstAgain), MostAgain)
	q.at = now.Add(q.rest)
	return true
}

// Paused says that nobody could listen for a while: who is asked is asked anew.
func (a *Asker) Paused(now time.Time) {
	for _, q := range a.asks {
		if !q.began.IsZero() {
			a.end(q)
			q.at = now
		}
	}
}

// Next is when Due has something to do; zero: nothing.
func (a *Asker) Next() (next time.Time) {
	full := a.busy >= MostAsked
	for _, q := range a.asks {
		if full && q.began.IsZero() {
			continue // its turn comes when another one's ends
		}
		if next.IsZero() || q.at.Before(next) {
			next = q.at
		}
	}
	return next
}

// Due gives the addresses to ask for now, and those for which nobody answered: these are
// asked for no more.
func (a *Asker) Due(now time.Time) (send, lost []Key) {
	var due []Key
	for k, q := range a.asks {
		if !q.at.After(now) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(x, y Key) int { return cmp.Or(a.asks[x].at.Compare(a.asks[y].at), compareKeys(x, y)) })
	for _, k := range due {
		switch q := a.asks[k]; {
		case q.began.IsZero() && a.busy >= MostAsked:
		case q.began.IsZero():
			q.began = now
			a.busy++
			a.count.Asked++
			send = append(send, a.question(k, q, now))
		case q.sent < questions:
			send = append(send, a.question(k, q, now))
		default:
			a.count.Unanswered++
			a.Drop(k)
			lost = append(lost, k)
		}
	}
	return send, lost
}

func (a *Asker) question(k Key, q *ask, now time.Time) Key {
	a.count.Questions++
	q.sent++
	q.at = now.Add(between)
	if q.sent == questions {
		// Not before the whole patience has passed, however late this one is.
		q.at = now.Add(max(q.began.Add(Patience).Sub(now), between))
	}
	return k
}
