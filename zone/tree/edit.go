package tree

import (
	"fmt"
)

// Op is what is done to a node (RFC 6241 section 7.2).
type Op string

// The operations. Inherit is that of the node around.
const (
	Inherit Op = ""
	Merge   Op = "merge"
	Replace Op = "replace"
	Create  Op = "create"
	Delete  Op = "delete" // it must be there
	Remove  Op = "remove"
	None    Op = "none" // only a way to what is below: it must be there
)

// Node is a node of an edit. The root of an edit has no name; below it is inof.
type Node struct {
	Name  string
	Value string // of a leaf and of an entry of a leaf-list
	// All stands for all entries of a list or leaf-list, of which XML has no word: Op is Remove
	// or Delete then.
	All  bool
	Op   Op
	Kids []*Node
}

// MaxEntries bounds the entries of all lists and leaf-lists of a Config.
const MaxEntries = 1_000_000

// data is a node that is there.
type data struct {
	schema *schema
	value  string
	kids   map[string]*data
}

// place is where a node stands among its siblings.
func place(s *schema, value string) string {
	if s.kind == list || s.kind == leafList {
		return s.name + "=" + value
	}
	return s.name
}

// edit changes a tree.
type edit struct{ entries int }

// apply does an edit below a node that is there.
func (e *edit) apply(at *data, n *Node, op Op, path Path) error {
	for _, k := range n.Kids {
		if err := e.child(at, k, op, path); err != nil {
			return err
		}
	}
	return nil
}

// child does what an edit says of one node below at.
func (e *edit) child(at *data, n *Node, around Op, path Path) error {
	s := at.schema.below(n.Name)
	if s == nil {
		return unknown(n.Name, path)
	}
	op := n.Op
	if op == Inherit {
		op = around
	}
	if at.schema.kind == list && n.Name == at.schema.key {
		return nil // it says which entry is meant, and is there with it
	}
	if n.All {
		return e.all(at, s, op, path.with(Step{Name: n.Name}))
	}
	value, err := valueOf(s, n, path)
	if err != nil {
		return err
	}
	step := Step{Name: n.Name}
	if s.kind == list || s.kind == leafList {
		step.Key, step.Keyed = value, true
	}
	path = path.with(step)
	where := place(s, value)
	there := at.kids[where]
	exists := there != nil && !there.bare()
	switch op {
	case Create:
		if exists {
			return &Error{Tag: TagDataExists, Path: path, Message: "is there already, and was to be created"}
		}
	case Delete:
		if !exists {
			return &Error{Tag: TagDataMissing, Path: path, Message: "is not there, and was to be deleted"}
		}
	case None:
		if there == nil {
			return &Error{Tag: TagDataMissing, Path: path, Message: "is not there, and nothing is to be done to it that would make it"}
		}
		if s.kind == leaf || s.kind == leafList {
			return nil
		}
	case Merge, Replace, Remove:
	default:
		return &Error{Tag: TagInvalidValue, Path: path, Message: fmt.Sprintf("operation %.20q: want merge, replace, create, delete or remove", op)}
	}
	if op == Delete || op == Remove {
		e.drop(at, where)
		return nil
	}
	if op == Replace {
		e.drop(at, where)
		there = nil
	}
	if there == nil {
		there, err = e.make(at, s, value, path)
		if err != nil {
			return err
		}
	}
	switch s.kind {
	case leaf:
		there.value = value
		return nil
	case leafList:
		return nil
	}
	return e.apply(there, n, op, path)
}

// all removes every entry of a list or leaf-list.
func (e *edit) all(at *data, s *schema, op Op, path Path) error {
	if op != Remove && op != Delete || s.kind != list && s.kind != leafList {
		return &Error{Tag: TagInvalidValue, Path: path, Message: "an entry has to be named: all of them can be removed only"}
	}
	removed := false
	for where, d := range at.kids {
		if d.schema == s {
			e.drop(at, where)
			removed = true
		}
	}
	if !removed && op == Delete {
		return &Error{Tag: TagDataMissing, Path: path, Message: "is not there, and was to be deleted"}
	}
	return nil
}

// bare reports whether a container holds nothing: then it is as good as not there (RFC 7950
// section 7.5.1).
func (d *data) bare() bool {
	if d.schema.kind != container {
		return false
	}
	for _, k := range d.kids {
		if !k.bare() {
			return false
		}
	}
	return true
}

// make adds a node that was not there, with the containers below it.
func (e *edit) make(at *data, s *schema, value string, path Path) (*data, error) {
	d := &data{schema: s, value: value}
	if s.kind == list || s.kind == leafList {
		if e.entries++; e.entries > MaxEntries {
			return nil, &Error{Tag: TagResourceDenied, Path: path, Message: fmt.Sprintf("more than %d entries of lists", MaxEntries)}
		}
	}
	if s.kind == list || s.kind == container {
		d.kids = map[string]*data{}
		for _, k := range s.kids {
			if k.kind == container {
				d.kids[k.name], _ = e.make(d, k, "", path) // containers count nowhere
			}
		}
	}
	if s.kind == list {
		key := s.below(s.key)
		d.kids[key.name] = &data{schema: key, value: value}
	}
	at.kids[where(d)] = d
	return d, nil
}

func where(d *data) string { return place(d.schema, d.value) }

// drop takes a node away; of a container its content.
func (e *edit) drop(at *data, where string) {
	d := at.kids[where]
	if d == nil {
		return
	}
	e.entries -= d.entries()
	delete(at.kids, where)
	if d.schema.kind == container {
		_, _ = e.make(at, d.schema, "", nil)
	}
}

// entries counts those of lists and leaf-lists in a part of the tree.
func (d *data) entries() (n int) {
	if d.schema.kind == list || d.schema.kind == leafList {
		n = 1
	}
	for _, k := range d.kids {
		n += k.entries()
	}
	return n
}

// valueOf gives the value of a leaf, or the key of an entry of a list.
func valueOf(s *schema, n *Node, path Path) (string, error) {
	text := n.Value
	at := path.with(Step{Name: n.Name})
	switch s.kind {
	case container:
		return "", nil
	case list:
		i := 0
		for ; i < len(n.Kids) && n.Kids[i].Name != s.key; i++ {
		}
		if i == len(n.Kids) {
			return "", &Error{Tag: TagMissingElement, Path: at, Element: s.key, Message: "has no " + s.key + ", which is its key"}
		}
		text = n.Kids[i].Value
		s, at = s.below(s.key), at.with(Step{Name: s.key})
	case leaf, leafList:
		if len(n.Kids) > 0 {
			return "", unknown(n.Kids[0].Name, at)
		}
		if s.kind == leaf && (n.Op == Delete || n.Op == Remove) {
			return "", nil // whatever it is
		}
	}
	if s.read == nil {
		return text, nil
	}
	v, err := s.read(text)
	if err != nil {
		return "", &Error{Tag: TagInvalidValue, Path: at, Message: fmt.Sprintf("%.300q: %v", text, err)}
	}
	return v, nil
}

func unknown(name string, path Path) error {
	if name == "state" {
		return &Error{Tag: TagUnknownElement, Path: path, Element: name, Message: "state is read only"}
	}
	return &Error{Tag: TagUnknownElement, Path: path, Element: name, Message: fmt.Sprintf("there is no %.100q that could be set", name)}
}
