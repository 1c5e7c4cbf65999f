package testbed

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/fabric"
)

// Load reads and checks a topology file.
func Load(file string) (*Topology, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	t, err := LoadFS(os.DirFS("/"), strings.TrimPrefix(abs, "/"))
	if t != nil {
		t.File = abs
	}
	if pes, ok := err.(ParseErrors); ok {
		for _, pe := range pes {
			pe.File = file
		}
	}
	return t, err
}

// LoadFS is Load inside a file system, such as an embedded one.
func LoadFS(fsys fs.FS, name string) (*Topology, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := readLimited(f, MaxTopologySize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t, err := Parse(name, b)
	if err != nil {
		return nil, err
	}
	t.fsys, t.dir = fsys, path.Dir(name)
	return t, nil
}

// Parse checks a topology file's text. A lab without a name takes it from the file
// name, as containerlab does not but its users expect. The error is a ParseErrors
// with every mistake.
func Parse(file string, text []byte) (*Topology, error) {
	if len(text) > MaxTopologySize {
		return nil, ParseErrors{{File: file, Msg: fmt.Sprintf("larger than %d bytes", MaxTopologySize)}}
	}
	var doc yaml.Node
	err := yaml.Unmarshal(text, &doc)
	if i := bytes.Index(text, []byte("{{")); err != nil && i >= 0 {
		return nil, ParseErrors{{File: file, Line: 1 + bytes.Count(text[:i], []byte("\n")), Msg: "this is a Go template and no YAML yet: render it first, here is the first {{"}}
	} else if err != nil {
		return nil, ParseErrors{{File: file, Msg: err.Error()}}
	}
	w := &walker{file: file}
	t := &Topology{File: file, fsys: os.DirFS("."), dir: path.Dir(file)}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
		return nil, ParseErrors{{File: file, Msg: "empty file, want name: and topology:"}}
	}
	w.root(t, doc.Content[0])
	w.sortErrors()
	if len(w.errs) > 0 {
		return nil, w.errs
	}
	slices.SortStableFunc(w.ignored, func(a, b Ignored) int { return a.Line - b.Line })
	t.Ignored = w.ignored
	return t, nil
}

func (w *walker) root(t *Topology, n *yaml.Node) {
	var topo *yaml.Node
	for _, p := range w.pairs(n, "") {
		switch p.key {
		case "name":
			t.Name, _ = w.text(p.val, "name")
			if !ValidName(t.Name) {
				w.errorf(p.val, "name", "%q cannot name a lab (letters, digits, '_', '.', '-'; 1..63 bytes)", t.Name)
			}
		case "topology":
			topo = p.val
		default:
			w.otherKey(p, "", ignoredTop, []string{"name", "topology"})
		}
	}
	if t.Name == "" && len(w.errs) == 0 {
		t.Name = nameOfFile(t.File)
		if !ValidName(t.Name) {
			w.errorf(n, "name", "is missing")
		}
	}
	if topo == nil {
		w.errorf(n, "topology", "is missing")
		return
	}
	w.topology(t, topo)
}

// nameOfFile is the part of a file name before ".clab.yml".
func nameOfFile(file string) string {
	base := path.Base(file)
	base, _, _ = strings.Cut(base, ".clab.")
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yml"), ".yaml")
}

func (w *walker) topology(t *Topology, n *yaml.Node) {
	var nodes, links *yaml.Node
	defaults := newNodeDef()
	kinds, groups := map[string]*nodeDef{}, map[string]*nodeDef{}
	for _, p := range w.pairs(n, "topology") {
		at := "topology." + p.key
		switch p.key {
		case "defaults":
			defaults = w.nodeDef(p.val, at)
		case "kinds":
			for _, k := range w.pairs(p.val, at) {
				if !slices.Contains(Kinds, k.key) {
					w.errorf(k.kNode, at, "unknown kind %q, want one of %s", k.key, strings.Join(Kinds, ", "))
					continue
				}
				kinds[k.key] = w.nodeDef(k.val, join(at, k.key))
			}
		case "groups":
			for _, g := range w.pairs(p.val, at) {
				groups[g.key] = w.nodeDef(g.val, join(at, g.key))
			}
		case "nodes":
			nodes = p.val
		case "links":
			links = p.val
		default:
			w.otherKey(p, "topology", nil, []string{"defaults", "kinds", "groups", "nodes", "links"})
		}
	}
	if isNull(deref(nodes)) {
		w.errorf(n, "topology.nodes", "is missing: a lab has at least one node")
		return
	}
	for _, p := range w.pairs(nodes, "topology.nodes") {
		if len(t.Nodes) == MaxNodes {
			w.errorf(p.kNode, "topology.nodes", "more than %d nodes", MaxNodes)
			break
		}
		if node, ok := w.node(p, defaults, kinds, groups); ok {
			t.Nodes = append(t.Nodes, node)
		} else {
			w.refused = append(w.refused, p.key)
		}
	}
	w.links(t, links)
}

