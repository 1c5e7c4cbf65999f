package link

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/inoftest"
)

// A corrected password takes effect when the dialer is woken, however far its back-off
// had come; and that begins anew.
func TestAWokenDialerTriesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		right, wrong := newPassword("password1"), newPassword("password2")
		r := startReflector(t, &f, right, 1, inoftest.ThreeZones, nil)
		c := startClient(t, &f, wrong, inoftest.DevID(0), 1)
		// waiting is within the back-off: an attempt has failed a second ago, the next one is more
		// than a second away.
		waiting := func() (dials uint64) {
			after(time.Minute)
			for dials = c.dialer.Counters().Dials; c.dialer.Counters().Dials == dials; {
				after(100 * time.Millisecond)
			}
			after(time.Second)
			return dials + 1
		}
		dials := waiting()
		c.dialer.Wake() // without a reason: one more attempt, and soon another one
		synctest.Wait()
		if n := c.dialer.Counters().Dials; n != dials+1 {
			t.Errorf("%d attempts when woken, want 1", n-dials)
		}
		after(time.Second)
		if n := c.dialer.Counters().Dials; n < dials+2 {
			t.Error("the back-off did not begin anew")
		}
		waiting()
		wrong.set("password1")
		began := time.Now()
		c.dialer.Wake()
		synctest.Wait()
		if info := c.dialer.Info(); info.State != StateEstablished || !time.Now().Equal(began) {
			t.Errorf("after %v: %+v", time.Since(began), info)
		}
		// A session that stands takes no notice, then or at its end.
		c.dialer.Wake()
		if len(c.dialer.wake) != 0 {
			t.Error("the session's end would be followed by an attempt at once")
		}
		c.stop()
		r.stop()
	})
}
