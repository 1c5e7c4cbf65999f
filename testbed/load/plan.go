package load

import (
	"fmt"
	"net/netip"

	"github.com/openinof/inof/zone"
)

// ZonePrefix begins the name of every zone that a benchmark makes.
const ZonePrefix = "inofctl-bench-"

// Range is a range of addresses, both ends included.
type Range struct{ First, Last netip.Addr }

// DefaultDevices and DefaultHosts are for a reflector of one's own; the latter are those
// that RFC 2544 sets aside for benchmarks.
var (
	DefaultDevices = Range{netip.MustParseAddr("10.66.0.1"), netip.MustParseAddr("10.66.255.254")}
	DefaultHosts   = Range{netip.MustParseAddr("198.18.0.0"), netip.MustParseAddr("198.19.255.255")}
)

// ParseRange reads "first-last" or a prefix.
func ParseRange(s string) (Range, error) {
	m, err := zone.ParseMember(s)
	if err != nil || m.Kind != zone.MemberRange {
		return Range{}, fmt.Errorf("%q is no range of addresses: want FIRST-LAST or a prefix", s)
	}
	return Range{m.First, m.Last}, nil
}

func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// MarshalText gives the text of String.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (r *Range) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRange(string(b))
	return err
}

// at is the address i after the first.
func (r Range) at(i int) netip.Addr {
	b := r.First.As16()
	carry := uint64(i)
	for k := 15; k >= 0 && carry > 0; k-- {
		carry += uint64(b[k])
		b[k] = byte(carry)
		carry >>= 8
	}
	a := netip.AddrFrom16(b)
	if r.First.Is4() {
		return a.Unmap()
	}
	return a
}

// holds reports whether the range has n addresses.
func (r Range) holds(n int) error {
	if last := r.at(n - 1); !last.IsValid() || last.BitLen() != r.First.BitLen() || r.Last.Less(last) {
		return fmt.Errorf("range %v has fewer than %d addresses", r, n)
	}
	return nil
}

func (r Range) list(from, n int) []netip.Addr {
	out := make([]netip.Addr, n)
	for i := range out {
		out[i] = r.at(from + i)
	}
	return out
}

// Ports of the devices of a run.
const (
	portZone = "bench0" // the one host of each client, in a zone with its neighbours
	portAll  = "bench1" // the host of the first origin that concerns all
	portJoin = "bench2" // by which every client is concerned with the zone of all
)

// plan is who is in which zone: the clients in zones of zoneSize, one host each; the
// first origin in the first of these zones too; and all clients, by a port of theirs,
// in one zone with the hosts of the origins. Faulty are hosts of the first origin, in that first
// zone too, at a port each.
type plan struct {
	clients, zoneSize, origins, burst, faulty int
	devices, hosts                            Range
}

func (p *plan) check() error {
	if err := p.devices.holds(p.clients + p.origins); err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	if err := p.hosts.holds(p.clients + 2 + p.burst + p.faulty); err != nil {
		return fmt.Errorf("hosts: %w", err)
	}
	return nil
}

func (p *plan) zoneHost() netip.Addr       { return p.hosts.at(p.clients) }
func (p *plan) allHost() netip.Addr        { return p.hosts.at(p.clients + 1) }
func (p *plan) burstHost(j int) netip.Addr { return p.hosts.at(p.clients + 2 + j) }
func (p *plan) faultyHost(j int) netip.Addr {
	return p.hosts.at(p.clients + 2 + p.burst + j)
}
func (p *plan) faultyPort(j int) string { return fmt.Sprintf(faultPrefix+"%05d", j) }

// inZone is how many clients are in the zone of client i.
func (p *plan) inZone(i int) int {
	first := i / p.zoneSize * p.zoneSize
	return min(p.zoneSize, p.clients-first)
}

func (p *plan) zones() zone.Set {
	var set zone.Set
	for i := range p.clients {
		if i%p.zoneSize == 0 {
			set.Zones = append(set.Zones, zone.Zone{Name: fmt.Sprintf("%s%05d", ZonePrefix, i/p.zoneSize)})
		}
		z := &set.Zones[len(set.Zones)-1]
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: p.hosts.at(i)})
	}
	set.Zones[0].Members = append(set.Zones[0].Members, zone.Member{Kind: zone.MemberAddr, First: p.zoneHost()})
	if p.faulty > 0 {
		set.Zones[0].Members = append(set.Zones[0].Members, zone.Member{Kind: zone.MemberRange, First: p.faultyHost(0), Last: p.faultyHost(p.faulty - 1)})
	}
	all := zone.Zone{Name: ZonePrefix + "all", Members: []zone.Member{
		{Kind: zone.MemberAddr, First: p.allHost()},
		{Kind: zone.MemberRange, First: p.burstHost(0), Last: p.burstHost(max(0, p.burst-1))},
	}}
	for i := range p.clients {
		all.Members = append(all.Members, zone.Member{Kind: zone.MemberPort, Device: p.devices.at(i), Port: portJoin})
	}
	set.Zones = append(set.Zones, all)
	return set
}
