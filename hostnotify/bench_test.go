package hostnotify

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// site is a device with a real Directory: local hosts on their ports and remote
// targets, in zones of the given size.
type site struct {
	dir     *zone.Directory
	n       *Notifier
	now     time.Time
	remote  netip.Addr
	targets []netip.Addr
	locals  []netip.Addr
}

// newSite has ports*perPort local hosts. Remote targets are spread over zones so that
// each target shares a zone with watchers local hosts.
func newSite(tb testing.TB, ports, perPort, targets, watchers int) *site {
	tb.Helper()
	self := ip("10.0.0.1")
	s := &site{dir: zone.NewDirectory(self), now: epoch, remote: ip("10.0.0.2")}
	var set zone.Set
	groups := max(1, ports*perPort/watchers)
	set.Zones = make([]zone.Zone, groups)
	member := func(i int, a netip.Addr) {
		z := &set.Zones[i%groups]
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	for i := range groups {
		set.Zones[i].Name = fmt.Sprintf("z%d", i)
	}
	for i := range ports * perPort {
		a := netip.AddrFrom4([4]byte{192, 168, byte(i>>8) + 1, byte(i)})
		s.locals = append(s.locals, a)
		member(i, a)
	}
	for i := range targets {
		a := netip.AddrFrom4([4]byte{172, byte(16 + i>>16), byte(i >> 8), byte(i)})
		s.targets = append(s.targets, a)
		member(i, a)
	}
	s.dir.SetZones(set)
	s.n = New(Config{}, s.dir)
	s.n.SetSynced(true)
	for i, a := range s.targets {
		s.dir.PutHost(zone.Host{HostKey: zone.HostKey{Addr: a, Device: s.remote, Port: fmt.Sprintf("e%d", i)}, MAC: mac(1<<20 + i), Since: epoch,
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420}})
	}
	for i, a := range s.locals {
		port := fmt.Sprintf("Ethernet%d", i/perPort)
		s.dir.PutHost(zone.Host{HostKey: zone.HostKey{Addr: a, Device: self, Port: port}, MAC: mac(i), Subscribes: true, Since: epoch,
			Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE}})
		s.n.PortUp(port, mac(9), s.now)
		s.n.Subscribe(a, port, mac(i), s.now)
	}
	s.settle(tb)
	return s
}

// settle polls and acks until everything is told.
func (s *site) settle(tb testing.TB) (frames int) {
	for {
		out := s.n.Poll(s.now)
		frames += len(out)
		for _, o := range out {
			p, err := snsd.ParsePacket(o.Frame[14:])
			if err != nil {
				tb.Fatal(err)
			}
			for _, x := range p.Notices {
				s.n.Ack(o.Port, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}, s.now)
			}
		}
		c := s.n.Counters()
		if c.Waiting == 0 && c.InFlight == 0 {
			return frames
		}
		if len(out) == 0 {
			s.now = s.now.Add(10 * time.Millisecond)
		}
	}
}

func (s *site) fault(a netip.Addr, port string, why snsd.Reason) zone.Changes {
	if why == 0 {
		return s.dir.SetDown(s.remote, port, []netip.Addr{a}, zone.Down{})
	}
	return s.dir.SetDown(s.remote, port, []netip.Addr{a}, zone.Down{Why: why})
}

// One remote target fails; 64 local hosts on 64 ports are told: from Changed to the
// frames of Poll. The acks and the repair between two rounds are not measured.
func BenchmarkFaultTo64Hosts(b *testing.B) {
	s := newSite(b, 64, 64, 80000/16, 64)
	b.ReportAllocs()
	frames := 0
	for b.Loop() {
		b.StopTimer()
		s.n.Changed(s.fault(s.targets[0], "e0", 0), s.now, s.now)
		s.settle(b)
		s.now = s.now.Add(time.Second)
		c := s.fault(s.targets[0], "e0", snsd.ReasonLinkDown)
		b.StartTimer()
		s.n.Changed(c, s.now, s.now)
		frames += len(s.n.Poll(s.now))
	}
	b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
}

// 1,000 remote targets fail at once, each of them known to 64 local hosts: 64,000
// notices decided; what the pace allows is packed.
func BenchmarkThousandFaultsAtOnce(b *testing.B) {
	s := newSite(b, 64, 1, 1000, 64)
	b.ReportAllocs()
	var sent uint64
	for b.Loop() {
		b.StopTimer()
		s.n.Changed(s.dir.SetDeviceFault(s.remote, 0), s.now, s.now)
		s.settle(b)
		s.now = s.now.Add(time.Second)
		c := s.dir.SetDeviceFault(s.remote, snsd.ReasonBFDDown)
		before := s.n.Counters().Sent
		b.StartTimer()
		s.n.Changed(c, s.now, s.now)
		s.n.Poll(s.now)
		sent += s.n.Counters().Sent - before
	}
	b.ReportMetric(float64(sent)/float64(b.N), "first-sent/op")
	b.ReportMetric(64000, "decided/op")
}

// An ack that fits.
func BenchmarkAck(b *testing.B) {
	s := newSite(b, 1, 1, 100, 1)
	for b.Loop() {
		b.StopTimer()
		s.now = s.now.Add(time.Second)
		s.n.Query(s.locals[0], s.now)
		out := s.n.Poll(s.now)
		var acks []snsd.Ack
		for _, o := range out {
			p, _ := snsd.ParsePacket(o.Frame[14:])
			for _, x := range p.Notices {
				acks = append(acks, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq})
			}
		}
		b.StartTimer()
		for _, a := range acks {
			s.n.Ack(out[0].Port, a, s.now)
		}
	}
	b.ReportMetric(100, "acks/op")
}

// All 80,000 addresses of the design's limit on other devices, 256 hosts here, each of
// which knows 1,250 of them.
func TestAFaultAmong80000SubjectsIsToldToThoseItConcerns(t *testing.T) {
	if testing.Short() {
		t.Skip("320,000 pairs: left out with -short")
	}
	s := newSite(t, 64, 4, 80000, 4)
	c := s.n.Counters()
	if c.Pairs < 64*4*1250 {
		t.Errorf("%d pairs", c.Pairs)
	}
	before := c.Sent
	s.n.Changed(s.fault(s.targets[77], "e77", snsd.ReasonLinkDown), s.now, s.now)
	s.settle(t)
	if got := s.n.Counters().Sent - before; got != 4 {
		t.Errorf("%d notices of one fault, want 4", got)
	}
}
