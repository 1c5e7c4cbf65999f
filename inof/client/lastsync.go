package client

import (
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// LastSync is what was in force when a former process ended: hosts with their claims.
type LastSync struct {
	Settings *wire.Settings // nil: nothing is known
	Zones    []zone.Zone
	Reserved []zone.Zone // members that some reflector named, and that were not in force
	Hosts    []zone.Host
}

// recalled is what of a LastSync no reflector has said since.
type recalled struct {
	on              bool // until this device is synchronized
	hosts           map[zone.HostKey]struct{}
	zones, reserved map[string]struct{}
}

// Recall brings what was in force before the start into force until the reflectors are heard. It
// is to be called before the first session. What a reflector says takes its place at once; what
// none has said when the device is synchronized goes.
func (c *Client) Recall(k LastSync) Applied {
	a := Applied{From: c.self, Origin: c.self}
	if k.Settings == nil {
		return a
	}
	l := &c.learned
	l.recalled = recalled{true, map[zone.HostKey]struct{}{}, map[string]struct{}{}, map[string]struct{}{}}
	settings := *k.Settings
	l.settings, a.Settings = &settings, &settings
	for _, z := range k.Zones {
		l.recalled.zones[z.Name] = struct{}{}
		a.Zones = append(a.Zones, wire.ZoneRecord{Op: wire.Put, Zone: z})
	}
	for _, z := range k.Reserved {
		l.recalled.reserved[z.Name] = struct{}{}
		a.Reserved = append(a.Reserved, wire.ZoneRecord{Op: wire.Put, Zone: z})
	}
	for i := range k.Hosts {
		h := k.Hosts[i]
		if h.Device == c.self || len(l.hosts) >= l.most.hosts {
			continue
		}
		l.recalled.hosts[h.HostKey] = struct{}{}
		l.hosts[h.HostKey] = knownHost{&h, h.Claim}
		a.Hosts = append(a.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	a.sort()
	return a
}

// Recalling reports whether what is in force is, or may be in part, that of before the start.
func (c *Client) Recalling() bool { return c.learned.recalled.on }

// Settings are those in force; nil: none is known.
func (c *Client) Settings() *wire.Settings { return c.learned.settings }

// Connected reports whether a reflector with a session has completed its sync in it.
func (c *Client) Connected() bool {
	return slices.ContainsFunc(c.learned.list, func(s replica) bool { return s.up && s.synced })
}

// Host returns a remote host in force.
func (c *Client) Host(k zone.HostKey) (zone.Host, bool) {
	h, known := c.learned.hosts[k]
	if !known {
		return zone.Host{}, false
	}
	return *h.record(), true
}

// endRecall takes out of force what no reflector has said, once the device is synchronized.
func (l *replicas) endRecall(a *Applied, now time.Time) {
	r := &l.recalled
	if !r.on || !l.synced() {
		return
	}
	t := newTouched()
	for k := range r.hosts {
		t.host(k, snsd.ReasonNone)
	}
	old := *r
	*r = recalled{}
	l.decide(t, a, now)
	gone := func(names map[string]struct{}, inForce func(verdict) bool) (list []wire.ZoneRecord) {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !inForce(l.agreement.of(l.words(name))) {
				list = append(list, wire.ZoneRecord{Op: wire.Withdraw, Zone: zone.Zone{Name: name}})
			}
		}
		return list
	}
	a.Zones = append(a.Zones, gone(old.zones, func(v verdict) bool { return v.inForce })...)
	a.Reserved = append(a.Reserved, gone(old.reserved, func(v verdict) bool { return len(v.reserved) > 0 })...)
	a.sort()
}
