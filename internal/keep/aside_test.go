package keep

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTheDiskComesAfterWhatAChangeSetsGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.t, r.cfg.Dir = t, t.TempDir()
		r.start()
		r.run()
		before := r.k.Counters()
		put(r.k, told, "a", "1")
		time.Sleep(aside - time.Millisecond)
		synctest.Wait()
		if c := r.k.Counters(); c.Commits != before.Commits || c.Unsaved == before.Unsaved {
			t.Errorf("%v after a row: %d transactions, %d bytes in memory", aside-time.Millisecond, c.Commits-before.Commits, c.Unsaved-before.Unsaved)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if c := r.k.Counters(); c.Commits != before.Commits+1 {
			t.Errorf("%v after a row: %d transactions, want 1", aside+time.Millisecond, c.Commits-before.Commits)
		}
		r.stop()
	})
}
