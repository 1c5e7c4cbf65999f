package fencing

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
)

var (
	host1, host2   = netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.2.1")
	array1, array2 = netip.MustParseAddr("10.1.1.2"), netip.MustParseAddr("10.1.2.2")
	lost, other    = Path{host1, array1}, Path{host2, array2}
)

// fakeKernel is an array whose connections exist until their commands have ended.
type fakeKernel struct {
	mu       sync.Mutex
	steps    []string
	blocks   map[Path]time.Time
	open     map[Path]int
	executes map[Path]time.Time // ended connections exist until then
	blockErr error
	endErr   error
	late     map[Path]int // connections that are seen only after Settle
	serves   error
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{blocks: map[Path]time.Time{}, open: map[Path]int{lost: 2, other: 2}, executes: map[Path]time.Time{}, late: map[Path]int{}}
}

func (k *fakeKernel) step(format string, args ...any) {
	k.steps = append(k.steps, fmt.Sprintf(format, args...))
}

func (k *fakeKernel) Serves(a netip.Addr) error {
	if a != array1 && a != array2 {
		return refuse(CodeUnknown, "not %v", a)
	}
	return k.serves
}

func (k *fakeKernel) Block(p Path, until time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.step("block")
	if k.blockErr == nil {
		k.blocks[p] = until
	}
	return k.blockErr
}

func (k *fakeKernel) Lift(p Path) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.step("lift")
	delete(k.blocks, p)
	return nil
}

func (k *fakeKernel) End(p Path) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[p] > 0 {
		if _, ok := k.blocks[p]; !ok {
			k.step("a reset leaves while nothing is blocked")
		}
		k.step("end")
		k.open[p] = 0
	}
	return k.endErr
}

func (k *fakeKernel) Existing(p Path) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.open[p]
	if time.Now().Before(k.executes[p]) {
		n++
	}
	return n, nil
}

func (k *fakeKernel) Settle() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, n := range k.late {
		k.open[p] += n
	}
	clear(k.late)
	return nil
}

func (k *fakeKernel) Paths() (list []Path, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, n := range k.open {
		if n > 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Path) int { return a.Host.Compare(b.Host) })
	return list, nil
}

func (k *fakeKernel) blocked(p Path) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.blocks[p]
	return ok
}

func (k *fakeKernel) order() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.steps, " ")
}

// inTarget runs a test with a Target in fake time.
func inTarget(t *testing.T, f func(t *testing.T, k *fakeKernel, target *Target)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := newFakeKernel()
		target := NewTarget(ctx, k, 20*time.Second, func(Event) {})
		f(t, k, target)
		cancel()
		target.Wait()
	})
}

func code(err error) Code {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return ""
}

// Nothing leaves the array before it is blocked, the answer comes when the last command has ended,
// and the block stands until the host has confirmed.
func TestAnswerComesAfterTheLastCommand(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		begun := time.Now()
		k.executes[lost] = begun.Add(3 * time.Second)
		got, err := target.Fence(t.Context(), lost, 17*time.Second)
		if took := time.Since(begun); err != nil || took < 3*time.Second || took > 3100*time.Millisecond {
			t.Fatalf("answered after %v: %v", took, err)
		}
		if got.Took < 3*time.Second || got.Hold != 17*time.Second {
			t.Errorf("took %v, hold %v", got.Took, got.Hold)
		}
		if o := k.order(); o != "block end" {
			t.Errorf("steps: %s", o)
		}
		time.Sleep(5 * time.Second)
		if !k.blocked(lost) {
			t.Error("lifted before the host confirmed")
		}
		target.Confirm(lost)
		synctest.Wait()
		if k.blocked(lost) {
			t.Error("blocked although the host confirmed")
		}
	})
}

// Without a confirmation the block ends by time.
func TestBlockEndsByTime(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		if _, err := target.Fence(t.Context(), lost, 17*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(17*time.Second + time.Millisecond)
		synctest.Wait()
		if k.blocked(lost) || target.Counters().Expired != 1 {
			t.Errorf("blocked %t, counters %+v", k.blocked(lost), target.Counters())
		}
	})
}

// The block of an agent that is stopped stands; one that begins anew lifts it when the host confirms.
func TestBlockOutlivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := newFakeKernel()
		target := NewTarget(ctx, k, 20*time.Second, func(Event) {})
		if _, err := target.Fence(ctx, lost, 17*time.Second); err != nil {
			t.Fatal(err)
		}
		cancel()
		target.Wait()
		if !k.blocked(lost) {
			t.Error("lifted because the agent stopped")
		}
		NewTarget(t.Context(), k, 20*time.Second, func(Event) {}).Confirm(lost)
		if k.blocked(lost) {
			t.Error("blocked although the host confirmed to the new agent")
		}
	})
}

