package cluster

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// Machine is the replicated state: the zones and settings of a cluster, and which
// changes it has seen. The same entries in the same order give the same Machine.
type Machine struct {
	index    uint64 // of the last entry that was applied
	cluster  uint64 // 0: the first entry is missing
	rules    zone.Rules
	book     *change.Book         // what operators write of zones, and its versions
	zones    map[string]zone.Zone // those in force, canonical; never changed in place
	members  int                  // of them
	settings map[string]string
	done     dedup
	halted   error  // an entry that this version does not know
	last     *Entry // that was applied; nil: it could not be read
}

// NewMachine gives a Machine before its first entry.
func NewMachine() *Machine {
	return &Machine{book: change.NewBook(&change.Plan{}, change.Meta{}), zones: map[string]zone.Zone{}, settings: map[string]string{}, done: newDedup()}
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

// Book gives a copy of what operators write of zones, with its versions.
func (m *Machine) Book() *change.Book { return m.book.Clone() }

// Set gives all zones that are in force and the switches, sorted by name.
func (m *Machine) Set() zone.Set {
	s := zone.Set{Zones: make([]zone.Zone, 0, len(m.zones)), AutoJoin: m.settings[SettingAutoJoin] == "true", Hard: m.settings[SettingHard] == "true"}
	for _, name := range slices.Sorted(maps.Keys(m.zones)) {
		s.Zones = append(s.Zones, m.zones[name])
	}
	return s
}

// Settings gives a copy of all settings.
func (m *Machine) Settings() map[string]string { return maps.Clone(m.settings) }

// Apply applies the entry with an index. One that was applied already, which a
// restart replays, changes nothing.
func (m *Machine) Apply(index uint64, data []byte) (Result, Edit) {
	if index <= m.index {
		return Result{Index: index, Again: true}, Edit{Index: m.index}
	}
	e, err := DecodeEntry(data)
	m.last = e
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
	switch e.Kind {
	case KindReplace:
		return m.replace(e.Zones, e.Meta, edit)
	case KindSetting:
		return m.set(e.Name, e.Value, edit)
	case KindCommit:
		return m.commit(change.Order{Delta: e.Delta, Base: e.Base, Meta: e.Meta, Deadline: e.Deadline, Extends: e.Number}, edit)
	case KindSettle:
		return m.settle(e, edit)
	}
	old, had := m.book.Plan().Zones[e.Name]
	switch {
	case e.Kind == KindAddZone && had:
		return refuse(CodeExists, "zone %q: already exists", e.Name)
	case e.Kind != KindAddZone && !had:
		return refuse(CodeNotFound, "zone %q: not found", e.Name)
	}
	list := slices.Clone(e.Members)
	switch e.Kind {
	case KindRemoveZone:
		return m.edit(e, func(p *change.Plan) { p.DropZone(e.Name) }, edit)
	case KindAddMembers:
		list = slices.Concat(old.Members, e.Members)
	case KindRemoveMembers:
		list = slices.Clone(old.Members)
		for _, g := range e.Members {
			i := slices.Index(list, g.Canonical())
			if i < 0 {
				return refuse(CodeNotFound, "member %s of zone %q: not found", g, e.Name)
			}
			list = slices.Delete(list, i, i+1)
		}
	}
	return m.edit(e, func(p *change.Plan) { p.PutZone(e.Name, change.Zone{Members: list, Aliases: old.Aliases}) }, edit)
}

func (m *Machine) genesis(e *Entry, edit *Edit) *Refusal {
	switch {
	case m.cluster != 0:
		return refuse(CodeExists, "the cluster has its first entry already")
	case e.Cluster == 0 || e.Rules.MaxZones <= 0 || e.Rules.MaxMembers <= 0:
		return refuse(CodeInvalid, "a first entry without cluster id or limits")
	}
	m.rules = zone.Rules{AllowLoopback: e.Rules.AllowLoopback, MaxZones: e.Rules.MaxZones, MaxMembers: e.Rules.MaxMembers} // the others are a member's own
	if r := m.replace(e.Zones, e.Meta, edit); r != nil {
		return r
	}
	m.book = change.NewBook(m.book.Plan(), e.Meta)
	m.cluster = e.Cluster
	m.settings[SettingAutoJoin], m.settings[SettingHard] = strconv.FormatBool(e.Set.AutoJoin), strconv.FormatBool(e.Set.Hard)
	return nil
}

// edit makes a change of one zone, in the zone sets too where it is in them.
func (m *Machine) edit(e *Entry, do func(*change.Plan), edit *Edit) *Refusal {
	p := m.book.Plan()
	part := &change.Plan{Zones: map[string]change.Zone{}, Sets: p.Sets, Active: p.Active}
	if z, had := p.Zones[e.Name]; had {
		part.Zones[e.Name] = z
	}
	next := part.Clone()
	do(next)
	return m.commit(change.Order{Delta: change.Diff(part, next), Meta: e.Meta}, edit)
}

// commit makes a change for everybody, or says why not; then nothing has changed.
func (m *Machine) commit(o change.Order, edit *Edit) *Refusal {
	if err := m.book.Admit(o.Base, o.Extends); err != nil {
		return refuse(CodeConflict, "%v", err)
	}
	changed, r := m.follows(&o.Delta)
	if r != nil {
		return r
	}
	if _, _, err := m.book.Commit(o); err != nil {
		return refuse(CodeConflict, "%v", err) // it was admitted
	}
	m.take(changed, edit)
	return nil
}

// settle ends the waiting of a version.
func (m *Machine) settle(e *Entry, edit *Edit) *Refusal {
	if e.Stay {
		if _, err := m.book.Confirm(e.Number); err != nil {
			return refuse(CodeSettled, "%v", err)
		}
		return nil
	}
	back := m.book.WayBack()
	var changed map[string]*zone.Zone
	if m.book.Pending() != nil {
		var r *Refusal
		if changed, r = m.follows(&back); r != nil {
			return r // it was in force before
		}
	}
	if _, err := m.book.Abort(e.Number, e.Meta); err != nil {
		return refuse(CodeSettled, "%v", err)
	}
	m.take(changed, edit)
	return nil
}

// follows gives what a change of the plan does to the zones in force (nil: gone), or why it may
// not be. Of zones alone, where there are no zone sets, no others are looked at.
func (m *Machine) follows(d *change.Delta) (map[string]*zone.Zone, *Refusal) {
	p := m.book.Plan()
	changed := map[string]*zone.Zone{}
	if d.OnlyZones() && len(p.Sets) == 0 {
		for _, name := range slices.Sorted(maps.Keys(d.Put.Zones)) { // so that all members say the same
			z := d.Put.Zones[name]
			for _, a := range z.Aliases {
				if _, ok := p.Aliases[a]; !ok {
					return nil, refuse(CodeInvalid, "zone %q: alias %q: %v", name, a, change.ErrNoAlias)
				}
			}
			whole := p.ExpandOf(name, z).Canonical()
			changed[name] = &whole
		}
		for _, name := range d.Gone.Zones {
			if _, put := changed[name]; !put {
				changed[name] = nil
			}
		}
	} else {
		next := p.Clone()
		next.Apply(d)
		if err := next.Check(m.rules); err != nil {
			return nil, checkRefusal(err)
		}
		there := map[string]bool{}
		for _, z := range next.InForce().Zones {
			there[z.Name] = true
			if old, had := m.zones[z.Name]; !had || !slices.Equal(old.Members, z.Members) {
				changed[z.Name] = &z
			}
		}
		for name := range m.zones {
			if !there[name] {
				changed[name] = nil
			}
		}
	}
	return changed, m.fits(changed)
}

// fits reports whether the zones in force may become these.
func (m *Machine) fits(changed map[string]*zone.Zone) *Refusal {
	zones, members := len(m.zones), m.members
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		old, had := m.zones[name]
		members -= len(old.Members)
		z := changed[name]
		if z == nil {
			if had {
				zones--
			}
			continue
		}
		if !had {
			zones++
		}
		if r := m.check(*z); r != nil {
			return r
		}
		members += len(z.Members)
	}
	switch {
	case zones > m.rules.MaxZones:
		return refuse(CodeLimit, "the limit of %d zones is reached: there would be %d", m.rules.MaxZones, zones)
	case members > m.rules.MaxMembers:
		return refuse(CodeLimit, "the limit of %d members of all zones is reached: there would be %d", m.rules.MaxMembers, members)
	}
	return nil
}

