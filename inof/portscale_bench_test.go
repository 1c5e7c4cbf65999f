package inof

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// faultedPort is a reflector with 20 devices, one of which has so many hosts behind one
// port with a fault. All are in one zone with a host of each other device; the next
// address is a host that is not there yet.
func faultedPort(tb testing.TB, hosts int) (r *Reflector, dev netip.Addr, set zone.Zone) {
	tb.Helper()
	z := zone.Zone{Name: "zone", Members: []zone.Member{{Kind: zone.MemberRange, First: scaleHost(1), Last: scaleHost(10_000)}}}
	r = scaleReflector(tb, 20, 0, zone.Set{Zones: []zone.Zone{z}})
	dev = scaleDev(1)
	u := &Update{Origin: dev, Epoch: 1, Seq: 1}
	f := FaultRecord{Op: Put, Device: dev, Port: "Ethernet0", Why: snsd.ReasonPFCStorm, Since: t0}
	for i := range hosts {
		u.Hosts = append(u.Hosts, HostRecord{Op: Put, Host: hostAt(scaleHost(100+i), dev, "Ethernet0")})
		f.Addrs = append(f.Addrs, scaleHost(100+i))
	}
	u.Faults = []FaultRecord{f}
	if _, err := r.Receive(dev, u, t0); err != nil {
		tb.Fatal(err)
	}
	for i := 2; i <= 20; i++ {
		u := &Update{Origin: scaleDev(i), Epoch: 1, Seq: 1, Hosts: []HostRecord{{Op: Put, Host: hostAt(scaleHost(i), scaleDev(i), "Ethernet0")}}}
		if _, err := r.Receive(scaleDev(i), u, t0); err != nil {
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
			turns := [2]*Update{c.toggle(scaleHost(100+hosts), true), c.toggle(scaleHost(100+hosts), false)}
			bytes := 0
			for n := 0; b.Loop(); n++ {
				ds, err := r.Receive(dev, turns[n%2], t0)
				if err != nil {
					b.Fatal(err)
				}
				for _, d := range ds {
					e, _ := Encode(d.Msg)
					bytes += e.Len()
				}
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/op")
		})
		b.Run(fmt.Sprintf("client/%d", hosts), func(b *testing.B) {
			c := newPortClient(b, scaleDev(1), hosts)
			for n := 0; b.Loop(); n++ {
				c.toggle(scaleHost(100+hosts), n%2 == 0)
			}
		})
		b.Run(fmt.Sprintf("zone/%d", hosts), func(b *testing.B) {
			r, _, z := faultedPort(b, hosts)
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: append([]zone.Member{}, z.Members...)}
				if n%2 == 0 {
					next.Members = append(next.Members, zone.Member{Kind: zone.MemberNQN, NQN: "nqn.2014-08.org.example:x"})
				}
				if _, err := r.PutZone(next, t0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("leave/%d", hosts), func(b *testing.B) { // one host behind the port leaves the zone and comes back
			r, _, z := faultedPort(b, hosts)
			parts := []zone.Member{{Kind: zone.MemberRange, First: scaleHost(1), Last: scaleHost(99)}, {Kind: zone.MemberRange, First: scaleHost(101), Last: scaleHost(10_000)}}
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: z.Members}
				if n%2 == 0 {
					next.Members = parts
				}
				if _, err := r.PutZone(next, t0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("all/%d", hosts), func(b *testing.B) { // all hosts behind the port leave the zone and come back
			r, _, z := faultedPort(b, hosts)
			part := []zone.Member{{Kind: zone.MemberRange, First: scaleHost(1), Last: scaleHost(99)}}
			for n := 0; b.Loop(); n++ {
				next := zone.Zone{Name: z.Name, Members: z.Members}
				if n%2 == 0 {
					next.Members = part
				}
				if _, err := r.PutZone(next, t0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(hosts), "ns/host")
		})
	}
}

// portClient is a client with hosts behind a port with a fault.
type portClient struct {
	*Client
	tb    testing.TB
	dev   netip.Addr
	addrs []netip.Addr
}

func newPortClient(tb testing.TB, dev netip.Addr, hosts int) *portClient {
	c := &portClient{Client: NewClient(dev, 1), tb: tb, dev: dev}
	c.Up(reflID, t0)
	for i := range hosts {
		c.PutHost(hostAt(scaleHost(100+i), dev, "Ethernet0"))
		c.addrs = append(c.addrs, scaleHost(100+i))
	}
	c.tell()
	return c
}

func (c *portClient) tell() *Update {
	c.PutFault(FaultRecord{Port: "Ethernet0", Why: snsd.ReasonPFCStorm, Since: t0, Addrs: c.addrs})
	ds := c.Flush(t0)
	return ds[len(ds)-1].Msg.(*Update)
}

// toggle lets one more host come behind the port, or go.
func (c *portClient) toggle(addr netip.Addr, on bool) *Update {
	h := hostAt(addr, c.dev, "Ethernet0")
	if on {
		c.PutHost(h)
		c.addrs = append(c.addrs, addr)
	} else {
		c.WithdrawHost(h.HostKey, snsd.ReasonAgedOut)
		c.addrs = c.addrs[:len(c.addrs)-1]
	}
	return c.tell()
}
