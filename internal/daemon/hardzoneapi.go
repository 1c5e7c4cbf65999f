package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
)

// HardZoning implements api.Source.
func (d *Daemon) HardZoning(ctx context.Context) (api.HardZoning, error) {
	out := api.HardZoning{Ports: []api.HardPort{}, Zones: []api.HardZone{}}
	if d.hard == nil {
		out.State = api.HardElsewhere
		return out, nil
	}
	var names []string
	if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
		out.State, out.Why = c.HardState()
		if p := c.HardPolicy(); p != nil {
			n := p.State()
			out.Hosts, out.Local, out.Pairs, out.Closing, out.NoRoom, out.Unheard = n.Hosts, n.Local, n.Pairs, n.Closing, n.NoRoom, n.Adopted
			names = p.Zones()
		}
	}); err != nil {
		return out, err
	}
	var counts hardzone.Counts
	var err error
	if askErr := d.hard.ask(ctx, func(dp hardzone.Dataplane) {
		if dp != nil {
			counts, err = dp.Counts()
		}
	}); askErr != nil || err != nil {
		return out, fmt.Errorf("%w: the filter does not answer: %w %w", api.ErrUnavailable, askErr, err)
	}
	h := d.hard
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Suspended = h.state.suspended
	if !h.state.audited.IsZero() {
		at := h.state.audited
		out.Audited, out.Repaired = &at, h.state.repaired
	}
	for _, st := range h.state.filters {
		p := api.HardPort{Port: st.Port, Attach: string(st.Attach), PortCounts: counts.Ports[st.Port]}
		if st.Err != nil {
			p.Error = oneLine(st.Err.Error())
		}
		out.Ports = append(out.Ports, p)
	}
	for i, c := range counts.Zones {
		if i < len(names) && (i > 0 && names[i] != "" || c != hardzone.ZoneCounts{}) {
			out.Zones = append(out.Zones, api.HardZone{Zone: names[i], ZoneCounts: c})
		}
	}
	return out, nil
}

// OrderHardZoning implements api.Source.
func (d *Daemon) OrderHardZoning(ctx context.Context, order string) error {
	if d.hard == nil {
		return fmt.Errorf("%w: this device has no access ports", api.ErrRefused)
	}
	var err error
	do := func(dp hardzone.Dataplane) {
		switch {
		case dp == nil:
			err = fmt.Errorf("%w: hard zoning is not in force here", api.ErrRefused)
		case order == api.HardFlush:
			_, err = dp.Audit()
		default:
			err = dp.Suspend(order == api.HardSuspend)
		}
	}
	switch order {
	case api.HardFlush:
		if err := d.device.Do(ctx, func(c *device.Core, now time.Time) { c.CloseHardNow(now) }); err != nil {
			return err
		}
	case api.HardSuspend, api.HardResume:
	default:
		return fmt.Errorf("%w: order %.20q: allowed are %s", api.ErrInvalid, order, strings.Join([]string{api.HardSuspend, api.HardResume, api.HardFlush}, ", "))
	}
	if askErr := d.hard.ask(ctx, do); askErr != nil {
		return askErr
	}
	if err != nil {
		return err
	}
	if order != api.HardFlush {
		d.hard.mu.Lock()
		d.hard.state.suspended = order == api.HardSuspend
		d.hard.mu.Unlock()
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "hard-zoning", Text: fmt.Sprintf("hard zoning: %s ordered by %s", order, api.By(ctx)), Fields: callerFields(ctx)})
	return nil
}

// whyHard adds what the dataplane has between two hosts to what was decided.
func (d *Daemon) whyHard(ctx context.Context, w *api.Why, a, b netip.Addr) {
	if w.Hard == nil || d.hard == nil {
		return
	}
	var seen hardzone.Seen
	err := fmt.Errorf("hard zoning is not in force")
	if askErr := d.hard.ask(ctx, func(dp hardzone.Dataplane) {
		if dp != nil {
			seen, err = dp.Look(a, b)
		}
	}); askErr != nil {
		err = askErr
	}
	switch {
	case err != nil:
		w.Hard.Kernel = err.Error()
		return
	case seen.Suspended:
		w.Hard.Kernel = api.HardKernelSuspended
	case seen.Open:
		w.Hard.Kernel = api.HardKernelPasses
	default:
		w.Hard.Kernel = api.HardKernelDrops
	}
	w.Hard.Agrees = seen.Open == w.Hard.Open && !seen.Suspended
}

// hardCounters are those of this part.
func (h *hardZoning) counters() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return map[string]uint64{"steps": h.state.steps, "errors": h.state.errors, "repaired": uint64(h.state.repaired), "samples": h.state.samples}
}
