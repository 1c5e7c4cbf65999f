package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/model"
)

// Problem is one thing that is wrong in a scenario file.
type Problem struct {
	File string
	Line int
	Key  string
	What string
}

func (p Problem) Error() string {
	if p.Key == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Key, p.What)
}

// maxProblems bounds how many problems of one file are reported.
const maxProblems = 50

// decoder fills structs from YAML nodes. A struct field named Line takes the line of
// its mapping.
type decoder struct {
	file     string
	problems []error
}

func (d *decoder) problem(line int, key, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{d.file, line, key, fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) err() error { return errors.Join(d.problems...) }

// document reads exactly one YAML document.
func (d *decoder) document(data []byte, into any) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var n, more yaml.Node
	if err := dec.Decode(&n); err != nil {
		line := 1
		text := err.Error()
		if _, rest, ok := strings.Cut(text, "line "); ok {
			if n, what, ok := strings.Cut(rest, ": "); ok {
				if k, err := strconv.Atoi(n); err == nil {
					line, text = k, what
				}
			}
		}
		d.problem(line, "", "%s", text)
		return
	}
	if err := dec.Decode(&more); err != io.EOF {
		d.problem(more.Line, "", "a second document; a scenario is one")
		return
	}
	d.root(&n, into)
}

// root fills a struct from a document.
func (d *decoder) root(n *yaml.Node, into any) {
	d.value(n.Content[0], "", reflect.ValueOf(into).Elem())
}

var (
	timeType = reflect.TypeFor[model.Time]()
	rateType = reflect.TypeFor[model.Rate]()
	sizeType = reflect.TypeFor[model.Size]()
)

// Size is a number of bytes, written with or without a unit.
type Size = model.Size

func (d *decoder) value(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		d.problem(n.Line, key, "aliases are not allowed")
		return
	}
	switch v.Type() {
	case timeType:
		unit(d, n, key, v, model.ParseTime)
		return
	case rateType:
		unit(d, n, key, v, model.ParseRate)
		return
	case sizeType:
		unit(d, n, key, v, model.ParseSize)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, key, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, key, v.Elem())
	case reflect.Slice:
		d.sequence(n, key, v)
	default:
		d.scalar(n, key, v)
	}
}

func unit[T ~int64](d *decoder, n *yaml.Node, key string, v reflect.Value, parse func(string) (T, error)) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n.Line, key, "want one value")
		return
	}
	x, err := parse(n.Value)
	if err != nil {
		d.problem(n.Line, key, "%v", err)
		return
	}
	v.SetInt(int64(x))
}

func (d *decoder) scalar(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n.Line, key, "want one value, not a list or mapping")
		return
	}
	if v.Kind() == reflect.String && n.Tag == "!!str" || n.Decode(v.Addr().Interface()) == nil {
		switch {
		case v.Kind() == reflect.String:
			v.SetString(n.Value)
		case v.Kind() == reflect.Float64 && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)):
			d.problem(n.Line, key, "%s is no number that anything can be compared with", n.Value)
		}
		return
	}
	d.problem(n.Line, key, "%q is not a %s", n.Value, v.Kind())
}

// sequence takes a list; a single scalar stands for a list of one.
func (d *decoder) sequence(n *yaml.Node, key string, v reflect.Value) {
	items := n.Content
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		d.problem(n.Line, key, "want a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(item, fmt.Sprintf("%s[%d]", key, i), out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.problem(n.Line, key, "want a mapping")
		return
	}
	t := v.Type()
	if f, ok := t.FieldByName("Line"); ok && f.Type.Kind() == reflect.Int {
		v.FieldByName("Line").SetInt(int64(n.Line))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		name := strings.TrimPrefix(key+"."+k.Value, ".")
		field, ok := fieldOf(t, k.Value)
		switch {
		case !ok:
			d.problem(k.Line, name, "unknown key; known: %s", strings.Join(keysOf(t), ", "))
		case seen[k.Value]:
			d.problem(k.Line, name, "is set twice")
		default:
			if part := t.Field(field).Tag.Get("part"); part != "" {
				d.choice(n.Content[i+1], name, v.Field(field), model.Part(part))
			} else {
				d.value(n.Content[i+1], name, v.Field(field))
			}
		}
		seen[k.Value] = true
	}
}

// keyOf gives the YAML key of a field: its tag.
func keyOf(f reflect.StructField) string { return f.Tag.Get("yaml") }

func fieldOf(t reflect.Type, key string) (int, bool) {
	for i := range t.NumField() {
		if k := keyOf(t.Field(i)); k != "" && k == key {
			return i, true
		}
	}
	return 0, false
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if k := keyOf(t.Field(i)); k != "" {
			out = append(out, k)
		}
	}
	return out
}
