package hostagent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

const nqn = "nqn.2026-01.net.example:array1"

var (
	self1, self2   = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	array1, array2 = netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("198.51.100.7")
	hostOptions    = hostkernel.Connect{HostNQN: "nqn.h", HostID: "6f8ff1a5-5a0e-4d5f-9b5e-000000000001"}
)

// What is called dead is left within the time that the kernel needs for it, whosever it is, and
// nothing is taken away.
func TestADeadPathIsLeftAtOnce(t *testing.T) {
	for _, reason := range []snsd.Reason{snsd.ReasonLinkDown, snsd.ReasonPFCStorm, snsd.ReasonBFDDown} {
		bubble(t, reason.String(), func(t *testing.T) {
			b := newBench(t, "", nil)
			defer b.stop()
			b.kernel.Break(array1)
			b.tell(word(array1, snsd.Inactive, reason, 1), 40*time.Millisecond)
			b.want("connecting live")
			if n := b.calls("delete") + b.calls("reset"); n != 0 {
				t.Errorf("%v", b.kernel.Calls())
			}
			// It comes back by itself, within a second and not within reconnect_delay, and then has
			// its own delay again.
			if d := b.kernel.Delay(0); d != 1 {
				t.Errorf("it tries again each %d s", d)
			}
			b.kernel.Mend(array1)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			b.want("live live")
			time.Sleep(2 * refreshEvery)
			synctest.Wait()
			if d := b.kernel.Delay(0); d != 10 {
				t.Errorf("live again, it keeps a delay of %d s", d)
			}
		})
	}
}

// Where there is no other path, one that answers in spite of the notice is kept, and one that does
// not is left, so that it comes back within a second.
func TestTheOnlyPathIsLeftIfItGivesNoAnswer(t *testing.T) {
	alone := func(t *testing.T) *bench {
		b := newBench(t, "", nil)
		b.kernel.Break(array2)
		b.tell(word(array2, snsd.Inactive, snsd.ReasonBFDDown, 1), 2*refreshEvery)
		b.want("live connecting")
		return b
	}
	bubble(t, "it answers", func(t *testing.T) {
		b := alone(t)
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1), time.Minute)
		b.want("live connecting")
	})
	bubble(t, "it does not", func(t *testing.T) {
		b := alone(t)
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1), answerWithin+answerLate+50*time.Millisecond)
		b.want("connecting connecting")
	})
	bubble(t, "the other one is back", func(t *testing.T) {
		b := alone(t)
		defer b.stop()
		b.kernel.Mend(array2)
		time.Sleep(5 * time.Second)
		b.want("live live")
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonBFDDown, 1), 40*time.Millisecond)
		b.want("connecting live")
	})
}

// A notice about a path on which the host has nothing is done with at once, and no other
// path, source or discovery controller is touched.
func TestOnlyThePathThatIsDeadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		n := word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1)
		n.Host = netip.MustParseAddr("192.0.2.99")
		b.tell(n, time.Second)
		n.Host, n.Subject = self1, netip.MustParseAddr("192.0.2.98")
		b.tell(n, time.Second)
		b.want("live live")
		if b.calls("destroy") != 0 {
			t.Error(b.kernel.Calls())
		}
	})
}

func TestForeignControllersAreLeftAloneIfTheOperatorWantsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "stacd", func(p *Policy) { p.Foreign = false })
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Second)
		b.want("live live")
		if !strings.Contains(b.said(), "nvme0: not ours") {
			t.Error(b.said())
		}
	})
}

// Packet errors: who answers keeps its path, who does not is left.
func TestPacketErrorsAreProbed(t *testing.T) {
	bubble(t, "answers", func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonPacketError, 1), 30*time.Second)
		b.want("live live")
		if n := b.calls("keep-alive"); n != askTimes {
			t.Errorf("asked %d times", n)
		}
	})
	bubble(t, "silent", func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonPacketError, 1), answerWithin+answerLate+50*time.Millisecond)
		b.want("connecting live")
	})
	bubble(t, "existing agent", func(t *testing.T) {
		b := newBench(t, "", func(p *Policy) { *p = ExistingPolicy() })
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Second)
		b.want("live live")
		time.Sleep(200 * time.Millisecond)
		b.want("connecting live")
	})
	bubble(t, "active again", func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonPacketError, 1), time.Second)
		b.tell(word(array1, snsd.Active, snsd.ReasonNone, 2), time.Second)
		if before := b.calls("keep-alive"); before == askTimes {
			t.Error("it went on")
		} else if time.Sleep(5 * time.Second); b.calls("keep-alive") != before {
			t.Error("it goes on")
		}
	})
}

