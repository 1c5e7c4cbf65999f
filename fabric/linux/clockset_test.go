package linux

import (
	"testing"
	"time"
)

// A frame that waited while the wall clock was set is not taken for older, or younger, than it is.
func TestAStampOfBeforeTheClockWasSetIsNotTrusted(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second, 20 * time.Millisecond} {
		var c clockSet
		c.compare(1000*time.Hour, 0)
		c.compare(1000*time.Hour+time.Minute+20*time.Millisecond, time.Minute) // slewed only
		if !c.trusts(10 * time.Second) {
			t.Fatal("a clock that is slewed counts as set")
		}
		// Two frames came, the clock is set, and they are read.
		off := 1000*time.Hour + 20*time.Millisecond + step
		c.compare(off+61*time.Second, 61*time.Second)
		if c.trusts(time.Second + step.Abs()) {
			t.Errorf("step %v: the first frame that is read after it has its stamp", step)
		}
		c.compare(off+61*time.Second+time.Microsecond, 61*time.Second+time.Microsecond)
		if c.trusts(time.Millisecond) {
			t.Errorf("step %v: the second frame has its stamp", step)
		}
		c.compare(off+62*time.Second, 62*time.Second)
		if !c.trusts(time.Millisecond) {
			t.Errorf("step %v: a frame that came later has not its stamp", step)
		}
	}
}
