package cluster

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/openinof/inof/zone"
)

// Machine is the replicated state: the zones and settings of a cluster, and which
// changes it has seen. The same entries in the same order give the same Machine.
type Machine struct {
	index    uint64 // of the last entry that was applied
	cluster  uint64 // 0: the first entry is missing
	rules    zone.Rules
	zones    map[string]zone.Zone // canonical; never changed in place
	members  int
	settings map[string]string
	done     dedup
	halted   error // an entry that this version does not know
}

// NewMachine gives a Machine before its first entry.
func NewMachine() *Machine {
	return &Machine{zones: map[string]zone.Zone{}, settings: map[string]string{}, done: newDedup()}
}

// Result is the outcome of an entry.
type Result struct {
	Index   uint64   `json:"index"`             // of the entry that made or refused the change
	Refused *Refusal `json:"refused,omitempty"` // nil: it is made
	Again   bool     `json:"again,omitempty"`   // a repetition; the outcome is that of the first time
}

// Edit is what an entry has changed, for those who hold a copy of the zones.
type Edit struct {
	Index uint64
	// All: everything may have changed; else Zone is the new state of the zone of that
	// name, and Gone says that there is none any more. With an empty name nothing
	// but the index has changed.
	All  bool
	Zone zone.Zone
	Gone bool
}

// Index is that of the last entry that was applied.
func (m *Machine) Index() uint64 { return m.index }

// Cluster is the id of the cluster; 0 before its first entry.
func (m *Machine) Cluster() uint64 { return m.cluster }

// Halted tells why entries are not applied any more; nil: they are.
func (m *Machine) Halted() error { return m.halted }

// Set gives all zones and switches, sorted by name.
func (m *Machine) Set() zone.Set {
	s := zone.Set{Zones: make([]zone.Zone, 0, len(m.zones)), AutoJoin: m.settings[SettingAutoJoin] == "true", Hard: m.settings[SettingHard] == "true"}
	for _, name := range slices.Sorted(maps.Keys(m.zones)) {
		s.Zones = append(s.Zones, m.zones[name])
	}
	return s
}

// Settings gives a copy of all settings.
func (m *Machine) Settings() map[string]string { return maps.Clone(m.settings) }

// Counts tells how many zones and members there are.
func (m *Machine) Counts() (zones, members int) { return len(m.zones), m.members }

// Apply applies the entry with an index. One that was applied already, which a
// restart replays, changes nothing.
func (m *Machine) Apply(index uint64, data []byte) (Result, Edit) {
	if index <= m.index {
		return Result{Index: index, Again: true}, Edit{Index: m.index}
	}
	e, err := DecodeEntry(data)
	var unknown *UnknownEntryError
	if errors.As(err, &unknown) && m.halted == nil {
		m.halted = unknown
	}
	if m.halted != nil {
		return Result{Index: index, Refused: refuse(CodeTooOld, "%v", m.halted)}, Edit{Index: m.index}
	}
	m.index = index
	if err != nil {
		return Result{Index: index, Refused: refuse(CodeInvalid, "%v", err)}, Edit{Index: index}
	}
	if res, seen := m.done.seen(e); seen {
		return res, Edit{Index: index}
	}
	edit := Edit{Index: index}
	refusal := m.change(e, &edit)
	if refusal != nil {
		edit = Edit{Index: index}
	}
	res := Result{Index: index, Refused: refusal}
	m.done.add(e.ID, res)
	return res, edit
}

func (m *Machine) change(e *Entry, edit *Edit) *Refusal {
	if e.Kind == KindGenesis {
		return m.genesis(e, edit)
	}
	if m.cluster == 0 {
		return refuse(CodeUnformed, "the cluster is not formed yet: its first entry is missing")
	}
	old, had := m.zones[e.Name]
	switch e.Kind {
	case KindAddZone:
		if had {
			return refuse(CodeExists, "zone %q: already exists", e.Name)
		}
		return m.put(zone.Zone{Name: e.Name, Members: e.Members}, edit)
	case KindRemoveZone:
		if !had {
			return refuse(CodeNotFound, "zone %q: not found", e.Name)
		}
		m.members -= len(old.Members)
		delete(m.zones, e.Name)
		edit.Zone, edit.Gone = zone.Zone{Name: e.Name}, true
		return nil
	case KindAddMembers:
		if !had {
			return refuse(CodeNotFound, "zone %q: not found", e.Name)
		}
		return m.put(zone.Zone{Name: e.Name, Members: slices.Concat(old.Members, e.Members)}, edit)
	case KindRemoveMembers:
		if !had {
			return refuse(CodeNotFound, "zone %q: not found", e.Name)
		}
		return m.without(old, e.Members, edit)
	case KindReplace:
		return m.replace(e.Zones, edit)
	}
	return m.set(e.Name, e.Value, edit)
}

