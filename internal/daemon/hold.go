package daemon

import (
	"time"

	"github.com/openinof/inof/inof/reflector"
)

const (
	// Changes wait for others that came at the same time until, after the
	// last flush, as much time as that took has passed, within these limits: so
	// that in a burst of changes flushing takes no longer than deciding does.
	minHoldMessages, maxHoldMessages = 250 * time.Microsecond, 10 * time.Millisecond
)

// hold decides when changes stop waiting for others before clients are told. Without a flush
// shortly before they do not wait at all.
//
// A loss (a port fault, a host that has gone) is what clients wait for. One that
// comes amid a stream of other changes leaves minHoldMessages after the last
// flush; only where losses come in bursts, one flush with some having ended less than
// maxHoldMessages before, they wait as the others do.
type hold struct {
	flushed time.Time        // end of the last flush
	told    time.Time        // end of the last flush that told of a loss
	by      reflector.Losses // whose losses those were
	gap     time.Duration    // from the end of the last flush to the next; zero: there was none
}

// over reports whether what waits must not wait any longer.
func (h *hold) over(l reflector.Losses, now time.Time) bool {
	gap := h.gap
	burst := now.Sub(h.told) < maxHoldMessages && (h.by.Several || l == h.by)
	if l.Any && !burst {
		gap = min(gap, minHoldMessages)
	}
	return now.Sub(h.flushed) >= gap
}

// done begins anew after a flush of all that waited.
func (h *hold) done(l reflector.Losses, began, ended time.Time) {
	if l.Any {
		h.told, h.by = ended, l
	}
	h.flushed = ended
	h.gap = min(max(ended.Sub(began), minHoldMessages), maxHoldMessages)
}
