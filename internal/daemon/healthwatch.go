package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
)

// healthWatch looks at the warnings from time to time: it tells when the first one of a
// kind comes and the last one goes, and tells the reflectors what is wrong here, since the
// health of the fabric is seen there.
type healthWatch struct{ d *Daemon }

// healthEvery is how often it looks, and repeats to the reflectors what stands.
const healthEvery = 10 * time.Second

func (w healthWatch) String() string { return "watch over warnings" }

// Run implements task.
func (w healthWatch) Run(ctx context.Context) error {
	told := map[string]bool{}
	reported := false
	return every(ctx, healthEvery, func() {
		s, err := w.d.Status(ctx)
		if err != nil {
			return // the device stops
		}
		before := told
		told = w.tell(before, s.Warnings)
		if len(w.d.dialers) == 0 {
			return
		}
		// What is over before the next look is not worth a line at every reflector.
		m := health.Report(slices.DeleteFunc(s.Warnings, func(x api.Warning) bool { return x.Last == nil && !before[x.Rule] }))
		if is := len(m.Warnings) > 0; is || reported {
			reported = is
			_ = w.d.device.Do(ctx, func(*device.Core, time.Time) { w.d.device.tellReflectors(m) })
		}
	})
}

// tell makes known which rules are raised that were not before, and the other way round,
// and returns those that are now. What an event has raised, that event has told.
func (w healthWatch) tell(before map[string]bool, list api.Warnings) map[string]bool {
	now := map[string]bool{}
	event := func(rule, state, text string) {
		w.d.log.Append(api.Event{Time: w.d.env.Now(), Kind: "warning", Text: text, Fields: map[string]string{"rule": rule, "state": state}})
	}
	for _, x := range list {
		if x.Last == nil && !now[x.Rule] {
			if now[x.Rule] = true; !before[x.Rule] {
				event(x.Rule, "raised", x.Text+"; "+x.Do)
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(before)) {
		if !now[rule] {
			event(rule, "over", fmt.Sprintf("there is no warning of %s any more", rule))
		}
	}
	return now
}

// lossWatch looks at what the kernel drops before anybody can read it, which nothing else
// would tell.
type lossWatch struct {
	d  *Daemon
	dp fabric.LossReader
}

// lossEvery is how often it looks.
const lossEvery = 10 * time.Second

func (w lossWatch) String() string { return "watch over dropped frames" }

// Run implements task.
func (w lossWatch) Run(ctx context.Context) error {
	before := w.dp.LostFrames()
	return every(ctx, lossEvery, func() {
		now := w.dp.LostFrames()
		w.tell(before, now)
		before = now
	})
}

// tell makes known on which ports more was dropped than before.
func (w lossWatch) tell(before, now []fabric.LostFrames) {
	had := make(map[string]uint64, len(before))
	for _, l := range before {
		had[l.Port] = l.Frames
	}
	for _, l := range now {
		if n := l.Frames - min(l.Frames, had[l.Port]); n > 0 {
			w.d.log.Append(api.Event{Time: w.d.env.Now(), Kind: "error", Port: l.Port, Warning: health.FramesDropped,
				Text: fmt.Sprintf("port %s: the kernel dropped %d control frame(s) within %s: LLDP of hosts, acks or zone queries are lost", l.Port, n, lossEvery)})
		}
	}
}
