package query

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/openinof/inof/internal/api"
)

// Filter narrows a query: a parameter of the path, a flag or the argument of the command.
type Filter struct {
	Name    string // of the parameter
	Flag    string // of the command, where that has another name
	Word    string // of the argument, as ADDRESS
	Usage   string
	Kind    Kind
	Options []string // all it may be; nil: anything of its kind
	Words   Words
	Default string // of the flag
	Hidden  bool   // for programs: no flag
}

// Kind is what a filter takes.
type Kind int

// The values of Kind.
const (
	Text    Kind = iota
	Address      // an IP address
	Number       // a whole number from 0 on
	Yes          // true or false
)

// Words are what completion offers.
type Words int

// The values of Words.
const (
	NoWords Words = iota
	PortNames
	HostAddrs
	ZoneNames
)

// Flag is one of the command alone: another way to show an answer, or a look at it.
type Flag struct {
	Name, Usage string
	// Finding says what is wrong with what an answer tells, so that the command ends with
	// exit code 3; nil: it only shows differently.
	Finding func(answer []byte) string
}

// Check says what is wrong with a value; nil: nothing.
func (f *Filter) Check(v string) error {
	switch {
	case f.Options != nil && !slices.Contains(f.Options, v):
		return fmt.Errorf("%q, allowed: one of %s", v, strings.Join(f.Options, ", "))
	case f.Kind == Address:
		if _, err := netip.ParseAddr(v); err != nil {
			return fmt.Errorf("%q is not an IP address", v)
		}
	case f.Kind == Number:
		if _, err := strconv.ParseUint(v, 10, 63); err != nil {
			return fmt.Errorf("%q, allowed: a whole number from 0 on", v)
		}
	case f.Kind == Yes && v != "true" && v != "false":
		return fmt.Errorf("%q, allowed: true, false", v)
	}
	return nil
}

// check refuses parameters that are not known, given twice or wrong.
func (q *Query) check(f Asked) error {
	all := q.all()
	var known []string
	for _, x := range all {
		known = append(known, x.Name)
	}
	if err := api.CheckParameters(f.Values, known); err != nil {
		return err
	}
	for _, x := range all {
		if v := f.Get(x.Name); v != "" {
			if err := x.Check(v); err != nil {
				return fmt.Errorf("%w: parameter %s: %w", api.ErrInvalid, x.Name, err)
			}
		}
	}
	return nil
}

// all are the filters, that of the argument first.
func (q *Query) all() []Filter {
	if q.Arg == nil {
		return q.Filters
	}
	return append([]Filter{*q.Arg}, q.Filters...)
}

// Asked are the values of filters, which were checked, and of flags.
type Asked struct{ url.Values }

// Addr is an address; invalid: it was not asked for.
func (f Asked) Addr(name string) netip.Addr {
	a, _ := netip.ParseAddr(f.Get(name))
	return a.Unmap()
}

// Number is a number; 0: it was not asked for.
func (f Asked) Number(name string) int {
	n, _ := strconv.Atoi(f.Get(name))
	return n
}

// Yes reports whether something was asked for.
func (f Asked) Yes(name string) bool { return f.Get(name) == "true" }

// filter is a Filter with what it does; match nil: Read does it.
type filter[T any] struct {
	Filter
	match func(want string) func(*T) bool
}

// equal is a filter for one text of a row.
func equal[T any](f Filter, of func(*T) string) filter[T] {
	return filter[T]{f, func(want string) func(*T) bool { return func(row *T) bool { return of(row) == want } }}
}

// at is a filter for one address of a row.
func at[T any](f Filter, of func(*T) netip.Addr) filter[T] {
	f.Kind = Address
	return filter[T]{f, func(want string) func(*T) bool {
		addr, _ := netip.ParseAddr(want)
		addr = addr.Unmap()
		return func(row *T) bool { return of(row) == addr }
	}}
}

// having is a filter for one of several texts of a row.
func having[T any](f Filter, of func(*T) []string) filter[T] {
	return filter[T]{f, func(want string) func(*T) bool {
		return func(row *T) bool { return slices.Contains(of(row), want) }
	}}
}

// limit keeps the newest rows.
func limit[T any]() filter[T] {
	return filter[T]{Filter: Filter{Name: "limit", Usage: "newest ones to show, 0 for all", Kind: Number, Default: "50"}}
}
