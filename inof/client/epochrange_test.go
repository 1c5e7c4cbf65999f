package client

import (
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// An epoch that only a liar can have seen is not taken over: there would be none above.
func TestAnEpochOutOfRangeIsNotTakenOver(t *testing.T) {
	for _, seen := range []uint64{mostEpoch, 1 << 63, 1<<64 - 1} {
		c := New(inoftest.DevID(0), 7)
		c.Resume(inoftest.ReflID, &wire.Resume{Epoch: seen, Seq: 1}, inoftest.T0)
		if c.Epoch() != 7 {
			t.Errorf("seen %#x: epoch %#x, want 7", seen, c.Epoch())
		}
	}
	c := New(inoftest.DevID(0), 7)
	c.Resume(inoftest.ReflID, &wire.Resume{Epoch: mostEpoch - 1, Seq: 1}, inoftest.T0)
	if c.Epoch() != mostEpoch {
		t.Errorf("epoch %#x, want %#x", c.Epoch(), uint64(mostEpoch))
	}
}
