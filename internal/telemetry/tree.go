package telemetry

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// Module is the name of the YANG module of the leaves below /inof, and of its root.
const (
	Module    = "openinof-inof"
	Namespace = "urn:openinof:yang:inof"
	Revision  = "2026-11-22"
	root      = "inof"
)

// Value is what a leaf was when it was read.
type Value struct {
	Leaf *Leaf
	Keys []string // of the lists on its path, in their order
	// V is a bool, string, uint64, int64, float64, time.Time, time.Duration or Histogram.
	V  any
	At time.Time // when it was read
}

// Path is that of the leaf with the keys in their places: /inof/paths/path[device=192.0.2.1]/flaps.
func (v *Value) Path() string {
	var b strings.Builder
	keys := v.Keys
	for rest := v.Leaf.Path; rest != ""; {
		head, list, _ := strings.Cut(rest, "[")
		names, tail, _ := strings.Cut(list, "]")
		b.WriteString(head)
		for name := range strings.FieldsSeq(names) {
			b.WriteString("[" + name + "=" + escape.Replace(keys[0]) + "]")
			keys = keys[1:]
		}
		rest = tail
	}
	return b.String()
}

// escape is for keys in a path (gNMI path conventions).
var escape = strings.NewReplacer(`\`, `\\`, `]`, `\]`)

// Tree is what is known at a moment, in the order of the table.
type Tree []Value

// Read gives what a snapshot tells.
func Read(s *Snapshot) (t Tree) {
	for _, p := range table {
		p.read(s, func(v Value) { t = append(t, v) })
	}
	return t
}

// ReadOf is Read of the groups of these leaves alone.
func ReadOf(s *Snapshot, wanted map[*Leaf]bool) (t Tree) {
	for _, p := range table {
		if slices.ContainsFunc(p.leaves, func(l *Leaf) bool { return wanted[l] }) {
			p.read(s, func(v Value) { t = append(t, v) })
		}
	}
	return t
}

// id tells apart what a tree holds.
type id struct {
	leaf *Leaf
	keys string
}

// byLeaf are the places of the values of each leaf.
func (t Tree) byLeaf() map[*Leaf][]int {
	out := map[*Leaf][]int{}
	for i := range t {
		out[t[i].Leaf] = append(out[t[i].Leaf], i)
	}
	return out
}

// Diff says what is new or another than before, and what is gone (with its last value).
func Diff(before, now Tree) (changed, gone Tree) {
	old := before.byLeaf()
	kept := make([]bool, len(before))
	for leaf, places := range now.byLeaf() {
		was := old[leaf]
		find := finder(before, was)
		for n, i := range places {
			j := find(n, now[i].Keys)
			if j < 0 {
				changed = append(changed, now[i])
				continue
			}
			if kept[j] = true; !Equal(before[j].V, now[i].V) {
				changed = append(changed, now[i])
			}
		}
	}
	for i := range before {
		if !kept[i] {
			gone = append(gone, before[i])
		}
	}
	return changed, gone
}

// finder finds among the places of one leaf the one with the same keys, or -1. It looks at the n-th
// first: mostly nothing has come or gone.
func finder(t Tree, places []int) func(n int, keys []string) int {
	var index map[string]int
	return func(n int, keys []string) int {
		if n < len(places) && slices.Equal(t[places[n]].Keys, keys) {
			return places[n]
		}
		if index == nil {
			index = make(map[string]int, len(places))
			for _, i := range places {
				index[strings.Join(t[i].Keys, "\x00")] = i
			}
		}
		if i, ok := index[strings.Join(keys, "\x00")]; ok {
			return i
		}
		return -1
	}
}

// Hold puts into now, in place of counters and gauges that were there before, what they were then:
// what is compared at a pace of its own does not move when something else is read in between.
func Hold(before, now Tree) {
	old := before.byLeaf()
	for leaf, places := range now.byLeaf() {
		if leaf.Class != Counter && leaf.Class != Gauge {
			continue
		}
		find := finder(before, old[leaf])
		for n, i := range places {
			if j := find(n, now[i].Keys); j >= 0 {
				now[i] = before[j]
			}
		}
	}
}

// Equal reports whether two values of a leaf are the same.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case []string:
		y, ok := b.([]string)
		return ok && slices.Equal(x, y)
	case Histogram:
		return reflect.DeepEqual(a, b)
	}
	return a == b // the others are comparable
}
