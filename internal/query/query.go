// Package query has what operators can ask a daemon for. One registration, in a file of its
// own and a word of All, gives the path of the API, the command of inofctl with its table and
// -o json, the filters, and what completion offers.
package query

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
)

// All are the queries there are.
var All = []Query{status, hosts, zones, peers, ports, neighbours, faults, paths, notices, fences, latencies, events, counters, members, leaves}

// Query is one of them: GET /v1/PATH, inofctl show NAME.
type Query struct {
	Name, Path, Short, Long, Example string
	// Arg is the filter that is an argument of the command; nil: none.
	Arg     *Filter
	Filters []Filter
	Flags   []Flag
	// Read asks a daemon, and may leave out what the filters do.
	Read func(ctx context.Context, src Source, f Asked) (any, error)
	// Pick filters and sorts what was read.
	Pick func(read any, f Asked) (any, error)
	// Show prints an answer of the API; an error says that there is nothing of that kind.
	Show func(p *Page, answer json.RawMessage, f Asked) error
	// Empty says what there is none of, in an answer to a command with an argument; or nothing.
	Empty func(answer json.RawMessage, arg string) string
}

// Source is what a daemon has for queries. Do runs a function in the goroutine that owns the
// Core; large tables are read in parts, so that no fault waits for a reader.
type Source interface {
	Do(ctx context.Context, fn func(c *device.Core, now time.Time)) error
	Status(ctx context.Context) (api.Status, error)
	Peers(ctx context.Context) ([]api.Peer, error)
	Ports(ctx context.Context) ([]api.Port, error)
	Latency(ctx context.Context) (api.Latency, error)
	BFD(ctx context.Context) (api.BFD, error)
	Cluster(ctx context.Context) (api.Cluster, error)
	ListEvents(ctx context.Context, q api.EventQuery) ([]api.Event, error)
	// AddFenceCounts adds how many frames the blocks of this device have dropped.
	AddFenceCounts(ctx context.Context, list []api.Fence) error
	Telemetry(ctx context.Context, path string) (telemetry.Tree, error)
}

// chunk is how many rows of a large table one turn of the owner goroutine reads.
const chunk = 256

// Served is what the API needs of the queries; read gives what Query.Read does.
func Served(read func(ctx context.Context, q *Query, f Asked) (any, error)) []api.Served {
	out := make([]api.Served, len(All))
	for i := range All {
		q := &All[i]
		out[i] = api.Served{Name: q.Path, Answer: func(ctx context.Context, values url.Values) (any, error) {
			f := Asked{values}
			if err := q.check(f); err != nil {
				return nil, err
			}
			rows, err := read(ctx, q, f)
			if err != nil {
				return nil, err
			}
			return q.Pick(rows, f)
		}}
	}
	return out
}

// object is a Query as its file declares it: an answer A in which there is a list of T. Of a
// list, A is []T.
type object[A, T any] struct {
	name, path, short, long, example string

	read  func(ctx context.Context, src Source, f Asked) (A, error)
	rows  func(*A) *[]T // nil: there is none
	order func(a, b T) int
	whole func(*A) // makes empty lists of none, for JSON

	arg     *filter[T]
	none    string // what there is none of, with %s for the argument
	filters []filter[T]
	flags   []Flag

	// A table of columns, or show; and details of each row where an argument is given.
	columns []column[T]
	show    func(p *Page, a *A, f Asked)
	details func(p *Page, row *T)
}

type column[T any] struct {
	head string
	cell func(row *T, p *Page) string
}

// list is an object that is nothing but a list.
type list[T any] object[[]T, T]

func (l list[T]) query() Query {
	o := object[[]T, T](l)
	o.rows = func(a *[]T) *[]T { return a }
	return o.query()
}

func (o object[A, T]) query() Query {
	q := Query{Name: o.name, Path: o.path, Short: o.short, Long: o.long, Example: o.example, Flags: o.flags}
	if q.Path == "" {
		q.Path = q.Name
	}
	all := o.filters
	if o.arg != nil {
		q.Arg, all = &o.arg.Filter, append([]filter[T]{*o.arg}, all...)
	}
	for _, f := range o.filters {
		q.Filters = append(q.Filters, f.Filter)
	}
	q.Read = func(ctx context.Context, src Source, f Asked) (any, error) { return o.read(ctx, src, f) }
	q.Pick = func(read any, f Asked) (any, error) {
		a, _ := read.(A) // none: nothing to show
		o.pick(&a, all, f)
		return a, nil
	}
	q.Show = func(p *Page, answer json.RawMessage, f Asked) error {
		var a A
		if err := json.Unmarshal(answer, &a); err != nil {
			return fmt.Errorf("answer of inofd to /v1/%s: %w", q.Path, err)
		}
		o.print(p, &a, f)
		return nil
	}
	q.Empty = func(answer json.RawMessage, arg string) string {
		var a A
		if o.arg == nil || json.Unmarshal(answer, &a) != nil || len(*o.rows(&a)) > 0 {
			return ""
		}
		return fmt.Sprintf(o.none, arg)
	}
	return q
}

// pick filters and sorts the list of an answer.
func (o *object[A, T]) pick(a *A, filters []filter[T], f Asked) {
	if o.rows != nil {
		var match []func(*T) bool
		for _, x := range filters {
			if want := f.Get(x.Name); want != "" && x.match != nil {
				match = append(match, x.match(want))
			}
		}
		out := []T{}
		list := o.rows(a)
		for i := range *list {
			if !slices.ContainsFunc(match, func(m func(*T) bool) bool { return !m(&(*list)[i]) }) {
				out = append(out, (*list)[i])
			}
		}
		if o.order != nil {
			slices.SortStableFunc(out, o.order)
		}
		if n := f.Number("limit"); n > 0 && n < len(out) {
			out = out[len(out)-n:]
		}
		*list = out
	}
	if o.whole != nil {
		o.whole(a)
	}
}

// print writes an answer for people.
func (o *object[A, T]) print(p *Page, a *A, f Asked) {
	switch {
	case o.details != nil && f.Get(o.arg.Name) != "":
		rows := *o.rows(a)
		for i := range rows {
			if i > 0 {
				fmt.Fprintln(p)
			}
			o.details(p, &rows[i])
		}
	case o.show != nil:
		o.show(p, a, f)
	default:
		p.rows(tableOf(p, *o.rows(a), o.columns))
	}
}

func tableOf[T any](p *Page, rows []T, columns []column[T]) (header string, cells [][]string) {
	cells = make([][]string, len(rows))
	for i := range rows {
		for _, c := range columns {
			cells[i] = append(cells[i], c.cell(&rows[i], p))
		}
	}
	for _, c := range columns {
		header += " " + c.head
	}
	return header, cells
}
