package inof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/zone"
)

// The figures this project promises, and those of docs/protocol.md, "Limits".
func TestLimitsAreThoseOfTheDocument(t *testing.T) {
	for what, v := range map[string][2]int{
		"clients": {DefaultMaxClients, 4096}, "zones": {DefaultMaxZones, 160_000}, "hosts": {DefaultMaxHosts, 80_000},
		"memberships": {DefaultMaxMemberships, 320_000}, "addresses of a fault": {MaxFaultAddrs, 16_384}, "ports with a fault": {MaxFaultPorts, 4096},
		"message": {MaxMessage, 1 << 20}, "message before Established": {MaxHandshakeMessage, 4096}, "pending connections": {DefaultMaxPending, 256},
		"zones of a configuration": {zone.DefaultMaxZones, DefaultMaxZones}, "members of one": {zone.DefaultMaxMembers, DefaultMaxMemberships},
	} {
		if v[0] != v[1] {
			t.Errorf("%s: %d, want %d", what, v[0], v[1])
		}
	}
}

// manyDevice is the n-th of many devices, manyHost the n-th of many hosts.
func manyDevice(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }

func bigReflector(t *testing.T, cfg ReflectorConfig) *Reflector {
	t.Helper()
	r, err := NewReflector(reflID, 1, zone.Set{}, cfg, t0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// As many clients as promised are taken; the next one is told why it is not, and is as
// soon as there is room.
func TestClientsUpToTheLimit(t *testing.T) {
	r := bigReflector(t, ReflectorConfig{})
	for i := range DefaultMaxClients {
		if out := r.Join(manyDevice(i), t0); len(out) > 0 {
			if n, bad := out[0].Msg.(*Notification); bad {
				t.Fatalf("client %d: %v", i, n)
			}
		}
	}
	one := manyDevice(DefaultMaxClients)
	out := r.Join(one, t0)
	if n, ok := out[0].Msg.(*Notification); !ok || n.Code != CodeLimit || !strings.Contains(n.Text, "4096 clients") {
		t.Errorf("one more: %+v", out)
	}
	if r.Counters().ClientsRefused != 1 || r.joined() != DefaultMaxClients {
		t.Errorf("%d refused, %d joined", r.Counters().ClientsRefused, r.joined())
	}
	r.Join(manyDevice(0), t0) // one that is there may begin anew
	r.Leave(manyDevice(1), t0)
	r.Join(one, t0)
	if r.Counters().ClientsRefused != 1 {
		t.Error("refused although there is room")
	}
}

// The promised number of hosts is taken from many devices; of a message that goes beyond
// it the rest is taken; what is known can still change, and makes room when it goes.
func TestHostsUpToTheLimit(t *testing.T) {
	r := bigReflector(t, ReflectorConfig{})
	const each = 1000
	say := func(dev, seq int, hs ...HostRecord) error {
		_, err := r.Receive(manyDevice(dev), &Update{Origin: manyDevice(dev), Epoch: 1, Seq: uint64(seq), Hosts: hs}, t0)
		return err
	}
	put := func(dev, n int) HostRecord {
		return HostRecord{Op: Put, Host: zone.Host{HostKey: zone.HostKey{Addr: manyHost(n), Device: manyDevice(dev), Port: "Ethernet1"}, Since: t0}}
	}
	for dev := range DefaultMaxHosts / each {
		r.Join(manyDevice(dev), t0)
		var hs []HostRecord
		for n := range each {
			hs = append(hs, put(dev, dev*each+n))
		}
		if err := say(dev, 1, hs...); err != nil {
			t.Fatal(err)
		}
	}
	changed := put(0, 5)
	changed.Host.Service.Port = 4420
	isLimit(t, say(0, 2, put(0, DefaultMaxHosts), changed), "hosts", DefaultMaxHosts)
	if c := r.Counters(); c.OverLimit != 1 || r.hosts != DefaultMaxHosts {
		t.Errorf("%d over the limit, %d hosts", c.OverLimit, r.hosts)
	}
	if h, ok := r.dir.Host(manyHost(5)); !ok || h.Service.Port != 4420 {
		t.Errorf("a known host did not change: %+v", h)
	}
	gone := put(0, 7)
	gone.Op = Withdraw
	if err := say(0, 3, gone); err != nil {
		t.Error(err)
	}
	if err := say(0, 4, put(0, DefaultMaxHosts)); err != nil {
		t.Errorf("refused although there is room: %v", err)
	}
}

// Zones and memberships up to the promised numbers, in one configuration and one by one.
func TestZonesUpToTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	r := bigReflector(t, ReflectorConfig{})
	set := zone.Set{Zones: make([]zone.Zone, DefaultMaxZones)}
	for i := range set.Zones {
		set.Zones[i] = zone.Zone{Name: fmt.Sprintf("z%06d", i), Members: []zone.Member{addrMember(manyHost(i)), addrMember(manyHost(i + 1))}}
	}
	if _, err := r.SetZones(set, t0); err != nil {
		t.Fatal(err)
	}
	_, err := r.PutZone(zone.Zone{Name: "more"}, t0)
	isLimit(t, err, "zones", DefaultMaxZones)
	z := set.Zones[5]
	z.Members = append(slices.Clone(z.Members), addrMember(manyHost(9)))
	_, err = r.PutZone(z, t0)
	isLimit(t, err, "memberships", DefaultMaxMemberships)
	z.Members = z.Members[1:]
	if _, err := r.PutZone(z, t0); err != nil {
		t.Errorf("a change within the limit: %v", err)
	}
	more := zone.Set{Zones: append(slices.Clone(set.Zones), zone.Zone{Name: "more"})}
	if _, err := r.SetZones(more, t0); !errors.Is(err, zone.ErrTooManyZones) {
		t.Errorf("%v", err)
	}
	more = zone.Set{Zones: slices.Clone(set.Zones)}
	more.Zones[0].Members = append(slices.Clone(more.Zones[0].Members), addrMember(manyHost(9)))
	if _, err := r.SetZones(more, t0); !errors.Is(err, zone.ErrTooManyMembers) {
		t.Errorf("%v", err)
	}
	if c := r.Counters(); c.OverLimit != 4 || len(r.Zones().Zones) != DefaultMaxZones {
		t.Errorf("%d over the limit, %d zones", c.OverLimit, len(r.Zones().Zones))
	}
}

// A device may have so many ports with a fault; a known one can change.
func TestFaultsOfADeviceUpToTheLimit(t *testing.T) {
	r := bigReflector(t, ReflectorConfig{})
	r.Join(devID(0), t0)
	fault := func(n int) FaultRecord {
		return FaultRecord{Op: Put, Device: devID(0), Port: fmt.Sprintf("Ethernet%d", n), Why: 1, Since: t0, Addrs: []netip.Addr{hostIP(1)}}
	}
	u := &Update{Origin: devID(0), Epoch: 1, Seq: 1}
	for n := range MaxFaultPorts {
		u.Faults = append(u.Faults, fault(n))
	}
	if _, err := r.Receive(devID(0), u, t0); err != nil {
		t.Fatal(err)
	}
	other := fault(3)
	other.Why = 2
	_, err := r.Receive(devID(0), &Update{Origin: devID(0), Epoch: 1, Seq: 2, Faults: []FaultRecord{fault(MaxFaultPorts), other}}, t0)
	isLimit(t, err, "ports with a fault", MaxFaultPorts)
	d := r.devices[devID(0)]
	if len(d.faults) != MaxFaultPorts || d.faults["Ethernet3"].rec.Why != 2 || r.Counters().OverLimit != 1 {
		t.Errorf("%d faults, the known one %+v, %d over the limit", len(d.faults), d.faults["Ethernet3"].rec, r.Counters().OverLimit)
	}
}

// Messages of the largest size are read, one byte more is refused by its header alone.
func TestMessagesUpToTheLimit(t *testing.T) {
	for _, limit := range []int{MaxMessage, MaxHandshakeMessage} {
		h := appendHeader(nil, limit, TypeUpdate, 0, 1)
		if got, err := ParseHeader(h, limit); err != nil || got.Length != limit {
			t.Errorf("%d bytes: %v", limit, err)
		}
		binary.BigEndian.PutUint32(h, uint32(limit+1))
		if _, err := ParseHeader(h, limit); CodeOf(err) != CodeLength {
			t.Errorf("%d bytes: %v", limit+1, err)
		}
	}
	// A zone that fits the largest message is taken, one member more is not.
	r := bigReflector(t, ReflectorConfig{})
	z := zone.Zone{Name: "large"}
	for n := 0; n < 149_000 || FitsMessage(&z) == nil; n++ {
		z.Members = append(z.Members, addrMember(manyHost(2*n)))
	}
	if _, err := r.PutZone(z, t0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d members: %v", len(z.Members), err)
	}
	z.Members = z.Members[1:]
	if _, err := r.PutZone(z, t0); err != nil {
		t.Errorf("%d members: %v", len(z.Members), err)
	}
	if _, err := Encode(&Update{Origin: reflID, Zones: []ZoneRecord{{Op: Put, Zone: z}}}); err != nil {
		t.Error(err)
	}
}
