package change

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Findings says what an operator may not have meant: zones without members or hosts, zones whose
// hosts are all initiators or all targets, members that are no host that is known, aliases that no
// zone names, zones in no zone set while one is active. At most limit lines, then one that says
// how many more there are.
func Findings(p *Plan, hosts []zone.Host, limit int) []string {
	out, more := []string{}, 0
	say := func(format string, args ...any) {
		if len(out) >= limit {
			more++
			return
		}
		out = append(out, fmt.Sprintf(format, args...))
	}
	d := table(p.InForce(), hosts)
	used := map[string]bool{}
	members := memberHosts(p, hosts)
	for _, name := range slices.Sorted(maps.Keys(p.Zones)) {
		z := p.Zones[name]
		for _, a := range z.Aliases {
			used[a] = true
		}
		if !p.Has(name) {
			if !inAnySet(p, name) {
				say("zone %s is in no zone set: it is not in force", name)
			}
			continue
		}
		for _, m := range z.Members {
			if !members[m] {
				say("zone %s: member %s is no host that is known", name, m)
			}
		}
		zoneFinding(d, name, len(z.Members)+len(z.Aliases), say)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Aliases)) {
		if !used[name] {
			say("alias %s: no zone names it", name)
		}
		for _, m := range p.Aliases[name] {
			if used[name] && !members[m] {
				say("alias %s: member %s is no host that is known", name, m)
			}
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

func zoneFinding(d *zone.Directory, name string, members int, say func(string, ...any)) {
	roles := map[snsd.Role]int{}
	list := d.ZoneHosts(name)
	for _, a := range list {
		h, _ := d.Host(a)
		roles[h.Role]++
	}
	switch {
	case members == 0:
		say("zone %s has no members", name)
	case len(list) == 0: // said of its members
	case len(list) == 1:
		say("zone %s has one host alone (%s)", name, list[0])
	case roles[snsd.RoleInitiator] == len(list):
		say("zone %s has %d initiators and no target", name, len(list))
	case roles[snsd.RoleTarget] == len(list):
		say("zone %s has %d targets and no initiator", name, len(list))
	}
}

func inAnySet(p *Plan, name string) bool {
	for _, zones := range p.Sets {
		if _, in := slices.BinarySearch(zones, name); in {
			return true
		}
	}
	return false
}

// memberHosts says which members are a host that is known: each is a zone of its own for that.
func memberHosts(p *Plan, hosts []zone.Host) map[zone.Member]bool {
	var list []zone.Member
	for name, z := range p.Zones {
		if p.Has(name) {
			list = append(list, z.Members...)
		}
	}
	for _, ms := range p.Aliases {
		list = append(list, ms...)
	}
	slices.SortFunc(list, zone.CompareMembers)
	list = slices.Compact(list)
	var set zone.Set
	for i, m := range list {
		set.Zones = append(set.Zones, zone.Zone{Name: strconv.Itoa(i), Members: []zone.Member{m}})
	}
	d := table(set, hosts)
	out := make(map[zone.Member]bool, len(list))
	for i, m := range list {
		out[m] = len(d.ZoneHosts(strconv.Itoa(i))) > 0
	}
	return out
}

// table is a table of its own of the same hosts.
func table(set zone.Set, hosts []zone.Host) *zone.Directory {
	d := zone.NewDirectory(netip.Addr{})
	d.SetZones(set)
	for i := range hosts {
		d.PutHost(hosts[i])
	}
	return d
}
