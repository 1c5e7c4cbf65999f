package wire_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// BenchmarkCodec encodes and decodes a message of each kind, and the long ones: a part of a full
// sync, and a fault of a port with as many hosts as one record may name.
func BenchmarkCodec(b *testing.B) {
	hosts := func(n int) *wire.Update {
		u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, SentAt: inoftest.T0}
		for i := range n {
			h := inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(0), fmt.Sprintf("Ethernet%d", 4*(i/8)))
			u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
		}
		return u
	}
	fault := func(n int) *wire.Update {
		d := wire.DownRecord{Device: inoftest.DevID(0), Port: "Ethernet4", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}}
		for i := range n {
			d.Addrs = append(d.Addrs, inoftest.ScaleHost(i))
		}
		return &wire.Update{Origin: d.Device, Epoch: 1, Seq: 1, FaultAt: inoftest.T0, SentAt: inoftest.T0, ReflectedAt: inoftest.T0, Downs: []wire.DownRecord{d}}
	}
	zones := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 1, Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "z"}}}}
	for i := range 16 {
		zones.Zones[0].Zone.Members = append(zones.Zones[0].Zone.Members, inoftest.AddrMember(inoftest.HostIP(i)))
	}
	bound := &wire.Bound{Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	for _, tt := range []struct {
		name string
		m    wire.Message
	}{
		{"Open", inoftest.Golden["open-client"]}, {"Keepalive", &wire.Keepalive{}}, {"EndOfSync", &wire.EndOfSync{}}, {"Bound", bound},
		{"Fault1", fault(1)}, {"Fault1000", fault(1000)}, {"Fault16384", fault(wire.MaxDownAddrs)},
		{"Host1", hosts(1)}, {"Host300", hosts(300)}, {"Host4000", hosts(4000)}, {"Zone16", zones},
	} {
		frame := inoftest.FrameOf(b, tt.m)
		b.Run("Encode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Encode(tt.m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Decode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Decode(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
