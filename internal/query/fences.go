package query

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var fences = list[api.Fence]{
	name: "fence", short: "What is blocked between arrays and hosts that lost a path",
	long: "Blocks of this device, and those of others that it was notified of. A block drops what a host that lost a path has still under way to an array, so that " +
		"no old copy of a write overwrites a newer one; it is confirmed once nothing from before is in the port's queue.",
	read: func(ctx context.Context, src Source, _ Asked) (list []api.Fence, err error) {
		err = src.Do(ctx, func(c *device.Core, now time.Time) { list = c.Fences() })
		if err != nil {
			return nil, err
		}
		return list, src.AddFenceCounts(ctx, list)
	},
	order: func(a, b api.Fence) int {
		return cmp.Or(a.Device.Compare(b.Device), api.ComparePorts(a.Port, b.Port), a.Array.Compare(b.Array), a.Host.Compare(b.Host))
	},
	filters: []filter[api.Fence]{
		equal(Filter{Name: "port", Usage: "only this port", Words: PortNames}, func(f *api.Fence) string { return f.Port }),
		at(Filter{Name: "array", Usage: "only this array"}, func(f *api.Fence) netip.Addr { return f.Array }),
		at(Filter{Name: "host", Usage: "only this host"}, func(f *api.Fence) netip.Addr { return f.Host }),
	},
	columns: []column[api.Fence]{
		{"DEVICE", func(f *api.Fence, _ *Page) string { return Addr(f.Device) }},
		{"PORT", func(f *api.Fence, _ *Page) string { return f.Port }},
		{"ARRAY", func(f *api.Fence, _ *Page) string { return cmp.Or(Addr(f.Array), "all") }},
		{"HOST", func(f *api.Fence, _ *Page) string { return cmp.Or(Addr(f.Host), "all") }},
		{"SINCE", func(f *api.Fence, p *Page) string {
			if f.Since == nil {
				return ""
			}
			return p.Stamp(*f.Since)
		}},
		{"UNTIL", func(f *api.Fence, p *Page) string {
			if f.Until == nil {
				return ""
			}
			return p.Stamp(*f.Until)
		}},
		{"DROPPED", func(f *api.Fence, _ *Page) string {
			if f.Dropped == nil {
				return ""
			}
			return Count(*f.Dropped)
		}},
		{"FENCED", func(f *api.Fence, _ *Page) string { return f.Fenced }},
	},
}.query()
