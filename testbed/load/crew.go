package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// crew are the sessions of a run.
type crew struct {
	target *Target
	epoch  uint64
	crowd  *crowd
	stop   chan struct{}
	wg     sync.WaitGroup

	mu  sync.Mutex // guards that all grows
	all []*client
}

// list are the sessions now.
func (w *crew) list() []*client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

const (
	dialers    = 32 // handshakes at a time
	firstTries = 50 // of the first dial: the reflector may just have been started
)

// assemble connects devices, in order, and starts their readers; left (nil: nobody) hears of how
// many are connected.
func assemble(ctx context.Context, t *Target, devs []netip.Addr, left func(done, all int)) (*crew, error) {
	w := &crew{target: t, epoch: epochOf(time.Now()), crowd: newCrowd(), all: make([]*client, len(devs)), stop: make(chan struct{})}
	var err error
	for range firstTries {
		if w.all[0], err = connect(ctx, t, devs[0], 0, w.epoch, w.crowd); err == nil || errors.As(err, new(*link.PeerError)) || ctx.Err() != nil {
			break
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	jobs := make(chan int)
	errs := make(chan error, dialers)
	for range dialers {
		go func() {
			var bad error
			for i := range jobs {
				if bad == nil {
					w.all[i], bad = connect(ctx, t, devs[i], 0, w.epoch, w.crowd)
				}
			}
			errs <- bad
		}()
	}
	for i := 1; i < len(devs); i++ {
		jobs <- i
		if left != nil {
			left(i, len(devs))
		}
	}
	close(jobs)
	for range dialers {
		err = errors.Join(err, <-errs)
	}
	for _, c := range w.all {
		if c != nil {
			go c.run()
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.wg.Go(w.live)
	for _, c := range w.all {
		if err := c.send(&wire.EndOfSync{Epoch: w.epoch}); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// live sends the keepalives.
func (w *crew) live() {
	const every = 200 * time.Millisecond
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			for _, c := range w.list() {
				c.keepalive(every)
			}
		}
	}
}

// close ends all sessions.
func (w *crew) close() {
	close(w.stop)
	w.wg.Wait()
	for part := range slices.Chunk(w.all, max(1, len(w.all)/dialers)) {
		w.wg.Go(func() {
			for _, c := range part {
				if c != nil {
					c.goodbye()
				}
			}
		})
	}
	w.wg.Wait()
}

// lost gives the first session that has ended, nil if none has.
func (w *crew) lost() error {
	for _, c := range w.all {
		if err := c.ended(); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a condition of all sessions.
func (w *crew) until(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	for began := time.Now(); !done(); {
		if err := w.lost(); err != nil {
			return err
		}
		if time.Since(began) > limit {
			return fmt.Errorf("%s: not within %v", what, limit)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// wait gives the time when the last of a crowd had what it was to expect.
func (w *crew) wait(ctx context.Context, c *crowd, limit time.Duration) (time.Time, error) {
	end := time.Now().Add(limit)
	for {
		t := time.NewTimer(time.Second)
		select {
		case at := <-c.last:
			t.Stop()
			return at, nil
		case <-ctx.Done():
			t.Stop()
			return time.Time{}, ctx.Err()
		case <-t.C:
		}
		if err := w.lost(); err != nil {
			return time.Time{}, err
		}
		if time.Now().After(end) {
			return time.Time{}, fmt.Errorf("%d clients have not got the change within %v", c.pending.Load(), limit)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
