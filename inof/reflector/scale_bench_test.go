package reflector

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// scaleReflector is a reflector with sessions of devices 1..clients, to each of
// which hosts are attached in turn.
func scaleReflector(tb testing.TB, clients, hosts int, set zone.Set) *Reflector {
	tb.Helper()
	r, err := New(inoftest.ReflID, 1, set, Config{}, inoftest.T0)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 1; i <= clients; i++ {
		r.Join(inoftest.ScaleDev(i), inoftest.T0)
		u := &wire.Update{Origin: inoftest.ScaleDev(i), Epoch: 1, Seq: 1}
		for h := i; h <= hosts; h += clients {
			u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(h), inoftest.ScaleDev(i), fmt.Sprint("Ethernet", h/clients))})
		}
		if _, err := r.Receive(inoftest.ScaleDev(i), u, inoftest.T0); err != nil {
			tb.Fatal(err)
		}
		if _, err := r.Receive(inoftest.ScaleDev(i), &wire.EndOfSync{Epoch: 1, Seq: 1}, inoftest.T0); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

// scaleZone concerns so many devices by a port of theirs, and holds the first host.
func scaleZone(devs int) zone.Set {
	z := zone.Zone{Name: "zone", Members: []zone.Member{inoftest.AddrMember(inoftest.ScaleHost(1))}}
	for i := range devs {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberPort, Device: inoftest.ScaleDev(i + 1), Port: "Ethernet99"})
	}
	return zone.Set{Zones: []zone.Zone{z}}
}

// One fault, set and cleared in turn, for those who share a zone with it: what the
// reflector decides, and the one encoding that all of them get.
func BenchmarkReflectFault(b *testing.B) {
	for _, tt := range []struct{ told, clients int }{{16, 1000}, {100, 100}, {1000, 1000}, {4000, 4000}} {
		b.Run(fmt.Sprintf("%dof%d", tt.told, tt.clients), func(b *testing.B) {
			r := scaleReflector(b, tt.clients, 1, scaleZone(tt.told))
			dev := inoftest.ScaleDev(1)
			fault := &wire.Update{Origin: dev, Epoch: 1, Downs: []wire.DownRecord{{Device: dev, Port: "Ethernet0", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, Addrs: []netip.Addr{inoftest.ScaleHost(1)}}}}
			over := &wire.Update{Origin: dev, Epoch: 1, Downs: []wire.DownRecord{{Device: dev, Port: "Ethernet0", Addrs: fault.Downs[0].Addrs}}}
			b.ReportAllocs()
			for b.Loop() {
				for _, u := range []*wire.Update{fault, over} {
					u.Seq++
					ds, err := r.Receive(dev, u, inoftest.T0)
					if err != nil || len(ds) != 1 || len(ds[0].To) != tt.told-1 {
						b.Fatal(len(ds), err)
					}
					if _, err := wire.Encode(ds[0].Msg); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/fault")
		})
	}
}
