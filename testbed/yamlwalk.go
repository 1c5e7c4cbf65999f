package testbed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// walker reads a YAML tree by hand, so that every mistake has its line and no key
// is passed over in silence.
type walker struct {
	file    string
	errs    ParseErrors
	ignored []Ignored
	refused []string // nodes with a mistake: links to them are no further ones
	visited int      // entries read, aliases and merges counted each time
}

// maxVisited bounds the work that aliases and merge keys can make of a small file.
const maxVisited = 200_000

// spend counts n entries and fails when a file asks for too many.
func (w *walker) spend(n *yaml.Node, path string, entries int) bool {
	if w.visited > maxVisited {
		return false // said already
	}
	if w.visited += entries + 1; w.visited > maxVisited {
		w.errorf(n, path, "more than %d entries; aliases and merge keys multiply them", maxVisited)
		return false
	}
	return true
}

// maxErrors ends the list of mistakes of one file.
const maxErrors = 100

// maxMergeDepth bounds how deep merge keys and aliases may nest.
const maxMergeDepth = 8

func (w *walker) errorf(n *yaml.Node, path, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	if len(w.errs) < maxErrors {
		w.errs = append(w.errs, &ParseError{File: w.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
	}
}

// sortErrors puts mistakes in the order of the file.
func (w *walker) sortErrors() {
	slices.SortStableFunc(w.errs, func(a, b *ParseError) int { return a.Line - b.Line })
}

func deref(n *yaml.Node) *yaml.Node {
	for range maxMergeDepth {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return n
}

// pair is one entry of a mapping.
type pair struct {
	key   string
	kNode *yaml.Node
	val   *yaml.Node
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// pairs lists the entries of a mapping in order, merge keys ("<<") resolved. A
// null counts as empty.
func (w *walker) pairs(n *yaml.Node, path string) []pair { return w.pairsDepth(n, path, 0) }

func (w *walker) pairsDepth(n *yaml.Node, path string, depth int) []pair {
	n = deref(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		w.errorf(n, path, "is %s, want a mapping", kindName(n))
		return nil
	}
	if depth > maxMergeDepth {
		w.errorf(n, path, "merge keys nest deeper than %d", maxMergeDepth)
		return nil
	}
	if !w.spend(n, path, len(n.Content)/2) {
		return nil
	}
	var out, merged []pair
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			merged = append(merged, w.mergePairs(v, path, depth+1)...)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			w.errorf(k, path, "a key is %s, want a plain word", kindName(k))
			continue
		}
		if first, dup := seen[k.Value]; dup {
			w.errorf(k, join(path, k.Value), "is given twice, first at line %d", first)
			continue
		}
		seen[k.Value] = k.Line
		out = append(out, pair{k.Value, k, v})
	}
	for _, p := range merged { // what the mapping says itself wins
		if _, dup := seen[p.key]; !dup {
			seen[p.key] = p.kNode.Line
			out = append(out, p)
		}
	}
	return out
}

func (w *walker) mergePairs(v *yaml.Node, path string, depth int) []pair {
	v = deref(v)
	if v == nil || v.Kind != yaml.SequenceNode {
		return w.pairsDepth(v, path, depth)
	}
	var out []pair
	for _, c := range v.Content {
		out = append(out, w.pairsDepth(c, path, depth)...)
	}
	return out
}

// text gives a scalar's text; a null is the empty text.
func (w *walker) text(n *yaml.Node, path string) (string, bool) {
	n = deref(n)
	if isNull(n) {
		return "", true
	}
	if n.Kind != yaml.ScalarNode {
		w.errorf(n, path, "is %s, want a text", kindName(n))
		return "", false
	}
	if strings.ContainsRune(n.Value, 0) {
		w.errorf(n, path, "%q contains a NUL byte", n.Value)
		return "", false
	}
	return n.Value, true
}

func (w *walker) number(n *yaml.Node, path string, lo, hi int) (int, bool) {
	s, ok := w.text(n, path)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < lo || v > hi {
		w.errorf(deref(n), path, "%q is not a number from %d to %d", s, lo, hi)
		return 0, false
	}
	return v, true
}

// texts reads a list of scalars.
func (w *walker) texts(n *yaml.Node, path string) []located {
	n = deref(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		w.errorf(n, path, "is %s, want a list", kindName(n))
		return nil
	}
	if !w.spend(n, path, len(n.Content)) {
		return nil
	}
	var out []located
	for i, c := range n.Content {
		if s, ok := w.text(c, fmt.Sprintf("%s[%d]", path, i)); ok {
			out = append(out, located{s, c.Line})
		}
	}
	return out
}

// located is a text with its line.
type located struct {
	s    string
	line int
}

// textMap reads a mapping of scalars.
func (w *walker) textMap(n *yaml.Node, path string) map[string]located {
	out := make(map[string]located)
	for _, p := range w.pairs(n, path) {
		if s, ok := w.text(p.val, join(path, p.key)); ok {
			out[p.key] = located{s, p.kNode.Line}
		}
	}
	return out
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return fmt.Sprintf("%q", n.Value)
	case yaml.AliasNode:
		return "an alias"
	}
	return "nothing"
}
