package daemon

import (
	"math/rand/v2"
	"time"
)

const (
	// maxEpoch is the largest epoch: beyond it there is no time.
	maxEpoch = 1<<63 - 1
	// epochStep is how far an epoch goes ahead of the last one when the clock has
	// been set back: enough for what is derived from it, such as the first number
	// of the notices (epoch >> 16), to be another one too.
	epochStep = 1 << 36
)

// nextEpoch gives the epoch of a start (docs/protocol.md, "Common fields"): the start
// time in nanoseconds, its low 16 bits random for starts that follow each other
// closely, but always greater than the last epoch, also when the clock was set back.
// It is never zero. Zero for last means that none is known.
func nextEpoch(now time.Time, last uint64, random uint16) uint64 {
	epoch := uint64(max(now.UnixNano(), 0))&^0xffff | uint64(random) | 1
	if last == 0 || epoch>>16 > last>>16 {
		return epoch
	}
	return min(last, maxEpoch-epochStep) + epochStep
}

// randomEpoch is the random part of an epoch.
func randomEpoch() uint16 { return uint16(rand.Uint32()) }
