package telemetry

import (
	"fmt"
	"slices"
	"strings"
)

// YANG writes the module of the leaves below /inof. Lists have their keys as leafs that refer to
// config or state, as in OpenConfig; what cannot be set is config false.
func YANG() string {
	top := &node{name: root}
	for _, l := range Leaves() {
		if rest, ok := strings.CutPrefix(l.Path, "/"+root+"/"); ok && l.Model() {
			top.add(strings.Split(rest, "/"), l)
		}
	}
	var b strings.Builder
	b.WriteString(yangHead)
	top.write(&b, 1, true)
	b.WriteString("}\n")
	return b.String()
}

// node is a container, list or leaf of the module.
type node struct {
	name     string
	keys     []string
	leaf     *Leaf
	children []*node // in the order of the table
}

func (n *node) add(path []string, l *Leaf) {
	name, list, _ := strings.Cut(path[0], "[")
	i := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name })
	if i < 0 {
		i = len(n.children)
		n.children = append(n.children, &node{name: name, keys: strings.Fields(strings.TrimSuffix(list, "]"))})
	}
	if len(path) == 1 {
		n.children[i].leaf = l
		return
	}
	n.children[i].add(path[1:], l)
}

// sets reports whether something of it may be set.
func (n *node) sets() bool {
	return n.leaf != nil && n.leaf.Set || slices.ContainsFunc(n.children, (*node).sets)
}

func (n *node) child(name string) *node {
	if i := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name }); i >= 0 {
		return n.children[i]
	}
	return nil
}

// write puts the node down; writable: the one above it is no state.
func (n *node) write(b *strings.Builder, depth int, writable bool) {
	in := strings.Repeat("  ", depth)
	line := func(format string, args ...any) { fmt.Fprintf(b, in+format+"\n", args...) }
	if n.leaf != nil {
		n.writeLeaf(line)
		return
	}
	if len(n.keys) > 0 {
		line("list %s {", n.name)
		line("  key \"%s\";", strings.Join(n.keys, " "))
	} else {
		line("container %s {", n.name)
	}
	if writable && !n.sets() {
		line("  config false;")
		writable = false
	}
	for _, key := range n.keys {
		n.writeKey(line, key)
	}
	for _, c := range n.children {
		c.write(b, depth+1, writable)
	}
	line("}")
}

// writeKey has a key refer to what has its value. Where only a part of the entries can be set, the
// key is a leaf of its own, since others have no config that it could refer to.
func (n *node) writeKey(line func(string, ...any), key string) {
	line("  leaf %s {", key)
	if n.child("config") != nil {
		line("    type string;")
	} else {
		line("    type leafref {")
		line("      path \"../state/%s\";", key)
		line("    }")
	}
	line("  }")
}

func (n *node) writeLeaf(line func(string, ...any)) {
	l := n.leaf
	kind := "leaf"
	if l.Many {
		kind = "leaf-list"
	}
	line("%s %s {", kind, n.name)
	switch l.Type {
	case TypeEnum:
		line("  type enumeration {")
		for _, v := range l.Values {
			line("    enum %s;", v)
		}
		line("  }")
	case TypeDecimal:
		line("  type decimal64 {")
		line("    fraction-digits %d;", Digits)
		line("  }")
	default:
		line("  type %s;", l.Type)
	}
	if l.Unit != "" {
		line("  units \"%s\";", l.Unit)
	}
	line("  description")
	line("    \"%s\";", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sentence(l.Doc)))
	line("}")
}

// sentence begins a text as one; not where that is the name of a setting.
func sentence(text string) string {
	if first, _, _ := strings.Cut(text, " "); !strings.Contains(first, ".") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

const yangHead = `module openinof-inof {
  yang-version 1;
  namespace "` + Namespace + `";
  prefix inof;

  organization "openinof";
  contact "https://github.com/openinof/inof";
  description
    "What a device of iNOF tells of itself, and what may be set of its zones. Written by
     go test ./internal/telemetry -update from the table of all leaves (docs/telemetry.md).";

  revision ` + Revision + ` {
    description
      "First revision.";
  }

  typedef counter64 {
    type uint64;
    description
      "Grows; it begins at 0 with the daemon or the driver.";
  }

  typedef timestamp {
    type uint64;
    units "nanoseconds";
    description
      "Since 1970-01-01T00:00:00Z, as OpenConfig's timeticks64.";
  }

  typedef ip-address {
    type string {
      pattern '[0-9a-fA-F.:]+(%.+)?';
    }
    description
      "An IPv4 or IPv6 address.";
  }

  typedef mac-address {
    type string {
      pattern '[0-9a-f]{2}(:[0-9a-f]{2}){5}';
    }
    description
      "A MAC address.";
  }

`
