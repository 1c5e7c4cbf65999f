package client

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// This file decides which zones are in force. Each reflector that stands alone is a voice, and
// so is each cluster: of its members the one speaks whose table is of the latest entry of the
// cluster's log. One that lags behind, or is cut off from the others, says nothing.

// hearZones takes the zones and settings of an Update of reflector i. A change takes effect as
// a whole, with the message that no more of it follows; a full sync likewise, in place of all
// that was said before.
func (l *replicas) hearZones(i int, u *wire.Update, a *Applied) {
	s := &l.list[i]
	if u.Anew || s.zones == nil && s.staged == nil {
		s.staged, s.pending = newZoneTable(), nil
	}
	if s.staged != nil {
		s.staged.hear(u, l.tables(i))
		if u.More {
			return
		}
		old := s.zones
		s.zones, s.staged = s.staged, nil
		s.zones.follow(u.Cluster, s.session)
		l.exchange(i, old, a)
		return
	}
	if u.Settings != nil || len(u.Zones) > 0 {
		s.pending = append(s.pending, &wire.Update{Settings: u.Settings, Zones: u.Zones})
	}
	if u.More || s.zones == nil || len(s.pending) == 0 && s.zones.cluster == u.Cluster {
		return
	}
	l.amend(i, u.Cluster, a)
}

// hear takes what an Update says of zones and settings.
func (t *zoneTable) hear(u *wire.Update, others []*zoneTable) {
	for i := range u.Zones {
		t.take(&u.Zones[i], others)
	}
	if u.Settings != nil {
		v := *u.Settings
		t.settings = &v
	}
}

// tables are those of all replicas that have one; the staged one of reflector i's former is
// its own.
func (l *replicas) tables(i int) []*zoneTable {
	var out []*zoneTable
	for j := range l.list {
		if t := l.list[j].zones; t != nil && (j != i || l.list[j].staged != nil) {
			out = append(out, t)
		}
	}
	return out
}

