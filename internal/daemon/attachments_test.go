package daemon

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
