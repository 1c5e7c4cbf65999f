package query

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/openinof/inof/internal/api"
)

var counters = list[api.Counter]{
	name: "counter", path: "counters", short: "What the daemon counts, room by room (docs/counters.md)",
	read: func(ctx context.Context, src Source, _ Asked) ([]api.Counter, error) {
		s, err := src.Status(ctx)
		if err != nil {
			return nil, err
		}
		return Counters(s.Counters)
	},
	order:   func(a, b api.Counter) int { return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Name, b.Name)) },
	arg:     &filter[api.Counter]{Filter{Name: "room", Word: "ROOM"}, equal(Filter{}, func(c *api.Counter) string { return c.Room }).match},
	none:    "there are no counters of %q",
	columns: counterColumns,
}.query()

var counterColumns = []column[api.Counter]{
	{"ROOM", func(c *api.Counter, _ *Page) string { return c.Room }},
	{"COUNTER", func(c *api.Counter, _ *Page) string { return c.Name }},
	{"VALUE", func(c *api.Counter, _ *Page) string { return strconv.FormatFloat(c.Value, 'f', -1, 64) }},
}

// Counters are the numbers in what rooms count, with the names of what they are in.
func Counters(rooms map[string]any) (out []api.Counter, err error) {
	text, err := json.Marshal(rooms)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	var walk func(room, name string, v any)
	walk = func(room, name string, v any) {
		switch v := v.(type) {
		case float64:
			out = append(out, api.Counter{Room: room, Name: name, Value: v})
		case map[string]any:
			for key, x := range v {
				if name != "" {
					key = name + "." + key
				}
				walk(room, key, x)
			}
		}
	}
	for room, v := range values {
		walk(room, "", v)
	}
	return out, nil
}
