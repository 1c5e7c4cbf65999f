package reflector

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// What it costs the reflector, of 64 devices in one zone, that the only host that one of them has
// in the zone leaves or comes back each millisecond, by the number of hosts there, if that device
// reads nothing of what it is told.
func BenchmarkTheOnlyHostOfADeviceComesAndGoes(b *testing.B) {
	for _, hosts := range []int{64, 1000, 16_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			z := zone.Zone{Name: "zone", Members: []zone.Member{{Kind: zone.MemberRange, First: inoftest.ScaleHost(1), Last: inoftest.ScaleHost(30_000)}}}
			r := scaleReflector(b, 64, 0, zone.Set{Zones: []zone.Zone{z}})
			now := inoftest.T0
			say := func(dev netip.Addr, op wire.Op, first, n int) {
				u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
				for i := range n {
					u.Hosts = append(u.Hosts, wire.HostRecord{Op: op, Host: inoftest.HostAt(inoftest.ScaleHost(first+i), dev, "Ethernet0")})
				}
				if _, err := r.Receive(dev, u, now); err != nil {
					b.Fatal(err)
				}
			}
			for i := 1; i < 64; i++ {
				say(inoftest.ScaleDev(i), wire.Put, 1000+i*hosts/64, hosts/64)
			}
			bad := inoftest.ScaleDev(64)
			r.cfg.Paced = true
			ready := func(dev netip.Addr) bool { return dev != bad }
			for n := 0; b.Loop(); n++ {
				now = now.Add(time.Millisecond)
				say(bad, []wire.Op{wire.Put, wire.Withdraw}[n%2], 1, 1)
				r.Tick(now)
				r.Pull(ready, now)
				for r.Owing() {
					r.Step(ready, now)
				}
			}
		})
	}
}
