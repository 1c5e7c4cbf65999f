package hostagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// fakeFencer answers after a time, and writes down what it was asked for.
type fakeFencer struct {
	after time.Duration
	fence snsd.Fence
	err   error
	works bool // it says at once that it works on it

	mu    sync.Mutex
	calls []string
	b     *bench
}

func (f *fakeFencer) note(what string, p FencePair) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := func(cs []hostkernel.Controller) (list []string) {
		for i := range cs {
			list = append(list, cs[i].Name())
		}
		return list
	}
	f.calls = append(f.calls, fmt.Sprintf("%s %v-%v %v over %v while %s", what, p.Host, p.Array, names(p.Controllers), names(p.Living), f.b.states()))
}

func (f *fakeFencer) Fence(ctx context.Context, p FencePair, working func()) (snsd.Fence, error) {
	f.note("fence", p)
	if f.works {
		working()
	}
	if !sleep(ctx, f.after) {
		return snsd.Fence{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fence, f.err
}

func (f *fakeFencer) Confirm(_ context.Context, p FencePair) error {
	f.note("confirm", p)
	return nil
}

func (f *fakeFencer) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.calls, " | ")
}

func withFence(n snsd.Notice, f *snsd.Fence) snsd.Notice {
	n.Fence = f
	return n
}

func (b *bench) wantSaid(parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if !strings.Contains(b.said(), p) {
			b.t.Errorf("said %q, want %q in it", b.said(), p)
		}
	}
}

func mode(m FenceMode) func(*Policy) { return func(p *Policy) { p.Fence = m } }

// A path is left one second after the switch has confirmed that it blocks, not before.
func TestAPathIsLeftAfterTheSwitchHasFencedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", mode(FencePrefer))
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1)
		b.tell(withFence(n, announced), 300*time.Millisecond)
		b.Fenced(withFence(n, byNetwork))
		time.Sleep(900 * time.Millisecond)
		b.want("live live")
		time.Sleep(200 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("failover", "fenced: network by switch in 10ms")
		if b.calls("keep-alive") > 0 {
			t.Errorf("it was asked: %v", b.kernel.Calls())
		}
	})
}

// The target's agent answers over the living path; it may lift its block once the kernel has left.
func TestAFencerIsAskedAndLaterTold(t *testing.T) {
	for _, m := range []FenceMode{FencePrefer, FenceRequire} {
		bubble(t, m.String(), func(t *testing.T) {
			fencer := &fakeFencer{after: 40 * time.Millisecond, fence: *byTarget}
			b := newBenchWith(t, fencer, mode(m))
			defer b.stop()
			b.kernel.Break(array1)
			b.tell(withFence(word(array1, snsd.Inactive, snsd.ReasonPFCStorm, 1), announced), 39*time.Millisecond)
			b.want("live live")
			time.Sleep(200 * time.Millisecond)
			b.want("connecting live")
			b.wantSaid("fenced: array by target in 12ms")
			if want := fmt.Sprintf("fence %v-%v [nvme0] over [nvme1] while live live | confirm %v-%v [nvme0] over [nvme1] while connecting live", self1, array1, self1, array1); fencer.said() != want {
				t.Errorf("the fencer was asked for %s, want %s", fencer.said(), want)
			}
		})
	}
}

// An array that works on a fence is waited for longer than fence-wait: a write that is in
// execution there would be sent again meanwhile, whatever the switch has fenced.
func TestAnArrayThatWorksIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fencer := &fakeFencer{after: 4 * time.Second, fence: *byTarget, works: true}
		b := newBenchWith(t, fencer, mode(FencePrefer))
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1)
		b.tell(withFence(n, announced), 100*time.Millisecond)
		b.Fenced(withFence(n, byNetwork))
		time.Sleep(3800 * time.Millisecond)
		b.want("live live")
		time.Sleep(200 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("fenced: array by target in 12ms")
	})
}

// Without a fence a path stays with require, and what the kernel does then is reported as it is.
// Nothing that is asked of the path makes the kernel leave it.
func TestRequireStaysUntilTheKernelLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fencer := &fakeFencer{err: errors.New("nothing listens there")}
		b := newBenchWith(t, fencer, mode(FenceRequire))
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(withFence(word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1), announced), 30*time.Second)
		b.want("live live")
		b.wantSaid("stay", "not fenced: nothing listens there; nothing was confirmed within 1s")
		b.kernel.Lose(0)
		time.Sleep(time.Second)
		b.want("connecting live")
		b.wantSaid("kernel-left", "not fenced: the kernel left")
		if b.calls("destroy")+b.calls("keep-alive") > 0 || strings.Contains(fencer.said(), "confirm") {
			t.Errorf("%v, %s", b.kernel.Calls(), fencer.said())
		}
	})
}

