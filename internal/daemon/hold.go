package daemon

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof"
)

const (
	// Messages for clients wait for others that came at the same time until, after the
	// last flush, a quarter of what that took has passed, within these limits: so
	// that in a burst of changes flushing takes at most four times what deciding does.
	minHoldMessages, maxHoldMessages = 250 * time.Microsecond, 10 * time.Millisecond
)

// hold decides when messages for clients stop waiting for others. Without a flush
// shortly before they do not wait at all.
//
// A loss (a port fault, a host that has gone) is what clients wait for. One that
// comes amid a stream of other changes leaves minHoldMessages after the last
// flush; only where losses come in bursts, one flush with some having ended less than
// maxHoldMessages before, they wait as the others do.
type hold struct {
	loss    tellers       // of the messages that wait
	flushed time.Time     // end of the last flush
	told    time.Time     // end of the last flush that told of a loss
	by      tellers       // whose losses those were
	gap     time.Duration // from the end of the last flush to the next; zero: there was none
}

// tellers are the devices that tell of a loss: none, one, or several.
type tellers struct {
	any, several bool
	one          netip.Addr // the first
}

func (t *tellers) add(dev netip.Addr) {
	t.several = t.several || t.any && t.one != dev
	if !t.any {
		t.any, t.one = true, dev
	}
}

// add takes note of messages that wait from now on.
func (h *hold) add(ds []inof.Delivery) {
	for i := range ds {
		if u, ok := ds[i].Msg.(*inof.Update); ok && !h.loss.several && u.TellsLoss() {
			h.loss.add(u.Origin)
		}
	}
}

// over tells whether what waits must not wait any longer.
func (h *hold) over(now time.Time) bool {
	gap := h.gap
	burst := now.Sub(h.told) < maxHoldMessages && (h.by.several || h.loss == h.by)
	if h.loss.any && !burst {
		gap = min(gap, minHoldMessages)
	}
	return now.Sub(h.flushed) >= gap
}

// done begins anew after a flush of all that waited.
func (h *hold) done(began, ended time.Time) {
	if h.loss.any {
		h.told, h.by = ended, h.loss
	}
	h.loss, h.flushed = tellers{}, ended
	h.gap = min(max(ended.Sub(began)/4, minHoldMessages), maxHoldMessages)
}
