package tree

import "strings"

// Tag says what is wrong (RFC 6241 appendix A, error-tag).
type Tag string

// The tags that this package gives.
const (
	TagInvalidValue     Tag = "invalid-value"
	TagMissingElement   Tag = "missing-element"
	TagUnknownElement   Tag = "unknown-element"
	TagDataExists       Tag = "data-exists"
	TagDataMissing      Tag = "data-missing"
	TagResourceDenied   Tag = "resource-denied"
	TagNotSupported     Tag = "operation-not-supported"
	AppInstanceRequired     = "instance-required" // error-app-tag, RFC 7950 section 15.5
)

// Error says what of an edit is wrong, and where.
type Error struct {
	Tag     Tag
	App     string // error-app-tag; empty: none
	Path    Path   // of the node that is wrong, or of that around it
	Element string // what is missing or unknown there (bad-element); empty: nothing
	Message string
}

func (e *Error) Error() string { return e.Path.String() + ": " + e.Message }

// Step is one level of a Path.
type Step struct {
	Name string
	// Key is the value of the key of a list entry, or the value of an entry of a leaf-list, where
	// Keyed.
	Key   string
	Keyed bool
}

// Path leads to a node from the root.
type Path []Step

// String writes a path as gNMI does: /inof/zones/zone[name=a]/config.
func (p Path) String() string {
	if len(p) == 0 {
		return "/"
	}
	var b strings.Builder
	at := root
	for _, s := range p {
		at = at.below(s.Name)
		b.WriteString("/" + s.Name)
		if s.Keyed {
			b.WriteString("[" + at.keyName() + "=" + strings.NewReplacer(`\`, `\\`, `]`, `\]`).Replace(s.Key) + "]")
		}
	}
	return b.String()
}

// XPath writes a path as an error-path (RFC 6241 section 4.3), with the prefix of the namespace.
func (p Path) XPath(prefix string) string {
	var b strings.Builder
	at := root
	for _, s := range p {
		at = at.below(s.Name)
		b.WriteString("/" + prefix + ":" + s.Name)
		if s.Keyed {
			key := at.keyName()
			if key != "." {
				key = prefix + ":" + key
			}
			b.WriteString("[" + key + "=" + literal(s.Key) + "]")
		}
	}
	return b.String()
}

// literal quotes a text in XPath 1.0, which has no escapes.
func literal(s string) string {
	switch {
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	case !strings.Contains(s, `"`):
		return `"` + s + `"`
	}
	parts := strings.Split(s, "'")
	return "concat('" + strings.Join(parts, `',"'",'`) + "')"
}

// with gives a longer path.
func (p Path) with(s Step) Path { return append(p[:len(p):len(p)], s) }
