package reflector

import (
	"fmt"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// While a device is parted from one of two reflectors so much changes that its log no
// longer holds all of it. The full sync that follows, message by message: a host that
// went meanwhile does not come back, one that changed does not change back, and one
// that stayed is not withdrawn, whichever reflector it was.
func TestALogThatWasTrimmedDuringAnOutage(t *testing.T) {
	for which := range 2 {
		n, gone := pairOfTwo(t)
		d, other := inoftest.DevID(0), inoftest.DevID(1)
		away := n.ids[which]
		c := n.clients[d]
		c.RememberGone(0)
		changed, stays := inoftest.HostAt(inoftest.HostIP(5), d, "Ethernet5"), inoftest.HostAt(inoftest.HostIP(6), d, "Ethernet6")
		c.PutHost(changed)
		c.PutHost(stays)
		n.settle()

		n.cut(d, away)
		flush := func() {
			n.fromClient(d, c.Flush(n.now))
			n.deliverAll()
		}
		c.WithdrawHost(gone, snsd.ReasonAgedOut)
		changed.Service.Port = 4420
		c.PutHost(changed)
		flush()
		for i := range 20 { // more than the log holds
			h := inoftest.HostAt(inoftest.HostIP(7), d, fmt.Sprintf("Ethernet%d", 10+i))
			c.PutHost(h)
			flush()
			c.WithdrawHost(h.HostKey, snsd.ReasonIPChanged)
			flush()
		}
		right := func(when string) {
			t.Helper()
			has := n.hosts[other]
			if _, ok := has[gone]; ok {
				t.Fatalf("reflector %d, %s: the host that went is back", which, when)
			}
			if has[changed.HostKey].Service.Port != 4420 {
				t.Fatalf("reflector %d, %s: the host that changed is %+v", which, when, has[changed.HostKey])
			}
			if has[stays.HostKey] == (zone.Host{}) {
				t.Fatalf("reflector %d, %s: the host that stayed is gone", which, when)
			}
			for k := range has {
				if k.Addr == inoftest.HostIP(7) {
					t.Fatalf("reflector %d, %s: %v is back", which, when, k)
				}
			}
		}
		right("while it is away")
		n.join(d, away)
		if _, out := c.Sessions(away); out.Resumed || out.Why != "too much has changed since" {
			t.Fatalf("resumed %v: %s", out.Resumed, out.Why)
		}
		for more := true; more; {
			more = false
			for _, r := range n.ids {
				for _, dev := range []func() bool{
					func() bool { return n.deliverToRefl(d, r) }, func() bool { return n.deliverToClient(d, r) }, func() bool { return n.deliverToClient(other, r) },
				} {
					if dev() {
						more = true
						right("in its sync")
					}
				}
			}
		}
		n.settle()
		right("at the end")
	}
}
