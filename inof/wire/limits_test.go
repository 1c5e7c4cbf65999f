package wire_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// The addresses of one fault, at the sender and at the receiver.
func TestAddressesOfAFaultUpToTheLimit(t *testing.T) {
	f := wire.DownRecord{Device: inoftest.DevID(0), Port: "Ethernet1", Down: zone.Down{Why: 1, Since: inoftest.T0}}
	for n := range wire.MaxDownAddrs {
		f.Addrs = append(f.Addrs, inoftest.ManyHost(n))
	}
	u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, Downs: []wire.DownRecord{f}}
	frame := inoftest.FrameOf(t, u)
	if m, err := wire.Decode(frame); err != nil || len(m.(*wire.Update).Downs[0].Addrs) != wire.MaxDownAddrs {
		t.Fatalf("at the limit: %v", err)
	}
	u.Downs[0].Addrs = append(u.Downs[0].Addrs, inoftest.ManyHost(wire.MaxDownAddrs))
	_, err := wire.Encode(u)
	inoftest.IsLimit(t, err, "addresses", wire.MaxDownAddrs)
	// One more, as another implementation might send it: the TLV is the last one.
	at := len(frame) - 5*wire.MaxDownAddrs - 1 - len(f.Port) - 5 - 8 - 1 - 4
	frame = inoftest.Relength(append(frame, 4, 20, 9, 9, 9))
	n := len(frame) - at - 4
	frame[at+1], frame[at+2], frame[at+3] = byte(n>>16), byte(n>>8), byte(n)
	if _, err := wire.Decode(frame); wire.CodeOf(err) != wire.CodeMalformed || !strings.Contains(err.Error(), "more than 16384") {
		t.Errorf("one more: %v", err)
	}
}

// The largest zone that the rules of zones allow is told; of one that is larger it is counted that
// it is not.
func TestTheLargestZoneFitsAMessage(t *testing.T) {
	z := zone.Zone{Name: strings.Repeat("z", zone.MaxName)}
	for n := 0; n < 149_000 || z.Size() <= zone.MaxSize; n++ {
		z.Members = append(z.Members, inoftest.AddrMember(inoftest.ManyHost(2*n)))
	}
	for left, most := range []int{0, 1} {
		b := wire.Batch{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: z.Name, Members: z.Members[:len(z.Members)-1+left]}}}}
		var large uint64
		us := b.Updates(&wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1}, &large)
		if large != uint64(most) || len(us) != 1-most {
			t.Fatalf("%d members: %d messages, %d too large", len(b.Zones[0].Zone.Members), len(us), large)
		}
		for _, u := range us {
			if e, err := wire.Encode(u); err != nil || e.Len() > wire.MaxMessage {
				t.Errorf("%d members: %v", len(b.Zones[0].Zone.Members), err)
			}
		}
	}
}

// A Bound with as much as may be in it is told.
func TestTheLargestBoundFitsAMessage(t *testing.T) {
	var m wire.Bound
	for i := range wire.MaxBound {
		m.Prefixes = append(m.Prefixes, netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)}), 128))
		m.NQNs = append(m.NQNs, strings.Repeat("n", wire.MaxBoundName))
		h := wire.DeclaredHost{Addr: m.Prefixes[i].Addr(), Service: snsd.Service{NQN: strings.Repeat("n", snsd.MaxNQN)}}
		for range wire.MaxDeclaredPorts {
			h.Ports = append(h.Ports, strings.Repeat("p", fabric.MaxPortName))
		}
		m.Hosts = append(m.Hosts, h)
	}
	if _, err := wire.Decode(inoftest.FrameOf(t, &m)); err != nil {
		t.Error(err)
	}
	m.Hosts = append(m.Hosts, m.Hosts[0])
	if _, err := wire.Encode(&m); wire.CodeOf(err) != wire.CodeMalformed {
		t.Errorf("one more: %v", err)
	}
}

// The lengths of names, as the codec takes them in either direction.
func TestNamesUpToTheLimit(t *testing.T) {
	update := func(zoneLen, portLen, nqnLen int) *wire.Update {
		h := inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), strings.Repeat("p", portLen))
		h.NQN = strings.Repeat("n", nqnLen)
		return &wire.Update{Origin: inoftest.DevID(0), Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: strings.Repeat("z", zoneLen)}}}, Hosts: []wire.HostRecord{{Op: wire.Put, Host: h}}}
	}
	if _, err := wire.Decode(inoftest.FrameOf(t, update(63, 63, 255))); err != nil {
		t.Error(err)
	}
	for _, n := range [][3]int{{64, 63, 255}, {63, 64, 255}, {63, 63, 256}, {0, 63, 255}, {63, 0, 255}} {
		if _, err := wire.Encode(update(n[0], n[1], n[2])); wire.CodeOf(err) != wire.CodeMalformed {
			t.Errorf("names of %v bytes: %v", n, err)
		}
	}
}
