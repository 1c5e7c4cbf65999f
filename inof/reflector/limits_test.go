package reflector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// The figures this project promises, and those of docs/protocol.md, "Limits".
func TestLimitsAreThoseOfTheDocument(t *testing.T) {
	for what, v := range map[string][2]int{
		"clients": {wire.DefaultMaxClients, 4096}, "zones": {wire.DefaultMaxZones, 160_000}, "hosts": {wire.DefaultMaxHosts, 80_000},
		"memberships": {wire.DefaultMaxMemberships, 320_000}, "hosts down in one record": {wire.MaxDownAddrs, 16_384},
		"message": {wire.MaxMessage, 1 << 20}, "message before Established": {wire.MaxHandshakeMessage, 4096}, "pending connections": {link.DefaultMaxPending, 256},
		"zones of a configuration": {zone.DefaultMaxZones, wire.DefaultMaxZones}, "members of one": {zone.DefaultMaxMembers, wire.DefaultMaxMemberships},
	} {
		if v[0] != v[1] {
			t.Errorf("%s: %d, want %d", what, v[0], v[1])
		}
	}
}

// manyDevice is the n-th of many devices, manyHost the n-th of many hosts.
func manyDevice(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }

func bigReflector(t *testing.T, cfg Config) *Reflector {
	t.Helper()
	r, err := New(inoftest.ReflID, 1, zone.Set{}, cfg, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// As many clients as promised are taken; the next one is told why it is not, and is as
// soon as there is room.
func TestClientsUpToTheLimit(t *testing.T) {
	r := bigReflector(t, Config{})
	for i := range wire.DefaultMaxClients {
		if out := r.Join(manyDevice(i), inoftest.T0); len(out) > 0 {
			if n, bad := out[0].Msg.(*wire.Notification); bad {
				t.Fatalf("client %d: %v", i, n)
			}
		}
	}
	one := manyDevice(wire.DefaultMaxClients)
	out := r.Join(one, inoftest.T0)
	if n, ok := out[0].Msg.(*wire.Notification); !ok || n.Code != wire.CodeLimit || !strings.Contains(n.Text, "4096 clients") {
		t.Errorf("one more: %+v", out)
	}
	if r.Counters().ClientsRefused != 1 || r.joined() != wire.DefaultMaxClients {
		t.Errorf("%d refused, %d joined", r.Counters().ClientsRefused, r.joined())
	}
	r.Join(manyDevice(0), inoftest.T0) // one that is there may begin anew
	r.Leave(manyDevice(1), inoftest.T0)
	r.Join(one, inoftest.T0)
	if r.Counters().ClientsRefused != 1 {
		t.Error("refused although there is room")
	}
}

// The promised number of hosts is taken from many devices; of a message that goes beyond
// it the rest is taken; what is known can still change, and makes room when it goes.
func TestHostsUpToTheLimit(t *testing.T) {
	r := bigReflector(t, Config{})
	const each = 1000
	say := func(dev, seq int, hs ...wire.HostRecord) error {
		_, err := r.Receive(manyDevice(dev), &wire.Update{Origin: manyDevice(dev), Epoch: 1, Seq: uint64(seq), Hosts: hs}, inoftest.T0)
		return err
	}
	put := func(dev, n int) wire.HostRecord {
		return wire.HostRecord{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: inoftest.ManyHost(n), Device: manyDevice(dev), Port: "Ethernet1"}, Since: inoftest.T0}}
	}
	for dev := range wire.DefaultMaxHosts / each {
		r.Join(manyDevice(dev), inoftest.T0)
		var hs []wire.HostRecord
		for n := range each {
			hs = append(hs, put(dev, dev*each+n))
		}
		if err := say(dev, 1, hs...); err != nil {
			t.Fatal(err)
		}
	}
	changed := put(0, 5)
	changed.Host.Service.Port = 4420
	inoftest.IsLimit(t, say(0, 2, put(0, wire.DefaultMaxHosts), changed), "hosts", wire.DefaultMaxHosts)
	if c := r.Counters(); c.OverLimit != 1 || r.hosts != wire.DefaultMaxHosts {
		t.Errorf("%d over the limit, %d hosts", c.OverLimit, r.hosts)
	}
	if h, ok := r.dir.Host(inoftest.ManyHost(5)); !ok || h.Service.Port != 4420 {
		t.Errorf("a known host did not change: %+v", h)
	}
	gone := put(0, 7)
	gone.Op = wire.Withdraw
	if err := say(0, 3, gone); err != nil {
		t.Error(err)
	}
	if err := say(0, 4, put(0, wire.DefaultMaxHosts)); err != nil {
		t.Errorf("refused although there is room: %v", err)
	}
}

