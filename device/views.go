package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func (c *Core) Addresses() []netip.Addr {
	var addrs []netip.Addr
	for h := range c.View().AllHosts() {
		addrs = append(addrs, h.Addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// AppendHosts appends every attachment of an address.
func (c *Core) AppendHosts(list []api.Host, addr netip.Addr) []api.Host {
	v := c.View()
	attachments := v.Attachments(addr)
	if len(attachments) == 0 {
		return list
	}
	state, reason := v.State(addr)
	if c.client != nil && c.dir.Known(addr) {
		state, reason = c.dir.State(addr) // as seen from here: the paths count too
	}
	zones := v.ZonesOf(addr)
	hard, hardWhy := c.HardState()
	for _, h := range attachments {
		a := api.Host{
			Addr: h.Addr, Type: api.Remote, Role: h.Role, Protocol: h.Protocol, ServicePort: h.Service.Port, NQN: h.NQN,
			Device: h.Device, Port: h.HostKey.Port, MAC: h.MAC, Subscribes: h.Subscribes,
			State: state, Reason: reason, Zones: zones, Hard: hard, HardWhy: hardWhy, Since: h.Since,
			Conflict: !v.Holds(h.HostKey), Doubt: h.Doubt, LearnedFrom: c.learnedFrom(h.HostKey),
		}
		if h.Device == c.self {
			a.Refused = c.refusedBy(h.Addr, "")
			a.Type = api.Local
			a.Expires = c.expires(h.HostKey)
			a.Removal = c.removal(h.HostKey.Port)
			a.Source = c.source(h.HostKey)
		}
		list = append(list, a)
	}
	return list
}

// learnedFrom names who told us of a host.
func (c *Core) learnedFrom(k zone.HostKey) string {
	dev := k.Device
	switch {
	case dev == c.self:
		return api.LearnedLocal
	case c.refl != nil:
		return dev.String()
	}
	return c.names(c.client.SaidBy(k))
}

// source is how a local host became known.
func (c *Core) source(k zone.HostKey) string {
	if d := c.declared.all[k.Addr]; d != nil && d.port == k.Port {
		return api.SourceConfigured
	}
	return api.SourceLLDP
}

// expires is when the LLDP time to live of a local host ends.
func (c *Core) expires(k zone.HostKey) *time.Time {
	for _, n := range c.table.Neighbours(k.Port) {
		for _, h := range n.Known {
			if h.Addr == k.Addr {
				return &n.Expires
			}
		}
	}
	return nil
}

func (c *Core) ZoneNames() []string {
	set := c.View().Zones()
	names := make([]string, 0, len(set.Zones)+1)
	for _, z := range set.Zones {
		names = append(names, z.Name)
	}
	if set.AutoJoin {
		names = append(names, zone.DefaultName)
	}
	if c.client != nil { // those too that are not in force at all
		names = append(names, c.Differing()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Differing lists the zones that are not the same at all reflectors; none on a device that
// asks no reflector.
func (c *Core) Differing() []string {
	if c.client == nil {
		return nil
	}
	return c.client.Differing()
}

// Zone gives a zone as operators see it.
func (c *Core) Zone(name string) (api.Zone, bool) {
	v := c.View()
	var from string
	switch {
	case c.refl != nil:
		from = api.LearnedLocal
	case name == zone.DefaultName:
		from = c.reflectorName()
	default:
		from = c.zoneSources(name)
	}
	z := api.Zone{Name: name, Members: []string{}, Hosts: v.ZoneHosts(name), LearnedFrom: from}
	if name != zone.DefaultName {
		def, ok := v.Zone(name)
		if c.zoneWords(&z); !ok && !z.Inconsistent {
			return z, false
		}
		for _, m := range def.Members {
			z.Members = append(z.Members, m.String())
		}
	}
	if z.Hosts == nil {
		z.Hosts = []netip.Addr{}
	}
	return z, true
}

func (c *Core) PortList(now time.Time) []api.Port {
	list := []api.Port{}
	for _, name := range c.PortNames() {
		p := c.ports[name]
		a := api.Port{
			Name: p.Name, Index: p.Index, MAC: p.MAC, MTU: p.MTU, AdminUp: p.AdminUp, Carrier: p.Carrier, State: api.PortDown,
			Neighbours: c.table.Count(name), Hosts: len(c.table.Hosts(name)),
		}
		if p.Up() {
			a.State = api.PortUp
		}
		if st, ok := c.faults.PortStatus(name, now); ok {
			a.Flaps, a.LastFlap = st.Flaps, stamp(st.LastFlap)
			if st.Shut {
				if a.State = api.PortShutting; st.Closed {
					a.State = api.PortErrorDown
				}
			}
			if _, closed, drained := c.faults.Drained(name); drained {
				if a.State = api.PortDraining; closed {
					a.State = api.PortDrained
				}
			}
		}
		list = append(list, a)
	}
	for _, p := range c.released() {
		list = append(list, api.Port{Name: p.Name, Index: p.Index, MAC: p.MAC, MTU: p.MTU, State: api.PortRemoved, Removal: c.removal(p.Name),
			Neighbours: c.table.Count(p.Name), Hosts: len(c.table.Hosts(p.Name))})
	}
	return list
}

// ErrorDown lists the ports with a fault, one row a cause, and those that have flapped.
func (c *Core) ErrorDown(now time.Time) []api.ErrorDown {
	list := []api.ErrorDown{}
	if c.faults == nil {
		return list
	}
	for _, s := range c.faults.Status(now) {
		row := api.ErrorDown{Port: s.Port, FlapsInWindow: uint64(s.FlapsInWindow), Flaps: s.Flaps, LastFlap: stamp(s.LastFlap)}
		for _, cs := range s.Causes {
			r := row
			r.Cause, r.Reason, r.Since = cs.Cause.String(), cs.Cause.Reason(), stamp(cs.Since)
			r.Recovery, r.TimeLeft = api.Duration(cs.Recovery), api.Duration(cs.TimeLeft)
			list = append(list, r)
		}
		if len(s.Causes) == 0 && s.Flaps > 0 {
			list = append(list, row)
		}
	}
	return list
}

func (c *Core) NeighbourPorts() []string {
	if c.table == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.ports))
}

func (c *Core) AppendNeighbours(list []api.Neighbour, name string, now time.Time) []api.Neighbour {
	for _, n := range c.table.Neighbours(name) {
		a := api.Neighbour{
			Port: n.Port, ChassisID: n.ChassisID, PortID: n.PortID, MAC: n.MAC, SysName: n.SysName, SysDesc: n.SysDesc,
			TTL: n.TTL, Age: api.Duration(now.Sub(n.LastHeard)), ExpiresIn: api.Duration(n.Expires.Sub(now)),
			Addresses: []netip.Addr{}, Confirmed: n.Confirmed, Doubt: n.InDoubt(),
		}
		for _, r := range n.Refused {
			a.Refused = append(a.Refused, r.Addr.String()+": "+r.Why)
		}
		for _, h := range n.Known {
			a.Addresses = append(a.Addresses, h.Addr)
			a.Role = h.Role
		}
		if len(n.Known) == 0 {
			a.Addresses = append(a.Addresses, n.Mgmt...)
		}
		list = append(list, a)
	}
	return list
}

func (c *Core) Notices() []api.Notice {
	list := []api.Notice{}
	if c.notify == nil {
		return list
	}
	for _, n := range c.notify.Notices() {
		a := api.Notice{
			Seq: n.Seq, Host: n.Host, Subject: n.Subject, State: n.State, Reason: n.Reason, Port: n.Port,
			Retries: n.Retries, Fence: n.Fence, Fenced: fencedText(&n),
		}
		switch {
		case n.Observed:
			a.Status = api.NoticeObserved
		case !n.Acked.IsZero():
			a.Status = api.NoticeAcked
		case n.GivenUp:
			a.Status = api.NoticeGivenUp
		case n.Dropped:
			a.Status = api.NoticeSuperseded
		case !n.Sent.IsZero():
			a.Status = api.NoticeSent
		default:
			a.Status = api.NoticeQueued
		}
		noticeTimes(&a, &n)
		list = append(list, a)
	}
	return list
}

// fencedText says what a notice of a fault said of the fence; empty: nothing is to be fenced.
func fencedText(n *hostnotify.Notice) string {
	switch {
	case n.State == snsd.Active || n.Reason.Disconnects():
		return ""
	case n.Fence == nil:
		return "not fenced: the agent has not announced that it understands it"
	case n.Fence.Level == snsd.FenceNone:
		return "not fenced: no switch had confirmed a block"
	}
	return fmt.Sprintf("fenced: %s by %s in %v", n.Fence.Level, n.Fence.Way, n.Fence.Took)
}

func (c *Core) Counts() api.Counts {
	v := c.View()
	n := api.Counts{Zones: len(v.Zones().Zones), Conflicts: len(v.Conflicts()), Faults: len(v.Faults())}
	n.HostsLocal = len(c.local)
	n.HostsRemote = v.Attached() - (n.HostsLocal - len(c.outside))
	for _, name := range c.PortNames() {
		n.Ports++
		if c.ports[name].Up() {
			n.PortsUp++
		}
	}
	n.Paths = api.PathCounts{Watched: c.WatchedPaths(), Failed: len(c.FailedPaths())}
	if c.refl != nil {
		n.Faults += n.Paths.Failed // they are in the table of this device alone
	}
	if c.table != nil {
		n.Neighbours = c.table.Len()
	}
	return n
}

// Counters gives the counters of every room.
func (c *Core) Counters() map[string]any {
	m := map[string]any{"core": c.counters, "zone": c.dir.Counters()}
	if c.client != nil {
		m["lldp"], m["errdown"], m["hostnotify"] = c.table.Counters(), c.faults.Counters(), c.notify.Counters()
		m["nts"], m["inof_client"], m["mesh"] = c.nts, c.client.Counters(), c.mesh.counters
		m["presence"], m["fence"] = c.presence.Counters(), c.fence.machine.Counters()
		d := c.declared.count
		d.Counters = c.declared.asker.Counters()
		m["declared"] = d
	}
	if c.speak != nil {
		m["lldp_transmit"] = c.speak.Counters()
	}
	if c.refl != nil {
		m["inof_reflector"] = c.refl.Counters()
	}
	return m
}

// AppendRefused appends the hosts that are refused because of bindings, those of this device and
// those that this reflector refuses: all, or those of one address. They are in no table, and
// only shown.
func (c *Core) AppendRefused(list []api.Host, addr netip.Addr) []api.Host {
	asked := func(a netip.Addr) bool { return !addr.IsValid() || a == addr }
	for _, k := range slices.SortedFunc(maps.Keys(c.outside), zone.CompareKeys) {
		h := c.local[k]
		if !asked(k.Addr) {
			continue
		}
		list = append(list, api.Host{
			Addr: h.Addr, Type: api.Local, Role: h.Role, Protocol: h.Protocol, ServicePort: h.Service.Port, NQN: h.NQN,
			Device: h.Device, Port: k.Port, MAC: h.MAC, Subscribes: h.Subscribes, State: snsd.Inactive,
			Zones: []string{}, Hard: api.HardOff, Since: h.Since, Doubt: h.Doubt, LearnedFrom: api.LearnedLocal,
			Expires: c.expires(k), Removal: c.removal(k.Port), Refused: c.refusedBy(h.Addr, c.outside[k]),
		})
	}
	if c.refl == nil {
		return list
	}
	for _, o := range c.refl.Outside() {
		if _, own := c.outside[o.HostKey]; own || !asked(o.Addr) {
			continue
		}
		list = append(list, api.Host{Addr: o.Addr, Type: api.Remote, Device: o.Device, Port: o.Port, State: snsd.Inactive,
			Zones: []string{}, Hard: api.HardOff, LearnedFrom: o.Device.String(), Refused: []string{"refused here: " + o.Why}})
	}
	return list
}

// refusedBy says which reflectors refuse a host of this device because of a binding, and why.
func (c *Core) refusedBy(addr netip.Addr, why string) (list []string) {
	if why != "" {
		why = ": " + why
	}
	all := c.client.Refusals()
	for _, id := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
		if slices.Contains(all[id].Named, addr) {
			list = append(list, fmt.Sprintf("reflector %s binds this device, and the host is outside of that%s", id, why))
		}
	}
	if len(list) == 0 && why != "" {
		list = append(list, "reflectors bind this device, and the host is outside of that"+why)
	}
	return list
}
