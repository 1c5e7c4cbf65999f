package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
)

// fencing does in the dataplane what the owner of the Core decides to block, and hands back what
// came of it. The owner never waits for it.
type fencing struct {
	rounds
	d *Daemon

	mu    sync.Mutex
	queue []fence.Step
	state fenceState

	dp      fence.Dataplane // nil: nothing can be blocked
	retry   time.Time
	dropped map[fence.Key]uint64
	counted time.Time
}

// fenceState is what operators see.
type fenceState struct {
	Way     string               // of the dataplane; empty: there is none
	Trouble string               // what is not as it should be
	Dropped map[fence.Key]uint64 // frames, by block
	errors  uint64
	steps   uint64
	frames  uint64 // dropped by blocks that have ended
}

// fenceRetry is how long after an error the dataplane is opened again.
const fenceRetry = 5 * time.Second

func newFencing(d *Daemon) *fencing { return &fencing{rounds: newRounds(), d: d} }

// hand takes over what the owner has for the dataplane; it never waits.
func (f *fencing) hand(c *device.Core, now time.Time) {
	steps := c.FenceWork(now)
	if len(steps) == 0 {
		return
	}
	f.mu.Lock()
	f.queue = append(f.queue, steps...)
	f.mu.Unlock()
	f.wake()
}

// Run implements task.
func (f *fencing) Run(ctx context.Context) error {
	f.run(ctx, f.d.env.Now, func(ctx context.Context) time.Time {
		f.round(ctx)
		if len(f.dropped) == 0 {
			return f.retry
		}
		return sooner(f.retry, f.counted.Add(countEvery))
	})
	if f.dp != nil {
		f.trouble(f.dp.Close()) // blocks stay, and end by their time
	}
	return nil
}

func (f *fencing) String() string { return "fencing" }

// round does all that there is to do.
func (f *fencing) round(ctx context.Context) {
	now := f.d.env.Now()
	if f.dp == nil && !now.Before(f.retry) {
		f.open(ctx, now)
	}
	f.mu.Lock()
	steps := f.queue
	f.queue = nil
	f.mu.Unlock()
	if len(steps) == 0 {
		f.count(false)
		return
	}
	results := make([]fence.Result, 0, len(steps))
	var errs []error
	for _, s := range steps {
		r := f.do(s)
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
		results = append(results, r)
	}
	f.trouble(errors.Join(errs...))
	f.mu.Lock()
	f.state.steps += uint64(len(steps))
	f.state.errors += uint64(len(errs))
	f.mu.Unlock()
	_ = f.d.device.Do(ctx, func(c *device.Core, now time.Time) { c.FenceDone(results, now) })
	for _, r := range results {
		f.keep(&r)
	}
	f.count(slices.ContainsFunc(steps, func(s fence.Step) bool { return s.Op == fence.OpBlock }))
}

// do does one step.
func (f *fencing) do(s fence.Step) (r fence.Result) {
	r.Step = s
	if f.dp == nil {
		r.Err = errors.New("there is no dataplane that can block")
		return r
	}
	switch s.Op {
	case fence.OpBlock:
		if b, err := f.dp.Block(s.Key, s.Until); err != nil {
			r.Err = err
		} else {
			r.Block = b
		}
	case fence.OpDrained:
		r.Drained, r.Err = f.dp.Drained(s.Block)
	case fence.OpLift:
		f.count(true)
		r.Err = f.dp.Lift(s.Key)
	case fence.OpLiftAll:
		f.count(true)
		r.Err = f.dp.LiftAll()
	}
	if r.Err != nil {
		r.Err = fmt.Errorf("%v of %s: %w", s.Op, keyName(s.Key), r.Err)
	}
	return r
}

// keyName names a block for people.
func keyName(k fence.Key) string {
	switch {
	case k.Port == "":
		return "all blocks"
	case k.WholePort():
		return "port " + k.Port
	}
	return fmt.Sprintf("port %s, array %s, host %s", k.Port, k.Array, k.Host)
}

