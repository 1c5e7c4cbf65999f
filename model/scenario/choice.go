package scenario

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/model"
)

// Choice is a mechanism of the registry with its values, written as its name or that of a
// set of values alone, or as a mapping with `kind`, `set` or both, and values of its own.
// "none" is none.
type Choice struct {
	Line     int
	Given    bool
	Settings model.Settings // nil = none
}

// choice reads a mechanism of a part; a list of them if v is one.
func (d *decoder) choice(n *yaml.Node, key string, v reflect.Value, part model.Part) {
	if v.Kind() == reflect.Slice {
		items := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			items = n.Content
		}
		for _, item := range items {
			c := Choice{}
			d.choice(item, key, reflect.ValueOf(&c).Elem(), part)
			if c.Settings != nil {
				v.Set(reflect.Append(v, reflect.ValueOf(c)))
			}
		}
		return
	}
	c := Choice{Line: n.Line, Given: true}
	kind, set := "", ""
	switch n.Kind {
	case yaml.ScalarNode:
		kind = n.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch n.Content[i].Value {
			case "kind":
				d.value(n.Content[i+1], key+".kind", reflect.ValueOf(&kind).Elem())
			case "set":
				d.value(n.Content[i+1], key+".set", reflect.ValueOf(&set).Elem())
			}
		}
		if kind == "" && set == "" {
			d.problem(n.Line, key+".kind", "is missing: the values are those of a mechanism; there are none, %s", strings.Join(kindsOf(part), ", "))
			return
		}
	default:
		d.problem(n.Line, key, "want a name, or a mapping with kind or set")
		return
	}
	if kind != "none" && kind+set != "" {
		s, err := model.NewSettings(part, kind, set)
		if err != nil {
			d.problem(n.Line, key, "%v", err)
			return
		}
		c.Settings = s
	}
	if n.Kind == yaml.MappingNode && !d.values(n, key, &c) {
		return
	}
	if c.Settings != nil {
		if err := c.Settings.Check(); err != nil {
			d.problem(n.Line, key, "%v", err)
			return
		}
	}
	v.Set(reflect.ValueOf(c))
}

// values reads what a mapping gives beside kind and set.
func (d *decoder) values(n *yaml.Node, key string, c *Choice) bool {
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k != "kind" && k != "set" {
			rest.Content = append(rest.Content, n.Content[i:i+2]...)
		}
	}
	if len(rest.Content) == 0 {
		return true
	}
	if c.Settings == nil {
		d.problem(n.Line, key, "none has no values")
		return false
	}
	before := len(d.problems)
	d.mapping(&rest, key, reflect.ValueOf(c.Settings).Elem())
	return len(d.problems) == before
}

func kindsOf(part model.Part) []string {
	var out []string
	for _, m := range model.Mechanisms(part) {
		out = append(out, m.Kind)
		for _, s := range m.Sets {
			out = append(out, s.Name)
		}
	}
	return out
}

// control gives a choice as the model's rate control; nil is none.
func (c Choice) control() model.Control {
	cc, _ := c.Settings.(model.Control)
	return cc
}
