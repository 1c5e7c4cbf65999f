package daemon

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// bonded puts a second port of a host on a device: one machine, one address.
func (f *testFabric) bonded(host, nqn, addr, dev, port string) *labHost {
	f.t.Helper()
	agent, err := snsd.NewAgent(snsd.AgentConfig{Interface: "eth0", MAC: hostMAC(host), Addrs: []netip.Addr{netip.MustParseAddr(addr)}, Subscribes: true,
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: nqn}})
	if err != nil {
		f.t.Fatal(err)
	}
	return f.hostOf(host+"+"+dev, dev, port, agent)
}

// A bond over two switches (MLAG) registers on both with one MAC address and one address. What
// answers on one port for the whole machine may leave by the other one.
func TestABondOverTwoSwitchesIsOneHostWithTwoPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.bonded("t3", "nqn.2026-11.test:t3", t3, "tor2", "eth3")
		settle(2 * time.Second)
		f.expectAnything()
		about := func(step, want string) {
			t.Helper()
			got := slices.DeleteFunc(f.hosts["i1"].heard(), func(s string) bool { return s == t3+active })
			if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("%s: a host of its zone was told %q, want %q", step, got, want)
			}
		}
		cable := func(dev, port string, up bool) {
			if err := f.nodes[dev].fake.SetCarrier(port, up); err != nil {
				t.Fatal(err)
			}
			settle(2 * time.Second)
		}
		settle(5 * time.Minute)
		about("both ports are well", "")
		f.hosts["t3"].silent(true) // its acks leave by the other port, and so does what answers ARP
		settle(3 * time.Minute)
		about("nothing answers on one of them", "")
		f.hosts["t3"].silent(false)
		settle(time.Minute)
		cable("tor3", "eth2", false)
		about("one port fails", "")
		cable("tor2", "eth3", false)
		about("the other one fails too", t3+linkDown)
		cable("tor3", "eth2", true)
		cable("tor2", "eth3", true)
		f.hosts["i1"].heard()
		cable("tor2", "eth3", false)
		about("the second port fails", "")
	})
}

// Another NQN is another machine: one that copies the MAC address and the address of a host hides
// no fault of it.
func TestAnotherNQNIsNoSecondPortOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.bonded("t3", "nqn.2026-11.test:another", t3, "tor2", "eth3")
		settle(time.Minute)
		f.expectHolder(t3, "10.0.0.3/eth2")
		f.expectAnything()
		if err := f.nodes["tor3"].fake.SetCarrier("eth2", false); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		if got := f.hosts["i1"].heard(); len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return s != t3+active }) {
			t.Errorf("a host of its zone was told %q, want that it has lost the path", got)
		}
	})
}

// An address that moves and moves back while the switch that had it rests from asking is where it
// was again: its faults are told.
func TestAnAddressThatMovesBackAtOnceHasItsFaultsTold(t *testing.T) {
	for _, again := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := threeSwitches(t)
			other := f.host("other", "tor2", "eth3", t3, snsd.RoleTarget)
			settle(time.Minute) // both answer: the switches of both have asked, and rest for long
			other.mute()
			settle(4 * time.Minute)
			other.muted.Store(false)
			f.hosts["t3"].mute() // it moves
			settle(150 * time.Second)
			f.expectHolder(t3, "10.0.0.2/eth3")
			f.hosts["t3"].muted.Store(false)
			settle(time.Minute) // both claim it, the other one answers
			f.expectHolder(t3, "10.0.0.2/eth3")
			other.mute() // it moves back
			settle(again)
			f.expectAnything()
			if err := f.nodes["tor3"].fake.SetCarrier("eth2", false); err != nil {
				t.Fatal(err)
			}
			settle(time.Second)
			if got := f.hosts["i1"].heard(); !slices.Contains(got, t3+linkDown) {
				t.Errorf("%v after it has moved back its port fails: a host of its zone was told %q, want %q", again, got, t3+linkDown)
			}
		})
	}
}

// An LLDP daemon whose link flaps, or that is another chassis now, says that it ends and registers
// the same address a few ms later: no host is told that it has left. One that does end is told of
// when that time is over.
func TestAWithdrawalAndANewRegistrationAreOneChange(t *testing.T) {
	pdu := func(name string, number int, ttl uint16) []byte {
		b, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{MAC: hostMAC(name), PortID: snsd.AgentPortID("eth0", number), TTL: ttl,
			Registration: snsd.Registration{Addr: netip.MustParseAddr(t3), Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-11.test:t3"}}})
		if err != nil {
			t.Fatal(err)
		}
		return append(fabric.AppendEthernet(nil, fabric.MACNearestBridge, hostMAC(name), fabric.EtherTypeLLDP), b...)
	}
	for _, c := range []struct {
		name   string
		number int // that it has after it; 0: it is gone, -1: its link is
		wait   time.Duration
		want   []string
	}{
		{"the same name", 1, time.Minute, []string{}},
		{"another name", 2, time.Minute, []string{}},
		{"none", 0, 20 * time.Millisecond, []string{t3 + agedOut}},
		{"no link", -1, 5 * time.Millisecond, []string{t3 + linkDown}}, // waits for nothing
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := threeSwitches(t)
				f.expectAnything()
				n := f.nodes["tor3"].fake
				inject := func(b []byte) {
					if err := n.Inject("eth2", b); err != nil {
						t.Fatal(err)
					}
				}
				f.hosts["t3"].mute()
				inject(pdu("t3", 1, 0))
				settle(5 * time.Millisecond)
				if c.number > 0 {
					inject(pdu("t3", c.number, 120))
				}
				if c.number < 0 {
					if err := n.SetCarrier("eth2", false); err != nil {
						t.Fatal(err)
					}
				}
				settle(c.wait)
				if got := f.hosts["i1"].heard(); !slices.Equal(got, c.want) {
					t.Errorf("a host of its zone was told %q, want %q", got, c.want)
				}
			})
		})
	}
}
