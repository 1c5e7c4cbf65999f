package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/internal/setting"
)

// parser collects everything that is wrong with one file.
type parser struct {
	file     string
	given    *Given
	from     map[string]string // where each key that is set comes from
	problems []Problem
	dropped  int
	public   bool // passwords and keys are not looked at
	// origin says where a node comes from that is not in the file.
	origin map[*yaml.Node]string
}

func newParser(file string, given *Given) *parser {
	return &parser{file: file, given: given, origin: map[*yaml.Node]string{}, from: map[string]string{}}
}

func (p *parser) add(pr Problem) {
	if len(p.problems) >= MaxProblems {
		p.dropped++
		return
	}
	p.problems = append(p.problems, pr)
}

// err gives what was collected in the order of the lines, the environment last.
func (p *parser) err() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int {
		switch {
		case (a.Line == 0) != (b.Line == 0):
			return b.Line - a.Line
		case a.Line != b.Line:
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{Problems: p.problems, Dropped: p.dropped}
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode && i < 8; i++ {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// kindOf names a node's kind for people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section (key: value lines)"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// section is a mapping of which each key is asked for once; close reports the rest.
type section struct {
	p       *parser
	path    string
	node    *yaml.Node // nil when the section is not written
	values  map[string]*yaml.Node
	keyNode map[string]*yaml.Node
	order   []string // keys as written
	known   []string // keys that were asked for
}

// section opens the mapping n; anything else but nothing is a problem.
func (p *parser) section(path string, n *yaml.Node) *section {
	s := &section{p: p, path: path, values: map[string]*yaml.Node{}, keyNode: map[string]*yaml.Node{}}
	n = resolve(n)
	if isNull(n) {
		return s
	}
	if n.Kind != yaml.MappingNode {
		pr := p.at(n, path)
		pr.What = "is " + kindOf(n) + ", not a section"
		pr.Allowed = "indented key: value lines"
		p.add(pr)
		return s
	}
	s.node = n
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolve(n.Content[i+1])
		name := k.Value
		if k.Kind != yaml.ScalarNode {
			pr := p.at(k, path)
			pr.What, pr.Allowed = "the key is "+kindOf(k), "a plain name"
			p.add(pr)
			continue
		}
		if first, dup := s.keyNode[name]; dup {
			pr := p.at(k, s.full(name))
			pr.Value = ""
			pr.What = fmt.Sprintf("is written twice, first in line %d", first.Line)
			pr.Allowed = "each key once"
			p.add(pr)
			continue
		}
		s.keyNode[name], s.values[name] = k, v
		s.order = append(s.order, name)
	}
	return s
}

// at begins a problem at a node.
func (p *parser) at(n *yaml.Node, path string) Problem {
	pr := Problem{File: cmp.Or(p.origin[n], p.file), Key: path, Line: n.Line, Column: n.Column}
	if n.Kind == yaml.ScalarNode {
		pr.Value = n.Value
	}
	return pr
}

func (s *section) full(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "." + name
}

// take marks a key as known and gives its node, nil when absent or empty.
func (s *section) take(name string) *yaml.Node {
	s.known = append(s.known, name)
	if n := s.values[name]; !isNull(n) {
		return n
	}
	return nil
}

func (s *section) sub(name string) *section {
	return s.p.section(s.full(name), s.take(name))
}

// written reports whether anything is written in the section.
func (s *section) written() bool { return len(s.order) > 0 }

// refuse reports a section that has no business on this device.
func (s *section) refuse(why string) {
	if s.written() {
		s.p.add(Problem{File: s.p.file, Line: s.node.Line, Column: s.node.Column, Key: s.path, What: "does not apply: " + why, Allowed: "leave the section out"})
	}
}

// beside is what is given of a key beside the file; entries of lists are not set there.
func (s *section) beside(name string) (value, from string, ok bool) {
	if strings.Contains(s.path, "[") {
		return "", "", false
	}
	return s.p.given.Value(s.full(name))
}

// note remembers where a key comes from.
func (s *section) note(name, from string) {
	if n := s.values[name]; from == "" && n != nil {
		from = fmt.Sprintf("%s:%d", s.p.file, n.Line)
	}
	s.p.from[s.full(name)] = from
}

// has reports whether a key is set anywhere, be it to nothing.
func (s *section) has(name string) bool {
	_, written := s.values[name]
	_, _, beside := s.beside(name)
	return written || beside
}

// problem reports what is wrong with the value of a key wherever it came from:
// a flag, the environment, the file, or (when it is missing) the section it belongs to.
func (s *section) problem(name, what, allowed string) {
	pr := Problem{File: s.p.file, Line: 1, Column: 1}
	v, from, ok := s.beside(name)
	switch n := s.values[name]; {
	case ok:
		pr = Problem{File: from, Value: v}
	case s.p.file == NoFile:
		pr = Problem{File: NoFile}
	case n != nil:
		pr = s.p.at(n, "")
	case s.node != nil:
		pr.Line, pr.Column = s.node.Line, s.node.Column
	}
	pr.Key, pr.What, pr.Allowed = s.full(name), what, allowed
	s.p.add(pr)
}

// close reports the keys nobody asked for.
func (s *section) close() {
	for _, name := range s.order {
		if slices.Contains(s.known, name) {
			continue
		}
		k := s.keyNode[name]
		pr := Problem{File: s.p.file, Line: k.Line, Column: k.Column, Key: s.full(name), What: "unknown key"}
		if near := setting.Nearest(name, s.known); near != "" {
			pr.What += fmt.Sprintf(", did you mean %q?", near)
		}
		pr.Allowed = strings.Join(s.known, ", ")
		s.p.add(pr)
	}
}

// find gives the node at a path of mapping keys, nil when there is none.
func find(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				next = n.Content[i+1]
				break
			}
		}
		n = next
	}
	return n
}

// foreign reports the keys that are set elsewhere.
func (s *section) foreign(why, allowed string, names ...string) {
	for _, name := range names {
		if _, _, ok := s.beside(name); ok || !isNull(s.values[name]) {
			s.problem(name, "does not apply: "+why, allowed)
		}
	}
}
