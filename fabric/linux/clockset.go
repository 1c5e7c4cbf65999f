package linux

import "time"

// Kernel stamps are of the wall clock. When that is set by some seconds between the arrival of a
// frame and its reading, the frame looks so much older than it is: as if it had come before its
// port lost its carrier. So how far the wall clock and the monotonic one have gone since the last
// reading is compared, and a stamp of before they differed counts for nothing.

// clockSet knows when the wall clock was set last.
type clockSet struct {
	wall, mono time.Duration // at the last look
	set        time.Duration // monotonic, when it was noticed
	known      bool          // that it was set at all
}

// Wall clocks are slewed by at most 0.5 ms a second (adjtime); the rest is the time between the
// readings of the two.
const (
	slewPart = 1000
	slewMore = time.Millisecond
)

// processStart is what the monotonic readings of this file count from.
var processStart = time.Now()

// look compares the clocks; now has a monotonic reading.
func (c *clockSet) look(now time.Time) {
	c.compare(time.Duration(now.UnixNano()), now.Sub(processStart))
}

func (c *clockSet) compare(wall, mono time.Duration) {
	gone := mono - c.mono
	if off := wall - c.wall - gone; c.wall != 0 && off.Abs() > slewMore+gone/slewPart {
		c.set, c.known = mono, true
	}
	c.wall, c.mono = wall, mono
}

// trusts reports whether a stamp so old at the last look is of the clock as it is now.
func (c *clockSet) trusts(age time.Duration) bool { return !c.known || age <= c.mono-c.set }
