package link

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
)

// Received is when the bytes were read, not when the owner of the client got to them.
func TestTransportStampsWhatItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		pass := newPassword("password1")
		r := startReflector(t, &f, pass, 1, inoftest.ThreeZones, nil)
		c := startClient(t, &f, pass, inoftest.DevID(0), 1, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p"))
		after(time.Second)
		busy := make(chan struct{})
		go c.wait(func() { <-busy }) // the owner has other things to do
		synctest.Wait()
		sent := time.Now()
		r.wait(func() {
			set := inoftest.ThreeZones
			set.Zones = set.Zones[1:]
			out, err := r.refl.SetZones(set, time.Now())
			if err != nil {
				t.Error(err)
			}
			_ = r.peers.Deliver(out)
		})
		after(300 * time.Millisecond)
		close(busy)
		synctest.Wait()
		var got []client.Applied
		c.wait(func() { got = c.applied })
		last := got[len(got)-1]
		if !last.ReceivedAt.Equal(sent) || !last.FaultAt.Equal(sent) {
			t.Errorf("sent at %v, received at %v, event at %v", sent, last.ReceivedAt, last.FaultAt)
		}
		c.stop()
		r.stop()
	})
}