// Zones and memberships up to the promised numbers, in one configuration and one by one.
func TestZonesUpToTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	r := bigReflector(t, Config{})
	set := zone.Set{Zones: make([]zone.Zone, wire.DefaultMaxZones)}
	for i := range set.Zones {
		set.Zones[i] = zone.Zone{Name: fmt.Sprintf("z%06d", i), Members: []zone.Member{inoftest.AddrMember(inoftest.ManyHost(i)), inoftest.AddrMember(inoftest.ManyHost(i + 1))}}
	}
	if _, err := r.SetZones(set, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	_, err := r.PutZone(zone.Zone{Name: "more"}, inoftest.T0)
	inoftest.IsLimit(t, err, "zones", wire.DefaultMaxZones)
	z := set.Zones[5]
	z.Members = append(slices.Clone(z.Members), inoftest.AddrMember(inoftest.ManyHost(9)))
	_, err = r.PutZone(z, inoftest.T0)
	inoftest.IsLimit(t, err, "memberships", wire.DefaultMaxMemberships)
	z.Members = z.Members[1:]
	if _, err := r.PutZone(z, inoftest.T0); err != nil {
		t.Errorf("a change within the limit: %v", err)
	}
	more := zone.Set{Zones: append(slices.Clone(set.Zones), zone.Zone{Name: "more"})}
	if _, err := r.SetZones(more, inoftest.T0); !errors.Is(err, zone.ErrTooManyZones) {
		t.Errorf("%v", err)
	}
	more = zone.Set{Zones: slices.Clone(set.Zones)}
	more.Zones[0].Members = append(slices.Clone(more.Zones[0].Members), inoftest.AddrMember(inoftest.ManyHost(9)))
	if _, err := r.SetZones(more, inoftest.T0); !errors.Is(err, zone.ErrTooManyMembers) {
		t.Errorf("%v", err)
	}
	if c := r.Counters(); c.OverLimit != 4 || len(r.Zones().Zones) != wire.DefaultMaxZones {
		t.Errorf("%d over the limit, %d zones", c.OverLimit, len(r.Zones().Zones))
	}
}

// Messages of the largest size are read, one byte more is refused by its header alone.
func TestMessagesUpToTheLimit(t *testing.T) {
	for _, limit := range []int{wire.MaxMessage, wire.MaxHandshakeMessage} {
		h := inoftest.AppendHeader(nil, limit, wire.TypeUpdate, 0, 1)
		if got, err := wire.ParseHeader(h, limit); err != nil || got.Length != limit {
			t.Errorf("%d bytes: %v", limit, err)
		}
		binary.BigEndian.PutUint32(h, uint32(limit+1))
		if _, err := wire.ParseHeader(h, limit); wire.CodeOf(err) != wire.CodeLength {
			t.Errorf("%d bytes: %v", limit+1, err)
		}
	}
	// A zone that fits the largest message is taken, one member more is not.
	r := bigReflector(t, Config{})
	z := zone.Zone{Name: "large"}
	for n := 0; n < 149_000 || z.Size() <= zone.MaxSize; n++ {
		z.Members = append(z.Members, inoftest.AddrMember(inoftest.ManyHost(2*n)))
	}
	if _, err := r.PutZone(z, inoftest.T0); !errors.Is(err, zone.ErrTooLarge) {
		t.Errorf("%d members: %v", len(z.Members), err)
	}
	z.Members = z.Members[1:]
	if _, err := r.PutZone(z, inoftest.T0); err != nil {
		t.Errorf("%d members: %v", len(z.Members), err)
	}
	if _, err := wire.Encode(&wire.Update{Origin: inoftest.ReflID, Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: z}}}); err != nil {
		t.Error(err)
	}
}
