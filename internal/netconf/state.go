package netconf

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone/tree"
)

// This file makes trees of what is known.

// maxValues bounds how many values one reply has: all leaves of 80,000 hosts.
const maxValues = 1_500_000

// known gives the tree of values below /inof. The keys of a list are the first in its entries.
func known(values telemetry.Tree) (*element, error) {
	if len(values) > maxValues {
		return nil, refusef(tagTooBig, "%d values, at most %d: ask for less by a filter", len(values), maxValues)
	}
	root := el(tree.Namespace, "inof")
	b := builder{at: map[string]*element{"": root}}
	for i := range values {
		v := &values[i]
		rest, ours := strings.CutPrefix(v.Leaf.Path, "/inof/")
		if !ours || !v.Leaf.Model() {
			continue
		}
		b.put(rest, v)
	}
	return root, nil
}

// builder finds the containers that are there.
type builder struct {
	at   map[string]*element // by path with keys
	last struct {            // values of one container follow each other
		path string
		keys []string
		e    *element
	}
}

func (b *builder) put(path string, v *telemetry.Value) {
	i := strings.LastIndexByte(path, '/')
	around, name := path[:max(i, 0)], path[i+1:]
	e := b.last.e
	if e == nil || b.last.path != around || !slices.Equal(b.last.keys, v.Keys) {
		e = b.container(around, v.Keys)
		b.last.path, b.last.keys, b.last.e = around, v.Keys, e
	}
	for _, text := range texts(v) {
		e.kids = append(e.kids, leafOf(tree.Namespace, name, text))
	}
}

// container gives the element of a path, made where it is not there.
func (b *builder) container(path string, keys []string) *element {
	e, where := b.at[""], ""
	for path != "" {
		var step string
		step, path = cutStep(path)
		name, list, isList := strings.Cut(step, "[")
		names := strings.Fields(strings.TrimSuffix(list, "]"))
		where += "/" + name
		if isList {
			where += "\x00" + strings.Join(keys[:len(names)], "\x00")
		}
		next := b.at[where]
		if next == nil {
			next = el(tree.Namespace, name)
			for i, k := range names {
				next.kids = append(next.kids, leafOf(tree.Namespace, k, keys[i]))
			}
			next.keys = len(names)
			e.kids = append(e.kids, next)
			b.at[where] = next
		}
		keys = keys[len(names):]
		e = next
	}
	return e
}

// cutStep gives the first step of a path, keys have no slash.
func cutStep(path string) (step, rest string) {
	step, rest, _ = strings.Cut(path, "/")
	return step, rest
}

// texts gives a value as XML has it (RFC 7950 section 9).
func texts(v *telemetry.Value) []string {
	switch x := v.V.(type) {
	case []string:
		return x
	case string:
		return []string{x}
	case bool:
		return []string{strconv.FormatBool(x)}
	case uint64:
		return []string{strconv.FormatUint(x, 10)}
	case int64:
		return []string{strconv.FormatInt(x, 10)}
	case float64:
		if !(math.Abs(x) < 1e15) { // decimal64 has nothing for it
			return nil
		}
		return []string{strconv.FormatFloat(x, 'f', telemetry.Digits, 64)}
	case time.Time:
		return []string{strconv.FormatInt(x.UnixNano(), 10)}
	case time.Duration:
		return []string{strconv.FormatInt(int64(x), 10)}
	}
	return nil
}
