package inof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
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

// isLimit wants err to be, or to hold, the refusal of a record for a full table.
func isLimit(t *testing.T, err error, what string, limit int) {
	t.Helper()
	l, ok := errors.AsType[*LimitError](err)
	if !ok || l.What != what || l.Limit != limit || l.Key == "" {
		t.Errorf("%v; want a limit of %d %s", err, limit, what)
	}
}

// manyDevice is the n-th of many devices, manyHost the n-th of many hosts.
func manyDevice(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }
func manyHost(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, byte(n >> 16), byte(n >> 8), byte(n)})
}

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

// The addresses of one fault, at the sender and at the receiver.
func TestAddressesOfAFaultUpToTheLimit(t *testing.T) {
	f := FaultRecord{Op: Put, Device: devID(0), Port: "Ethernet1", Why: 1, Since: t0}
	for n := range MaxFaultAddrs {
		f.Addrs = append(f.Addrs, manyHost(n))
	}
	u := &Update{Origin: devID(0), Epoch: 1, Seq: 1, Faults: []FaultRecord{f}}
	frame := frameOf(t, u)
	if m, err := Decode(frame); err != nil || len(m.(*Update).Faults[0].Addrs) != MaxFaultAddrs {
		t.Fatalf("at the limit: %v", err)
	}
	u.Faults[0].Addrs = append(u.Faults[0].Addrs, manyHost(MaxFaultAddrs))
	_, err := Encode(u)
	isLimit(t, err, "fault addresses", MaxFaultAddrs)
	// One more, as another implementation might send it: the TLV is the last one.
	at := len(frame) - 5*MaxFaultAddrs - 8 - 1 - len(f.Port) - 5 - 2 - tlvHeaderLen
	frame = relength(append(frame, 4, 20, 9, 9, 9))
	n := len(frame) - at - tlvHeaderLen
	frame[at+1], frame[at+2], frame[at+3] = byte(n>>16), byte(n>>8), byte(n)
	if _, err := Decode(frame); codeOf(err) != CodeMalformed || !strings.Contains(err.Error(), "more than 16384") {
		t.Errorf("one more: %v", err)
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
		if _, err := ParseHeader(h, limit); codeOf(err) != CodeLength {
			t.Errorf("%d bytes: %v", limit+1, err)
		}
	}
	// A zone that fits the largest message is taken, one member more is not.
	r := bigReflector(t, ReflectorConfig{})
	z := zone.Zone{Name: "large"}
	for n := 0; n < 149_000 || fitsMessage(&z) == nil; n++ {
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

// The lengths of names, as the codec takes them in either direction.
func TestNamesUpToTheLimit(t *testing.T) {
	update := func(zoneLen, portLen, nqnLen int) *Update {
		h := hostAt(hostIP(0), devID(0), strings.Repeat("p", portLen))
		h.NQN = strings.Repeat("n", nqnLen)
		return &Update{Origin: devID(0), Zones: []ZoneRecord{{Op: Put, Zone: zone.Zone{Name: strings.Repeat("z", zoneLen)}}}, Hosts: []HostRecord{{Op: Put, Host: h}}}
	}
	if _, err := Decode(frameOf(t, update(63, 63, 255))); err != nil {
		t.Error(err)
	}
	for _, n := range [][3]int{{64, 63, 255}, {63, 64, 255}, {63, 63, 256}, {0, 63, 255}, {63, 0, 255}} {
		if _, err := Encode(update(n[0], n[1], n[2])); codeOf(err) != CodeMalformed {
			t.Errorf("names of %v bytes: %v", n, err)
		}
	}
}

// A client has so many reflectors, and takes from them so much; what is known can change.
func TestAClientTakesSoMuch(t *testing.T) {
	c := NewClient(devID(0), 7)
	c.learned.most = room{hosts: 2, zones: 2, members: 3, faults: 1}
	refl := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(200 + n)}) }
	for n := range MaxReflectors {
		for _, d := range c.Up(refl(n), t0) {
			if _, bad := d.Msg.(*Notification); bad {
				t.Fatalf("reflector %d: %+v", n, d.Msg)
			}
		}
	}
	out := c.Up(refl(MaxReflectors), t0)
	if n, ok := out[0].Msg.(*Notification); !ok || n.Code != CodeLimit || c.Counters().ReflectorsRefused != 1 {
		t.Errorf("one reflector more: %+v", out)
	}
	seq := uint64(0)
	say := func(u Update) (Applied, error) {
		seq++
		u.Origin, u.Epoch, u.Seq = refl(0), 3, seq
		return c.Receive(refl(0), &u, t0)
	}
	host := func(n int) HostRecord {
		return HostRecord{Op: Put, Host: hostAt(hostIP(n), devID(1), "Ethernet1")}
	}
	fault := func(port string) FaultRecord {
		return FaultRecord{Op: Put, Device: devID(1), Port: port, Why: 1, Since: t0, Addrs: []netip.Addr{hostIP(0)}}
	}
	z := func(name string, members ...int) ZoneRecord {
		r := ZoneRecord{Op: Put, Zone: zone.Zone{Name: name}}
		for _, m := range members {
			r.Zone.Members = append(r.Zone.Members, addrMember(hostIP(m)))
		}
		return r
	}
	if _, err := say(Update{Zones: []ZoneRecord{z("a", 1, 2), z("b", 3)}, Hosts: []HostRecord{host(0), host(1)}, Faults: []FaultRecord{fault("Ethernet1")}}); err != nil {
		t.Fatal(err)
	}
	for what, u := range map[string]Update{
		"hosts":       {Hosts: []HostRecord{host(2)}},
		"zones":       {Zones: []ZoneRecord{z("c")}},
		"memberships": {Zones: []ZoneRecord{z("b", 3, 4)}},
		"faults":      {Faults: []FaultRecord{fault("Ethernet2")}},
	} {
		_, err := say(u)
		l, ok := errors.AsType[*LimitError](err)
		if !ok || l.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c.Counters().OverLimit != 4 {
		t.Errorf("%d counted", c.Counters().OverLimit)
	}
	changed := host(0)
	changed.Host.Service.Port = 9
	a, err := say(Update{Zones: []ZoneRecord{z("a", 1, 5)}, Hosts: []HostRecord{changed}})
	if err != nil || len(a.Hosts) != 1 || c.learned.list[0].zones.members != 3 {
		t.Errorf("what is known cannot change: %v, %+v, %d memberships", err, a.Hosts, c.learned.list[0].zones.members)
	}
}

// A peer beyond the number of sessions is told so, and counted; the others go on.
func TestSessionsUpToTheLimit(t *testing.T) {
	l := startLoopback(t, func(c *ServerConfig) { c.MaxPeers = 2 })
	defer l.stop()
	var conns []net.Conn
	for i := range 2 {
		nc, _ := connect(t, l, devID(i))
		conns = append(conns, nc)
		<-l.peers
	}
	nc, err := tryConnect(t, l, devID(2)) // it knows the password; then it is told
	if told, ok := errors.AsType[*PeerError](err); !ok || told.Code != CodeLimit {
		t.Errorf("one more: %v", err)
	}
	_ = nc.Close()
	for l.server.Counters().LimitRefused == 0 { // counted when the peer has been given time to read why
		runtime.Gosched()
	}
	if n := l.server.Counters(); n.LimitRefused != 1 || n.Established != 2 {
		t.Errorf("%+v", n)
	}
	for _, c := range conns {
		_ = c.Close()
	}
}
