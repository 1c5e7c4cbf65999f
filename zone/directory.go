package zone

import (
	"iter"
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// Change is one address about which somebody may have to be told something new.
type Change struct {
	Addr netip.Addr  `json:"addr"`
	Why  snsd.Reason `json:"why"`
}

// Changes are sorted by address; each address is there once.
type Changes []Change

// Conflict is an address that two hosts (two MAC addresses) claim.
type Conflict struct {
	Winner Host   `json:"winner"`
	Losers []Host `json:"losers"`
}

// DeviceCount says how many attachments a device has in a zone.
type DeviceCount struct {
	Device netip.Addr `json:"device"`
	Count  int        `json:"count"`
}

// Fault is the record about one access port whose hosts cannot be reached.
type Fault struct {
	Device netip.Addr   `json:"device"`
	Port   string       `json:"port"`
	Why    snsd.Reason  `json:"why"`
	Addrs  []netip.Addr `json:"addrs"`
}

// Counters of a Directory.
type Counters struct {
	HostsRejected  uint64 `json:"hosts_rejected"`
	ZonesRejected  uint64 `json:"zones_rejected"`
	FaultsRejected uint64 `json:"faults_rejected"`
}

// Directory is the one table of a device about all hosts it knows.
type Directory struct{}

func NewDirectory(self netip.Addr) *Directory { return &Directory{} }

func (d *Directory) Self() netip.Addr                              { return netip.Addr{} }
func (d *Directory) SetZones(s Set) Changes                        { return nil }
func (d *Directory) PutZone(z Zone) Changes                        { return nil }
func (d *Directory) DeleteZone(name string) Changes                { return nil }
func (d *Directory) SetAutoJoin(on bool) Changes                   { return nil }
func (d *Directory) SetHard(on bool)                               {}
func (d *Directory) PutHost(h Host) Changes                        { return nil }
func (d *Directory) RemoveHost(k HostKey, why snsd.Reason) Changes { return nil }
func (d *Directory) SetFault(device netip.Addr, port string, addrs []netip.Addr, why snsd.Reason) Changes {
	return nil
}
func (d *Directory) SetDeviceFault(device netip.Addr, why snsd.Reason) Changes { return nil }

func (d *Directory) Host(addr netip.Addr) (Host, bool)               { return Host{}, false }
func (d *Directory) Attachments(addr netip.Addr) []Host              { return nil }
func (d *Directory) Conflicts() []Conflict                           { return nil }
func (d *Directory) Faults() []Fault                                 { return nil }
func (d *Directory) State(addr netip.Addr) (snsd.State, snsd.Reason) { return 0, 0 }
func (d *Directory) Known(addr netip.Addr) bool                      { return false }
func (d *Directory) Len() int                                        { return 0 }
func (d *Directory) Peers(addr netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {}
}
func (d *Directory) Share(a, b netip.Addr) bool                 { return false }
func (d *Directory) MayExchange(a, b netip.Addr) bool           { return false }
func (d *Directory) ZonesOf(addr netip.Addr) []string           { return nil }
func (d *Directory) ZoneHosts(name string) []netip.Addr         { return nil }
func (d *Directory) Zone(name string) (Zone, bool)              { return Zone{}, false }
func (d *Directory) Zones() Set                                 { return Set{} }
func (d *Directory) AllHosts() iter.Seq[Host]                   { return func(yield func(Host) bool) {} }
func (d *Directory) DevicesOf(zone string) []DeviceCount        { return nil }
func (d *Directory) ConfiguredDevices(zone string) []netip.Addr { return nil }
func (d *Directory) CountOf(device netip.Addr, zone string) int { return 0 }
func (d *Directory) Counters() Counters                         { return Counters{} }
