package telemetry

import (
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// The leaves of zones and of hosts. What may be set is below config, what is so below state.

var config = group[Zoning]{
	path: "/inof/config", source: "zones",
	rows: zoningRow,
	leaves: []leaf[Zoning]{
		{Leaf{Path: "active-zone-set", Type: TypeString, Class: Config, Set: true, Doc: "whose zones are in force; absent: all zones are"}, func(z *Zoning) any { return some(z.Plan.Active) }},
	},
}

func zoningRow(s *Snapshot, give func(time.Time, *Zoning, ...string)) {
	if s.Zoning != nil {
		give(s.At, s.Zoning)
	}
}

// planRows gives what a plan has of one kind, by name.
func planRows[V any](of func(*change.Plan) map[string]V) func(*Snapshot, func(time.Time, *planned[V], ...string)) {
	return func(s *Snapshot, give func(time.Time, *planned[V], ...string)) {
		if s.Zoning == nil {
			return
		}
		all := of(s.Zoning.Plan)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			give(s.At, &planned[V]{name, all[name], s.Zoning.Plan}, name)
		}
	}
}

// planned is what is written of one thing in a plan.
type planned[V any] struct {
	name string
	says V
	plan *change.Plan
}

const (
	zonePath  = "/inof/zones/zone[name]"
	aliasPath = "/inof/aliases/alias[name]"
	setPath   = "/inof/zone-sets/zone-set[name]"
)

// inPlan is a part of what operators write: its name, and its list, which may be set.
func inPlan[V any](path, leafList, doc string, of func(*change.Plan) map[string]V, texts func(*planned[V]) []string) group[planned[V]] {
	return group[planned[V]]{
		path: path + "/config", source: "zones", rows: planRows(of),
		leaves: []leaf[planned[V]]{
			{Leaf{Path: "name", Type: TypeString, Class: Config, Set: true, Doc: "key"}, func(p *planned[V]) any { return p.name }},
			{Leaf{Path: leafList, Type: TypeString, Many: true, Class: Config, Set: true, Doc: doc}, func(p *planned[V]) any { return list(texts(p)) }},
		},
	}
}

var (
	zoneConfig = inPlan(zonePath, "member", "as written: an address, a range, an NQN, port:DEVICE/PORT, alias:NAME",
		func(p *change.Plan) map[string]change.Zone { return p.Zones }, func(p *planned[change.Zone]) []string { return p.says.Texts() })
	aliases = inPlan(aliasPath, "member", "as of a zone, without aliases", func(p *change.Plan) map[string]alias { return p.Aliases }, aliasTexts)
	sets    = inPlan(setPath, "zone", "names of zones", func(p *change.Plan) map[string][]string { return p.Sets }, func(p *planned[[]string]) []string { return p.says })
)

// alias are the members of an alias.
type alias = []zone.Member

func aliasTexts(p *planned[alias]) []string {
	out := make([]string, len(p.says))
	for i, m := range p.says {
		out[i] = m.String()
	}
	return out
}

var aliasState = group[planned[alias]]{
	path: aliasPath + "/state", source: "zones", rows: planRows(func(p *change.Plan) map[string]alias { return p.Aliases }),
	leaves: []leaf[planned[alias]]{
		{Leaf{Path: "name", Type: TypeString, Class: Config, Doc: "key"}, func(p *planned[alias]) any { return p.name }},
		{Leaf{Path: "member", Type: TypeString, Many: true, Class: Config, Doc: "in force"}, func(p *planned[alias]) any { return list(aliasTexts(p)) }},
	},
}

var setState = group[planned[[]string]]{
	path: setPath + "/state", source: "zones", rows: planRows(func(p *change.Plan) map[string][]string { return p.Sets }),
	leaves: []leaf[planned[[]string]]{
		{Leaf{Path: "name", Type: TypeString, Class: Config, Doc: "key"}, func(p *planned[[]string]) any { return p.name }},
		{Leaf{Path: "zone", Type: TypeString, Many: true, Class: Config, Doc: "in force"}, func(p *planned[[]string]) any { return list(p.says) }},
		{Leaf{Path: "active", Type: TypeBool, Class: Event, Doc: "its zones are in force"}, func(p *planned[[]string]) any { return p.plan.Active == p.name }},
	},
}