// node builds one node from what it says itself, its group, its kind and the
// defaults, in falling order of weight.
func (w *walker) node(p pair, defaults *nodeDef, kinds, groups map[string]*nodeDef) (Node, bool) {
	at := "topology.nodes." + p.key
	if !ValidName(p.key) {
		w.errorf(p.kNode, at, "%q cannot name a node (letters, digits, '_', '.', '-'; 1..63 bytes)", p.key)
		return Node{}, false
	}
	own := w.nodeDef(p.val, at)
	group := newNodeDef()
	if g := firstOf(own.group, defaults.group); g.s != "" {
		if group = groups[g.s]; group == nil {
			w.errs = append(w.errs, &ParseError{File: w.file, Line: g.line, Path: at + ".group", Msg: fmt.Sprintf("there is no group %q", g.s)})
			return Node{}, false
		}
	}
	kind := firstOf(own.kind, group.kind, defaults.kind)
	if kind.s == "" {
		w.errorf(p.kNode, at, "has no kind, want one of %s", strings.Join(Kinds, ", "))
		return Node{}, false
	}
	if !slices.Contains(Kinds, kind.s) {
		w.errs = append(w.errs, &ParseError{File: w.file, Line: kind.line, Path: at + ".kind", Msg: fmt.Sprintf("unknown kind %q, want one of %s", kind.s, strings.Join(Kinds, ", "))})
		return Node{}, false
	}
	k := kinds[kind.s]
	if k == nil {
		k = newNodeDef()
	}
	node := Node{Name: p.key, Kind: kind.s, Line: p.kNode.Line}
	node.StartupConfig = expandMagic(firstOf(own.startup, group.startup, k.startup, defaults.startup).s, node.Name)
	for _, d := range []*nodeDef{defaults, k, group, own} {
		for _, e := range d.exec {
			node.Exec = append(node.Exec, expandMagic(e, node.Name))
		}
	}
	if len(node.Exec) > MaxExec {
		w.errorf(p.kNode, at+".exec", "%d lines, at most %d", len(node.Exec), MaxExec)
	}
	labels := merge(own.labels, group.labels, k.labels, defaults.labels)
	node.Labels = plain(labels, node.Name)
	node.Env = plain(merge(own.env, group.env, k.env, defaults.env), node.Name)
	node.Sysctls = plain(merge(own.sysctls, group.sysctls, k.sysctls, defaults.sysctls), node.Name)
	w.container(&node, []*nodeDef{own, group, k, defaults}, at)
	if node.Kind == KindSwitch && node.StartupConfig == "" {
		w.errorf(p.kNode, at+".startup-config", "is missing: an %s runs inofd with it", KindSwitch)
	}
	if node.Kind == KindVM {
		node.VM = &VM{Memory: defaultVMMemory, CPUs: 1}
	}
	w.agents(&node, labels, at)
	return node, true
}

// expandMagic replaces the variable that containerlab offers in node texts.
func expandMagic(s, node string) string { return strings.ReplaceAll(s, "__clabNodeName__", node) }

func firstOf(ls ...located) located {
	for _, l := range ls {
		if l.s != "" {
			return l
		}
	}
	return located{}
}

// merge unites maps; earlier ones win.
func merge(ms ...map[string]located) map[string]located {
	out := make(map[string]located)
	for _, m := range slices.Backward(ms) {
		maps.Copy(out, m)
	}
	return out
}

func plain(m map[string]located, node string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = expandMagic(v.s, node)
	}
	return out
}

