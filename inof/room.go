package inof

import "github.com/openinof/inof/zone"

// room is how much a client takes from its reflectors, all together: as much as all of
// them may hold. One that sends without end is refused what is beyond it; what is known
// already is taken in any case.
type room struct {
	hosts, zones, members, faults int
}

var fullRoom = room{
	hosts:   MaxReflectors * DefaultMaxHosts,
	zones:   MaxReflectors * DefaultMaxZones,
	members: MaxReflectors * DefaultMaxMemberships,
	faults:  MaxReflectors * DefaultMaxHosts, // a fault without a host is nobody's concern
}

// zoneFits tells whether a reflector's word about a zone can be kept; else the one before
// it stands.
func (l *learned) zoneFits(i int, r *ZoneRecord) error {
	if r.Op != Put {
		return nil
	}
	z, old := l.zones[r.Zone.Name], 0
	if z != nil {
		old = len(z.said[i].members)
	}
	switch more := len(r.Zone.Members) - old; {
	case z == nil && len(l.zones) >= l.most.zones:
		return &LimitError{What: "zones", Key: "zone " + r.Zone.Name, Limit: l.most.zones}
	case more > 0 && l.members+more > l.most.members:
		return &LimitError{What: "memberships", Key: "zone " + r.Zone.Name, Limit: l.most.members}
	}
	return nil
}

func (l *learned) hostFits(r *HostRecord) error {
	if _, known := l.hosts[r.Host.HostKey]; r.Op != Put || known || len(l.hosts) < l.most.hosts {
		return nil
	}
	return &LimitError{What: "hosts", Key: "host " + r.Host.Addr.String(), Limit: l.most.hosts}
}

func (l *learned) faultFits(r *FaultRecord) error {
	if _, known := l.faults[portKey{r.Device, r.Port}]; r.Op != Put || known || len(l.faults) < l.most.faults {
		return nil
	}
	return &LimitError{What: "faults", Key: "fault of " + r.Device.String() + " port " + r.Port, Limit: l.most.faults}
}

// faultFits tells whether a device may have one more port with a fault.
func (d *device) faultFits(f *FaultRecord) error {
	if f.Op != Put || d.faults[f.Port] != nil || len(d.faults) < MaxFaultPorts {
		return nil
	}
	return &LimitError{What: "ports with a fault", Key: "fault of port " + f.Port, Limit: MaxFaultPorts}
}

// overLimit counts a zone configuration that is refused because it is too large.
func (r *Reflector) overLimit(set zone.Set) {
	members := 0
	for i := range set.Zones {
		members += len(set.Zones[i].Members)
	}
	if len(set.Zones) > r.cfg.MaxZones || members > r.cfg.MaxMemberships {
		r.counters.OverLimit++
	}
}