// take brings changed zones into force, and tells those who hold a copy.
func (m *Machine) take(changed map[string]*zone.Zone, edit *Edit) {
	for name, z := range changed {
		m.members -= len(m.zones[name].Members)
		if z == nil {
			delete(m.zones, name)
			edit.Zone, edit.Gone = zone.Zone{Name: name}, true
			continue
		}
		m.members += len(z.Members)
		m.zones[name] = *z
		edit.Zone, edit.Gone = *z, false
	}
	if len(changed) > 1 {
		*edit = Edit{Index: edit.Index, All: true}
	}
}

// check reports whether a zone may ever be.
func (m *Machine) check(z zone.Zone) *Refusal {
	if z.Name == zone.DefaultName {
		return refuse(CodeInvalid, "zone %q is always there; hosts in no other zone join it by themselves", z.Name)
	}
	if err := m.rules.CheckZone(z); err != nil {
		return checkRefusal(err)
	}
	return nil
}

// replace makes a list of zones all there are, without aliases and zone sets.
func (m *Machine) replace(zones []zone.Zone, meta change.Meta, edit *Edit) *Refusal {
	if err := m.rules.Check(zone.Set{Zones: zones}); err != nil {
		return checkRefusal(err)
	}
	if r := m.commit(change.Order{Delta: change.Diff(m.book.Plan(), change.PlanOf(zone.Set{Zones: zones})), Meta: meta}, edit); r != nil {
		return r
	}
	*edit = Edit{Index: edit.Index, All: true}
	return nil
}

func checkRefusal(err error) *Refusal {
	if errors.Is(err, zone.ErrTooManyZones) || errors.Is(err, zone.ErrTooManyMembers) || errors.Is(err, zone.ErrTooLarge) {
		return refuse(CodeLimit, "%v", err)
	}
	return refuse(CodeInvalid, "%v", err)
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
