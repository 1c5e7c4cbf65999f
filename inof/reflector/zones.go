package reflector

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// zoneRules is what a reflector takes; whether loopback addresses are allowed is
// for the configuration to say.
func (r *Reflector) zoneRules() zone.Rules {
	return zone.Rules{AllowLoopback: true, MaxZones: r.cfg.MaxZones, MaxMembers: r.cfg.MaxMemberships}
}

// SetZones replaces the zone configuration. On an error nothing is changed.
func (r *Reflector) SetZones(set zone.Set, now time.Time) ([]wire.Delivery, error) {
	if err := r.zoneRules().Check(set); err != nil {
		r.overLimit(set)
		return nil, err
	}
	set = set.Canonical()
	t := r.begin()
	wanted := make(map[string]struct{}, len(set.Zones))
	for i := range set.Zones {
		z := &set.Zones[i]
		if z.Name == zone.DefaultName {
			continue
		}
		wanted[z.Name] = struct{}{}
		if old, ok := r.interest.zones[z.Name]; !ok || old.members != wire.PackMembers(z.Members) {
			r.changeZone(t, z.Name, z)
		}
	}
	var gone []string
	for name := range r.interest.zones {
		if _, ok := wanted[name]; !ok {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone) // so that equal inputs leave equal tables
	for _, name := range gone {
		r.changeZone(t, name, nil)
	}
	r.autoJoin(t, set.AutoJoin)
	t.settings = t.settings || set.Hard != r.dir.Hard()
	return r.applySet(t, set, now), nil
}

// changeZone notes in t that a zone becomes z, nil: is removed. The Directory
// follows in applySet.
func (r *Reflector) changeZone(t *change, name string, z *zone.Zone) {
	row, had := r.interest.zones[name]
	if _, ok := t.zones[name]; !ok {
		t.zones[name] = had
	}
	if had {
		r.interest.members -= row.members.Count()
		r.interest.digest.Toggle(name, row.members)
		for _, dev := range portDevices(row.members.Unpack()) {
			r.bump(t, dev, name, -1)
		}
	}
	if z == nil {
		delete(r.interest.zones, name)
		r.interest.zoneRows.remove(row)
		return
	}
	if !had {
		row = &zoneRow{name: name}
		r.interest.zones[name] = row
		r.interest.zoneRows.add(row)
	}
	row.members = wire.PackMembers(z.Members)
	r.interest.members += len(z.Members)
	r.interest.digest.Toggle(name, row.members)
	for _, dev := range portDevices(z.Members) {
		r.bump(t, dev, name, +1)
	}
}

// portDevices are the devices that a zone names, or ports of which, each once.
func portDevices(members []zone.Member) []netip.Addr {
	var out []netip.Addr
	for i := range members {
		if m := &members[i]; m.Device.IsValid() && !slices.Contains(out, m.Device) {
			out = append(out, m.Device)
		}
	}
	return out
}

func (r *Reflector) autoJoin(t *change, on bool) {
	if on == r.dir.AutoJoin() {
		return
	}
	t.settings = true
}

// applySet lets the Directory work out who is in which zone now.
func (r *Reflector) applySet(t *change, set zone.Set, now time.Time) []wire.Delivery {
	r.touchChanged(t, r.dir.SetZones(set))
	r.commit(t, r.eventCause(now, now))
	return r.out(now)
}

// PutZone adds or replaces one zone. On an error nothing is changed.
func (r *Reflector) PutZone(z zone.Zone, now time.Time) ([]wire.Delivery, error) {
	if err := r.zoneRules().CheckZone(z); err != nil {
		return nil, err
	}
	z = z.Canonical()
	old, had := r.interest.zones[z.Name]
	var was wire.PackedMembers
	if had {
		was = old.members
	}
	switch {
	case z.Name == zone.DefaultName:
		return nil, &wire.LimitError{What: "zones of that name", Key: "zone " + z.Name, Limit: 1}
	case !had && len(r.interest.zones) >= r.cfg.MaxZones:
		r.counters.OverLimit++
		return nil, &wire.LimitError{What: "zones", Key: "zone " + z.Name, Limit: r.cfg.MaxZones}
	case r.interest.members-was.Count()+len(z.Members) > r.cfg.MaxMemberships:
		r.counters.OverLimit++
		return nil, &wire.LimitError{What: "memberships", Key: "zone " + z.Name, Limit: r.cfg.MaxMemberships}
	case had && was == wire.PackMembers(z.Members):
		return nil, nil
	}
	t := r.begin()
	r.changeZone(t, z.Name, &z)
	r.touchChanged(t, r.dir.PutZone(z))
	r.commit(t, r.eventCause(now, now))
	return r.out(now), nil
}

// DeleteZone removes one zone; one that is not there is no error.
func (r *Reflector) DeleteZone(name string, now time.Time) []wire.Delivery {
	if _, had := r.interest.zones[name]; !had {
		return nil
	}
	t := r.begin()
	r.changeZone(t, name, nil)
	r.touchChanged(t, r.dir.DeleteZone(name))
	r.commit(t, r.eventCause(now, now))
	return r.out(now)
}

// SetBFD changes the BFD settings of every client.
func (r *Reflector) SetBFD(b wire.BFDSettings, now time.Time) []wire.Delivery {
	if b == r.cfg.BFD {
		return nil
	}
	r.cfg.BFD = b
	t := r.begin()
	t.settings = true
	r.commit(t, r.ownCause())
	return r.out(now)
}

// SetHalt has every client observe, or act again.
func (r *Reflector) SetHalt(h wire.Halt, now time.Time) []wire.Delivery {
	if h == r.halt {
		return nil
	}
	r.halt = h
	t := r.begin()
	t.settings = true
	r.commit(t, r.ownCause())
	return r.out(now)
}

// Zones is the present zone configuration, sorted by name.
func (r *Reflector) Zones() zone.Set { return r.dir.Zones() }

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

// SetMultiPort says which attachments of an address count as one host.
func (r *Reflector) SetMultiPort(m zone.MultiPort, now time.Time) []wire.Delivery {
	t := r.begin()
	r.touchContested(t, r.dir.SetMultiPort(m))
	r.commit(t, r.ownCause())
	return r.out(now)
}

// SetCluster says that the zones that are set from now on are those of a cluster as
// of a log entry, and which reflectors are its members. Everything that is sent
// afterwards says so.
func (r *Reflector) SetCluster(s wire.ClusterStamp, members []netip.Addr) {
	r.cluster = s
	if !slices.Equal(members, r.members) {
		r.members = slices.Clone(members[:min(len(members), wire.MaxClusterMembers)])
	}
}
