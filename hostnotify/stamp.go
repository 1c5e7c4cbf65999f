package hostnotify

import (
	"math"
	"time"
)

// stamp is a moment in nanoseconds since the first one the Notifier was given: a
// third of a time.Time's size, of which every pair holds several.
type stamp int64

const never stamp = math.MinInt64

// touch notes the time of an input.
func (n *Notifier) touch(now time.Time) {
	if n.base.IsZero() {
		n.base = now
	}
	n.now = max(n.now, stamp(now.Sub(n.base)))
}

func (n *Notifier) time(s stamp) time.Time {
	if s == never {
		return time.Time{}
	}
	return n.base.Add(time.Duration(s))
}

func (n *Notifier) stamp(t time.Time) stamp {
	if t.IsZero() {
		return never
	}
	return stamp(t.Sub(n.base))
}
