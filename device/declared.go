package device

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file finds the hosts that are declared because they register nothing: it asks for their
// addresses on the ports that their declarations name, and enters the one that answers into the
// table of neighbours. From there it is a host like any other: silence ages it, it never takes it
// away. While it is nowhere it is asked for on the other ports too, so that a wrong cable is seen.

const (
	// maxDeclaredAsks bounds how many pairs of a port and an address are asked for. Half of them
	// may be pairs that no declaration names.
	maxDeclaredAsks = 16384
	// strayRest is the longest rest between two questions at a port that the declaration does not
	// name. The first question leaves when the port comes up.
	strayRest = 5 * time.Minute
)

// followDeclared looks after declared hosts where something changed.
func (c *Core) followDeclared(now time.Time) {
	x := &c.declared
	if x.stale {
		x.stale = false
		c.redeclare(now)
	}
	for _, addr := range slices.SortedFunc(maps.Keys(x.addrs), netip.Addr.Compare) {
		delete(x.addrs, addr)
		if d := x.all[addr]; d != nil {
			c.followHost(d, now)
		}
	}
	if len(x.ports) == 0 {
		return
	}
	hosts := slices.SortedFunc(maps.Keys(x.all), netip.Addr.Compare)
	for _, name := range slices.Sorted(maps.Keys(x.ports)) {
		fell := x.ports[name]
		delete(x.ports, name)
		for _, addr := range hosts {
			d := x.all[addr]
			if fell && name == d.port {
				c.fell(d, now)
			}
			c.watchAt(d, name, now)
		}
	}
}

// declarations are those in force, by address. Of one address this device's own comes first, then
// that of the first reflector. What the last process had found stays until all reflectors were
// heard. The error names what is not taken of the reflectors.
func (c *Core) declarations(own []Declaration) (map[netip.Addr]Declaration, error) {
	said, all := c.client.Declared()
	own = slices.Clone(own)
	var errs []error
	for _, h := range said {
		ports, err := fabric.ParseNames(h.Ports)
		if err = errors.Join(err, snsd.CheckAddr(h.Addr), snsd.CheckNQN(h.Service.NQN)); err != nil {
			errs = append(errs, fmt.Errorf("host %s, which a reflector declares, is not asked for: %w", h.Addr, err))
			continue
		}
		own = append(own, Declaration{h.Addr, ports, h.Service})
	}
	if !all {
		own = append(own, c.declared.restored...)
	}
	list := make(map[netip.Addr]Declaration, len(own))
	for _, d := range own {
		if _, twice := list[d.Addr]; !twice {
			list[d.Addr] = d
		}
	}
	return list, errors.Join(errs...)
}

// redeclare brings other declarations into force. What stays as it was is not touched.
func (c *Core) redeclare(now time.Time) {
	x := &c.declared
	next, err := c.declarations(c.cfg.Hosts.Declared)
	if err != nil {
		x.count.Refused++
		c.Complain(now, "declared", "reflector", err)
	}
	for _, addr := range slices.SortedFunc(maps.Keys(x.all), netip.Addr.Compare) {
		d := x.all[addr]
		is, there := next[addr]
		if d.port != "" && !(there && is.Ports.Match(d.port)) {
			c.undeclare(d, "it is not declared there any longer", now)
		}
		if there && is.Service != d.Service && d.port != "" {
			x.asker.Again(d.at(d.port), now) // the next answer says what it is now
		}
		if d.Declaration = is; !there {
			delete(x.all, addr)
			for name := range c.ports {
				x.asker.Drop(presence.Key{Port: name, Addr: addr})
			}
		}
	}
	for addr, is := range next {
		if x.all[addr] == nil {
			x.all[addr] = &declaredHost{Declaration: is}
		}
		x.addrs[addr] = true
	}
}

// undeclare withdraws a declared host.
func (c *Core) undeclare(d *declaredHost, why string, now time.Time) {
	name := d.port
	c.event(api.Event{Time: now, Kind: "host", Port: name, Addr: d.Addr.String(),
		Text: fmt.Sprintf("declared host %s leaves port %s: %s", d.Addr, name, why), Fields: map[string]string{"change": "undeclared"}})
	c.neighboursChanged(c.table.Undeclare(name, d.Addr, snsd.ReasonAgedOut, now), now)
}

