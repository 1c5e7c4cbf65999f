package query

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var faults = list[api.ErrorDown]{
	name: "error-down", short: "Ports with a fault: cause, recovery, flaps",
	rows: func(c *device.Core, list []api.ErrorDown, _ string, now time.Time) []api.ErrorDown {
		return append(list, c.ErrorDown(now)...)
	},
	order: func(a, b api.ErrorDown) int {
		return cmp.Or(api.ComparePorts(a.Port, b.Port), cmp.Compare(a.Cause, b.Cause))
	},
	filters: []filter[api.ErrorDown]{
		{Filter{"port", "only this port", PortNames}, func(e *api.ErrorDown, want string) bool { return e.Port == want }},
	},
	columns: []column[api.ErrorDown]{
		{"PORT", func(e *api.ErrorDown, _ time.Time) string { return e.Port }},
		{"CAUSE", func(e *api.ErrorDown, _ time.Time) string { return e.Cause }},
		{"REASON", func(e *api.ErrorDown, _ time.Time) string { return Because(e.Reason) }},
		{"FOR", func(e *api.ErrorDown, now time.Time) string { return Ago(e.Since, now) }},
		{"RECOVERY", func(e *api.ErrorDown, _ time.Time) string { return unless(e.Recovery, "off") }},
		{"TIME-LEFT", func(e *api.ErrorDown, _ time.Time) string { return unless(e.TimeLeft, "") }},
		{"FLAPS-NOW/ALL", func(e *api.ErrorDown, _ time.Time) string { return fmt.Sprintf("%d/%d", e.FlapsInWindow, e.Flaps) }},
		{"LAST-FLAP", func(e *api.ErrorDown, now time.Time) string { return Ago(e.LastFlap, now) }},
	},
}.query()

// unless gives a time, or what stands for none.
func unless(d api.Duration, none string) string {
	if d <= 0 {
		return none
	}
	return Human(time.Duration(d))
}
