package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// EditJSON gives the edit that does op to the node at a path, with a value in JSON (RFC 7951; nil:
// none, for Delete and Remove). Names may have the prefix of the module. A list or leaf-list
// without a key in the last step is all of its entries: Replace puts others in their place.
func EditJSON(path Path, op Op, value []byte) (*Node, error) {
	at, top := root, &Node{}
	n := top
	for i, step := range path {
		step.Name = plain(step.Name)
		if at = at.below(step.Name); at == nil {
			return nil, unknown(step.Name, path[:i])
		}
		last := i == len(path)-1
		if at.kind == list && !step.Keyed && !last {
			return nil, &Error{Tag: TagMissingElement, Path: path[:i+1], Element: at.key, Message: "has no " + at.key + ", which is its key"}
		}
		if last && (at.kind == list || at.kind == leafList) && !step.Keyed {
			return top, whole(n, at, op, value, path)
		}
		k := &Node{Name: step.Name}
		switch {
		case at.kind == list:
			k.Kids = []*Node{{Name: at.key, Value: step.Key}}
		case at.kind == leafList:
			k.Value = step.Key
		}
		n.Kids = append(n.Kids, k)
		n = k
	}
	n.Op = op
	if op == Delete || op == Remove {
		if len(path) == 0 {
			n.Op, n.Kids = Inherit, []*Node{{Name: root.kids[0].name, Op: op}}
		}
		return top, nil
	}
	v, err := decode(value, path)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 { // of the root it is what is below
		n.Op = Inherit
		if err := fill(n, at, v, path); err != nil {
			return nil, err
		}
		for _, k := range n.Kids {
			k.Op = op
		}
		return top, nil
	}
	return top, fill(n, at, v, path)
}

// whole has op done to all entries of a list or leaf-list below n.
func whole(n *Node, s *schema, op Op, value []byte, path Path) error {
	if op == Delete || op == Remove || op == Replace {
		gone := op
		if op == Replace {
			gone = Remove
		}
		n.Kids = append(n.Kids, &Node{Name: s.name, All: true, Op: gone})
	}
	if op == Delete || op == Remove {
		return nil
	}
	v, err := decode(value, path)
	if err != nil {
		return err
	}
	from := len(n.Kids)
	if err := member(n, s, v, path[:len(path)-1]); err != nil {
		return err
	}
	if op == Create {
		for _, k := range n.Kids[from:] {
			k.Op = Create
		}
	}
	return nil
}

func decode(value []byte, path Path) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return nil, &Error{Tag: TagInvalidValue, Path: path, Message: fmt.Sprintf("no JSON: %v", err)}
	}
	return v, nil
}

// plain is a name without the prefix of the module; that of another one stays and is unknown.
func plain(name string) string { return strings.TrimPrefix(name, Module+":") }

// fill puts a value into the node of an edit.
func fill(n *Node, s *schema, v any, path Path) error {
	switch s.kind {
	case leaf, leafList:
		text, err := scalar(v, path)
		n.Value = text
		return err
	}
	members, ok := v.(map[string]any)
	if !ok {
		if rows, one := v.([]any); s.kind == list && one && len(rows) == 1 { // an entry may be a list of one (RFC 7951 section 5.4)
			return fill(n, s, rows[0], path)
		}
		return wrong(path, "want an object")
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		k := s.below(plain(name))
		if k == nil {
			return unknown(name, path)
		}
		if s.kind == list && k.name == s.key && len(n.Kids) > 0 && n.Kids[0].Name == s.key {
			if text, err := scalar(members[name], path); err != nil || text != n.Kids[0].Value {
				return wrong(path.with(Step{Name: k.name}), "is not the key that the path has")
			}
			continue
		}
		if err := member(n, k, members[name], path); err != nil {
			return err
		}
	}
	return nil
}

// member adds what an object says under one name.
func member(n *Node, s *schema, v any, path Path) error {
	path = path.with(Step{Name: s.name})
	rows := []any{v}
	if s.kind == list || s.kind == leafList {
		var ok bool
		if rows, ok = v.([]any); !ok {
			return wrong(path, "want an array")
		}
	}
	for _, row := range rows {
		k := &Node{Name: s.name}
		if err := fill(k, s, row, path); err != nil {
			return err
		}
		n.Kids = append(n.Kids, k)
	}
	return nil
}

func scalar(v any, path Path) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", wrong(path, "want a string")
	}
	return text, nil
}

func wrong(path Path, message string) error {
	return &Error{Tag: TagInvalidValue, Path: path, Message: message}
}

// JSON gives what is at a path, as RFC 7951 has it: the value of a leaf, an array for a list or
// leaf-list without a key, an object for the rest, whose members have the prefix of the
// module. The error is an *Error with TagDataMissing, or TagUnknownElement.
func (c Config) JSON(path Path) ([]byte, error) {
	at, s := []*Node{c.Node()}, root
	for i, step := range path {
		if s = s.below(plain(step.Name)); s == nil {
			return nil, unknown(step.Name, path[:i])
		}
		var next []*Node
		for _, n := range at {
			for _, k := range n.Kids {
				if k.Name == s.name && (!step.Keyed || keyOf(k, s) == step.Key) {
					next = append(next, k)
				}
			}
		}
		last := i == len(path)-1
		many := (s.kind == list || s.kind == leafList) && !step.Keyed
		switch {
		case many && !last:
			return nil, &Error{Tag: TagMissingElement, Path: path[:i+1], Element: s.key, Message: "has no " + s.key + ", which is its key"}
		case len(next) == 0:
			return nil, &Error{Tag: TagDataMissing, Path: path[:i+1], Message: "is not there"}
		case many:
			rows := make([]any, len(next))
			for i, n := range next {
				rows[i] = object(n, s, Module+":")
			}
			return json.Marshal(rows)
		}
		at = next
	}
	return json.Marshal(object(at[0], s, Module+":"))
}

func keyOf(n *Node, s *schema) string {
	if s.kind == list {
		return n.Kids[0].Value
	}
	return n.Value
}

// object gives the value of a node; prefix stands before the names of its members.
func object(n *Node, s *schema, prefix string) any {
	if s.kind == leaf || s.kind == leafList {
		return n.Value
	}
	out := map[string]any{}
	for _, k := range n.Kids {
		below := s.below(k.Name)
		v := object(k, below, "")
		if below.kind == list || below.kind == leafList {
			rows, _ := out[prefix+k.Name].([]any)
			v = append(rows, v)
		}
		out[prefix+k.Name] = v
	}
	return out
}