// followHost looks after one declared host. One that registers itself on one of its ports needs no
// declaration; on another port it is a rival claim.
func (c *Core) followHost(d *declaredHost, now time.Time) {
	if d.register = c.table.Registers(d.Addr, d.Ports); d.register && d.port != "" {
		c.undeclare(d, "it registers itself", now)
	}
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		c.watchAt(d, name, now)
	}
}

// watchAt has a declared host asked for at a port, or not.
func (c *Core) watchAt(d *declaredHost, name string, now time.Time) {
	x, p, k := &c.declared, c.ports[name], d.at(name)
	named := d.Ports.Match(name)
	up := p.isUp()
	if (!up || !named) && name == d.second {
		d.second, d.twice = "", false
	}
	most, rest := maxDeclaredAsks/2, strayRest
	if named {
		most, rest = maxDeclaredAsks, c.table.DeclaredTTL()/4 // asked four times before it ages out
	}
	switch {
	case !up || d.register || !named && d.port != "":
		x.asker.Drop(k)
		if d.stray == name {
			d.stray = ""
		}
	case x.asker.Len() >= most && !x.asker.Watches(k):
		x.count.Unasked++
	default:
		x.asker.Watch(k, rest, now)
	}
}

// fell has a declared host asked for at once on all its ports: the one that has it was down,
// however shortly.
func (c *Core) fell(d *declaredHost, now time.Time) {
	d.quiet = true
	for name := range c.ports {
		c.declared.asker.Again(d.at(name), now)
	}
}

// askDeclared sends the questions that are due. A host that does not answer where it is moves to
// its second port, if that answered.
func (c *Core) askDeclared(now time.Time) {
	send, silent := c.declared.asker.Due(now)
	for _, k := range send {
		if p := c.ports[k.Port]; p.isUp() {
			c.out.SendFrame(k.Port, presence.Question(p.MAC, k.Addr))
		}
	}
	for _, k := range silent {
		d := c.declared.all[k.Addr]
		switch {
		case d == nil:
		case k.Port == d.second:
			d.second, d.twice = "", false
		case k.Port == d.stray:
			d.stray = ""
		case k.Port == d.port:
			if d.quiet = true; c.ports[d.second].isUp() {
				c.enter(d, c.ports[d.second], d.other, now, now)
			}
		}
	}
}

// answered takes an answer for a declared host.
func (c *Core) answered(f *fabric.Frame, a presence.Answer, now time.Time) {
	x, p := &c.declared, c.ports[f.Port]
	d := x.all[a.Addr]
	if d == nil || p.late(f.At) || !p.isUp() {
		return
	}
	at := f.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	if p.Name == d.port && a.MAC != d.mac && !d.quiet {
		x.count.OtherMACs++
		c.Complain(now, "declared", p.Name, fmt.Errorf("address %s is held by %s on port %s, and %s answers for it there too: it is ignored while the first one answers", d.Addr, d.mac, p.Name, a.MAC))
		return
	}
	switch asked := x.asker.Heard(d.at(p.Name), now); {
	case !asked || d.register: // an answer to no question is no evidence
	case !d.Ports.Match(p.Name):
		x.count.Misplaced++
		d.stray = p.Name
		c.Complain(now, "declared", p.Name, fmt.Errorf("declared host %s answers on port %s, from %s, and may be on %s only: it is refused there", d.Addr, p.Name, a.MAC, d.Ports))
	case d.port == "" || d.port == p.Name || !c.ports[d.port].isUp():
		if d.twice = d.port == p.Name && d.second != ""; d.twice {
			x.count.TwoPorts++
			c.Complain(now, "declared", p.Name, fmt.Errorf("declared host %s answers on ports %s and %s: the first one keeps it; name one of them, or mend the cabling", d.Addr, p.Name, d.second))
		}
		c.enter(d, p, a.MAC, at, now)
	default:
		d.second, d.other = p.Name, a.MAC
		x.asker.Again(d.at(d.port), now) // does it answer there still?
	}
}