// What must be forgotten is deleted if it is ours: at once if it answers, else once its path was
// left, never while it is live on a dead path, which would hold up its I/O.
func TestWhatMustBeForgottenIsDeleted(t *testing.T) {
	for _, reason := range []snsd.Reason{snsd.ReasonZoneChanged, snsd.ReasonIPChanged, snsd.ReasonAgedOut} {
		bubble(t, reason.String()+" answers", func(t *testing.T) {
			b := newBench(t, DefaultOwner, nil)
			defer b.stop()
			b.tell(word(array1, snsd.Inactive, reason, 1), 300*time.Millisecond)
			b.want("- live")
			if b.calls("destroy") != 0 {
				t.Error(b.kernel.Calls())
			}
		})
		bubble(t, reason.String()+" silent", func(t *testing.T) {
			b := newBench(t, DefaultOwner, nil)
			defer b.stop()
			b.kernel.Break(array1)
			b.tell(word(array1, snsd.Inactive, reason, 1), 500*time.Millisecond)
			b.want("- live")
		})
		bubble(t, reason.String()+" not ours", func(t *testing.T) {
			b := newBench(t, "stacd", nil)
			defer b.stop()
			b.tell(word(array1, snsd.Inactive, reason, 1), time.Second)
			b.want("live live")
			b.kernel.Break(array1)
			b.tell(word(array1, snsd.Inactive, reason, 2), time.Second)
			b.want("connecting live")
		})
		bubble(t, reason.String()+" named", func(t *testing.T) {
			b := newBench(t, "", func(p *Policy) { p.Named = []string{nqn} })
			defer b.stop()
			b.tell(word(array1, snsd.Inactive, reason, 1), time.Second)
			b.want("- live")
		})
	}
}

// A controller that waits for a keep-alive of the kernel before it gives its connection up is
// deleted after that.
func TestWhatIsHeldByAKeepAliveIsDeletedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, nil)
		defer b.stop()
		b.kernel.Break(array1)
		b.kernel.UnderWay = true
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), 3*time.Second)
		b.want("resetting live")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		b.want("- live")
	})
}

// With a restraint what must be forgotten stays for so long, and for good if it is active again
// within it.
func TestWhatIsActiveAgainWithinTheRestraintStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, func(p *Policy) { p.DeleteAfter = 5 * time.Second })
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), 4*time.Second)
		b.want("live live")
		b.tell(word(array1, snsd.Active, snsd.ReasonNone, 2), time.Minute)
		b.want("live live")
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 3), 4*time.Second)
		b.want("live live")
		time.Sleep(2 * time.Second)
		b.want("- live")
	})
}

// Both planes are withdrawn at one moment: one path stays.
func TestTheLastPathIsNeverDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, nil)
		defer b.stop()
		b.Tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), time.Now())
		b.Tell(word(array2, snsd.Inactive, snsd.ReasonZoneChanged, 1), time.Now())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := b.states(); s != "- live" && s != "live -" {
			t.Errorf("controllers are %s: %s", s, b.said())
		}
		if !strings.Contains(b.said(), "the last path") {
			t.Error(b.said())
		}
	})
	bubble(t, "unless told so", func(t *testing.T) {
		b := newBench(t, DefaultOwner, func(p *Policy) { p.RemoveLastPath = true })
		defer b.stop()
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), time.Second)
		b.tell(word(array2, snsd.Inactive, snsd.ReasonZoneChanged, 1), time.Second)
		b.want("- -")
	})
}

