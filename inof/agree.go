package inof

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/zone"
)

// Agreement says when a zone member takes effect that not all reflectors of a
// client name.
type Agreement uint8

const (
	AgreeIdentical Agreement = iota // when every reflector says so
	AgreeUnion                      // when one of them does
)

func (a Agreement) String() string {
	if a == AgreeUnion {
		return "union"
	}
	return "identical"
}

// DefaultReflectorWait is how long, after the first sync since the start, a
// reflector that was never heard is waited for.
const DefaultReflectorWait = 10 * time.Second

// zoneWord is what one reflector says of a zone.
type zoneWord struct {
	gen     uint32 // session in which it said so, 0: it does not say it
	members []zone.Member
}

type learnedZone struct {
	said     [MaxReflectors]zoneWord
	inForce  bool
	members  []zone.Member // in force
	reserved []zone.Member // said by somebody, but not in force
}

func (z *learnedZone) any() bool {
	return slices.ContainsFunc(z.said[:], func(w zoneWord) bool { return w.gen != 0 })
}

// zone takes one reflector's word about a zone.
func (l *learned) zone(i int, r *ZoneRecord, a *Applied) {
	name := r.Zone.Name
	z := l.zones[name]
	if r.Op == Put {
		if z == nil {
			z = &learnedZone{}
			l.zones[name] = z
		}
		members := r.Zone.Members
		for j := range z.said {
			if w := &z.said[j]; w.gen != 0 && slices.Equal(w.members, members) {
				members = w.members // one copy for all who say the same
				break
			}
		}
		l.members += len(members) - len(z.said[i].members)
		z.said[i] = zoneWord{l.sources[i].gen, members}
	} else if z != nil {
		l.members -= len(z.said[i].members)
		z.said[i] = zoneWord{}
	}
	if z != nil {
		l.judge(name, z, a)
	}
}

// judge works out what of a zone is in force and tells what is new about it.
func (l *learned) judge(name string, z *learnedZone, a *Applied) {
	v := l.verdict(z)
	if v.reserved == nil && z.reserved != nil || !slices.Equal(v.reserved, z.reserved) {
		z.reserved = v.reserved
		op := Put
		if len(v.reserved) == 0 {
			op = Withdraw
		}
		a.Reserved = append(a.Reserved, ZoneRecord{Op: op, Zone: zone.Zone{Name: name, Members: v.reserved}})
	}
	switch {
	case v.inForce && (!z.inForce || !slices.Equal(v.members, z.members)):
		a.Zones = append(a.Zones, ZoneRecord{Op: Put, Zone: zone.Zone{Name: name, Members: v.members}})
	case !v.inForce && z.inForce:
		a.Zones = append(a.Zones, ZoneRecord{Op: Withdraw, Zone: zone.Zone{Name: name}})
	}
	z.inForce, z.members = v.inForce, v.members
	if v.differs {
		l.differing[name] = struct{}{}
	} else {
		delete(l.differing, name)
	}
	if l.splits(z) {
		l.split[name] = struct{}{}
	} else {
		delete(l.split, name)
	}
	if !z.any() {
		delete(l.zones, name)
	}
}

type verdict struct {
	inForce, differs  bool
	members, reserved []zone.Member
}

func (l *learned) verdict(z *learnedZone) verdict {
	var v verdict
	var all []zone.Member // said by anybody
	said, denied := 0, l.waiting()
	for j := range l.sources {
		if !l.first(j) {
			continue // its voice was counted
		}
		w, denies := l.speaks(j, z)
		switch {
		case w.gen == 0:
			if denies {
				denied, v.differs = true, true
			}
		case said == 0:
			said++
			v.members, all = w.members, w.members
		case !slices.Equal(w.members, v.members) || !slices.Equal(w.members, all):
			said++
			v.members, all = common(v.members, w.members), merged(all, w.members)
		default:
			said++
		}
	}
	v.differs = said > 0 && (v.differs || len(all) != len(v.members))
	switch {
	case said == 0:
		return verdict{}
	case l.agreement == AgreeUnion:
		v.inForce, v.members = true, all
	case denied:
		v.members, v.reserved = nil, all
	default:
		v.inForce = true
		v.reserved = beyond(all, v.members)
	}
	return v
}

