package daemon

import (
	"slices"
	"time"

	"github.com/openinof/inof/inof"
)

const (
	// Messages for clients wait for others that came at the same time until, after the
	// last flush, a quarter of what that took has passed, within these limits: so
	// that in a burst of changes flushing takes at most four times what deciding does.
	minHoldMessages, maxHoldMessages = time.Millisecond, 10 * time.Millisecond
)

// hold decides when messages for clients stop waiting for others. Without a flush
// shortly before they do not wait at all.
//
// A loss (a port fault, a host that has gone) is what clients wait for. One that
// comes amid a stream of other changes leaves minHoldMessages after the last
// flush; only where losses come in bursts, one flush with some having ended less than
// maxHoldMessages before, they wait as the others do.
type hold struct {
	loss    bool          // one of the messages that wait tells of a loss
	flushed time.Time     // end of the last flush
	told    time.Time     // end of the last flush that told of a loss
	gap     time.Duration // from the end of the last flush to the next; zero: there was none
}

// add takes note of messages that wait from now on.
func (h *hold) add(ds []inof.Delivery) {
	for i := 0; i < len(ds) && !h.loss; i++ {
		u, ok := ds[i].Msg.(*inof.Update)
		h.loss = ok && tellsLoss(u)
	}
}

func tellsLoss(u *inof.Update) bool {
	return slices.ContainsFunc(u.Faults, func(r inof.FaultRecord) bool { return r.Op == inof.Put }) ||
		slices.ContainsFunc(u.Hosts, func(r inof.HostRecord) bool { return r.Op == inof.Withdraw })
}

// over tells whether what waits must not wait any longer.
func (h *hold) over(now time.Time) bool {
	gap := h.gap
	if h.loss && now.Sub(h.told) >= maxHoldMessages {
		gap = min(gap, minHoldMessages)
	}
	return now.Sub(h.flushed) >= gap
}

// done begins anew after a flush of all that waited.
func (h *hold) done(began, ended time.Time) {
	if h.loss {
		h.told = ended
	}
	h.loss, h.flushed = false, ended
	h.gap = min(max(ended.Sub(began)/4, minHoldMessages), maxHoldMessages)
}
