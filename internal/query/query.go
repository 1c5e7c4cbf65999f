// Package query has what operators can ask a daemon for as a list. One registration, in a
// file of its own and a line of All, gives the path of the API, the command of
// inofctl with its table and -o json, the filters and their completion.
package query

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

// All are the queries there are.
var All = []Query{neighbours, faults}

// Query is one of them: GET /v1/NAME, inofctl show NAME.
type Query struct {
	Name, Short string
	Filters     []Filter
	// Rows asks the owner of a Core for all rows, a part of a large table at a time.
	Rows func(ctx context.Context, do Owner) (any, error)
	// Pick filters and sorts rows; the error wraps api.ErrInvalid.
	Pick func(rows any, filters url.Values) (any, error)
	// Table prints an answer of the API.
	Table func(w io.Writer, answer json.RawMessage, now time.Time) error
}

// Filter narrows a query: a parameter of the path, a flag of the command.
type Filter struct {
	Name, Usage string
	Words       Words
}

// Words are what completion offers.
type Words int

// The values of Words.
const (
	NoWords Words = iota
	PortNames
	HostAddrs
	ZoneNames
)

// Owner runs a function in the goroutine that owns the Core.
type Owner func(ctx context.Context, fn func(c *device.Core, now time.Time)) error

// Served is what the API needs of the queries; rows gives those of one.
func Served(rows func(ctx context.Context, q *Query) (any, error)) []api.Served {
	out := make([]api.Served, len(All))
	for i := range All {
		q := &All[i]
		out[i] = api.Served{Name: q.Name, Answer: func(ctx context.Context, filters url.Values) (any, error) {
			var known []string
			for _, f := range q.Filters {
				known = append(known, f.Name)
			}
			if err := api.CheckParameters(filters, known); err != nil {
				return nil, err
			}
			list, err := rows(ctx, q)
			if err != nil {
				return nil, err
			}
			return q.Pick(list, filters)
		}}
	}
	return out
}

// list is a Query as its file declares it.
type list[T any] struct {
	name, short string
	// rows appends those of one part.
	rows func(c *device.Core, list []T, part string, now time.Time) []T
	// parts names the pieces in which a large table is read, so that no fault waits for
	// a reader; nil: it is small.
	parts   func(c *device.Core) []string
	order   func(a, b T) int
	filters []filter[T]
	columns []column[T]
}

type filter[T any] struct {
	Filter
	match func(row *T, want string) bool
}

type column[T any] struct {
	head string
	cell func(row *T, now time.Time) string
}

func (l list[T]) query() Query {
	q := Query{Name: l.name, Short: l.short}
	for _, f := range l.filters {
		q.Filters = append(q.Filters, f.Filter)
	}
	q.Rows = func(ctx context.Context, do Owner) (any, error) {
		parts, rows := []string{""}, []T{}
		if l.parts != nil {
			if err := do(ctx, func(c *device.Core, _ time.Time) { parts = l.parts(c) }); err != nil {
				return nil, err
			}
		}
		for _, part := range parts {
			if err := do(ctx, func(c *device.Core, now time.Time) { rows = l.rows(c, rows, part, now) }); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}
	q.Pick = func(rows any, filters url.Values) (any, error) {
		out := []T{}
		all, _ := rows.([]T) // none: nothing to show
		for _, row := range all {
			if !slices.ContainsFunc(l.filters, func(f filter[T]) bool {
				want := filters.Get(f.Name)
				return want != "" && !f.match(&row, want)
			}) {
				out = append(out, row)
			}
		}
		slices.SortStableFunc(out, l.order)
		return out, nil
	}
	q.Table = func(w io.Writer, answer json.RawMessage, now time.Time) error {
		var rows []T
		if err := json.Unmarshal(answer, &rows); err != nil {
			return err
		}
		cells := make([][]string, len(rows))
		for i := range rows {
			for _, c := range l.columns {
				cells[i] = append(cells[i], c.cell(&rows[i], now))
			}
		}
		header := ""
		for _, c := range l.columns {
			header += " " + c.head
		}
		Table(w, header, cells)
		return nil
	}
	return q
}