// amend brings a change of reflector i's zones into force, which is all there.
func (l *replicas) amend(i int, as wire.ClusterStamp, a *Applied) {
	s := &l.list[i]
	var names []string
	for _, u := range s.pending {
		for j := range u.Zones {
			names = append(names, u.Zones[j].Zone.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	before := make([][]word, len(names))
	for j, name := range names {
		before[j] = l.words(name)
	}
	for _, u := range s.pending {
		s.zones.hear(u, l.tables(i))
	}
	s.pending = nil
	if of := s.zones.cluster.ID; of != as.ID {
		defer l.divideAll()
	}
	s.zones.follow(as, s.session)
	for j, name := range names {
		l.judge(name, before[j], l.words(name), a)
	}
	l.revote(a)
}

// exchange is for when reflector i has said all its zones anew.
func (l *replicas) exchange(i int, old *zoneTable, a *Applied) {
	now := l.list[i].zones
	if slices.Contains(l.voices, i) {
		for name := range zoneNames(old, now) {
			if old.word(name) == now.word(name) {
				continue
			}
			before, after := l.words(name), l.words(name)
			before[slices.Index(l.voices, i)] = old.word(name)
			l.judge(name, before, after, a)
		}
	}
	l.divideAll()
	l.revote(a)
}

// zoneNames gives the names in some tables, each once.
func zoneNames(tables ...*zoneTable) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, t := range tables {
			if t == nil {
				continue
			}
			for name := range t.zones {
				if slices.ContainsFunc(tables[:i], func(o *zoneTable) bool { return o != nil && o.word(name).said }) {
					continue
				}
				if !yield(name) {
					return
				}
			}
		}
	}
}

// follow notes of which state of a cluster the table is. What was said after the End-of-Sync
// was made may have come before it, out of a slow session's queue; in another session the
// reflector may be one that has lost the end of its log.
func (t *zoneTable) follow(as wire.ClusterStamp, session uint32) {
	if as.ID == t.cluster.ID && session == t.session {
		as.Index = max(as.Index, t.cluster.Index)
	}
	t.cluster, t.session = as, session
}

// words are what the voices say of a zone.
func (l *replicas) words(name string) []word {
	out := make([]word, len(l.voices))
	for j, i := range l.voices {
		out[j] = l.list[i].zones.word(name)
	}
	return out
}

// agreed gives the one word that all voices say, if they do.
func agreed(words []word) (w word, ok bool) {
	for _, o := range words {
		if o != words[0] {
			return word{}, false
		}
	}
	if len(words) == 0 {
		return word{}, true
	}
	return words[0], true
}

// judge tells what is new about a zone when the voices say other words of it.
func (l *replicas) judge(name string, before, after []word, a *Applied) {
	l.divide(name)
	b, same := agreed(before)
	if n, all := agreed(after); same && all {
		delete(l.differing, name)
		switch {
		case b == n:
		case n.said:
			a.Zones = append(a.Zones, wire.ZoneRecord{Op: wire.Put, Zone: zone.Zone{Name: name, Members: n.members.Unpack()}})
		default:
			a.Zones = append(a.Zones, wire.ZoneRecord{Op: wire.Withdraw, Zone: zone.Zone{Name: name}})
		}
		return
	}
	was, is := l.agreement.of(before), l.agreement.of(after)
	if is.differs {
		l.differing[name] = struct{}{}
	} else {
		delete(l.differing, name)
	}
	if !slices.Equal(was.reserved, is.reserved) {
		op := wire.Put
		if len(is.reserved) == 0 {
			op = wire.Withdraw
		}
		a.Reserved = append(a.Reserved, wire.ZoneRecord{Op: op, Zone: zone.Zone{Name: name, Members: is.reserved}})
	}
	switch {
	case is.inForce && (!was.inForce || !slices.Equal(was.members, is.members)):
		a.Zones = append(a.Zones, wire.ZoneRecord{Op: wire.Put, Zone: zone.Zone{Name: name, Members: is.members}})
	case !is.inForce && was.inForce:
		a.Zones = append(a.Zones, wire.ZoneRecord{Op: wire.Withdraw, Zone: zone.Zone{Name: name}})
	}
}

// divide notes whether members of one cluster say different things of a zone.
func (l *replicas) divide(name string) {
	delete(l.split, name)
	for i := range l.list {
		for j := range i {
			if l.oneVoice(i, j) && l.list[i].zones.word(name) != l.list[j].zones.word(name) {
				l.split[name] = struct{}{}
			}
		}
	}
}

// divideAll is divide for all zones, when a reflector has become a member of a cluster.
func (l *replicas) divideAll() {
	clear(l.split)
	for i := range l.list {
		for j := range i {
			if l.oneVoice(i, j) {
				for name := range zoneNames(l.list[i].zones, l.list[j].zones) {
					if l.list[i].zones.word(name) != l.list[j].zones.word(name) {
						l.split[name] = struct{}{}
					}
				}
			}
		}
	}
}

// oneVoice reports whether two reflectors are members of one cluster.
func (l *replicas) oneVoice(i, j int) bool {
	a, b := l.list[i].zones, l.list[j].zones
	return a != nil && b != nil && a.cluster.Known() && a.cluster.ID == b.cluster.ID
}

// waiting reports whether a reflector that was never heard is waited for, which may deny
// everything.
func (l *replicas) waiting() bool { return l.agreement != AgreeUnion && !l.waited && l.missing() }

// leaders gives of each voice the reflector that is furthest, or was before if another one
// is as far.
func (l *replicas) leaders() []int {
	var out []int
	for i := range l.list {
		if l.list[i].zones == nil {
			continue
		}
		at := slices.IndexFunc(out, func(j int) bool { return l.oneVoice(i, j) })
		switch {
		case at < 0:
			out = append(out, i)
		case l.ahead(i, out[at]):
			out[at] = i
		}
	}
	return out
}

func (l *replicas) ahead(i, j int) bool {
	a, b := l.list[i].zones.cluster.Index, l.list[j].zones.cluster.Index
	return a > b || a == b && slices.Contains(l.voices, i)
}

// revote follows a change of who has a voice, and of the settings. While somebody is waited
// for no zones are in force, the default zone included, but those of the last sync before the start.
func (l *replicas) revote(a *Applied) {
	after := l.leaders()
	said := make([]*wire.Settings, len(after))
	for j, i := range after {
		said[j] = l.list[i].zones.settings
	}
	s := l.agreement.settings(said)
	if l.waiting() {
		if after = nil; s != nil {
			s.AutoJoin = l.recalled.on && l.settings.AutoJoin
		}
	}
	if s != nil && (l.settings == nil || *s != *l.settings) {
		l.settings = s
		v := *s
		a.Settings = &v
	}
	if before := l.voices; !slices.Equal(before, after) {
		l.speakers(before, after, a)
	}
	a.sort()
}

// speakers makes others the voices. Where one member of a cluster speaks in place of another
// only what they say differently is looked at.
func (l *replicas) speakers(before, after []int, a *Applied) {
	look := func(name string) {
		l.voices = before
		was := l.words(name)
		l.voices = after
		l.judge(name, was, l.words(name), a)
	}
	if len(before) == len(after) && !slices.ContainsFunc(after, func(i int) bool {
		return !slices.ContainsFunc(before, func(j int) bool { return i == j || l.oneVoice(i, j) })
	}) {
		for _, name := range slices.Sorted(maps.Keys(l.split)) {
			look(name)
		}
	} else {
		var tables []*zoneTable
		for _, i := range slices.Concat(before, after) {
			tables = append(tables, l.list[i].zones)
		}
		for name := range zoneNames(tables...) {
			look(name)
		}
	}
	l.voices = after
}

// Differing lists the zones about which the reflectors differ, sorted.
func (c *Client) Differing() []string { return slices.Sorted(maps.Keys(c.learned.differing)) }

// Differs reports whether the reflectors differ about any zone.
func (c *Client) Differs() bool { return len(c.learned.differing) > 0 }

// ZoneWords gives who says what of a zone, and whether they differ.
func (c *Client) ZoneWords(name string) (said []ReflectorWord, differs bool) {
	l := &c.learned
	for i := range l.list {
		if s := &l.list[i]; s.zones != nil {
			w := s.zones.word(name)
			said = append(said, ReflectorWord{Reflector: s.id, Said: w.said, Members: w.members.Unpack()})
		}
	}
	_, differs = l.differing[name]
	return said, differs
}

// Clusters gives the state of a cluster's log of which each reflector's zones are.
func (c *Client) Clusters() map[netip.Addr]wire.ClusterStamp {
	out := map[netip.Addr]wire.ClusterStamp{}
	for i := range c.learned.list {
		if s := &c.learned.list[i]; s.zones != nil && s.zones.cluster.Known() {
			out[s.id] = s.zones.cluster
		}
	}
	return out
}

// SetReflectorAddresses says at which addresses the reflectors are that
// SetReflectors counts. One that is never heard is not waited for when it is a
// member of a cluster that is.
func (c *Client) SetReflectorAddresses(addrs []netip.Addr) {
	c.learned.addrs = slices.Clone(addrs)
}