// While a call blocks in the kernel for a minute, another path is left in no time.
func TestNoCallThatBlocksStandsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultOwner, func(p *Policy) {
			*p = ExistingPolicy()
			p.By[snsd.ReasonLinkDown] = Destroy
		})
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 1), time.Second) // deleted, live, on a dead path: 94 s
		b.kernel.Break(array2)
		b.tell(word(array2, snsd.Inactive, snsd.ReasonLinkDown, 1), answerWithin+answerLate+50*time.Millisecond)
		b.want("deleting connecting")
	})
}

// Of a storm all that is new is acted on, and no more is kept than one entry a path.
func TestAStormCostsOneEntryAPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		for i := range 10_000 {
			n := word(netip.AddrFrom4([4]byte{10, 9, byte(i % 100), 9}), snsd.Inactive, snsd.ReasonLinkDown, uint32(i))
			b.Tell(n, time.Now())
		}
		b.Tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), time.Now())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		b.want("connecting live")
		if len(b.paths) != 101 || len(b.pending) != 0 || len(b.order) != 0 {
			t.Errorf("%d paths, %d wait", len(b.paths), len(b.pending))
		}
	})
}

// There are no more than so many paths; one that is dead is left all the same, and those that are
// gone make room.
func TestPathsThatNobodyWantsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(p *Policy) { p.Connect = true })
		defer b.stop()
		at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
		fill := func() {
			for i := range maxPaths {
				b.Tell(word(at(i), snsd.Inactive, snsd.ReasonLinkDown, 1), time.Now())
			}
			synctest.Wait()
		}
		fill()
		b.Tell(word(at(maxPaths), snsd.Inactive, snsd.ReasonLinkDown, 1), time.Now())
		synctest.Wait()
		if len(b.paths) != 1 {
			t.Errorf("%d paths are known, want 1", len(b.paths))
		}
		fill() // within the second
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), 100*time.Millisecond)
		b.want("connecting live")
		b.Connect(word(array2, snsd.Active, snsd.ReasonNone, 1), time.Now())
		synctest.Wait()
		if len(b.paths) != maxPaths || !strings.Contains(b.said(), "refused 198.51.100.7") {
			t.Errorf("%d paths are known; %s", len(b.paths), b.said())
		}
	})
}

// When the host's own port loses its carrier, paths from it are left if there is another one, and
// only then.
func TestOwnLinkIsLeftWhereThereIsAnotherPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		b.LinkDown([]netip.Addr{self1}, false, time.Now())
		time.Sleep(40 * time.Millisecond)
		b.want("connecting live")
		if b.calls("unqueue 192.0.2.1") != 1 {
			t.Error(b.kernel.Calls())
		}
		time.Sleep(2 * refreshEvery) // it comes back: the fake's cable is whole
		b.kernel.Break(array1)
		b.LinkDown([]netip.Addr{self1}, false, time.Now())
		time.Sleep(2 * refreshEvery)
		b.want("connecting live")
		b.LinkDown([]netip.Addr{self2}, false, time.Now())
		time.Sleep(time.Second)
		b.want("connecting live")
	})
}

// Over RDMA there are no sockets to destroy: the controller is reset.
func TestOverRDMAAControllerIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, kernel: hostkernel.NewFake()}
		for _, p := range []path{{self1, array1}, {self2, array2}} {
			at := netip.AddrPortFrom(p.subject, 4420)
			b.kernel.Serve(at, nqn)
			c := hostOptions
			c.Transport, c.NQN, c.Target, c.Source = "rdma", nqn, at, p.host
			if _, err := b.kernel.Connect(&c); err != nil {
				t.Fatal(err)
			}
		}
		b.start(unfenced())
		defer b.stop()
		b.kernel.Break(array1)
		b.tell(word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1), 10*time.Millisecond)
		b.want("resetting live")
		if b.calls("destroy") != 0 {
			t.Error(b.kernel.Calls())
		}
	})
}

func TestEveryMeasureHasAName(t *testing.T) {
	for m := Nothing; m <= Remove; m++ {
		var got Measure
		if err := got.UnmarshalText([]byte(m.String())); err != nil || got != m {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	if err := new(Measure).UnmarshalText([]byte("kill")); err == nil || !strings.Contains(fmt.Sprint(err), "destroy") {
		t.Error(err)
	}
	if slices.Contains(measureNames, "") {
		t.Error("a name is missing")
	}
}
