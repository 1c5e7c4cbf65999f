package query

import (
	"context"

	"github.com/openinof/inof/internal/api"
)

// EventFilters narrow events, also those that are followed.
var EventFilters = []Filter{
	{Name: "kind", Usage: "only events of this kind (port, host, zone, peer, fault, ...)"},
	{Name: "port", Usage: "only events of this port", Words: PortNames},
	{Name: "addr", Flag: "host", Usage: "only events about this host address, and of the faults and paths where it is"},
	{Name: "after", Usage: "only events after this ID", Kind: Number, Hidden: true},
}

// EventQuery is what was asked for.
func EventQuery(f Asked) api.EventQuery {
	return api.EventQuery{After: uint64(f.Number("after")), Kind: f.Get("kind"), Port: f.Get("port"), Addr: f.Get("addr")}
}

var events = list[api.Event]{
	name: "event", path: "events", short: "What happened lately (watch follows it)",
	read: func(ctx context.Context, src Source, f Asked) ([]api.Event, error) {
		return src.ListEvents(ctx, EventQuery(f))
	},
	filters: func() (out []filter[api.Event]) {
		for _, f := range EventFilters {
			out = append(out, filter[api.Event]{Filter: f}) // read obeys them
		}
		return append(out, limit[api.Event]())
	}(),
	columns: []column[api.Event]{
		{"TIME", func(e *api.Event, p *Page) string { return p.Stamp(e.Time) }},
		{"KIND", func(e *api.Event, _ *Page) string { return e.Kind }},
		{"EVENT", func(e *api.Event, _ *Page) string { return e.Text }},
	},
}.query()
