package netconf

import (
	"github.com/openinof/inof/zone/tree"
)

// This file leads from the XML of a configuration to package tree and back.

// editOf reads what stands in a <config>.
func editOf(config *element) (*tree.Node, error) {
	top := &tree.Node{}
	for _, k := range config.kids {
		n, err := nodeOf(k, nil)
		if err != nil {
			return nil, err
		}
		top.Kids = append(top.Kids, n)
	}
	return top, nil
}

func nodeOf(e *element, path tree.Path) (*tree.Node, error) {
	if e.space != tree.Namespace {
		err := &rpcError{tag: tagUnknownNamespace, message: "there is no configuration in this namespace; ours is " + tree.Namespace, path: path.XPath(prefix)}
		err.about(e.name).info = append(err.info, leafOf(nsBase, "bad-namespace", e.space))
		return nil, err
	}
	n := &tree.Node{Name: e.name, Value: e.value()}
	path = append(path[:len(path):len(path)], tree.Step{Name: e.name})
	for _, a := range e.attrs {
		switch {
		case a.Name.Space == "xmlns", a.Name.Space == "" && a.Name.Local == "xmlns":
		case a.Name.Space == nsBase && a.Name.Local == "operation":
			n.Op = tree.Op(a.Value)
			switch n.Op {
			case tree.Merge, tree.Replace, tree.Create, tree.Delete, tree.Remove:
				continue
			}
			return nil, badAttribute(tagBadAttribute, "operation", e.name, path, "want merge, replace, create, delete or remove")
		default:
			return nil, badAttribute("unknown-attribute", a.Name.Local, e.name, path, "there is no such attribute here")
		}
	}
	for _, k := range e.kids {
		below, err := nodeOf(k, path)
		if err != nil {
			return nil, err
		}
		n.Kids = append(n.Kids, below)
	}
	return n, nil
}

func badAttribute(tag, attribute, name string, path tree.Path, message string) *rpcError {
	return &rpcError{tag: tag, path: path.XPath(prefix), message: message, info: []*element{leafOf(nsBase, "bad-attribute", attribute), leafOf(nsBase, "bad-element", name)}}
}

// elementOf writes a node down; empty containers are left out.
func elementOf(n *tree.Node) *element {
	e := leafOf(tree.Namespace, n.Name, n.Value)
	for _, k := range n.Kids {
		if below := elementOf(k); below.text != "" || len(below.kids) > 0 {
			e.kids = append(e.kids, below)
		}
	}
	if len(e.kids) > 0 && e.kids[0].name == "name" && e.name != "config" {
		e.keys = 1
	}
	return e
}

// configuration gives the trees of a Config.
func configuration(c tree.Config) (out []*element) {
	for _, k := range c.Node().Kids {
		if e := elementOf(k); len(e.kids) > 0 {
			out = append(out, e)
		}
	}
	return out
}
