package daemon

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/snsd"
)

// noticesOfWhy is how many notices are shown of two hosts: what fits a screen.
const noticesOfWhy = 6

// Why implements api.Source.
func (d *Daemon) Why(ctx context.Context, a, b netip.Addr) (api.Why, error) {
	w := api.Why{Device: d.cfg.Load().Device.ID}
	err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { c.Why(&w, a, b) })
	if err != nil {
		return w, err
	}
	d.whyHard(ctx, &w, a, b)
	w.Chain = d.chain(&w)
	w.Notices = w.Notices[max(0, len(w.Notices)-noticesOfWhy):]
	health.Explain(&w)
	return w, nil
}

// chain is the way of the last fault of which either was told: the event behind it, and
// every moment that is known up to the ack. Without such a notice, as on a reflector, it is
// the last event of a fault or path of either.
func (d *Daemon) chain(w *api.Why) (steps []api.Step) {
	var last *api.Notice
	for i := range w.Notices {
		if n := &w.Notices[i]; n.FaultAt != nil && n.State == snsd.Inactive {
			last = n
		}
	}
	if last == nil {
		if e := d.causeOf(&w.Hosts[0], &w.Hosts[1], time.Time{}); e != nil {
			steps = append(steps, api.Step{At: e.Time, Device: w.Device, What: e.Text})
		}
		return steps
	}
	subject := &w.Hosts[0]
	if subject.Addr != last.Subject {
		subject = &w.Hosts[1]
	}
	origin, what := w.Device, "fault seen"
	if last.Origin.IsValid() {
		origin = last.Origin
	}
	if e := d.causeOf(subject, nil, *cmp.Or(last.Queued, last.FaultAt)); e != nil {
		what += ": " + e.Text
	}
	add := func(at *time.Time, device netip.Addr, what string) {
		if at == nil {
			return
		}
		s := api.Step{At: *at, Device: device, What: what}
		if n := len(steps); n > 0 {
			if us := at.Sub(steps[n-1].At).Microseconds(); us >= 0 {
				s.After = &us
			}
		}
		steps = append(steps, s)
	}
	add(last.FaultAt, origin, what)
	add(last.DecidedAt, origin, "taken up")
	add(last.SentAt, origin, "sent to the reflectors")
	add(last.ReflectorAt, netip.Addr{}, "read")
	add(last.ReflectedAt, netip.Addr{}, "passed on")
	add(last.ReceivedAt, w.Device, "read")
	add(last.Queued, w.Device, "decided: "+last.Host.String()+" is to be told "+last.State.String()+" ("+last.Reason.String()+")")
	add(last.Sent, w.Device, "notice sent on port "+last.Port)
	add(last.Acked, w.Device, "acked by "+last.Host.String())
	return steps
}

// causeOf finds the last event of a fault or path of these hosts, not later than a second
// after a time (zero: any); nil: the log has none any more.
func (d *Daemon) causeOf(a, b *api.WhyHost, at time.Time) *api.Event {
	var attachments []api.Host
	for _, h := range []*api.WhyHost{a, b} {
		if h != nil {
			attachments = append(attachments, h.Attachments...)
		}
	}
	places := api.PlacesOf(attachments)
	events := d.log.Events(0).Events
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Kind != "fault" && e.Kind != "path" || !at.IsZero() && e.Time.After(at.Add(time.Second)) ||
			e.Fields["change"] == "withdraw" || e.Fields["state"] == "cleared" || e.Fields["state"] == "up" {
			continue
		}
		if places.Concerns(e) {
			return e
		}
	}
	return nil
}
