package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// maxCarrierJump is the most changes of carrier taken from one reading of a
// counter; more is a counter that was reset or lies.
const maxCarrierJump = 1000

// maxFlapChanges is the most changes of carrier that a window may be set to.
const maxFlapChanges = 1000

// tally counts the changes of carrier of one port. Events tell of most of them;
// those too short for an event are found by comparing the dataplane's counter with
// the events. Because a counter may be read before or after the event that belongs
// to it arrives, a difference counts only when two successive readings agree on it.
type tally struct {
	total  uint64
	missed uint64 // part of total that no event told of
	last   time.Time
	recent []time.Time // times of the latest changes, oldest first, at most maxFlapChanges

	based  bool   // base is a reading of this very port
	base   uint64 // counter at the last reading
	ahead  int64  // changes the counter has told of beyond the events
	before int64  // ahead at the last reading
	quiet  int    // readings left whose differences are known not to be flaps
}

// count notes n changes at a time.
func (t *tally) count(n int, at time.Time) {
	if n <= 0 {
		return
	}
	t.total += uint64(n)
	t.last = at
	for range min(n, maxFlapChanges) {
		t.recent = append(t.recent, at)
	}
	if extra := len(t.recent) - maxFlapChanges; extra > 0 {
		t.recent = append(t.recent[:0], t.recent[extra:]...)
	}
}

// event notes that an event told of a change, whether or not it is a flap.
func (t *tally) event() { t.ahead-- }

// hush drops differences between counter and events around a change that somebody
// asked for: drivers differ in whether they count it.
func (t *tally) hush() { t.quiet = 2 }

// rebase forgets the counter: the next reading is of another port.
func (t *tally) rebase() {
	t.based, t.ahead, t.before = false, 0, 0
}

// sample compares a reading with the events and gives the number of changes that
// no event told of, and whether the counter was plausible.
func (t *tally) sample(n fabric.Counters) (missed int, plausible bool) {
	c := n.CarrierChanges
	if !t.based || c < t.base || c-t.base > maxCarrierJump {
		plausible = !t.based
		t.based, t.base, t.ahead, t.before = true, c, 0, 0
		return 0, plausible
	}
	t.ahead += int64(c - t.base)
	t.base = c
	agreed := int64(0)
	switch {
	case t.ahead > 0 && t.before > 0:
		agreed = min(t.ahead, t.before)
		missed = int(agreed)
	case t.ahead < 0 && t.before < 0: // a change that the dataplane does not count
		agreed = max(t.ahead, t.before)
	}
	t.ahead -= agreed
	t.before = t.ahead
	if t.quiet > 0 {
		t.quiet--
		missed = 0
	}
	return missed, true
}

// within counts the changes of the last window.
func (t *tally) within(window time.Duration, now time.Time) int {
	n := 0
	for i := len(t.recent) - 1; i >= 0 && now.Sub(t.recent[i]) < window; i-- {
		n++
	}
	return n
}

// restart empties the window; the totals stay.
func (t *tally) restart() { t.recent = nil }
