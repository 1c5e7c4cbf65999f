package sonic

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/hardzone"
)

// Look implements hardzone.Dataplane.
func (a *ACL) Look(x, y netip.Addr) (s hardzone.Seen, err error) {
	s.Suspended = a.suspended
	var ends [2]*aclHost
	for _, h := range a.hosts {
		switch h.Addr {
		case x.Unmap():
			ends[0], s.A, s.APorts = h, h.Number, h.Ports
		case y.Unmap():
			ends[1], s.B, s.BPorts = h, h.Number, h.Ports
		}
	}
	if ends[0] == nil || ends[1] == nil {
		return s, nil
	}
	asked, found := 0, 0
	for i, h := range ends {
		if len(h.Ports) == 0 {
			continue
		}
		asked++
		for _, r := range h.rules {
			if !r.dst.Contains(ends[1-i].Addr) || !a.there[r] {
				continue
			}
			have, err := a.config.hashes([]string{r.key()})
			if err != nil {
				return s, err
			}
			st, err := a.taken([]aclRule{r})
			if err != nil {
				return s, err
			}
			if same(r.fields(), have[r.key()]) && len(st.unseen)+len(st.refused) == 0 {
				found++
			}
		}
	}
	s.Open = asked > 0 && found == asked
	return s, nil
}

// Counts implements hardzone.Dataplane. An ASIC says of what it drops neither why nor of which
// zone; all of it counts as between hosts that may not talk.
func (a *ACL) Counts() (hardzone.Counts, error) {
	out := hardzone.Counts{Ports: make(map[string]hardzone.PortCounts)}
	packets, err := a.packets(slices.Collect(maps.Keys(a.there)))
	if err != nil {
		return out, err
	}
	for r, n := range packets {
		if r.ports == "" || strings.Contains(r.ports, ",") {
			continue // of several ports
		}
		c := out.Ports[r.ports]
		switch {
		case r.priority == aclPair:
			c.Passed += n
		case r.drop && r.priority == aclBound:
			c.BadSource += n
		case r.drop:
			c.NoPair += n
		}
		out.Ports[r.ports] = c
	}
	zones := make(map[uint32]uint64)
	for _, h := range a.hosts {
		for _, r := range h.rules {
			zones[a.zoneOf(h, r)] += packets[r]
		}
	}
	for zone := range slices.Max(append(slices.Collect(maps.Keys(zones)), 0)) + 1 {
		out.Zones = append(out.Zones, hardzone.ZoneCounts{Passed: zones[zone]})
	}
	return out, nil
}

// zoneOf is the zone of all pairs of a rule, 0 if they are of several.
func (a *ACL) zoneOf(h *aclHost, r aclRule) (zone uint32) {
	first := true
	for n, z := range h.partners {
		if o := a.hosts[n]; o == nil || !r.dst.Contains(o.Addr) {
			continue
		}
		if !first && z != zone {
			return 0
		}
		zone, first = z, false
	}
	return zone
}