// A host that gives up while a command is in execution has the block lifted after it, not before.
func TestConfirmationWaitsForTheLastCommand(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		k.executes[lost] = time.Now().Add(3 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = target.Fence(ctx, lost, 17*time.Second)
		target.Confirm(lost)
		synctest.Wait()
		if !k.blocked(lost) {
			t.Error("lifted while a command is in execution")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if k.blocked(lost) {
			t.Error("blocked although the host confirmed and nothing is in execution")
		}
	})
}

// A connection that was being made when the block began is ended as well.
func TestConnectionThatAppearsIsEndedToo(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		k.open[lost], k.late[lost] = 0, 1
		if _, err := target.Fence(t.Context(), lost, time.Minute); err != nil {
			t.Fatal(err)
		}
		if o := k.order(); o != "block end" {
			t.Errorf("steps: %s", o)
		}
	})
}

// A command that outlasts the block is no fence; neither is a path that cannot be blocked, and there
// nothing is ended.
func TestWhatIsNoFence(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		k.executes[lost] = time.Now().Add(time.Minute)
		if _, err := target.Fence(t.Context(), lost, 17*time.Second); code(err) != CodeWait {
			t.Errorf("executing: %v", err)
		}
		k.blockErr = errors.New("no eBPF")
		if _, err := target.Fence(t.Context(), other, 17*time.Second); code(err) != CodeBlock || k.open[other] != 2 {
			t.Errorf("cannot block: %v, %d connections", err, k.open[other])
		}
		if c := target.Counters(); c.Failed != 2 || c.Fenced != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

// Asked again, it answers at once; one that asks with a longer time prolongs the block; one that has
// gone does not end the fence.
func TestAskedAgain(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		k.executes[lost] = time.Now().Add(3 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := target.Fence(ctx, lost, 17*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		begun := time.Now()
		got, err := target.Fence(t.Context(), lost, time.Minute)
		if err != nil || time.Since(begun) > 0 || got.Took > 3100*time.Millisecond {
			t.Errorf("%+v after %v: %v", got, time.Since(begun), err)
		}
		if until := k.blocks[lost]; time.Until(until) != 55*time.Second {
			t.Errorf("blocked for %v more", time.Until(until))
		}
		// After the block the pair is another one: it is fenced anew.
		target.Confirm(lost)
		synctest.Wait()
		k.open[lost] = 1
		if _, err := target.Fence(t.Context(), lost, 17*time.Second); err != nil || k.open[lost] != 0 {
			t.Errorf("%v, %d connections", err, k.open[lost])
		}
	})
}

// Unasked, paths of a known host are fenced while it has another one, never its last one.
func TestUnasked(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		target.HostLost(host1, array1)
		synctest.Wait()
		if k.blocked(lost) {
			t.Error("the path of a host that is not known is blocked")
		}
		target.Know([]netip.Addr{host1, host2})
		target.PortLost([]netip.Addr{array1, array2})
		synctest.Wait()
		if k.blocked(lost) || k.blocked(other) {
			t.Error("both paths of a host are blocked")
		}
		target.HostLost(host1, array1)
		synctest.Wait()
		target.HostLost(host2, array2)
		synctest.Wait()
		if !k.blocked(lost) || k.blocked(other) {
			t.Errorf("lost path blocked %t, last one %t", k.blocked(lost), k.blocked(other))
		}
		begun := time.Now()
		if _, err := target.Fence(t.Context(), lost, 17*time.Second); err != nil || time.Since(begun) > 0 {
			t.Errorf("asked later: %v after %v", err, time.Since(begun))
		}
		if c := target.Counters(); c.Unasked != 1 || c.Fenced != 1 {
			t.Errorf("counters %+v", c)
		}
	})
}

// The number of fences at a time is bounded.
func TestFencesAreBounded(t *testing.T) {
	inTarget(t, func(t *testing.T, k *fakeKernel, target *Target) {
		for i := range maxFences {
			p := Path{netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), array1}
			if _, err := target.Fence(t.Context(), p, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := target.Fence(t.Context(), lost, time.Minute); code(err) != CodeBusy {
			t.Error(err)
		}
	})
}

// An array whose frames cannot be blocked says so, also when nobody asked it.
func TestAnArrayWithoutAGateRefuses(t *testing.T) {
	none := errors.New("no eBPF here")
	l := &Linux{GateErr: none, Cables: func(netip.Addr) []string { return []string{"eth0"} }}
	if err := l.Block(Path{}, time.Now()); !errors.Is(err, none) {
		t.Errorf("block: %v", err)
	}
	if err := l.Lift(Path{}); !errors.Is(err, none) {
		t.Errorf("lift: %v", err)
	}
}
