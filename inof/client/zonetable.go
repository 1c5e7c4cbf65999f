package client

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// zoneTable is the whole zone configuration of one reflector, as a client keeps it: at the
// limits there are 160,000 zones of each reflector, so that members are kept as they are on
// the wire, and what two reflectors say alike once.
type zoneTable struct {
	zones    map[string]wire.PackedMembers
	members  int
	digest   wire.ZoneDigest // of zones
	settings *wire.Settings
	cluster  wire.ClusterStamp // whose zones these are, and as of which entry of its log
	session  uint32            // in which that was said
}

func newZoneTable() *zoneTable { return &zoneTable{zones: map[string]wire.PackedMembers{}} }

// take applies a record. What another table says alike is kept once.
func (t *zoneTable) take(r *wire.ZoneRecord, others []*zoneTable) {
	name := r.Zone.Name
	if old, had := t.zones[name]; had {
		t.members -= old.Count()
		t.digest.Toggle(name, old)
		delete(t.zones, name)
	}
	if r.Op != wire.Put {
		return
	}
	is := r.Said()
	for _, o := range others {
		if p, ok := o.zones[name]; ok && p == is {
			is = p
			break
		}
	}
	t.zones[name] = is
	t.members += is.Count()
	t.digest.Toggle(name, is)
}

// word is what a table says of a zone.
type word struct {
	said    bool
	members wire.PackedMembers
}

func (t *zoneTable) word(name string) word {
	if t == nil {
		return word{}
	}
	p, said := t.zones[name]
	return word{said, p}
}

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

// verdict is what comes of what several voices say of one zone.
type verdict struct {
	inForce  bool
	differs  bool
	members  []zone.Member // in force
	reserved []zone.Member // said by somebody, and not in force
}

// of works out what comes of words about one zone.
func (a Agreement) of(words []word) verdict {
	var v verdict
	var all []zone.Member // said by anybody
	said := 0
	for i, w := range words {
		switch {
		case !w.said:
			continue
		case said == 0:
			v.members = w.members.Unpack()
			all = v.members
		case w.members != words[i-1].members || !words[i-1].said:
			ms := w.members.Unpack()
			v.members, all = common(v.members, ms), merged(all, ms)
		}
		said++
	}
	switch v.differs = said > 0 && (said < len(words) || len(all) != len(v.members)); {
	case said == 0:
		return verdict{}
	case a == AgreeUnion:
		v.inForce, v.members = true, all
	case said < len(words):
		v.members, v.reserved = nil, all
	default:
		v.inForce, v.reserved = true, beyond(all, v.members)
	}
	return v
}

// settings combines those of several voices: switches as zone members, of BFD timers the
// larger values; nil if none has said any.
func (a Agreement) settings(said []*wire.Settings) *wire.Settings {
	var out *wire.Settings
	both := func(x *bool, y bool) { *x = a == AgreeUnion && (*x || y) || *x && y }
	for _, s := range said {
		switch {
		case s == nil:
		case out == nil:
			v := *s
			out = &v
		default:
			both(&out.AutoJoin, s.AutoJoin)
			both(&out.Hard, s.Hard)
			both(&out.BFD.Enabled, s.BFD.Enabled)
			out.BFD.MeshAll = out.BFD.MeshAll || s.BFD.MeshAll
			out.BFD.Interval = max(out.BFD.Interval, s.BFD.Interval)
			out.BFD.DetectMult = max(out.BFD.DetectMult, s.BFD.DetectMult)
		}
	}
	return out
}

// common gives the members of a that are in b.
func common(a, b []zone.Member) []zone.Member {
	in := memberSet(b)
	return slices.DeleteFunc(slices.Clone(a), func(m zone.Member) bool { return !in(m) })
}

// beyond gives the members of a that are not in b.
func beyond(a, b []zone.Member) []zone.Member {
	if len(a) == len(b) {
		return nil
	}
	in := memberSet(b)
	return slices.DeleteFunc(slices.Clone(a), in)
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

// ReflectorWord is what one reflector says of a zone.
type ReflectorWord struct {
	Reflector netip.Addr
	Said      bool // it has the zone
	Members   []zone.Member
}
