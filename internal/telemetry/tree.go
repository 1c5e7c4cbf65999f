package telemetry

import (
	"reflect"
	"strings"
	"time"
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

// id tells apart what a tree holds.
type id struct {
	leaf *Leaf
	keys string
}

func (v *Value) id() id { return id{v.Leaf, strings.Join(v.Keys, "\x00")} }

// Diff says what is new or another than before, and what is gone (with its last value).
func Diff(before, now Tree) (changed, gone Tree) {
	old := make(map[id]*Value, len(before))
	for i := range before {
		old[before[i].id()] = &before[i]
	}
	for i := range now {
		key := now[i].id()
		if was, ok := old[key]; !ok || !equal(was.V, now[i].V) {
			changed = append(changed, now[i])
		}
		delete(old, key)
	}
	for i := range before {
		if old[before[i].id()] != nil {
			gone = append(gone, before[i])
		}
	}
	return changed, gone
}

func equal(a, b any) bool {
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	}
	return reflect.DeepEqual(a, b)
}
