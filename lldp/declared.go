package lldp

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// An array that sends no registration can be declared by the configuration: the device asks for
// its address (ARP, Neighbor Discovery) and enters it here as if its port had registered. The
// entry is kept, ages, counts for the limits and is confirmed like any other.

// DeclaredTTL is how long a declared host stays without an answer: as long as the agents'
// registrations (IEEE 802.1AB: 4 x 30 s).
const DeclaredTTL = 120 * time.Second

// declaredChassis is the chassis id (subtype 7, locally assigned) of declared hosts. Frames that
// have it are refused.
const declaredChassis = "inof-declared"

var declaredHead = append([]byte{tlvChassisID << 1, 1 + byte(len(declaredChassis)), ChassisLocal}, declaredChassis...)

// Declared reports whether the neighbour is a declared host that was found.
func (n *Neighbour) Declared() bool { return bytes.HasPrefix(n.LLDPDU, declaredHead) }

// DeclaredTTL is that time, cut as other times to live are.
func (t *Table) DeclaredTTL() time.Duration {
	return min(DeclaredTTL, time.Duration(t.maxTTL)*time.Second)
}

// Declare enters a declared host, which has answered on a port from a MAC address: it is there
// at this time. The error is that of Receive.
func (t *Table) Declare(port string, mac fabric.MAC, addr netip.Addr, s snsd.Service, at, now time.Time) ([]Change, error) {
	p := PDU{
		Chassis: ID{ChassisLocal, declaredChassis}, Port: ID{PortLocal, addr.String()},
		TTL:          uint16(t.DeclaredTTL() / time.Second),
		Registration: &snsd.Registration{Addr: addr, ProtoVer: snsd.DefaultProtoVer, Service: s},
	}
	raw, err := p.Append(nil)
	if err != nil {
		return nil, err
	}
	return t.receive(&fabric.Frame{Port: port, Src: mac, EtherType: fabric.EtherTypeLLDP, Payload: raw, At: at}, now)
}

// Undeclare removes a declared host from a port.
func (t *Table) Undeclare(port string, addr netip.Addr, why snsd.Reason, now time.Time) []Change {
	for _, e := range t.sorted(port) {
		if e.n.Declared() && e.n.Registration.Addr == addr {
			return []Change{t.drop(e, why, now)}
		}
	}
	return nil
}

// Registers reports whether a host with the address registers itself on one of these ports.
func (t *Table) Registers(addr netip.Addr, ports fabric.Names) bool {
	for name, p := range t.ports {
		if len(p.claims[addr]) > 0 && !ports.Match(name) {
			continue
		}
		for _, e := range p.claims[addr] {
			if e.n.Registration != nil && !e.n.Declared() {
				return true
			}
		}
	}
	return false
}
