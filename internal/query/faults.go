package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var faults = list[api.ErrorDown]{
	name: "error-down", short: "Ports with a fault: cause, recovery, flaps",
	read: func(ctx context.Context, src Source, _ Asked) (list []api.ErrorDown, err error) {
		err = src.Do(ctx, func(c *device.Core, now time.Time) { list = c.ErrorDown(now) })
		return list, err
	},
	order: func(a, b api.ErrorDown) int {
		return cmp.Or(api.ComparePorts(a.Port, b.Port), cmp.Compare(a.Cause, b.Cause))
	},
	filters: []filter[api.ErrorDown]{
		equal(Filter{Name: "port", Usage: "only this port", Words: PortNames}, func(e *api.ErrorDown) string { return e.Port }),
	},
	columns: []column[api.ErrorDown]{
		{"PORT", func(e *api.ErrorDown, _ *Page) string { return e.Port }},
		{"CAUSE", func(e *api.ErrorDown, _ *Page) string { return e.Cause }},
		{"REASON", func(e *api.ErrorDown, _ *Page) string { return Because(e.Reason) }},
		{"FOR", func(e *api.ErrorDown, p *Page) string { return p.Ago(e.Since) }},
		{"RECOVERY", func(e *api.ErrorDown, _ *Page) string { return unless(e.Recovery, "off") }},
		{"TIME-LEFT", func(e *api.ErrorDown, _ *Page) string { return unless(e.TimeLeft, "") }},
		{"FLAPS-NOW/ALL", func(e *api.ErrorDown, _ *Page) string { return fmt.Sprintf("%d/%d", e.FlapsInWindow, e.Flaps) }},
		{"LAST-FLAP", func(e *api.ErrorDown, p *Page) string { return p.Ago(e.LastFlap) }},
	},
}.query()

// unless gives a time, or what stands for none.
func unless(d api.Duration, none string) string {
	if d <= 0 {
		return none
	}
	return Human(time.Duration(d))
}