func (w *walker) links(t *Topology, n *yaml.Node) {
	n = deref(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		w.errorf(n, "topology.links", "is %s, want a list", kindName(n))
		return
	}
	used := make(map[string]int)
	for i, c := range n.Content {
		at := fmt.Sprintf("topology.links[%d]", i)
		if len(t.Links) == MaxLinks {
			w.errorf(c, "topology.links", "more than %d links", MaxLinks)
			return
		}
		l, ok := w.link(t, deref(c), at)
		if !ok {
			continue
		}
		for _, e := range []Endpoint{l.A, l.B} {
			if line, dup := used[e.String()]; dup {
				w.errorf(c, at, "%s is already the end of the link at line %d", e, line)
				ok = false
			}
			used[e.String()] = l.Line
		}
		if ok {
			t.Links = append(t.Links, l)
		}
	}
}

func (w *walker) link(t *Topology, n *yaml.Node, at string) (Link, bool) {
	l := Link{Line: n.Line}
	var ends []Endpoint
	good := true
	list := w.pairs(n, at)
	for _, p := range list {
		if p.key != "type" {
			continue
		}
		// Stitched or not, it joins two nodes. The keys of another type say nothing more.
		if s, _ := w.text(p.val, at+".type"); s != "veth" && s != "veth-stitch" {
			w.errorf(p.val, at+".type", "link type %q, want veth: without containers a link joins two nodes of the lab", s)
			return Link{}, false
		}
	}
	for _, p := range list {
		switch p.key {
		case "type":
		case "endpoints":
			ends, good = w.endpoints(t, p.val, at+".endpoints")
		case "mtu":
			if l.MTU, _ = w.number(p.val, at+".mtu", MinMTU, MaxMTU); l.MTU == 0 {
				good = false
			}
		default:
			w.otherKey(p, at, ignoredLink, []string{"endpoints", "mtu", "type"})
		}
	}
	if !good {
		return Link{}, false
	}
	if len(ends) != 2 {
		w.errorf(n, at+".endpoints", "%d endpoints, want exactly 2", len(ends))
		return Link{}, false
	}
	l.A, l.B = ends[0], ends[1]
	return l, true
}

func (w *walker) endpoints(t *Topology, n *yaml.Node, at string) ([]Endpoint, bool) {
	n = deref(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		w.errorf(n, at, "want a list of two endpoints")
		return nil, false
	}
	var out []Endpoint
	for i, c := range n.Content {
		c, at := deref(c), fmt.Sprintf("%s[%d]", at, i)
		var e Endpoint
		if c != nil && c.Kind == yaml.MappingNode {
			e = w.longEndpoint(c, at)
		} else if s, ok := w.text(c, at); ok {
			e.Node, e.Port, ok = strings.Cut(s, ":")
			if !ok {
				w.errorf(c, at, "%q is not NODE:INTERFACE", s)
				return nil, false
			}
		} else {
			return nil, false
		}
		if slices.Contains(w.refused, e.Node) {
			return nil, false // why is said there
		}
		if t.Node(e.Node) == nil {
			hint := ""
			if slices.Contains([]string{"host", "mgmt-net", "macvlan", "bridge", "vxlan", "dummy"}, e.Node) {
				hint = "; links that leave the lab need containerlab"
			}
			w.errorf(c, at, "there is no node %q%s", e.Node, hint)
			return nil, false
		}
		if err := validIfName(e.Port); err != nil {
			w.errorf(c, at, "%s", err)
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

// longEndpoint reads containerlab's extended form.
func (w *walker) longEndpoint(n *yaml.Node, at string) (e Endpoint) {
	for _, p := range w.pairs(n, at) {
		word := func() string {
			s, _ := w.text(p.val, join(at, p.key))
			return s
		}
		switch p.key {
		case "node":
			e.Node = word()
		case "interface":
			e.Port = word()
		case "mac":
			s := word()
			m, err := fabric.ParseMAC(s)
			if err != nil || m.IsZero() || m[0]&1 != 0 {
				w.errorf(p.val, at+".mac", "%q is not the 48-bit address of one station", s)
			}
			e.MAC = m
		default:
			w.otherKey(p, at, ignoredLink, []string{"node", "interface", "mac"})
		}
	}
	return e
}
