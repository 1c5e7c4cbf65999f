package fencing

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Asker has the agents of arrays fence paths of this host.
type Asker struct {
	Credentials Credentials
	Port        uint16
	// KeepAlive returns the keep-alive time of a controller, 0 if it has none or it is not known.
	KeepAlive func(*hostkernel.Controller) time.Duration
}

var (
	_ hostagent.Fencer       = (*Asker)(nil)
	_ hostagent.FenceChecker = (*Asker)(nil)
)

// tryTime bounds how long one living path is waited for to accept a connection.
const tryTime = time.Second

// Fence implements hostagent.Fencer.
func (a *Asker) Fence(ctx context.Context, p hostagent.FencePair, working func()) (snsd.Fence, error) {
	q := request{Version: Version, Op: OpFence, Host: p.Host, Array: p.Array}
	for i := range p.Controllers {
		q.KeepAliveMS = max(q.KeepAliveMS, a.KeepAlive(&p.Controllers[i]).Milliseconds())
	}
	begun := time.Now()
	ans, err := a.ask(ctx, p, q, false, working)
	if err != nil {
		return snsd.Fence{}, err
	}
	// The host's own time counts: an array that had fenced before says how long that took then.
	return snsd.Fence{Level: snsd.FenceArray, Way: snsd.FenceByTarget, Hold: time.Duration(ans.HoldMS) * time.Millisecond, Took: time.Since(begun)}, nil
}

// Confirm implements hostagent.Fencer.
func (a *Asker) Confirm(ctx context.Context, p hostagent.FencePair) error {
	_, err := a.ask(ctx, p, request{Version: Version, Op: OpConfirm, Host: p.Host, Array: p.Array}, true, func() {})
	return err
}

// Check implements hostagent.FenceChecker: whether the array's agent answers, knows this host, and
// could fence.
func (a *Asker) Check(ctx context.Context, p hostagent.FencePair) error {
	_, err := a.ask(ctx, p, request{Version: Version, Op: OpCheck, Host: p.Host, Array: p.Array}, false, func() {})
	return err
}

// maxAsked bounds over how many living paths is asked at once.
const maxAsked = 4

// ask asks over the living paths at once: one of them may be dead as well, and of an array with two
// heads only the one that has the address can fence. The first success counts; all is whether the
// other answers are waited for.
func (a *Asker) ask(ctx context.Context, p hostagent.FencePair, q request, all bool, working func()) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		answer
		err error
	}
	results := make(chan result, maxAsked)
	asked := map[Path]bool{{p.Host, p.Array}: true} // the lost path itself is blocked, or dead
	for i := range p.Living {
		at := Path{p.Living[i].Source, p.Living[i].Target.Addr()}
		if asked[at] || !at.Host.IsValid() || len(asked) > maxAsked {
			continue
		}
		asked[at] = true
		go func() {
			ans, err := a.askOver(ctx, at, q, working)
			if err != nil {
				err = fmt.Errorf("%v: %w", at.Array, err)
			}
			results <- result{ans, err}
		}()
	}
	var best *result
	errs := []error{}
	for range len(asked) - 1 {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		best = &r
		if !all {
			break
		}
	}
	switch {
	case best != nil:
		return best.answer, nil
	case len(errs) == 0:
		return answer{}, errors.New("no living path to ask the array's agent over")
	}
	return answer{}, errors.Join(errs...)
}

// askOver asks the agent at one end of a path, from the other end.
func (a *Asker) askOver(ctx context.Context, at Path, q request, working func()) (ans answer, err error) {
	cfg, err := a.Credentials.client(at.Array)
	if err != nil {
		return ans, err
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Host, 0)), Timeout: tryTime}
	raw, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(at.Array, a.Port).String())
	if err != nil {
		return ans, fmt.Errorf("the array's agent does not answer: %w", err)
	}
	working() // an agent that has taken the call answers, or the handshake fails in time
	conn := tls.Client(raw, cfg)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	hello, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := conn.HandshakeContext(hello); err != nil {
		return ans, fmt.Errorf("identity of the array's agent: %w", err)
	}
	if err = writeMessage(conn, q); err == nil {
		ans, err = readAnswer(conn)
	}
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("the array's agent has not fenced yet: %w", ctx.Err())
	}
	return ans, err
}

// Fencers asks one Fencer after the other.
type Fencers []hostagent.Fencer

var (
	_ hostagent.Fencer       = Fencers{}
	_ hostagent.FenceChecker = Fencers{}
)

var errNotAsked = errors.New("no fence-service is configured: the array's agent is not asked")

// NotAsked is the Fencer of a host without a fence-service: it says so.
type NotAsked struct{}

var (
	_ hostagent.Fencer       = NotAsked{}
	_ hostagent.FenceChecker = NotAsked{}
)

// Fence implements hostagent.Fencer.
func (NotAsked) Fence(context.Context, hostagent.FencePair, func()) (snsd.Fence, error) {
	return snsd.Fence{}, errNotAsked
}

// Check implements hostagent.FenceChecker.
func (NotAsked) Check(context.Context, hostagent.FencePair) error { return errNotAsked }

// Confirm implements hostagent.Fencer.
func (NotAsked) Confirm(context.Context, hostagent.FencePair) error { return nil }

// Check implements hostagent.FenceChecker: one of them must be able to.
func (f Fencers) Check(ctx context.Context, p hostagent.FencePair) error {
	var errs []error
	for _, one := range f {
		check, ok := one.(hostagent.FenceChecker)
		if !ok {
			continue
		}
		err := check.Check(ctx, p)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return cmp.Or(errors.Join(errs...), errNotAsked)
}

// Fence implements hostagent.Fencer.
func (f Fencers) Fence(ctx context.Context, p hostagent.FencePair, working func()) (snsd.Fence, error) {
	var errs []error
	for _, one := range f {
		got, err := one.Fence(ctx, p, working)
		if err == nil {
			return got, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return snsd.Fence{}, errNotAsked
	}
	return snsd.Fence{}, errors.Join(errs...)
}

// Confirm implements hostagent.Fencer.
func (f Fencers) Confirm(ctx context.Context, p hostagent.FencePair) error {
	var errs []error
	for _, one := range f {
		errs = append(errs, one.Confirm(ctx, p))
	}
	return errors.Join(errs...)
}