func (m *Machine) genesis(e *Entry, edit *Edit) *Refusal {
	switch {
	case m.cluster != 0:
		return refuse(CodeExists, "the cluster has its first entry already")
	case e.Cluster == 0 || e.Rules.MaxZones <= 0 || e.Rules.MaxMembers <= 0:
		return refuse(CodeInvalid, "a first entry without cluster id or limits")
	}
	m.rules = e.Rules
	if r := m.replace(e.Zones, edit); r != nil {
		return r
	}
	m.cluster = e.Cluster
	m.settings[SettingAutoJoin], m.settings[SettingHard] = strconv.FormatBool(e.Set.AutoJoin), strconv.FormatBool(e.Set.Hard)
	return nil
}

// put adds or replaces a zone.
func (m *Machine) put(z zone.Zone, edit *Edit) *Refusal {
	if r := m.check(z); r != nil {
		return r
	}
	z = z.Canonical()
	old, had := m.zones[z.Name]
	switch {
	case !had && len(m.zones) >= m.rules.MaxZones:
		return refuse(CodeLimit, "zone %q: the limit of %d zones is reached", z.Name, m.rules.MaxZones)
	case m.members-len(old.Members)+len(z.Members) > m.rules.MaxMembers:
		return refuse(CodeLimit, "zone %q: the limit of %d members of all zones is reached", z.Name, m.rules.MaxMembers)
	case wireSize(&z) > maxZoneWire:
		return refuse(CodeLimit, "zone %q has %d members, too many for one message: name ranges instead of single addresses", z.Name, len(z.Members))
	}
	m.members += len(z.Members) - len(old.Members)
	m.zones[z.Name] = z
	edit.Zone = z
	return nil
}

// check tells whether a zone may ever be.
func (m *Machine) check(z zone.Zone) *Refusal {
	if z.Name == zone.DefaultName {
		return refuse(CodeInvalid, "zone %q is always there; hosts in no other zone join it by themselves", z.Name)
	}
	if err := m.rules.CheckZone(z); err != nil {
		return refuse(CodeInvalid, "%v", err)
	}
	return nil
}

// without removes members of a zone; one that it does not have refuses all.
func (m *Machine) without(z zone.Zone, gone []zone.Member, edit *Edit) *Refusal {
	left := slices.Clone(z.Members)
	for _, g := range gone {
		i := slices.Index(left, g.Canonical())
		if i < 0 {
			return refuse(CodeNotFound, "member %s of zone %q: not found", g, z.Name)
		}
		left = slices.Delete(left, i, i+1)
	}
	return m.put(zone.Zone{Name: z.Name, Members: left}, edit)
}

// replace makes a list of zones all there are.
func (m *Machine) replace(zones []zone.Zone, edit *Edit) *Refusal {
	if err := m.rules.Check(zone.Set{Zones: zones}); err != nil {
		code := CodeInvalid
		if errors.Is(err, zone.ErrTooManyZones) || errors.Is(err, zone.ErrTooManyMembers) {
			code = CodeLimit
		}
		return refuse(code, "%v", err)
	}
	next := Machine{rules: m.rules, zones: make(map[string]zone.Zone, len(zones))}
	for _, z := range zones {
		if z.Name == zone.DefaultName {
			continue // without members, as Check says
		}
		if r := next.put(z, &Edit{}); r != nil {
			return r
		}
	}
	m.zones, m.members = next.zones, next.members
	edit.All = true
	return nil
}

func (m *Machine) set(key, value string, edit *Edit) *Refusal {
	_, had := m.settings[key]
	switch {
	case key == "":
		return refuse(CodeInvalid, "a setting without a name")
	case (key == SettingAutoJoin || key == SettingHard) && value != "true" && value != "false":
		return refuse(CodeInvalid, "setting %s: %q is neither true nor false", key, value)
	case !had && len(m.settings) >= MaxSettings:
		return refuse(CodeLimit, "setting %s: the limit of %d settings is reached", key, MaxSettings)
	}
	m.settings[key] = value
	edit.All = true
	return nil
}

// maxZoneWire is the largest zone, by wireSize: what a message of the iNOF protocol
// can hold, with room for its header.
const maxZoneWire = 1_000_000

// wireSize is never less than what a zone takes in a message. It must not change:
// it decides what is refused.
func wireSize(z *zone.Zone) int {
	n := 128
	for i := range z.Members {
		switch m := &z.Members[i]; m.Kind {
		case zone.MemberAddr:
			n += 20
		case zone.MemberRange:
			n += 40
		case zone.MemberBound:
			n += 128 + len(m.NQN)
		default:
			n += 32 + len(m.NQN) + len(m.Port)
		}
	}
	return n
}
