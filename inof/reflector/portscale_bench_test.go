package reflector

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// faultedPort is a reflector with 20 devices, one of which has so many hosts behind one
// port with a fault. All are in one zone with a host of each other device; the next
// address is a host that is not there yet.
func faultedPort(tb testing.TB, hosts int) (r *Reflector, dev netip.Addr, set zone.Zone) {
	tb.Helper()
	z := zone.Zone{Name: "zone", Members: []zone.Member{{Kind: zone.MemberRange, First: inoftest.ScaleHost(1), Last: inoftest.ScaleHost(10_000)}}}
	r = scaleReflector(tb, 20, 0, zone.Set{Zones: []zone.Zone{z}})
	dev = inoftest.ScaleDev(1)
	u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
	for i := range hosts {
		h := inoftest.HostAt(inoftest.ScaleHost(100+i), dev, "Ethernet0")
		h.Down = zone.Down{Why: snsd.ReasonPFCStorm, Since: inoftest.T0}
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	if _, err := r.Receive(dev, u, inoftest.T0); err != nil {
		tb.Fatal(err)
	}
	for i := 2; i <= 20; i++ {
		u := &wire.Update{Origin: inoftest.ScaleDev(i), Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(i), inoftest.ScaleDev(i), "Ethernet0")}}}
		if _, err := r.Receive(inoftest.ScaleDev(i), u, inoftest.T0); err != nil {
			tb.Fatal(err)
		}
	}
	return r, dev, z
}

// What a change costs the reflector that concerns one host behind a port with a fault, or
// one member of the zone of all hosts there, by the number of hosts on the port: the limit
// of a port is 4,096.
func BenchmarkFaultedPort(b *testing.B) {
	for _, hosts := range []int{64, 1000, 4000} {
		b.Run(fmt.Sprintf("host/%d", hosts), func(b *testing.B) {
			r, dev, _ := faultedPort(b, hosts)
			c := newPortClient(b, dev, hosts)
			turns := [2]*wire.Update{c.toggle(inoftest.ScaleHost(100+hosts), true), c.toggle(inoftest.ScaleHost(100+hosts), false)}
			bytes := 0
			for n := 0; b.Loop(); n++ {
				ds, err := r.Receive(dev, turns[n%2], inoftest.T0)
				if err != nil {
					b.Fatal(err)
				}
				for _, d := range ds {
					e, _ := wire.Encode(d.Msg)
					bytes += e.Len()
				}
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/op")
		})
		b.Run(fmt.Sprintf("client/%d", hosts), func(b *testing.B) {
			c := newPortClient(b, inoftest.ScaleDev(1), hosts)
			for n := 0; b.Loop(); n++ {
				c.toggle(inoftest.ScaleHost(100+hosts), n%2 == 0)
			}
		})
		b.Run(fmt.Sprintf("zone/%d", hosts), func(b *testing.B) {
			r, _, z := faultedPort(b, hosts)
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: append([]zone.Member{}, z.Members...)}
				if n%2 == 0 {
					next.Members = append(next.Members, zone.Member{Kind: zone.MemberNQN, NQN: "nqn.2014-08.org.example:x"})
				}
				if _, err := r.PutZone(next, inoftest.T0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("leave/%d", hosts), func(b *testing.B) { // one host behind the port leaves the zone and comes back
			r, _, z := faultedPort(b, hosts)
			parts := []zone.Member{{Kind: zone.MemberRange, First: inoftest.ScaleHost(1), Last: inoftest.ScaleHost(99)}, {Kind: zone.MemberRange, First: inoftest.ScaleHost(101), Last: inoftest.ScaleHost(10_000)}}
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: z.Members}
				if n%2 == 0 {
					next.Members = parts
				}
				if _, err := r.PutZone(next, inoftest.T0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("all/%d", hosts), func(b *testing.B) { // all hosts behind the port leave the zone and come back
			r, _, z := faultedPort(b, hosts)
			part := []zone.Member{{Kind: zone.MemberRange, First: inoftest.ScaleHost(1), Last: inoftest.ScaleHost(99)}}
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: z.Members}
				if n%2 == 0 {
					next.Members = part
				}
				if _, err := r.PutZone(next, inoftest.T0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(hosts), "ns/host")
		})
	}
}

// portClient is a client with hosts behind a port with a fault.
type portClient struct {
	*client.Client
	tb   testing.TB
	dev  netip.Addr
	down zone.Down
}

func newPortClient(tb testing.TB, dev netip.Addr, hosts int) *portClient {
	c := &portClient{Client: client.New(dev, 1), tb: tb, dev: dev, down: zone.Down{Why: snsd.ReasonPFCStorm, Since: inoftest.T0}}
	c.Up(inoftest.ReflID, inoftest.T0)
	for i := range hosts {
		c.put(inoftest.ScaleHost(100 + i))
	}
	c.Flush(inoftest.T0)
	return c
}

func (c *portClient) put(addr netip.Addr) {
	h := inoftest.HostAt(addr, c.dev, "Ethernet0")
	h.Down = c.down
	c.PutHost(h)
}

// toggle lets one more host come behind the port, or go.
func (c *portClient) toggle(addr netip.Addr, on bool) *wire.Update {
	if on {
		c.put(addr)
	} else {
		c.WithdrawHost(zone.HostKey{Addr: addr, Device: c.dev, Port: "Ethernet0"}, snsd.ReasonAgedOut)
	}
	return c.Flush(inoftest.T0)[0].Msg.(*wire.Update)
}
