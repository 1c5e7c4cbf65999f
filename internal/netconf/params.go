package netconf

import (
	"context"

	"github.com/openinof/inof/zone/tree"
)

// maxFilter bounds the nodes of a filter, each of which is looked for in all data.
const maxFilter = 1000

// bodyOf says in short what an operation was given.
func bodyOf(op *element) (text string) {
	for _, k := range op.kids {
		text += k.name
		if v := k.value(); v != "" {
			text += "=" + v
		}
		text += " "
	}
	return text
}

// param gives a parameter of the operation; nil: it is not there. One in no namespace is taken too:
// so ncclient sends a configuration that is written as <config>.
func (c *call) param(name string) *element {
	if p := c.op.child(c.op.space, name); p != nil {
		return p
	}
	return c.op.child("", name)
}

// needs gives a parameter that has to be there.
func (c *call) needs(name string) (*element, error) {
	if p := c.param(name); p != nil {
		return p, nil
	}
	return nil, refusef(string(tree.TagMissingElement), "%s has no %s", c.op.name, name).about(name)
}

// datastore reads source or target: a datastore by name, or a configuration beside (source only).
func (c *call) datastore(name string) (store string, config *element, err error) {
	p, err := c.needs(name)
	if err != nil {
		return "", nil, err
	}
	if len(p.kids) != 1 || p.kids[0].space != nsBase && p.kids[0].space != "" {
		return "", nil, refusef(string(tree.TagInvalidValue), "%s names no datastore", name).about(name)
	}
	switch k := p.kids[0]; {
	case k.name == running || k.name == candidate:
		return k.name, nil, nil
	case k.name == "config" && name == "source":
		return "", k, nil
	default:
		return "", nil, refusef(string(tree.TagNotSupported), "%s %.40q: there are running and candidate", name, k.name).about(k.name)
	}
}

// filter reads the filter; nil: there is none.
func (c *call) filter() (*element, error) {
	f := c.param("filter")
	if f == nil {
		return nil, nil
	}
	if typ, ok := f.attr("", "type"); ok && typ != "subtree" {
		e := refusef(tagBadAttribute, "filter of type %.40q: subtree is known", typ).about("filter")
		e.info = append(e.info, leafOf(nsBase, "bad-attribute", "type"))
		return nil, e
	}
	if n := f.size(); n > maxFilter {
		return nil, refusef(tagTooBig, "a filter of %d nodes, at most %d", n, maxFilter).about("filter")
	}
	return f, nil
}

func (e *element) size() (n int) {
	for _, k := range e.kids {
		n += 1 + k.size()
	}
	return n
}

// target reads the target of a change, which is the candidate.
func (c *call) target() error {
	store, _, err := c.datastore("target")
	switch {
	case err != nil:
		return err
	case store != candidate:
		return refusef(string(tree.TagNotSupported), "%s is changed by a commit of the candidate", store).about(store)
	}
	return c.srv.store.mayChange(c.id, candidate)
}

// word reads a parameter that has one of some values; the first of them where it is not there.
func (c *call) word(name string, values ...string) (string, error) {
	p := c.param(name)
	if p == nil {
		return values[0], nil
	}
	for _, v := range values {
		if p.value() == v {
			return v, nil
		}
	}
	return "", refusef(string(tree.TagInvalidValue), "%s %.40q: want one of %q", name, p.value(), values).about(name)
}

// source gives what a validation or a check is about.
func (c *call) source(ctx context.Context) (*draft, error) {
	store, config, err := c.datastore("source")
	if err != nil {
		return nil, err
	}
	d, err := c.srv.store.candidate(ctx)
	if err != nil || store == candidate {
		return d, err
	}
	now, v, err := c.srv.store.running(ctx)
	if err != nil || store == running {
		return &draft{now, v.Base}, err
	}
	n, err := editOf(config)
	if err != nil {
		return nil, err
	}
	next, err := now.Apply(n, tree.Replace)
	return &draft{next, v.Base}, err
}
