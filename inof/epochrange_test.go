package inof

import "testing"

// An epoch that only a liar can have seen is not taken over: there would be none above.
func TestAnEpochOutOfRangeIsNotTakenOver(t *testing.T) {
	for _, seen := range []uint64{mostEpoch, 1 << 63, 1<<64 - 1} {
		c := NewClient(devID(0), 7)
		c.Resume(reflID, &Resume{Epoch: seen, Seq: 1}, t0)
		if c.Epoch() != 7 {
			t.Errorf("seen %#x: epoch %#x, want 7", seen, c.Epoch())
		}
	}
	c := NewClient(devID(0), 7)
	c.Resume(reflID, &Resume{Epoch: mostEpoch - 1, Seq: 1}, t0)
	if c.Epoch() != mostEpoch {
		t.Errorf("epoch %#x, want %#x", c.Epoch(), uint64(mostEpoch))
	}
}