var zones = group[api.Zone]{
	path: zonePath + "/state", source: "daemon", needs: NeedZones,
	rows: func(s *Snapshot, give func(time.Time, *api.Zone, ...string)) {
		for i := range s.Zones.Rows {
			give(s.Zones.At, &s.Zones.Rows[i], s.Zones.Rows[i].Name)
		}
	},
	keys: keysOf("name"),
	leaves: []leaf[api.Zone]{
		{Leaf{Path: "member", Type: TypeString, Many: true, Class: Event, Doc: "in force here, those of aliases in their place"}, func(z *api.Zone) any { return list(z.Members) }},
		{Leaf{Path: "host", Type: TypeAddress, Many: true, Class: Event, Doc: "known hosts in it"}, func(z *api.Zone) any {
			out := make([]string, len(z.Hosts))
			for i, a := range z.Hosts {
				out[i] = a.String()
			}
			return list(out)
		}},
		{Leaf{Path: "learned-from", Type: TypeString, Class: Event, Doc: "local, or the address of a reflector"}, func(z *api.Zone) any { return some(z.LearnedFrom) }},
		{Leaf{Path: "inconsistent", Type: TypeBool, Class: Event, Doc: "the reflectors differ about it"}, func(z *api.Zone) any { return z.Inconsistent }},
	},
}

// namesOf are the texts of the values that have a name.
func namesOf[T interface {
	~uint8
	String() string
}](last T) (out []string) {
	for v := T(0); v <= last; v++ {
		out = append(out, v.String())
	}
	return out
}

var (
	roles     = namesOf(snsd.RoleBoth)
	protocols = namesOf(snsd.ProtocolISCSI)
	states    = namesOf(snsd.Active)
	reasons   = namesOf(snsd.ReasonBFDDown)
	hards     = []string{string(api.HardOff), string(api.HardNormal), string(api.HardProcessing), string(api.HardAbnormal), string(api.HardElsewhere)}
)

var hosts = group[api.Host]{
	path: "/inof/hosts/host[address device port]/state", source: "daemon", needs: NeedHosts,
	rows: func(s *Snapshot, give func(time.Time, *api.Host, ...string)) {
		seen := make(map[[3]string]bool, len(s.Hosts.Rows))
		for i := range s.Hosts.Rows {
			h := &s.Hosts.Rows[i]
			key := [3]string{h.Addr.String(), h.Device.String(), h.Port}
			if len(h.Refused) > 0 || seen[key] { // of several claims at one port the first is the one that counts
				continue
			}
			seen[key] = true
			give(s.Hosts.At, h, key[:]...)
		}
	},
	keys: keysOf("address:"+TypeAddress, "device:"+TypeAddress, "port"),
	leaves: []leaf[api.Host]{
		{Leaf{Path: "role", Type: TypeEnum, Values: roles, Class: Event, Doc: "as the host says"}, func(h *api.Host) any { return word(roles, h.Role.String()) }},
		{Leaf{Path: "protocol", Type: TypeEnum, Values: protocols, Class: Event, Doc: "as the host says"}, func(h *api.Host) any { return word(protocols, h.Protocol.String()) }},
		{Leaf{Path: "nqn", Type: TypeString, Class: Event, Doc: "name of an NVMe target or initiator"}, func(h *api.Host) any { return some(h.NQN) }},
		{Leaf{Path: "mac", Type: TypeMAC, Class: Event, Doc: "of the host"}, func(h *api.Host) any { return h.MAC.String() }},
		{Leaf{Path: "subscribes", Type: TypeBool, Class: Event, Doc: "it wants notices"}, func(h *api.Host) any { return h.Subscribes }},
		{Leaf{Path: "state", Type: TypeEnum, Values: states, Class: Event, Doc: "whether it can be reached"}, func(h *api.Host) any { return word(states, h.State.String()) }},
		{Leaf{Path: "reason", Type: TypeEnum, Values: reasons, Class: Event, Doc: "why it is inactive"}, func(h *api.Host) any { return word(reasons, h.Reason.String()) }},
		{Leaf{Path: "zone", Type: TypeString, Many: true, Class: Event, Doc: "names of its zones"}, func(h *api.Host) any { return list(h.Zones) }},
		{Leaf{Path: "hard", Type: TypeEnum, Values: hards, Class: Event, Doc: "what hard zoning does for it"}, func(h *api.Host) any { return word(hards, string(h.Hard)) }},
		{Leaf{Path: "since", Type: TypeTime, Class: Event, Doc: "first learned by its access device"}, func(h *api.Host) any { return moment(&h.Since) }},
		{Leaf{Path: "conflict", Type: TypeBool, Class: Event, Doc: "another host claimed the address earlier: this one is ignored"}, func(h *api.Host) any { return h.Conflict }},
	},
}
