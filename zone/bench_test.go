package zone

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func benchAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func benchHost(i, devices int) Host {
	return Host{
		HostKey: HostKey{Addr: benchAddr(i), Device: netip.AddrFrom4([4]byte{192, 168, byte(i % devices >> 8), byte(i % devices)}), Port: fmt.Sprintf("Ethernet%d", i/devices%48)},
		MAC:     fabric.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)},
		Service: snsd.Service{Role: snsd.Role(1 + i%2), Protocol: snsd.ProtocolRoCE},
		Since:   modelEpoch,
	}
}

// benchSet spreads hosts over zones by address, per members each; a host is in
// zones*per/hosts of them.
func benchSet(zones, per, hosts int) Set {
	s := Set{AutoJoin: true, Zones: make([]Zone, zones)}
	for i := range s.Zones {
		s.Zones[i].Name = fmt.Sprintf("zone-%06d", i)
		for j := range per {
			s.Zones[i].Members = append(s.Zones[i].Members, Member{Kind: MemberAddr, First: benchAddr((i*per + j*7919) % hosts)})
		}
	}
	return s
}

func BenchmarkCompile10000x16(b *testing.B) {
	s := benchSet(10_000, 16, 80_000)
	b.ReportAllocs()
	for b.Loop() {
		Compile(s)
	}
}

func BenchmarkIndexZonesOf(b *testing.B) {
	s := benchSet(10_000, 16, 80_000)
	for i := range 1000 {
		first := benchAddr(i * 80)
		s.Zones[i].Members = append(s.Zones[i].Members, Member{Kind: MemberRange, First: first, Last: benchAddr(i*80 + 160)})
	}
	ix := Compile(s)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ix.ZonesOf(benchHost(i%80_000, 256))
	}
}

// large is a Directory at the limits: 80,000 addresses on 256 devices, 160,000
// zones of two members.
func large(b *testing.B) *Directory {
	b.Helper()
	d := NewDirectory(netip.AddrFrom4([4]byte{192, 168, 0, 0}))
	d.SetZones(benchSet(160_000, 2, 80_000))
	for i := range 80_000 {
		d.PutHost(benchHost(i, 256))
	}
	return d
}

func BenchmarkAtTheLimits(b *testing.B) {
	d := large(b)
	b.Run("PutRemoveHost", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h := benchHost(i*31%80_000, 256)
			if len(d.RemoveHost(h.HostKey, snsd.ReasonAgedOut)) != 1 || len(d.PutHost(h)) != 1 {
				b.Fatal("one address must have changed")
			}
		}
	})
	b.Run("SetDown", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h := benchHost(i*31%80_000, 256)
			if len(d.SetDown(h.Device, h.HostKey.Port, []netip.Addr{h.Addr}, Down{Why: snsd.ReasonLinkDown})) != 1 || len(d.SetDown(h.Device, h.HostKey.Port, []netip.Addr{h.Addr}, Down{})) != 1 {
				b.Fatal("one address must have changed")
			}
		}
	})
	b.Run("SetDeviceFault", func(b *testing.B) {
		dev := benchHost(7, 256).Device
		b.ReportAllocs()
		for b.Loop() {
			d.SetDeviceFault(dev, snsd.ReasonBFDDown)
			d.SetDeviceFault(dev, 0)
		}
	})
	b.Run("Peers", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for range d.Peers(benchAddr(i % 80_000)) {
			}
		}
	})
	b.Run("PutZoneOneMemberMore", func(b *testing.B) {
		z, _ := d.Zone("zone-000123")
		more := Zone{Name: z.Name, Members: append(z.Members[:len(z.Members):len(z.Members)], Member{Kind: MemberAddr, First: benchAddr(77)})}
		b.ReportAllocs()
		for b.Loop() {
			if len(d.PutZone(more)) != 1 || len(d.PutZone(z)) != 1 {
				b.Fatal("one address must have changed")
			}
		}
	})
}

func BenchmarkSetZonesOneOf10000Changed(b *testing.B) {
	d := NewDirectory(netip.Addr{})
	s := benchSet(10_000, 16, 80_000)
	d.SetZones(s)
	for i := range 80_000 {
		d.PutHost(benchHost(i, 256))
	}
	was, other := s.Zones[5].Members, append(s.Zones[5].Members[:16:16], Member{Kind: MemberAddr, First: benchAddr(4)})
	b.ReportAllocs()
	for b.Loop() {
		s.Zones[5].Members = other
		if n := len(d.SetZones(s)); n != 1 {
			b.Fatalf("%d addresses changed, want 1", n)
		}
		s.Zones[5].Members = was
		d.SetZones(s)
	}
}

// BenchmarkMemory reports what the limits cost: zones alone, then with hosts.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		base := heap()
		d := NewDirectory(netip.Addr{})
		d.SetZones(benchSet(160_000, 2, 80_000))
		zones := heap()
		for i := range 80_000 {
			d.PutHost(benchHost(i, 256))
		}
		all := heap()
		b.ReportMetric(float64(zones-base)/320_000, "B/membership")
		b.ReportMetric(float64(all-zones)/80_000, "B/host")
		b.ReportMetric(float64(all-base)/(1<<20), "MiB")
		runtime.KeepAlive(d)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