// enter makes a declared host known on a port, and only there.
func (c *Core) enter(d *declaredHost, p *port, mac fabric.MAC, at, now time.Time) {
	changes, err := c.table.Declare(p.Name, mac, d.Addr, d.Service, at, now)
	if err == nil && len(changes) > 0 && len(changes[0].Neighbour.Known) == 0 {
		err = fmt.Errorf("%v", changes[0].Neighbour.Refused)
		c.neighboursChanged(changes, now)
		c.neighboursChanged(c.table.Undeclare(p.Name, d.Addr, snsd.ReasonAgedOut, now), now)
	}
	if err != nil {
		c.declared.count.Refused++
		c.Complain(now, "declared", p.Name, fmt.Errorf("declared host %s on port %s is refused: %w", d.Addr, p.Name, err))
		return
	}
	was := d.port
	if was == p.Name {
		was = ""
	}
	d.port, d.mac, d.quiet, d.stray = p.Name, mac, false, ""
	c.neighboursChanged(changes, now)
	if was == "" {
		return
	}
	d.second, d.twice = "", false
	c.declared.count.Moved++
	c.event(api.Event{Time: now, Kind: "host", Port: p.Name, Addr: d.Addr.String(),
		Text:   fmt.Sprintf("declared host %s moved from port %s, where it does not answer, to port %s", d.Addr, was, p.Name),
		Fields: map[string]string{"change": "moved", "from": was}})
	c.neighboursChanged(c.table.Undeclare(was, d.Addr, snsd.ReasonIPChanged, now), now)
}

// restoreDeclared goes on with the declared hosts that the last process had found.
func (c *Core) restoreDeclared() {
	for _, n := range c.table.All() {
		if !n.Declared() || len(n.Known) == 0 {
			continue
		}
		c.declared.stale = true
		h := n.Known[0]
		ports, err := fabric.ParseNames([]string{n.Port})
		if err != nil {
			continue // a port with a name that is none
		}
		is := Declaration{h.Addr, ports, h.Service}
		c.declared.restored = append(c.declared.restored, is)
		c.declared.all[h.Addr] = &declaredHost{Declaration: is, port: n.Port, mac: h.MAC, quiet: !n.Confirmed}
	}
}

// LosingByHosts lists the ports with hosts that other settings would refuse, or declare no longer.
func (c *Core) LosingByHosts(next HostsConfig) []api.PortHosts {
	if c.client == nil {
		return nil
	}
	by := c.table.Losing(next.Beliefs)
	will, _ := c.declarations(next.Declared)
	for addr, d := range c.declared.all {
		if is, there := will[addr]; d.port != "" && !(there && is.Ports.Match(d.port)) {
			by[d.port] = append(by[d.port], addr)
		}
	}
	return portHosts(by)
}

// Undeclared lists the known hosts that are as a reflector declares them, on any device, and that
// another list would not declare.
func (c *Core) Undeclared(was, next []Declaration) (list []zone.Host) {
	will := map[netip.Addr]Declaration{}
	for _, d := range next {
		will[d.Addr] = d
	}
	for _, d := range was {
		is := will[d.Addr]
		for _, h := range c.View().Attachments(d.Addr) {
			if h.Service == d.Service && d.Ports.Match(h.HostKey.Port) && !is.Ports.Match(h.HostKey.Port) {
				list = append(list, h)
			}
		}
	}
	return list
}

// declaredFacts adds what is wrong with declared hosts.
func (c *Core) declaredFacts(f *health.Facts) {
	for _, addr := range slices.SortedFunc(maps.Keys(c.declared.all), netip.Addr.Compare) {
		d := c.declared.all[addr]
		is := health.Declared{Host: addr, Ports: d.Ports.String(), Stray: d.stray}
		if d.twice {
			is.First, is.Second = d.port, d.second
		}
		if d.twice || d.stray != "" {
			f.Declared = append(f.Declared, is)
		}
	}
}
