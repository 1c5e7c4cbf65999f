package link

import "time"

// Back-off of a dialer.
const (
	BackoffMin   = 100 * time.Millisecond
	BackoffMax   = 5 * time.Second
	BackoffReset = 10 * time.Second // a session that lived this long begins anew at BackoffMin
)

// Backoff is the wait before a dial. Attempt counts from 0 the failures since the
// last good session; jitter in [0, 1) spreads the dialers of a fabric over the
// upper half of the interval, which doubles from BackoffMin to BackoffMax.
func Backoff(attempt int, jitter float64) time.Duration {
	d := BackoffMax
	if attempt < 16 { // 100 ms << 16 is far beyond the maximum and far from overflow
		d = min(BackoffMin<<max(attempt, 0), BackoffMax)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}
