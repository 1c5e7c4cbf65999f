package tree

import (
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// Module and Namespace are those of the tree.
const (
	Module    = "openinof-inof"
	Namespace = "urn:openinof:yang:inof"
)

type kind int

const (
	container kind = iota
	list           // with one key
	leaf
	leafList // a set
)

// schema is a node that may be written.
type schema struct {
	name string
	kind kind
	key  string // of a list
	kids []*schema
	// read gives the one form of a value; nil: any text.
	read func(string) (string, error)
}

func (s *schema) below(name string) *schema {
	if s != nil {
		for _, k := range s.kids {
			if k.name == name {
				return k
			}
		}
	}
	return nil
}

// keyName is what stands before the value in a predicate.
func (s *schema) keyName() string {
	if s != nil && s.kind == list {
		return s.key
	}
	return "."
}

// root holds the one tree there is.
var root = &schema{kind: container, kids: []*schema{{name: "inof", kind: container, kids: []*schema{
	{name: "config", kind: container, kids: []*schema{
		{name: "active-zone-set", kind: leaf, read: readName},
	}},
	named("zones", "zone", &schema{name: "member", kind: leafList, read: readMember}),
	named("aliases", "alias", &schema{name: "member", kind: leafList, read: readAliasMember}),
	named("zone-sets", "zone-set", &schema{name: "zone", kind: leafList, read: readName}),
}}}}

// named are the lists: of things with a name and what is under it.
func named(around, name string, values *schema) *schema {
	key := &schema{name: "name", kind: leaf, read: readName}
	return &schema{name: around, kind: container, kids: []*schema{{name: name, kind: list, key: "name", kids: []*schema{
		key, {name: "config", kind: container, kids: []*schema{key, values}},
	}}}}
}

func readName(v string) (string, error) { return v, zone.CheckName(v) }

func readMember(v string) (string, error) {
	z, err := change.ParseZone([]string{v})
	if err != nil {
		return "", err
	}
	return z.Texts()[0], nil
}

func readAliasMember(v string) (string, error) {
	m, err := zone.ParseMember(v)
	if err != nil {
		return "", err
	}
	return m.String(), nil
}
