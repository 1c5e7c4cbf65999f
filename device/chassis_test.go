package device

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A machine whose LLDP has another chassis id from one frame to the next, with a withdrawal of the
// old one or without, is the machine that it was: its peers hear of no loss, neither then, nor when
// the old one's time to live is over, nor after a restart.
func TestAChassisIDThatChangesIsNoOtherMachine(t *testing.T) {
	const self = "h1" // from where all frames come
	for _, ids := range [][2]string{{self, "x"}, {"x", self}, {"x", "y"}} {
		for _, bye := range []bool{true, false} {
			name := fmt.Sprintf("%s then %s, withdrawn %t", ids[0], ids[1], bye)
			b := newBareCore(t, true)
			b.carrier("eth1", true, fabric.PortAdded)
			b.carrier("eth2", true, fabric.PortAdded)
			b.Start(b.now)
			says := func(chassis string, ttl uint16) {
				pdu, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{MAC: hostMAC(chassis), PortID: snsd.AgentPortID("eth0", 1), TTL: ttl,
					Registration: snsd.Registration{Addr: netip.MustParseAddr(i1), Subscribes: true, ProtoVer: snsd.DefaultProtoVer}})
				if err != nil {
					t.Fatal(err)
				}
				b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC(self), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: pdu}, b.now)
			}
			// follow lets time pass, acks everything, and reports what the peer is told.
			follow := func(d time.Duration, hear func()) {
				for end := b.now.Add(d); b.now.Before(end); b.now = b.now.Add(5 * time.Millisecond) {
					if b.now.UnixMilli()%10_000 == 0 {
						hear()
					}
					b.Tick(b.now)
					for _, n := range b.notify.Notices() {
						if n.Host.String() == i2 && n.State == snsd.Inactive {
							t.Errorf("%s: the peer is told %s %s", name, n.State, n.Reason)
							return
						}
						b.notify.Ack(n.Port, snsd.Ack{Host: n.Host, Subject: n.Subject, Seq: n.Seq}, b.now)
					}
				}
			}
			b.register("h2", "eth2", i2)
			peer := b.heard
			says(ids[0], 120)
			follow(time.Second, func() {})
			if bye {
				says(ids[0], 0)
				follow(5*time.Millisecond, func() {})
			}
			both := func() { says(ids[1], 120); b.Frame(peer, b.now) }
			both()
			follow(130*time.Second, both)
			b.restart(true, "eth1", "eth2")
			both()
			follow(time.Second, both)
			if h := b.local[zone.HostKey{Addr: netip.MustParseAddr(i1), Device: bareSelf, Port: "eth1"}]; h.MAC != hostMAC(ids[0]) {
				t.Errorf("%s: it is known by %s", name, h.MAC)
			}
			if c := b.counters.Conflicts; c != 0 {
				t.Errorf("%s: %d conflicts", name, c)
			}
		}
	}
}
