package imports

import (
	"bytes"
	"strings"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// Options say how a text is read.
type Options struct {
	Map   *Map
	Rules zone.Rules
	VSAN  string // MDS: the only one that counts; empty: there must be one only
	// Left begins a step of some units, and what it gives hears how many of all are done; nil:
	// nobody does.
	Left func(unit string) func(done, all int)
}

// left is Left, or says nothing.
func (o *Options) left(unit string) func(done, all int) {
	if o.Left == nil {
		return func(int, int) {}
	}
	return o.Left(unit)
}

// lines walks those of a text with their numbers, and tells how many are left.
func (b *builder) lines(text []byte) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		left, all := b.o.left("lines"), bytes.Count(text, []byte("\n"))
		for n, line := range numbered(text) {
			if left(n-1, all); !yield(n, line) {
				return
			}
		}
	}
}

// ref is a word of the text and where it stands.
type ref struct {
	text string
	line int
}

// list is an alias, a zone or a zone set as the text has it.
type list struct {
	name    ref
	members []ref
}

// lists are those of one kind, in the order of the text.
type lists struct {
	order []*list
	by    map[string]*list
}

func (l *lists) open(name ref) (*list, bool) {
	if old, ok := l.by[name.text]; ok {
		return old, false
	}
	if l.by == nil {
		l.by = map[string]*list{}
	}
	n := &list{name: name}
	l.by[name.text] = n
	l.order = append(l.order, n)
	return n, true
}

// builder collects what a text says; references are looked up at the end, since a text may name
// things before it says what they are.
type builder struct {
	o                    Options
	errs                 Errors
	aliases, zones, sets lists
	active               ref
}

// begin opens a new list; one that is there already is an error.
func (b *builder) begin(kind string, l *lists, name ref) *list {
	n, fresh := l.open(name)
	if !fresh {
		b.errs.add(name.line, "%s %q is there already, in line %d", kind, name.text, n.name.line)
		return &list{name: name} // what follows belongs to nothing
	}
	if err := zone.CheckName(name.text); err != nil {
		b.errs.add(name.line, "%s: %v", kind, err)
	}
	return n
}

// plan gives what was collected, or all that is wrong with it.
func (b *builder) plan() (*change.Plan, error) {
	p := &change.Plan{Zones: map[string]change.Zone{}, Active: b.active.text}
	unmapped := map[string]bool{}
	for _, a := range b.aliases.order {
		var members []zone.Member
		for _, r := range a.members {
			members = append(members, b.member(r, "alias "+a.name.text, unmapped)...)
		}
		p.PutAlias(a.name.text, members)
	}
	left := b.o.left("zones")
	for i, l := range b.zones.order {
		left(i, len(b.zones.order))
		var z change.Zone
		for _, r := range l.members {
			if _, ok := b.aliases.by[r.text]; ok {
				z.Aliases = append(z.Aliases, r.text)
				continue
			}
			z.Members = append(z.Members, b.member(r, "zone "+l.name.text, unmapped)...)
		}
		p.PutZone(l.name.text, z)
	}
	for _, s := range b.sets.order {
		var names []string
		for _, r := range s.members {
			if _, ok := b.zones.by[r.text]; !ok {
				b.errs.add(r.line, "zone set %s: there is no zone %q", s.name.text, r.text)
				continue
			}
			names = append(names, r.text)
		}
		p.PutSet(s.name.text, names)
	}
	if _, ok := b.sets.by[b.active.text]; !ok && b.active.text != "" {
		b.errs.add(b.active.line, "zone set %q is to be active, and is not there", b.active.text)
	}
	if len(b.zones.order) == 0 {
		b.errs.add(0, "there is no zone in it")
	}
	if err := b.errs.or(); err != nil {
		return nil, err
	}
	if err := p.Check(b.o.Rules); err != nil { // how much there may be
		b.errs.add(0, "%v", err)
		return nil, b.errs.or()
	}
	return p, nil
}

// member gives what a word of the text stands for.
func (b *builder) member(r ref, where string, unmapped map[string]bool) []zone.Member {
	name := key(r.text)
	if list, ok := b.o.Map.members[strings.TrimPrefix(name, interfacePrefix)]; ok {
		return list
	}
	_, named := wwn(name)
	domain, port, pair := strings.Cut(name, ",")
	switch {
	case unmapped[name]: // said already
	case named || pair && digits(domain) && digits(port) || strings.HasPrefix(name, interfacePrefix):
		unmapped[name] = true
		b.errs.add(r.line, "%s: %s is not in the map", where, strings.TrimPrefix(name, interfacePrefix))
	default:
		b.errs.add(r.line, "%s: %.80q is no alias, no WWN and no port", where, r.text)
	}
	return nil
}

// interfacePrefix marks interfaces of MDS switches.
const interfacePrefix = "interface "