// keep writes begins and ends into the record of what was done to the network.
func (f *fencing) keep(r *fence.Result) {
	what := map[fence.Op]string{fence.OpBlock: "fence.block", fence.OpLift: "fence.lift", fence.OpLiftAll: "fence.lift-all"}[r.Op]
	if what == "" || r.Op == fence.OpLiftAll && r.Err == nil && len(f.dropped) == 0 { // nothing stood
		return
	}
	rec := audit.Record{By: "inofd", From: "fencing", What: what, Detail: map[string]string{"block": keyName(r.Key)}, Result: "done"}
	if r.Op == fence.OpBlock {
		rec.Detail["until"] = r.Until.UTC().Format(time.RFC3339)
	}
	if r.Err != nil {
		rec.Result, rec.Error = "failed", r.Err.Error()
	}
	f.d.keepDeed(rec)
}

// open takes over the dataplane, with what stands in it.
func (f *fencing) open(ctx context.Context, now time.Time) {
	f.retry = now.Add(fenceRetry)
	if f.d.env.Fence == nil {
		f.mu.Lock()
		f.state.Trouble = "this dataplane cannot block"
		f.mu.Unlock()
		f.retry = now.Add(24 * time.Hour)
		return
	}
	dp, err := f.d.env.Fence()
	if err != nil {
		f.trouble(err)
		return
	}
	blocks, err := dp.Adopted()
	if err != nil {
		f.trouble(errors.Join(fmt.Errorf("what was blocked before is not known: %w", err), dp.Close()))
		return
	}
	f.dp, f.retry = dp, time.Time{}
	f.trouble(nil)
	f.mu.Lock()
	f.state.Way = dp.String()
	f.mu.Unlock()
	_ = f.d.device.Do(ctx, func(c *device.Core, now time.Time) { c.FenceBegin(blocks, now) })
}

// trouble keeps what is wrong; nil: nothing is.
func (f *fencing) trouble(err error) {
	text := ""
	if err != nil {
		text = oneLine(err.Error())
	}
	f.mu.Lock()
	was := f.state.Trouble
	f.state.Trouble = text
	f.mu.Unlock()
	if text != "" && text != was {
		f.d.warn("fence", fmt.Errorf("fencing: %s", text))
	}
}

// countEvery is how often frames that were dropped are read at most.
const countEvery = time.Second

// count reads how many frames each block has dropped; force: now.
func (f *fencing) count(force bool) {
	now := f.d.env.Now()
	if f.dp == nil || !force && now.Sub(f.counted) < countEvery {
		return
	}
	f.counted = now
	counts, err := f.dp.Counts()
	if err != nil {
		return // they are for people alone
	}
	for k, n := range f.dropped {
		if _, stands := counts[k]; !stands {
			f.mu.Lock()
			f.state.frames += n
			f.mu.Unlock()
		}
	}
	f.dropped = counts
	f.mu.Lock()
	f.state.Dropped = counts
	f.mu.Unlock()
}

// now is what operators see.
func (f *fencing) now() fenceState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// counters are those of this part.
func (f *fencing) counters() map[string]uint64 {
	s := f.now()
	frames, ready := s.frames, uint64(0)
	if s.Way != "" {
		ready = 1
	}
	for _, n := range s.Dropped {
		frames += n
	}
	return map[string]uint64{"steps": s.steps, "errors": s.errors, "frames_dropped": frames, "ready": ready}
}

// AddFenceCounts implements query.Source.
func (d *Daemon) AddFenceCounts(_ context.Context, list []api.Fence) error {
	if d.fence == nil {
		return nil
	}
	dropped := d.fence.now().Dropped
	for i := range list {
		f := &list[i]
		if n, counted := dropped[fence.Key{Port: f.Port, Array: f.Array, Host: f.Host}]; counted && f.Device == d.cfg.Load().Device.ID {
			f.Dropped = &n
		}
	}
	return nil
}
