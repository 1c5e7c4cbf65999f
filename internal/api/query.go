package api

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// EventQuery narrows the events.
type EventQuery struct {
	After uint64 // only events with a larger ID; 0: all that are held
	Kind  string
	Port  string
	Addr  string
}

// Match reports whether the query asks for e; After is not looked at.
func (q EventQuery) Match(e *Event) bool {
	return (q.Kind == "" || e.Kind == q.Kind) &&
		(q.Port == "" || e.Port == q.Port) &&
		(q.Addr == "" || e.Addr == q.Addr)
}

// filter keeps what matches, in place.
func filter[T any](list []T, match func(*T) bool) []T {
	out := list[:0]
	for i := range list {
		if match(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// params reads query parameters strictly: close reports the unknown and the
// repeated ones, each getter what it cannot read. The first error counts.
type params struct {
	values url.Values
	known  []string
	err    error
}

func (p *params) fail(name, value, allowed string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: parameter %s=%q, allowed: %s", ErrInvalid, name, value, allowed)
	}
}

func (p *params) text(name string) string {
	p.known = append(p.known, name)
	return p.values.Get(name)
}

func (p *params) addr(name string) netip.Addr {
	v := p.text(name)
	if v == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(v)
	if err != nil {
		p.fail(name, v, "an IP address")
	}
	return a.Unmap()
}

func (p *params) choice(name string, options ...string) string {
	v := p.text(name)
	if v != "" && !slices.Contains(options, v) {
		p.fail(name, v, strings.Join(options, ", "))
	}
	return v
}

func (p *params) number(name string, bits int) uint64 {
	v := p.text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, bits)
	if err != nil {
		p.fail(name, v, "a whole number")
	}
	return n
}

func (p *params) close() error {
	for name, v := range p.values {
		if !slices.Contains(p.known, name) {
			allowed := "none here"
			if len(p.known) > 0 {
				allowed = strings.Join(p.known, ", ")
			}
			p.fail(name, strings.Join(v, ","), "the parameters "+allowed)
		} else if len(v) > 1 {
			p.fail(name, strings.Join(v, ","), "one value")
		}
	}
	return p.err
}

// CheckParameters refuses parameters that are not known, or given twice.
func CheckParameters(values url.Values, known []string) error {
	p := params{values: values, known: known}
	return p.close()
}

// set adds parameters that are not zero; the client's half of params.
func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setNumber(v url.Values, name string, n uint64) {
	if n > 0 {
		v.Set(name, strconv.FormatUint(n, 10))
	}
}

func (q EventQuery) values() url.Values {
	v := url.Values{}
	setNumber(v, "after", q.After)
	set(v, "kind", q.Kind)
	set(v, "port", q.Port)
	set(v, "addr", q.Addr)
	return v
}
