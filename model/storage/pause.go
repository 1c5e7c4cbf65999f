package storage

import "github.com/openinof/inof/model"

// Pause is a time without a completed I/O.
type Pause struct {
	From model.Time `json:"from_ps"`
	To   model.Time `json:"to_ps"` // 0: it lasts
}

// Span is how long the pause was; now is the end of one that lasts.
func (p Pause) Span(now model.Time) model.Time {
	if p.To == 0 {
		return now - p.From
	}
	return p.To - p.From
}

// Pauses shorter than pauseLeast are not noted, and no more than maxPauses.
const (
	pauseLeast = model.Millisecond
	maxPauses  = 100_000
)

// Pauses gives the times of a millisecond and more without a completed I/O since the
// load began, the present one included.
func (l *Load) Pauses() []Pause {
	if l.sim.Now()-l.last < pauseLeast || l.sim.Now() < l.cfg.Begin {
		return l.pauses
	}
	return append(l.pauses[:len(l.pauses):len(l.pauses)], Pause{From: l.last})
}

// LongestPause gives the longest of them that ended after a moment, or lasts.
func (l *Load) LongestPause(after model.Time) (longest Pause) {
	now := l.sim.Now()
	for _, p := range l.Pauses() {
		if (p.To == 0 || p.To > after) && p.Span(now) > longest.Span(now) || longest == (Pause{}) && p.To > after {
			longest = p
		}
	}
	return longest
}

// completed notes the end of an I/O.
func (l *Load) completed() {
	if l.sim.Now()-l.last >= pauseLeast && len(l.pauses) < maxPauses {
		l.pauses = append(l.pauses, Pause{l.last, l.sim.Now()})
	}
	l.last = l.sim.Now()
}
