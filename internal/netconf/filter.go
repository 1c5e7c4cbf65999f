package netconf

// This file has subtree filters (RFC 6241 section 6).

// meets reports whether a node of a filter is about an element. One in no namespace, or in that of
// NETCONF itself, which it has where nobody wrote another one, is about any (section 6.2.1).
func meets(f, e *element) bool {
	if f.name != e.name || f.space != e.space && f.space != "" && f.space != nsBase {
		return false
	}
	for _, a := range f.attrs { // section 6.2.2; data here have no attributes
		if a.Name.Space != "xmlns" && (a.Name.Space != "" || a.Name.Local != "xmlns") {
			return false
		}
	}
	return true
}

// content reports whether a node of a filter is a content match node (section 6.2.5).
func (e *element) content() bool { return len(e.kids) == 0 && e.value() != "" }

// prune gives what filters, siblings, select of an element; nil: nothing. Each of them selects by
// itself, and what any of them selects is there once, in the order of the data. Keys of entries
// are there with what is selected.
func prune(e *element, filters []*element) *element {
	var passed []*element
	for _, f := range filters {
		switch {
		case !meets(f, e):
		case len(f.kids) == 0: // a selection node (section 6.2.4), or a leaf of that content
			if f.value() == "" || f.value() == e.text {
				return e
			}
		case contentFits(e, f):
			if onlyContent(f) {
				return e
			}
			passed = append(passed, f)
		}
	}
	if len(passed) == 0 {
		return nil
	}
	out := &element{space: e.space, name: e.name, attrs: e.attrs, keys: e.keys}
	found := false
	for i, k := range e.kids {
		var below []*element
		for _, f := range passed {
			for _, n := range f.kids {
				if meets(n, k) {
					below = append(below, n)
				}
			}
		}
		if p := prune(k, below); p != nil {
			out.kids, found = append(out.kids, p), true
		} else if i < e.keys {
			out.kids = append(out.kids, k)
		}
	}
	if !found {
		return nil
	}
	return out
}

// contentFits reports whether all content match nodes of a filter fit an element.
func contentFits(e, f *element) bool {
	for _, n := range f.kids {
		if !n.content() {
			continue
		}
		fits := false
		for _, k := range e.kids {
			if meets(n, k) && k.text == n.value() {
				fits = true
				break
			}
		}
		if !fits {
			return false
		}
	}
	return true
}

func onlyContent(f *element) bool {
	for _, n := range f.kids {
		if !n.content() {
			return false
		}
	}
	return true
}

// selected gives what a filter selects of several trees; no filter selects all.
func selected(trees []*element, filter *element) []*element {
	if filter == nil {
		return trees
	}
	var out []*element
	for _, e := range trees {
		if p := prune(e, filter.kids); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// wants reports whether a filter may select something below a path of elements.
func wants(filter *element, space string, path ...string) bool {
	if filter == nil {
		return true
	}
	return wanted(filter.kids, space, path)
}

func wanted(filters []*element, space string, path []string) bool {
	for _, f := range filters {
		if meets(f, &element{space: space, name: path[0]}) {
			if len(path) == 1 || onlyContent(f) || wanted(f.kids, space, path[1:]) {
				return true
			}
		}
	}
	return false
}
