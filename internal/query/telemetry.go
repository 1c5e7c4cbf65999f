package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openinof/inof/internal/api"
)

var leaves = list[api.Leaf]{
	name: "telemetry", short: "All that can be known of the device, leaf by leaf (docs/telemetry.md), or what begins with a path",
	long: "Hosts, zones and LLDP neighbours are given only to a path that begins there: /inof/hosts, /inof/zones, /lldp/interfaces.",
	read: func(ctx context.Context, src Source, f Asked) (out []api.Leaf, err error) {
		tree, err := src.Telemetry(ctx, f.Get("path"))
		for i := range tree {
			v := &tree[i]
			out = append(out, api.Leaf{Path: v.Path(), Value: v.V, Unit: v.Leaf.Unit, Class: string(v.Leaf.Class), Time: v.At})
		}
		return out, err
	},
	arg: &filter[api.Leaf]{Filter{Name: "path", Word: "PATH"}, func(want string) func(*api.Leaf) bool {
		return func(l *api.Leaf) bool { return strings.HasPrefix(l.Path, want) }
	}},
	none: "nothing is known at %s",
	columns: []column[api.Leaf]{
		{"PATH", func(l *api.Leaf, _ *Page) string { return l.Path }},
		{"VALUE", func(l *api.Leaf, _ *Page) string {
			if text, ok := l.Value.(string); ok {
				return text
			}
			text, err := json.Marshal(l.Value)
			if err != nil {
				return fmt.Sprint(l.Value)
			}
			return string(text)
		}},
		{"UNIT", func(l *api.Leaf, _ *Page) string { return l.Unit }},
		{"READ", func(l *api.Leaf, p *Page) string { return p.Stamp(l.Time) }},
	},
}.query()
