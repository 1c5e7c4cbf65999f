package hostagent

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/nvmetcp"
	"github.com/openinof/inof/snsd"
)

// connecting is a bench without controllers that connects.
func connecting(t *testing.T, find Finder) *bench {
	b := &bench{t: t, kernel: hostkernel.NewFake()}
	p := unfenced()
	p.Connect, p.Options = true, hostOptions
	b.start(p)
	b.find = find
	return b
}

func (b *bench) connect(n snsd.Notice, wait time.Duration) {
	b.Connect(n, time.Now())
	time.Sleep(wait)
	synctest.Wait()
}

func TestTargetsAreConnectedUntilItIsDone(t *testing.T) {
	at := netip.AddrPortFrom(array1, 4420)
	bubble(t, "named by the notice", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 1), 500*time.Millisecond) // refused: it tries again
		b.kernel.Serve(at, nqn)
		time.Sleep(time.Second)
		b.want("live -")
		if c, _ := b.kernel.Controller(0); c.Owner != DefaultOwner || c.Source != self1 || c.Target != at {
			t.Errorf("%+v", c)
		}
		// Again, as after a restart of the switch: it is there.
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 2), time.Minute)
		if n := b.calls("connect"); n != 2 {
			t.Errorf("%d connects", n)
		}
		// Somebody disconnects it: it comes back after the restraint.
		c, _ := b.kernel.Controller(0)
		_ = b.kernel.Delete(&c)
		time.Sleep(b.Policy().Restraint - time.Second)
		b.want("- -")
		time.Sleep(refreshEvery + time.Second + 100*time.Millisecond)
		synctest.Wait()
		b.want("live -")
	})
	bubble(t, "not wanted any more", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 1), 500*time.Millisecond)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 2), 0)
		b.kernel.Serve(at, nqn)
		time.Sleep(5 * time.Minute)
		b.want("- -")
	})
	bubble(t, "all subsystems of the port", func(t *testing.T) {
		b := connecting(t, func(context.Context, netip.Addr, netip.Addr, hostkernel.Connect) ([]Found, error) {
			return []Found{{"nqn.a", 4420}, {"nqn.b", 4420}}, nil
		})
		defer b.stop()
		b.kernel.Serve(at, "nqn.a", "nqn.b")
		n := word(array1, snsd.Active, snsd.ReasonNone, 1)
		n.Service.NQN = ""
		b.connect(n, time.Second)
		b.want("live live")
	})
	bubble(t, "all subsystems of the port, over RDMA", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.kernel.Serve(at, "nqn.a", "nqn.b")
		n := word(array1, snsd.Active, snsd.ReasonNone, 1)
		n.Service.NQN, n.Service.Protocol = "", snsd.ProtocolRoCE
		b.connect(n, time.Second)
		list, _ := b.kernel.Controllers()
		if len(list) != 2 || list[0].Transport != "rdma" || list[0].Discovery || list[1].Discovery || list[0].NQN == list[1].NQN {
			t.Errorf("%+v; %s", list, b.said())
		}
	})
	bubble(t, "over RDMA nobody answers", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Active, snsd.ReasonNone, 1)
		n.Service.NQN, n.Service.Protocol = "", snsd.ProtocolRoCE
		b.connect(n, 10*time.Second)
		if said := b.said(); !strings.Contains(said, "discovery at "+array1.String()) || !strings.Contains(said, "timed out") {
			t.Error(said)
		}
		b.kernel.Serve(at, nqn)
		b.kernel.Mend(array1)
		time.Sleep(10 * time.Second)
		if list, _ := b.kernel.Controllers(); len(list) != 1 || list[0].NQN != nqn {
			t.Errorf("%+v; %s", list, b.said())
		}
	})
	bubble(t, "an earlier agent ended while it asked", func(t *testing.T) {
		b := &bench{t: t, kernel: hostkernel.NewFake()}
		b.kernel.Serve(at, nqn)
		for _, owner := range []string{DefaultOwner, "stacd"} {
			c := hostOptions
			c.Transport, c.NQN, c.Target, c.Source = "rdma", nvmetcp.DiscoveryNQN, at, self1
			n, err := b.kernel.Connect(&c)
			if err != nil {
				t.Fatal(err)
			}
			_ = b.kernel.Claim(n, owner)
		}
		b.start(unfenced())
		defer b.stop()
		time.Sleep(time.Second)
		if list, _ := b.kernel.Controllers(); len(list) != 1 || list[0].Owner != "stacd" {
			t.Errorf("%+v", list)
		}
	})
	bubble(t, "excluded", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.kernel.Serve(at, nqn)
		b.kernel.Excluded = hostkernel.Exclusions{{"traddr": array1.String()}}
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 1), time.Minute)
		b.want("- -")
		if !strings.Contains(b.said(), "excluded") {
			t.Error(b.said())
		}
	})
	bubble(t, "no name and no discovery", func(t *testing.T) {
		b := connecting(t, func(context.Context, netip.Addr, netip.Addr, hostkernel.Connect) ([]Found, error) {
			return nil, errors.New("nobody there")
		})
		defer b.stop()
		n := word(array1, snsd.Active, snsd.ReasonNone, 1)
		n.Service.NQN = ""
		b.connect(n, 10*time.Minute)
		if said := b.said(); strings.Count(said, "nobody there") < 10 || strings.Count(said, "nobody there") > 20 {
			t.Errorf("%d tries in 10 minutes: %s", strings.Count(said, "nobody there"), said)
		}
	})
	bubble(t, "silent while others connect", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		for i := range 20 {
			far := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
			b.kernel.Break(far)
			b.Connect(word(far, snsd.Active, snsd.ReasonNone, 1), time.Now())
		}
		b.kernel.Serve(at, nqn)
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 1), 15*time.Second)
		b.want("live -")
		for i := range 20 {
			b.kernel.Mend(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
		}
	})
}

// A connection that comes about after its target was withdrawn is deleted as that notice says.
func TestALateConnectionFollowsTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, func(p *Policy) { p.Connect = true })
		defer b.stop()
		c, _ := b.kernel.Controller(0)
		_ = b.kernel.Delete(&c)
		b.Connect(word(array1, snsd.Active, snsd.ReasonNone, 1), time.Now())
		time.Sleep(10 * time.Millisecond) // it is on its way
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 2), 5*time.Second)
		b.want("- live")
	})
}

// A kernel that cannot, or rights that are missing: clear words, and the rest goes on.
func TestWhatTheKernelRefusesIsSaid(t *testing.T) {
	for want, set := range map[string]func(*hostkernel.Fake){
		"INET_DIAG_DESTROY": func(f *hostkernel.Fake) { f.NoDestroy = true },
		"permission denied": func(f *hostkernel.Fake) { f.Forbidden = true },
	} {
		bubble(t, want, func(t *testing.T) {
			b := newBench(t, "", nil)
			defer b.stop()
			set(b.kernel)
			b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Second)
			if !strings.Contains(b.said(), want) {
				t.Errorf("%s; %v", b.said(), b.kernel.Calls())
			}
		})
	}
	bubble(t, "without destroy it is reset", func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		b.kernel.NoDestroy = true
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Second)
		b.want("resetting live")
	})
	bubble(t, "no NVMe", func(t *testing.T) {
		b := connecting(t, nil)
		defer b.stop()
		b.kernel.NoNVMe = true
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Second)
		b.connect(word(array1, snsd.Active, snsd.ReasonNone, 2), time.Second)
		if !strings.Contains(b.said(), "no NVMe") && !strings.Contains(b.said(), "not exist") {
			t.Error(b.said())
		}
	})
}