// denies tells whether it is reflector j's word that the zone is not there, or that
// it has no member at this device. While a reflector is heard everything it does
// not say is denied. The last word of a silent one is about the hosts that it had
// placed and about the ports: of a host that came since it has said nothing.
func (l *learned) denies(j int, z *learnedZone) bool {
	s := &l.sources[j]
	switch {
	case s.up && s.synced:
		return true
	case !s.heard:
		return false
	case l.everything:
		return true
	}
	for i := range z.said {
		if z.said[i].gen == 0 {
			continue
		}
		for _, m := range z.said[i].members {
			if m.Device == l.self { // of a port, or of an NQN at a place
				return true
			}
			for _, p := range s.placed {
				if m.Matches(p.host) {
					return true
				}
			}
		}
	}
	return false
}

// common gives the members of a that are in b.
func common(a, b []zone.Member) []zone.Member {
	in := memberSet(b)
	var out []zone.Member
	for _, m := range a {
		if in(m) {
			out = append(out, m)
		}
	}
	return out
}

// beyond gives the members of a that are not in b.
func beyond(a, b []zone.Member) []zone.Member {
	if len(a) == len(b) {
		return nil
	}
	in := memberSet(b)
	var out []zone.Member
	for _, m := range a {
		if !in(m) {
			out = append(out, m)
		}
	}
	return out
}

func merged(a, b []zone.Member) []zone.Member {
	extra := beyond(b, common(b, a))
	if len(extra) == 0 {
		return a
	}
	return zone.Zone{Members: slices.Concat(a, extra)}.Canonical().Members
}

func memberSet(ms []zone.Member) func(zone.Member) bool {
	if len(ms) <= 16 {
		return func(m zone.Member) bool { return slices.Contains(ms, m) }
	}
	set := make(map[zone.Member]struct{}, len(ms))
	for _, m := range ms {
		set[m] = struct{}{}
	}
	return func(m zone.Member) bool { _, ok := set[m]; return ok }
}

// judgeAll is for when a reflector has come, gone, or is waited for no longer.
func (l *learned) judgeAll(a *Applied) {
	if l.expected < 2 && len(l.sources) < 2 {
		return
	}
	for name, z := range l.zones {
		l.judge(name, z, a)
	}
}

// waiting tells whether a reflector that was never heard since the start is still
// waited for: it may have a word.
func (l *learned) waiting() bool {
	if l.waited || l.agreement == AgreeUnion {
		return false
	}
	return l.missing()
}

// missing tells whether a reflector was never heard since the start.
func (l *learned) missing() bool {
	n := 0
	for i := range l.sources {
		if l.sources[i].heard {
			n++
		}
	}
	return l.expected > 1 && n < l.expected && n+l.spoken() < l.expected
}

// synced tells whether everybody who is waited for was heard, and has answered what was
// asked then. It stays so.
func (l *learned) synced() bool {
	if !l.live {
		heard := slices.ContainsFunc(l.sources, func(s source) bool { return s.heard })
		l.live = heard && (l.waited || !l.missing()) && (l.late || !l.questioning())
	}
	return l.live
}

// place notes that reflector i has taken in an own host and said its zones.
func (l *learned) place(i int, h zone.Host, a *Applied) {
	s := &l.sources[i]
	if s.placed == nil {
		s.placed = map[zone.HostKey]placement{}
	}
	s.placed[h.HostKey] = placement{h, s.gen}
	l.release(h.HostKey, a)
}

// release tells of an own host once every reflector with a session has placed it in
// that session, or in the one that was resumed.
func (l *learned) release(k zone.HostKey, a *Applied) {
	if _, done := l.released[k]; done || !l.waited && l.missing() {
		return
	}
	n := 0
	for i := range l.sources {
		s := &l.sources[i]
		if !s.up {
			continue
		}
		if p, placed := s.placed[k]; !placed || p.gen < s.valid {
			return
		}
		n++
	}
	if n > 0 {
		l.released[k] = struct{}{}
		a.Placed = append(a.Placed, k)
	}
}

