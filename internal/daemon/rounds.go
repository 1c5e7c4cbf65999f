package daemon

import (
	"context"
	"time"
)

// rounds has a part do its work in a goroutine of its own: when it is woken, and when that is due.
type rounds chan struct{}

func newRounds() rounds { return make(rounds, 1) }

// wake asks for a round; it never waits.
func (r rounds) wake() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// run calls round until ctx ends. What round returns is when the next one is due; zero: when woken.
func (r rounds) run(ctx context.Context, now func() time.Time, round func(context.Context) time.Time) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r:
		case <-timer.C:
		}
		if ctx.Err() == nil {
			timer.Reset(wait(round(ctx), now()))
		}
	}
}
