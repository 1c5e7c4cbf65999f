package inof

import (
	"strings"
	"testing"

	"github.com/openinof/inof/zone"
)

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
	at := len(frame) - 5*MaxFaultAddrs - 8 - 1 - len(f.Port) - 5 - 2 - 4
	frame = relength(append(frame, 4, 20, 9, 9, 9))
	n := len(frame) - at - 4
	frame[at+1], frame[at+2], frame[at+3] = byte(n>>16), byte(n>>8), byte(n)
	if _, err := Decode(frame); CodeOf(err) != CodeMalformed || !strings.Contains(err.Error(), "more than 16384") {
		t.Errorf("one more: %v", err)
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
		if _, err := Encode(update(n[0], n[1], n[2])); CodeOf(err) != CodeMalformed {
			t.Errorf("names of %v bytes: %v", n, err)
		}
	}
}
