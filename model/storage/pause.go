package storage

import (
	"cmp"
	"slices"

	"github.com/openinof/inof/model"
)

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
	l.gather()
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
func (p *pair) completed(now model.Time, o *io) {
	took := now - o.begun
	p.done++
	p.bytes += uint64(o.bytes)
	p.latency += took
	p.worst = max(p.worst, took)
	if n := len(p.busy); n > 0 && now-p.busy[n-1].To < pauseLeast {
		p.busy[n-1].To = now
	} else {
		p.busy = append(p.busy, Pause{now, now})
	}
}

// gather finds the pauses of the whole load: where no pair was busy.
func (l *Load) gather() {
	var all []Pause
	for i := range l.pairs {
		all = append(all, l.pairs[i].busy...)
		l.pairs[i].busy = l.pairs[i].busy[:0]
	}
	slices.SortFunc(all, func(a, b Pause) int { return cmp.Compare(a.From, b.From) })
	for _, b := range all {
		if b.From-l.last >= pauseLeast && len(l.pauses) < maxPauses {
			l.pauses = append(l.pauses, Pause{l.last, b.From})
		}
		l.last = max(l.last, b.To)
	}
}
