package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar gives a key's text, flags before the environment before the file; ok is false when
// none has one or the file's is not a single value (which is then reported).
func (s *section) scalar(name, allowed string) (text string, ok bool) {
	n := s.take(name)
	if v, from, ok := s.beside(name); ok {
		s.note(name, from)
		return v, true
	}
	if n == nil {
		if _, empty := s.values[name]; empty {
			s.problem(name, "has no value", allowed)
		}
		return "", false
	}
	if !s.single(n, s.full(name), allowed) {
		return "", false
	}
	s.note(name, "")
	return n.Value, true
}

// single reports whether n is one plain value, and reports it if not.
func (s *section) single(n *yaml.Node, path, allowed string) bool {
	pr := s.p.at(n, path)
	pr.Allowed = allowed
	switch {
	case n.Kind != yaml.ScalarNode:
		pr.What = "is " + kindOf(n) + ", not a single value"
	case n.Style&yaml.TaggedStyle != 0:
		pr.What = "has the YAML tag " + shorten(n.Tag) + ", tags are not read"
		if n.Value == "" { // a text that begins with !
			pr.What += fmt.Sprintf("; put it in quotes: %q", shorten(n.Tag))
		}
	default:
		return true
	}
	s.p.add(pr)
	return false
}

// items gives the elements of a list, of a flag or the environment at commas; anything else
// is reported.
func (s *section) items(name, allowed string) (out []*yaml.Node) {
	n := s.take(name)
	if v, from, ok := s.beside(name); ok {
		s.note(name, from)
		for text := range strings.SplitSeq(v, ",") {
			one := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(text)}
			s.p.origin[one] = from
			out = append(out, one)
		}
		return out
	}
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		pr := s.p.at(n, s.full(name))
		pr.What, pr.Allowed = "is "+kindOf(n)+", not a list", allowed
		if n.Kind == yaml.ScalarNode {
			pr.What += fmt.Sprintf(": write [%s]", shorten(n.Value))
		}
		s.p.add(pr)
		return nil
	}
	s.note(name, "")
	for _, c := range n.Content {
		out = append(out, resolve(c))
	}
	return out
}

// list reads a list of single values. each takes one over, or says what is wrong with it; a
// value given twice is reported too.
func (s *section) list(name, allowed string, each func(string) string) {
	seen := map[string]int{}
	for i, n := range s.items(name, "a list of: "+allowed) {
		path := fmt.Sprintf("%s[%d]", s.full(name), i)
		if isNull(n) {
			n.Value = ""
		}
		if !s.single(n, path, allowed) {
			continue
		}
		what := ""
		if first, dup := seen[n.Value]; n.Value == "" {
			what = "is empty"
		} else if dup {
			what = "is listed twice"
			if first > 0 {
				what += fmt.Sprintf(", first in line %d", first)
			}
		} else {
			what = each(n.Value)
		}
		if what != "" {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = what, allowed
			s.p.add(pr)
			continue
		}
		seen[n.Value] = n.Line
	}
}

// appending takes values over into a list unless something is wrong with them.
func appending(into *[]string, check func(string) string) func(string) string {
	return func(v string) string {
		wrong := check(v)
		if wrong == "" {
			*into = append(*into, v)
		}
		return wrong
	}
}

// sections reads a list of mappings; short (nil: none are taken) gives keys and values of one
// that is written as a single text.
func (s *section) sections(name, allowed string, short func(string) []string, each func(*section)) {
	for i, n := range s.items(name, "a list of: "+allowed) {
		path := fmt.Sprintf("%s[%d]", s.full(name), i)
		if short != nil && !isNull(n) && n.Kind == yaml.ScalarNode {
			n = s.p.longForm(n, short(n.Value))
		}
		if isNull(n) || n.Kind != yaml.MappingNode {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = "is "+kindOf(n)+", not an entry with keys", allowed
			s.p.add(pr)
			continue
		}
		sub := s.p.section(path, n)
		each(sub)
		sub.close()
	}
}

// longForm is a mapping of keys and values that stands where n does.
func (p *parser) longForm(n *yaml.Node, pairs []string) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
	for _, text := range pairs {
		one := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: n.Line, Column: n.Column}
		if from := p.origin[n]; from != "" {
			p.origin[one] = from
		}
		out.Content = append(out.Content, one)
	}
	return out
}