// A Fencer that could not is asked again while a path stays.
func TestRequireAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fencer := &fakeFencer{err: errors.New("commands are still in execution"), fence: *byTarget}
		b := newBenchWith(t, fencer, mode(FenceRequire))
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(withFence(word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1), announced), 12*time.Second)
		b.want("live live")
		if n := strings.Count(fencer.said(), "fence "); n != 3 {
			t.Errorf("it was asked %d times", n)
		}
		fencer.mu.Lock()
		fencer.err = nil
		fencer.mu.Unlock()
		time.Sleep(askAgain)
		b.want("connecting live")
		b.wantSaid("fenced: array by target")
		if n := strings.Count(fencer.said(), "confirm "); n != 1 {
			t.Errorf("%s", fencer.said())
		}
	})
}

// A fence that comes while a path stays is still its fence.
func TestRequireLeavesOnceThereIsAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", mode(FenceRequire))
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1)
		b.tell(withFence(n, byNetwork), 5*time.Second)
		b.want("live live")
		b.Fenced(withFence(n, byTarget))
		time.Sleep(100 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("stay", "fenced: network by switch", "fenced: array by target")
	})
}

// A packet error is asked for without making the kernel leave, and the silence that follows is no
// fence.
func TestRequireProbesWithoutMakingTheKernelLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", mode(FenceRequire))
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonPacketError, 1), 130*time.Second)
		b.want("live live")
		b.wantSaid("probe", "stay", "the switch announces no fence")
	})
}

// That a path gave no answer must not have the kernel leave it while a fence is waited for.
func TestPreferWaitsForAFenceAfterAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(p *Policy) { p.Fence, p.FenceWait = FencePrefer, 5*time.Second })
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonPacketError, 1)
		b.tell(withFence(n, announced), 4*time.Second)
		b.want("live live")
		b.Fenced(withFence(n, byTarget))
		time.Sleep(100 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("fenced: array by target")
	})
}

// Without any fence prefer asks the path: dead it is left, and one that answers is kept.
func TestPreferAsksThePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", mode(FencePrefer))
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonPFCStorm, 1), 30*time.Second)
		b.want("live live")
		b.wantSaid("kept", "not fenced: the switch announces no fence")
		b.kernel.Break(array2)
		b.tell(word(array2, snsd.Inactive, snsd.ReasonLinkDown, 1), 190*time.Millisecond)
		b.want("live connecting")
		b.wantSaid("failover")
	})
}

// Active ends the waiting; so does the link that is back.
func TestActiveEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fencer := &fakeFencer{after: time.Hour}
		b := newBenchWith(t, fencer, mode(FenceRequire))
		defer b.stop()
		n := word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1)
		b.tell(withFence(n, announced), 900*time.Millisecond)
		b.tell(word(array1, snsd.Active, snsd.ReasonNone, 2), time.Second)
		b.Fenced(withFence(n, byTarget))
		time.Sleep(time.Minute)
		b.want("live live")
		if !strings.Contains(fencer.said(), "confirm") {
			t.Errorf("a block may still stand: %s", fencer.said())
		}
		b.LinkDown([]netip.Addr{self2}, true, time.Now())
		time.Sleep(5 * time.Second)
		b.wantSaid("(own link) nvme1")
		b.LinkUp([]netip.Addr{self2}, time.Now())
		time.Sleep(time.Minute)
		b.want("live live")
	})
}

// The loss of an own link waits for a fence too; without hope of one the path is asked at once.
func TestTheOwnLinkIsFenced(t *testing.T) {
	bubble(t, "by the target's agent", func(t *testing.T) {
		fencer := &fakeFencer{after: 40 * time.Millisecond, fence: *byTarget}
		b := newBenchWith(t, fencer, mode(FencePrefer))
		defer b.stop()
		b.kernel.Break(array1)
		b.LinkDown([]netip.Addr{self1}, false, time.Now())
		time.Sleep(100 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("(own link) nvme0", "fenced: array by target")
	})
	bubble(t, "by the switch, heard of at the other port", func(t *testing.T) {
		b := newBench(t, "", mode(FencePrefer))
		defer b.stop()
		b.kernel.Break(array1)
		b.LinkDown([]netip.Addr{self1}, true, time.Now())
		time.Sleep(100 * time.Millisecond)
		b.Fenced(withFence(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), byTarget))
		time.Sleep(100 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("fenced: array by target")
	})
	bubble(t, "not at all", func(t *testing.T) {
		b := newBench(t, "", mode(FencePrefer))
		defer b.stop()
		b.kernel.Break(array1)
		b.LinkDown([]netip.Addr{self1}, false, time.Now())
		time.Sleep(190 * time.Millisecond)
		b.want("connecting live")
		b.wantSaid("not fenced: the switch announces no fence")
	})
}

// All controllers of a target go with its sockets, so each of them must be fenced.
func TestTheLowestLevelOfATargetCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(p *Policy) {
			p.Fence, p.Settle = FenceRequire, []Settle{{NQN: nqn, Time: 0}}
		})
		defer b.stop()
		const other = "nqn.2026-11.net.example:other"
		at := netip.AddrPortFrom(array1, 4420)
		b.kernel.Serve(at, nqn, other)
		c := hostOptions
		c.Transport, c.NQN, c.Target, c.Source = "tcp", other, at, self1
		if _, err := b.kernel.Connect(&c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonPacketError, 1)
		b.tell(withFence(n, byNetwork), 10*time.Second)
		b.want("live live")
		b.wantSaid("stay", "nvme0 nvme2")
	})
}

