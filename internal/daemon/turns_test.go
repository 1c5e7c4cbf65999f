package daemon

import (
	"testing"
	"testing/synctest"
	"time"
)

// A change of zones waits for the disk, which is waited for with a timer; what looks each second
// whether a change is due waits for its turn meanwhile.
func TestTheClockGoesOnWhileSomebodyWaitsForHisTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, done := newTurns(), make(chan time.Time)
		one.Lock()
		go func() {
			one.Lock()
			defer one.Unlock()
			done <- time.Now()
		}()
		begin := time.Now()
		time.Sleep(time.Second)
		one.Unlock()
		if at := <-done; at.Sub(begin) != time.Second {
			t.Errorf("its turn came after %s", at.Sub(begin))
		}
	})
}

// A reload waits for the disk too, and what looks each ten seconds whether another LLDP daemon
// speaks waits for it.
func TestTheClockGoesOnWhileAReloadTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestFabric(t).add("sw", "10.0.0.1", "standalone", "eth1")
		n.d.reloads.one.Lock()
		time.Sleep(3 * speakerEvery)
		n.d.reloads.one.Unlock()
	})
}
