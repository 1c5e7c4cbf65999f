package imports

import (
	"maps"
	"slices"
	"strings"

	"github.com/openinof/inof/zone/change"
)

// MDS reads zones, aliases and zone sets of a running configuration of Cisco NX-OS, as "show
// running-config", "show zone" and "show zoneset" print them: device-alias, fcalias, zone name,
// zoneset name, zoneset activate. Other lines are left out. The roles of smart zoning are left out
// too, since hosts say theirs here. The error is *Errors.
func MDS(text []byte, o Options) (*change.Plan, error) {
	m := &mds{builder: builder{o: o}, vsans: map[string]int{}}
	for n, line := range m.lines(text) {
		m.line(n, strings.Fields(line))
	}
	if len(m.vsans) > 1 && o.VSAN == "" {
		m.errs.add(0, "there are zones of several VSANs (%s): choose one", strings.Join(slices.Sorted(maps.Keys(m.vsans)), ", "))
	}
	return m.plan()
}

type mds struct {
	builder
	vsans map[string]int // those with zones or zone sets, and the line of the first
	open  *list          // what members belong to; nil: nothing of ours
	kind  string         // of it
	set   *list          // the zone set whose zones follow, in "show zoneset"
}

func (m *mds) line(n int, w []string) {
	if len(w) == 0 || strings.HasPrefix(w[0], "!") {
		return
	}
	switch {
	case w[0] == "device-alias" && len(w) >= 5 && w[1] == "name" && w[3] == "pwwn":
		m.open = nil
		m.begin("device-alias", &m.aliases, ref{w[2], n}).members = []ref{{w[4], n}}
	case w[0] == "device-alias":
		m.open = nil
	case w[0] == "fcalias" && has(w, 1, "name"):
		m.block(n, w, "fcalias", &m.aliases)
		m.set = nil
	case w[0] == "zone" && has(w, 1, "name"):
		if m.block(n, w, "zone", &m.zones); m.set != nil && m.open != nil {
			m.set.members = append(m.set.members, ref{w[2], n})
		}
	case w[0] == "zoneset" && has(w, 1, "activate") && len(w) >= 4 && w[2] == "name":
		if m.counts(n, w) {
			m.active = ref{w[3], n}
		}
		m.open, m.set = nil, nil
	case w[0] == "zoneset" && has(w, 1, "name"):
		m.block(n, w, "zoneset", &m.sets)
		m.set = m.open
	case w[0] == "attribute" || w[0] == "attribute-group": // of a zone: read-only, QoS
	case m.open != nil && (w[0] == "member" || member(strings.TrimPrefix(w[0], "*")) || w[0] == "*" && len(w) > 1 && member(w[1])):
		m.member(n, w)
	case w[0] == "exit" || len(w) > 0 && m.open != nil:
		m.open = nil
	}
}

func has(w []string, i int, word string) bool { return len(w) > i+1 && w[i] == word }

// block opens fcalias, zone or zoneset: KIND name NAME vsan N.
func (m *mds) block(n int, w []string, kind string, l *lists) {
	m.open, m.kind = nil, kind
	if !m.counts(n, w) {
		return
	}
	if old, again := l.by[w[2]]; again && kind == "zone" && m.set != nil {
		m.open = &list{name: old.name} // "show zoneset" after the zones themselves
		return
	}
	m.open = m.begin(kind, l, ref{w[2], n})
}

// counts reports whether a line is of the VSAN that is read.
func (m *mds) counts(n int, w []string) bool {
	i := slices.Index(w, "vsan")
	if i < 0 || i+1 >= len(w) {
		m.errs.add(n, "%s: no VSAN is named", strings.Join(w[:min(len(w), 3)], " "))
		return false
	}
	if m.o.VSAN != "" && w[i+1] != m.o.VSAN {
		return false
	}
	if _, ok := m.vsans[w[i+1]]; !ok {
		m.vsans[w[i+1]] = n
	}
	return true
}

// member reports whether a word begins a member as "show zone" prints it.
func member(word string) bool {
	return word == "pwwn" || word == "device-alias" || word == "fcalias" || word == "fcid" || word == "interface" || word == "nwwn" || word == "ip-address" || word == "domain-id" || word == "symbolic-nodename"
}

func (m *mds) member(n int, w []string) {
	if w[0] == "member" || w[0] == "*" {
		w = w[1:]
	}
	if len(w) == 0 {
		m.errs.add(n, "%s %s: a member without a name", m.kind, m.open.name.text)
		return
	}
	if m.kind == "zoneset" {
		m.open.members = append(m.open.members, ref{w[0], n})
		return
	}
	kind := strings.TrimPrefix(w[0], "*")
	if len(w) < 2 {
		m.errs.add(n, "%s %s: member %s of nothing", m.kind, m.open.name.text, kind)
		return
	}
	switch kind {
	case "pwwn":
		m.open.members = append(m.open.members, ref{w[1], n})
	case "device-alias", "fcalias":
		if m.kind == "fcalias" { // an alias of an alias: its members stand there
			m.errs.add(n, "fcalias %s: member %s %s: name the pWWN", m.open.name.text, kind, w[1])
			return
		}
		m.open.members = append(m.open.members, ref{w[1], n})
	case "interface":
		m.open.members = append(m.open.members, ref{interfacePrefix + w[1], n})
	default:
		m.errs.add(n, "%s %s: members by %s have no equal here", m.kind, m.open.name.text, kind)
	}
}
