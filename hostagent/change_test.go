package hostagent

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// A reload names other ports: those that are new register once they are there, those that are not
// named any more say good-bye, and nothing is disconnected.
func TestPortsComeAndGoByConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, cablePort("eth1", self1))
		if err := h.dp.SetAccess([]string{"eth1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.said("eth1")
		one, two := cablePort("eth1", self1), cablePort("eth2", self2)
		h.Change(t.Context(), []Port{one, two})
		if err := h.dp.SetAccess([]string{"eth1", "eth2"}); err != nil {
			t.Fatal(err)
		}
		h.wantSaid("eth1")
		h.wantSaid("eth2", "+198.51.100.1", "?198.51.100.1")
		h.hear("eth2", word(array2, snsd.Active, snsd.ReasonNone, 7))
		h.wantSaid("eth2", "!198.51.100.7/7")

		h.Change(t.Context(), []Port{one})
		h.wantSaid("eth2", "-1")
		if err := h.dp.SetAccess([]string{"eth1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s, err := h.Status(t.Context()); err != nil || len(s.Ports) != 1 {
			t.Errorf("%+v, %v", s.Ports, err)
		}
		for n := range 2 {
			if c, err := h.kernel.Controller(n); err != nil || c.State != hostkernel.Live {
				t.Errorf("nvme%d is %s, %v", n, c.State, err)
			}
		}
		h.Change(t.Context(), []Port{one, two}) // and once more
		if err := h.dp.SetAccess([]string{"eth1", "eth2"}); err != nil {
			t.Fatal(err)
		}
		h.wantSaid("eth2", "+198.51.100.1", "?198.51.100.1")
	})
}

// An interface without an address says nothing; with one it registers and asks at once, and when it
// loses it again says good-bye.
func TestAddressesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, cablePort("eth1"))
		h.wantSaid("eth1")
		h.Change(t.Context(), []Port{cablePort("eth1", self1)})
		h.wantSaid("eth1", "+192.0.2.1", "?192.0.2.1")
		h.Change(t.Context(), []Port{cablePort("eth1", self1)}) // nothing is new
		h.wantSaid("eth1")
		h.Change(t.Context(), []Port{cablePort("eth1")})
		h.wantSaid("eth1", "-1")
		if err := h.dp.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.Change(t.Context(), []Port{cablePort("eth1", self1)})
		h.wantSaid("eth1")
		if err := h.dp.SetCarrier("eth1", true); err != nil {
			t.Fatal(err)
		}
		h.wantSaid("eth1", "+192.0.2.1", "?192.0.2.1")
	})
}

// One address of several goes, or serves something else: what was told to the others is still
// known, so that the same notice again is no news.
func TestAChangeOfOneAddressForgetsNothingOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := netip.MustParseAddr("192.0.2.9")
		port := func(name string, addrs ...netip.Addr) Port {
			p := cablePort("eth1", addrs...)
			p.Services = map[netip.Addr]snsd.Service{}
			for _, a := range addrs {
				p.Services[a] = snsd.Service{Role: snsd.RoleBoth, Protocol: snsd.ProtocolTCP, NQN: name}
			}
			return p
		}
		h := newHost(t, port("nqn.x", other, self1))
		n := word(array1, snsd.Active, snsd.ReasonNone, 7)
		h.hear("eth1", n)
		h.wantSaid("eth1", "+192.0.2.9 nqn.x", "+192.0.2.1 nqn.x", "?192.0.2.9", "?192.0.2.1", "!192.0.2.7/7")
		h.Change(t.Context(), []Port{port("nqn.x", self1)})
		h.wantSaid("eth1", "-1", "+192.0.2.1 nqn.x", "?192.0.2.1")
		h.Change(t.Context(), []Port{port("nqn.y", self1)})
		h.wantSaid("eth1", "+192.0.2.1 nqn.y", "?192.0.2.1")
		h.hear("eth1", n)
		synctest.Wait()
		if s, err := h.Status(t.Context()); err != nil || s.Ports[0].Counters.Duplicates != 1 || len(s.Ports[0].Peers) != 1 {
			t.Errorf("%+v, %v", s.Ports, err)
		}
		h.Change(t.Context(), []Port{port("nqn\x01", self1)}) // cannot be: it is said, and the port goes on as it was
		h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 8))
		if said := h.said("eth1"); len(said) == 0 || said[len(said)-1] != "!192.0.2.7/8" {
			t.Errorf("%q", said)
		}
	})
}

// An agent that has ended keeps nobody waiting who would change it.
func TestAChangeDoesNotWaitForAnAgentThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(fabric.NewFake(fabric.FakeConfig{}), nil, nil, func(Line) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Run(ctx); err != nil {
			t.Fatal(err)
		}
		a.Change(t.Context(), []Port{cablePort("eth1", self1)})
	})
}