// What is in flight may finish before a controller is deleted, within bounds.
func TestCommandsFinishBeforeADelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, mode(FencePrefer))
		defer b.stop()
		b.kernel.Fly(0, 3)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), 300*time.Millisecond)
		b.want("live live")
		b.kernel.Fly(0, 0)
		time.Sleep(200 * time.Millisecond)
		b.want("- live")
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, mode(FenceRequire))
		defer b.stop()
		b.kernel.Fly(0, 3)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), quiesceWithin+200*time.Millisecond)
		b.want("- live")
	})
	synctest.Test(t, func(t *testing.T) { // it does not answer: it is left first, and that wants a fence
		b := newBench(t, DefaultOwner, mode(FenceRequire))
		defer b.stop()
		b.kernel.Break(array1)
		n := word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1)
		b.tell(withFence(n, announced), 5*time.Second)
		b.want("live live")
		b.Fenced(withFence(n, byTarget))
		time.Sleep(500 * time.Millisecond)
		b.want("- live")
	})
}

// Observing, nothing of the kernel is changed, whatever is told; what would be done is reported.
func TestObservingTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fencer := &fakeFencer{fence: *byTarget}
		b := newBenchWith(t, fencer, func(p *Policy) { p.Observe, p.Connect = true, true })
		defer b.stop()
		b.kernel.Serve(netip.AddrPortFrom(array1, 4421), nqn)
		before := b.kernel.Calls()
		for r := snsd.ReasonLinkDown; r <= snsd.ReasonBFDDown; r++ {
			b.tell(withFence(word(array1, snsd.Inactive, r, uint32(r)), byTarget), 15*time.Second)
		}
		b.LinkDown([]netip.Addr{self1}, false, time.Now())
		third := netip.MustParseAddr("192.0.2.77")
		b.Connect(word(third, snsd.Active, snsd.ReasonNone, 99), time.Now())
		time.Sleep(5 * time.Minute)
		if after := b.kernel.Calls(); !slices.Equal(before, after) || fencer.said() != "" {
			t.Errorf("%v became %v; %s", before, after, fencer.said())
		}
		b.wantSaid("only observed: failover", "only observed: probe", "only observed: forget", "only observed: connect 192.0.2.77")
		p := b.Policy()
		p.Observe, p.Fence = false, FenceOff
		b.SetPolicy(p)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 200), time.Second)
		b.want("connecting live")
	})
}

// With require new controllers have times that outlast a fence, except what the operator set, and
// except the keep-alive where a block and the settle are the fence.
func TestRequireConnectsWithPatience(t *testing.T) {
	seven := 7
	for name, c := range map[string]struct {
		change   func(p *Policy)
		kato, io int
	}{
		"require":                 {func(p *Policy) {}, patientKeepAlive, patientIO},
		"prefer":                  {func(p *Policy) { p.Fence = FencePrefer }, 5, 0},
		"the operator's":          {func(p *Policy) { p.Options.KeepAlive, p.Options.IOTimeout = &seven, &seven }, 7, 7},
		"a settle of the address": {func(p *Policy) { p.Settle = []Settle{{Addr: array1}} }, 5, patientIO},
		"a settle of the NQN":     {func(p *Policy) { p.Settle = []Settle{{NQN: nqn}} }, 5, patientIO},
		"a settle of another":     {func(p *Policy) { p.Settle = []Settle{{Addr: array2}} }, patientKeepAlive, patientIO},
	} {
		p := DefaultPolicy()
		p.Fence = FenceRequire
		c.change(&p)
		p.Connect = true
		p.Options.HostNQN, p.Options.HostID = hostOptions.HostNQN, hostOptions.HostID
		bubble(t, name, func(t *testing.T) {
			b := &bench{t: t, kernel: hostkernel.NewFake()}
			b.kernel.Serve(netip.AddrPortFrom(array1, 4420), nqn)
			b.start(p)
			defer b.stop()
			n := word(array1, snsd.Active, snsd.ReasonNone, 1)
			n.Service.Port = 4420
			b.connect(n, 10*time.Second)
			kato, err := b.kernel.KeepAliveTimeout(&hostkernel.Controller{})
			if want := time.Duration(c.kato) * time.Second; err != nil || kato != want || b.kernel.IOTimeout(0) != c.io {
				t.Errorf("keep-alive %v, io_timeout %d, want %v and %d; %v", kato, b.kernel.IOTimeout(0), want, c.io, err)
			}
		})
	}
}