// releaseAll is release for the own hosts, when a reflector is silent now or waited
// for no longer.
func (l *learned) releaseAll(own map[zone.HostKey]zone.Host, a *Applied) {
	for k := range own {
		l.release(k, a)
	}
	slices.SortFunc(a.Placed, compareKeys)
}

// unplace forgets an own host that was withdrawn. A silent reflector's word about
// its zones stands, should it come back.
func (l *learned) unplace(k zone.HostKey) {
	delete(l.released, k)
	for i := range l.sources {
		if l.sources[i].up {
			delete(l.sources[i].placed, k)
		}
	}
}

// settle takes the settings of a reflector and combines those of all: switches as
// zone members, of BFD timers the larger values. Nil: nothing has changed.
func (l *learned) settle(i int, s *Settings) *Settings {
	if s == nil {
		return nil
	}
	v := *s
	l.sources[i].settings = &v
	return l.resettle()
}

// joins tells whether hosts of no zone are in the default zone, as reflector i says.
func (l *learned) joins(i int) bool {
	s := l.sources[i].settings
	return s != nil && s.AutoJoin
}

// undeny forgets what a reflector whose hosts of no zone no longer join the default
// zone has said of hosts in it.
func (l *learned) undeny(i int, a *Applied) {
	for k, e := range l.hosts {
		if e.stands[i] == StandingZoned && !e.asked {
			e.stands[i] = 0
			a.Placed = append(a.Placed, k)
		}
	}
	slices.SortFunc(a.Placed, compareKeys)
}

// resettle is settle after a reflector's cluster has moved on.
func (l *learned) resettle() *Settings {
	var out *Settings
	for j := range l.sources {
		if !l.first(j) {
			continue
		}
		s := l.settingsOf(j)
		switch {
		case s == nil:
		case out == nil:
			v := *s
			out = &v
		default:
			both := func(a *bool, b bool) {
				if l.agreement == AgreeUnion {
					*a = *a || b
				} else {
					*a = *a && b
				}
			}
			both(&out.AutoJoin, s.AutoJoin)
			both(&out.Hard, s.Hard)
			both(&out.BFD.Enabled, s.BFD.Enabled)
			out.BFD.MeshAll = out.BFD.MeshAll || s.BFD.MeshAll
			out.BFD.Interval = max(out.BFD.Interval, s.BFD.Interval)
			out.BFD.DetectMult = max(out.BFD.DetectMult, s.BFD.DetectMult)
		}
	}
	if out == nil || l.settings != nil && *l.settings == *out {
		return nil
	}
	l.settings = out
	v := *out
	return &v
}

// ReflectorWord is what one reflector says of a zone.
type ReflectorWord struct {
	Reflector netip.Addr
	Said      bool // it has the zone, as far as it concerns this device
	Members   []zone.Member
}

// Differing lists the zones about which the reflectors differ, sorted.
func (c *Client) Differing() []string {
	out := make([]string, 0, len(c.learned.differing))
	for name := range c.learned.differing {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Differs tells whether the reflectors differ about any zone.
func (c *Client) Differs() bool { return len(c.learned.differing) > 0 }

// ZoneWords tells who says what of a zone, and whether they differ.
func (c *Client) ZoneWords(name string) (said []ReflectorWord, differs bool) {
	l := &c.learned
	z := l.zones[name]
	if z == nil {
		return nil, false
	}
	for i := range l.sources {
		s := &l.sources[i]
		if w := z.said[i]; w.gen != 0 || s.heard {
			said = append(said, ReflectorWord{Reflector: s.id, Said: w.gen != 0, Members: slices.Clone(w.members)})
		}
	}
	_, differs = l.differing[name]
	return said, differs
}

// SaidBy tells which reflectors say a remote host.
func (c *Client) SaidBy(k zone.HostKey) []netip.Addr {
	e := c.learned.hosts[k]
	if e == nil {
		return nil
	}
	var out []netip.Addr
	for i := range c.learned.sources {
		if e.said[i] != 0 {
			out = append(out, c.learned.sources[i].id)
		}
	}
	return out
}
