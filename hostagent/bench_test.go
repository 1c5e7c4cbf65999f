package hostagent

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// bench is an actor on a fake kernel with one controller a plane.
type bench struct {
	*Actor
	t      *testing.T
	kernel *hostkernel.Fake
	cancel context.CancelFunc
	fencer Fencer

	mu   sync.Mutex
	acts []Action
}

// connected is a kernel with a controller over each plane, nobody's or owner's.
func connected(t *testing.T, owner string) *hostkernel.Fake {
	t.Helper()
	kernel := hostkernel.NewFake()
	for _, p := range []path{{self1, array1}, {self2, array2}} {
		at := netip.AddrPortFrom(p.subject, 4420)
		kernel.Serve(at, nqn)
		c := hostOptions
		c.Transport, c.NQN, c.Target, c.Source = "tcp", nqn, at, p.host
		n, err := kernel.Connect(&c)
		if err != nil {
			t.Fatal(err)
		}
		if owner != "" {
			_ = kernel.Claim(n, owner)
		}
	}
	return kernel
}

// unfenced is the policy that waits for no fence: what is left is left at once.
func unfenced() Policy {
	p := DefaultPolicy()
	p.Fence = FenceOff
	return p
}

// newBench connects both planes, as nobody's controllers or as owner's, and starts the actor.
func newBench(t *testing.T, owner string, change func(p *Policy)) *bench {
	t.Helper()
	b := &bench{t: t, kernel: connected(t, owner)}
	policy := unfenced()
	policy.Options = hostOptions
	if change != nil {
		change(&policy)
	}
	b.start(policy)
	return b
}

// newBenchWith is newBench with a Fencer.
func newBenchWith(t *testing.T, f *fakeFencer, change func(p *Policy)) *bench {
	t.Helper()
	b := &bench{t: t, kernel: connected(t, ""), fencer: f}
	f.b = b
	policy := unfenced()
	policy.Options = hostOptions
	change(&policy)
	b.start(policy)
	return b
}

func (b *bench) start(policy Policy) {
	b.Actor = NewActor(b.kernel, policy, nil, nil, func(act Action) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.acts = append(b.acts, act)
	})
	b.FenceBy(b.fencer)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.Run(ctx)
	synctest.Wait()
}

// stop ends the actor; what waits in the fake kernel comes to its end.
func (b *bench) stop() {
	b.cancel()
	for _, a := range []netip.Addr{array1, array2} {
		b.kernel.Mend(a)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}

func word(subject netip.Addr, state snsd.State, reason snsd.Reason, seq uint32) snsd.Notice {
	host := self1
	if subject == array2 {
		host = self2
	}
	return snsd.Notice{Subject: subject, Host: host, Seq: seq, State: state, Reason: reason,
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, NQN: nqn}}
}

func (b *bench) tell(n snsd.Notice, wait time.Duration) {
	b.Tell(n, time.Now())
	time.Sleep(wait)
	synctest.Wait()
}

// states gives the state of each controller by instance, "-" for one that is gone.
func (b *bench) states() string {
	var list []string
	for n := range 2 {
		c, err := b.kernel.Controller(n)
		if err != nil {
			list = append(list, "-")
		} else {
			list = append(list, string(c.State))
		}
	}
	return strings.Join(list, " ")
}

func (b *bench) want(states string) {
	b.t.Helper()
	if got := b.states(); got != states {
		b.t.Errorf("controllers are %s, want %s; %s", got, states, b.said())
	}
}

func (b *bench) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for i := range b.acts {
		list = append(list, b.acts[i].Text())
	}
	return strings.Join(list, " | ")
}

// calls counts what was asked of the kernel.
func (b *bench) calls(prefix string) (n int) {
	for _, c := range b.kernel.Calls() {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
