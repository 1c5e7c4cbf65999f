package gnmi

import (
	"slices"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/openinof/inof/internal/telemetry"
)

// elem is one element of the path of a leaf.
type elem struct {
	name   string
	keys   []string
	module string
}

// leafNode is a leaf with its path taken apart.
type leafNode struct {
	*telemetry.Leaf
	elems []elem
	keys  int    // on the whole path
	entry int    // elements up to the entry of the last list; 0: it is in none
	list  string // of that entry, so that leaves of one entry have the same
}

// modules of the elements that begin another namespace; Version is OpenConfig's.
var modules = []struct{ root, name, organization, version string }{
	{"/inof", telemetry.Module, "openinof", telemetry.Revision},
	{"/interfaces", "openconfig-interfaces", "OpenConfig working group", "3.8.1"},
	{"/interfaces/interface/ethernet", "openconfig-if-ethernet", "OpenConfig working group", "2.14.0"},
	{"/qos", "openconfig-qos", "OpenConfig working group", "2.2.0"},
	{"/lldp", "openconfig-lldp", "OpenConfig working group", "1.1.0"},
	{"/bfd", "openconfig-bfd", "OpenConfig working group", "0.5.0"},
	{"/components", "openconfig-platform", "OpenConfig working group", "0.32.0"},
	{"/system", "openconfig-system", "OpenConfig working group", "3.1.0"},
}

// theSchema never changes.
var theSchema = newSchema()

// schema is all that there is.
type schema struct {
	leaves []*leafNode
	of     map[*telemetry.Leaf]*leafNode
}

func newSchema() *schema {
	s := &schema{of: map[*telemetry.Leaf]*leafNode{}}
	for _, l := range telemetry.Leaves() {
		if !l.Model() {
			continue
		}
		n := &leafNode{Leaf: l}
		plain, module := "", ""
		for part := range strings.SplitSeq(l.Path[1:], "/") {
			name, list, _ := strings.Cut(part, "[")
			keys := strings.Fields(strings.TrimSuffix(list, "]"))
			plain += "/" + name
			for _, m := range modules {
				if m.root == plain {
					module = m.name
				}
			}
			n.elems = append(n.elems, elem{name, keys, module})
			if n.keys += len(keys); len(keys) > 0 {
				n.entry, n.list = len(n.elems), plain
			}
		}
		s.leaves = append(s.leaves, n)
		s.of[l] = n
	}
	return s
}

// at is what of a leaf a query asks for: the values whose keys are those of the filter (nil: any),
// and how many elements of the path the query names.
type at struct {
	filter []*string
	depth  int
}

// asked is a leaf that a query asks for, in one or several ways.
type asked struct {
	*leafNode
	ways []at
}

// covers gives the depth of the query at a value with these keys.
func (a *asked) covers(keys []string) (depth int, ok bool) {
	for _, w := range a.ways {
		if w.fits(keys) && (!ok || w.depth < depth) {
			depth, ok = w.depth, true
		}
	}
	return depth, ok
}

func (w *at) fits(keys []string) bool {
	for i, f := range w.filter {
		if f != nil && *f != keys[i] {
			return false
		}
	}
	return true
}

// find gives what a query asks for; none: it is not in the schema.
func (s *schema) find(q *query) []asked {
	out := s.match(q, q.steps)
	// The keys of an entry stand beside its containers too; their values are in these.
	if n := len(q.steps); len(out) == 0 && n > 1 && len(q.steps[n-2].name) > 0 {
		for _, container := range []string{"state", "config"} {
			if out = s.match(q, slices.Insert(slices.Clone(q.steps), n-1, step{name: container})); len(out) > 0 {
				return slices.DeleteFunc(out, func(a asked) bool {
					return !slices.Contains(a.elems[len(a.elems)-3].keys, a.elems[len(a.elems)-1].name)
				})
			}
		}
	}
	return out
}

func (s *schema) match(q *query, steps []step) (out []asked) {
	for _, l := range s.leaves {
		if !q.reaches(l) {
			continue
		}
		m := matcher{steps: steps, leaf: l, seen: map[[2]int][]at{}}
		if ways := m.from(0, 0); len(ways) > 0 {
			out = append(out, asked{l, ways})
		}
	}
	return out
}

// maxWays bounds in how many ways a path with "..." may fit one leaf.
const maxWays = 16

// matcher fits a query to the path of a leaf.
type matcher struct {
	steps []step
	leaf  *leafNode
	seen  map[[2]int][]at
}

// from gives the ways in which the steps from i on fit the elements from j on: their filters begin
// with the keys of element j.
func (m *matcher) from(i, j int) (ways []at) {
	if i == len(m.steps) {
		n := 0
		for _, e := range m.leaf.elems[j:] {
			n += len(e.keys)
		}
		return []at{{make([]*string, n), j}}
	}
	if ways, ok := m.seen[[2]int{i, j}]; ok {
		return ways
	}
	defer func() { m.seen[[2]int{i, j}] = ways }()
	add := func(keys []*string, rest []at) {
		for _, w := range rest {
			if len(ways) == maxWays {
				return
			}
			w.filter = append(slices.Clone(keys), w.filter...)
			if !slices.ContainsFunc(ways, func(o at) bool { return o.depth == w.depth && same(o.filter, w.filter) }) {
				ways = append(ways, w)
			}
		}
	}
	s := &m.steps[i]
	if s.name == "..." {
		add(nil, m.from(i+1, j))
		if j < len(m.leaf.elems) {
			add(make([]*string, len(m.leaf.elems[j].keys)), m.from(i, j+1))
		}
		return ways
	}
	if j == len(m.leaf.elems) {
		return nil
	}
	e := &m.leaf.elems[j]
	if s.name != "*" && s.name != e.name || s.module != "" && s.module != e.module {
		return nil
	}
	filter := make([]*string, len(e.keys))
	for name, value := range s.keys {
		k := slices.Index(e.keys, name)
		if k < 0 {
			return nil
		}
		if value != "*" {
			filter[k] = &value
		}
	}
	add(filter, m.from(i+1, j+1))
	return ways
}

func same(a, b []*string) bool {
	return slices.EqualFunc(a, b, func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) })
}

// path gives the first elements of the path of a value.
func (l *leafNode) path(keys []string, depth int) []*pb.PathElem {
	out := make([]*pb.PathElem, depth)
	for i := range out {
		e := &l.elems[i]
		out[i] = &pb.PathElem{Name: e.name}
		for _, k := range e.keys {
			if out[i].Key == nil {
				out[i].Key = map[string]string{}
			}
			out[i].Key[k], keys = keys[0], keys[1:]
		}
	}
	return out
}
