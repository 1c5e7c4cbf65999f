package client

import (
	"github.com/openinof/inof/inof/wire"
)

// room is how much a client takes from one reflector: as much as that may hold. One that
// sends without end is refused what is beyond it; what is known already is taken in any case.
type room struct {
	hosts, zones, members int
}

var fullRoom = room{
	hosts:   wire.DefaultMaxHosts,
	zones:   wire.DefaultMaxZones,
	members: wire.DefaultMaxMemberships,
}

// trim leaves out the zones of an Update for which there is no room.
func (s *replica) trim(u *wire.Update, most room, refused *wire.RefusedError) *wire.Update {
	t := s.staged
	if t == nil || u.Anew {
		t = s.zones
	}
	if t == nil || u.Anew {
		t = &zoneTable{}
	}
	zones, members := len(t.zones), t.members
	for _, p := range s.pending {
		for i := range p.Zones {
			zones, members = zones+1, members+p.Zones[i].Said().Count()
		}
	}
	kept := *u
	kept.Zones = make([]wire.ZoneRecord, 0, len(u.Zones))
	for i := range u.Zones {
		r := &u.Zones[i]
		old := t.word(r.Zone.Name)
		more, had := r.Said().Count(), 0
		if old.said {
			had = old.members.Count()
		}
		switch {
		case r.Op != wire.Put:
		case !old.said && zones >= most.zones:
			refused.Add(&wire.LimitError{What: "zones", Key: "zone " + r.Zone.Name, Limit: most.zones})
			continue
		case more > had && members+more-had > most.members:
			refused.Add(&wire.LimitError{What: "memberships", Key: "zone " + r.Zone.Name, Limit: most.members})
			continue
		default:
			members += more - had
			if !old.said {
				zones++
			}
		}
		kept.Zones = append(kept.Zones, *r)
	}
	return &kept
}

func (s *replica) hostFits(r *wire.HostRecord, most room) error {
	if _, known := s.hosts[r.Host.HostKey]; r.Op != wire.Put || known || len(s.hosts) < most.hosts {
		return nil
	}
	return &wire.LimitError{What: "hosts", Key: "host " + r.Host.Addr.String(), Limit: most.hosts}
}
