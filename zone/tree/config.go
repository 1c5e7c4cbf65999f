package tree

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openinof/inof/zone/change"
)

// Config is all that may be set.
type Config struct {
	Plan *change.Plan // nil: nothing
}

// Apply gives the Config after an edit; the one before is not changed. Default is the operation
// where the edit says none: Merge, Replace or None. The error is an *Error. Whether the plan may
// be in force is for Check to say.
func (c Config) Apply(n *Node, def Op) (Config, error) {
	top := c.tree()
	e := &edit{entries: top.entries()}
	if def == Replace { // of all there is: what is not named goes
		e.drop(top, "inof")
		def = Merge
	}
	if err := e.apply(top, n, def, nil); err != nil {
		return c, err
	}
	return c.read(top.kids["inof"])
}

// tree gives the data.
func (c Config) tree() *data {
	e := &edit{}
	top := &data{schema: root, kids: map[string]*data{}}
	_ = e.apply(top, c.Node(), Merge, nil) // what is in force was checked
	return top
}

// Node gives all of a Config: lists sorted by name, a leaf for each value.
func (c Config) Node() *Node {
	doc := change.Document{}
	if c.Plan != nil {
		doc = c.Plan.Document()
	}
	settings := &Node{Name: "config"}
	if doc.Active != "" {
		settings.Kids = append(settings.Kids, &Node{Name: "active-zone-set", Value: doc.Active})
	}
	zones, aliases, sets := &Node{Name: "zones"}, &Node{Name: "aliases"}, &Node{Name: "zone-sets"}
	for _, z := range doc.Zones {
		zones.Kids = append(zones.Kids, entry("zone", z.Name, "member", z.Members))
	}
	for _, a := range doc.Aliases {
		aliases.Kids = append(aliases.Kids, entry("alias", a.Name, "member", a.Members))
	}
	for _, s := range doc.Sets {
		sets.Kids = append(sets.Kids, entry("zone-set", s.Name, "zone", s.Zones))
	}
	return &Node{Kids: []*Node{{Name: "inof", Kids: []*Node{settings, zones, aliases, sets}}}}
}

func entry(kind, name, what string, values []string) *Node {
	config := &Node{Name: "config", Kids: []*Node{{Name: "name", Value: name}}}
	for _, v := range values {
		config.Kids = append(config.Kids, &Node{Name: what, Value: v})
	}
	return &Node{Name: kind, Kids: []*Node{{Name: "name", Value: name}, config}}
}

// read gives the Config that the data say.
func (c Config) read(inof *data) (Config, error) {
	doc := change.Document{}
	if v := inof.kids["config"].kids["active-zone-set"]; v != nil {
		doc.Active = v.value
	}
	for _, l := range []struct {
		around string
		put    func(name string, values []string)
	}{
		{"zones", func(name string, values []string) {
			doc.Zones = append(doc.Zones, change.Named{Name: name, Members: values})
		}},
		{"aliases", func(name string, values []string) {
			doc.Aliases = append(doc.Aliases, change.Named{Name: name, Members: values})
		}},
		{"zone-sets", func(name string, values []string) {
			doc.Sets = append(doc.Sets, change.NamedSet{Name: name, Zones: values})
		}},
	} {
		for _, d := range inof.kids[l.around].kids {
			config := d.kids["config"]
			path := Path{{Name: "inof"}, {Name: l.around}, {Name: d.schema.name, Key: d.value, Keyed: true}}
			for _, n := range []*data{d.kids["name"], config.kids["name"]} {
				if n != nil && n.value != d.value {
					return c, &Error{Tag: TagInvalidValue, Path: path.with(Step{Name: "config"}).with(Step{Name: "name"}), Message: fmt.Sprintf("%.100q is not the key, %.100q", n.value, d.value)}
				}
			}
			var values []string
			for _, v := range config.kids {
				if v.schema.kind == leafList {
					values = append(values, v.value)
				}
			}
			slices.Sort(values)
			l.put(d.value, values)
		}
	}
	plan, err := doc.Plan()
	if err != nil {
		return c, &Error{Tag: TagInvalidValue, Path: Path{{Name: "inof"}}, Message: err.Error()}
	}
	c.Plan = plan
	return c, nil
}

// Check gives what refers to something that is not there (RFC 7950 section 15.5), sorted. The
// rules of zones are change.Plan.Check's.
func (c Config) Check() (list []*Error) {
	say := func(path Path, message string) {
		list = append(list, &Error{Tag: TagDataMissing, App: AppInstanceRequired, Path: path, Message: message})
	}
	p := c.Plan
	at := func(around, kind, name, what, value string) Path {
		return Path{{Name: "inof"}, {Name: around}, {Name: kind, Key: name, Keyed: true}, {Name: "config"}, {Name: what, Key: value, Keyed: true}}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Zones)) {
		for _, a := range p.Zones[name].Aliases {
			if _, ok := p.Aliases[a]; !ok {
				say(at("zones", "zone", name, "member", change.AliasPrefix+a), fmt.Sprintf("there is no alias %q", a))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Sets)) {
		for _, z := range p.Sets[name] {
			if _, ok := p.Zones[z]; !ok {
				say(at("zone-sets", "zone-set", name, "zone", z), fmt.Sprintf("there is no zone %q", z))
			}
		}
	}
	if _, ok := p.Sets[p.Active]; !ok && p.Active != "" {
		say(Path{{Name: "inof"}, {Name: "config"}, {Name: "active-zone-set"}}, fmt.Sprintf("there is no zone set %q", p.Active))
	}
	return list
}
