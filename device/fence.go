package device

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// fencing is what this switch blocks, as far as it is decided here, and what all switches have
// blocked, as far as it is known here.
type fencing struct {
	cfg     fence.Config
	machine *fence.Machine // nil: this device has no access ports
	table   map[zone.HostKey][]wire.FencePeer
	arrays  map[netip.Addr]int // how many keys of table each has
	dir     *zone.Directory
}

func (f *fencing) configure(cfg fence.Config, dir *zone.Directory, self netip.Addr) {
	f.cfg, f.dir = cfg, dir
	f.table, f.arrays = map[zone.HostKey][]wire.FencePeer{}, map[netip.Addr]int{}
	f.machine = fence.New(cfg, fenceView{dir, self})
}

// fenceView is the table of hosts as the machine asks it.
type fenceView struct {
	dir  *zone.Directory
	self netip.Addr
}

// Host implements fence.View.
func (v fenceView) Host(addr netip.Addr) (fence.Host, bool) {
	h, known := v.dir.Host(addr)
	if !known {
		return fence.Host{}, false
	}
	state, why := v.dir.State(addr)
	return fence.Host{Addr: h.Addr, NQN: h.NQN, Role: h.Role, Ports: v.dir.PortsAt(addr, v.self), Up: state == snsd.Active, Why: why}, true
}

// Peers implements fence.View.
func (v fenceView) Peers(addr netip.Addr) iter.Seq[netip.Addr] { return v.dir.Peers(addr) }

// Share implements fence.View.
func (v fenceView) Share(a, b netip.Addr) bool { return v.dir.Share(a, b) }

// Local implements fence.View.
func (v fenceView) Local() []netip.Addr { return v.dir.AddrsAt(v.self) }

// OfNQN implements fence.View.
func (v fenceView) OfNQN(nqn string) []netip.Addr { return v.dir.AddrsOf(nqn) }

// Behind implements fence.View.
func (v fenceView) Behind(port string) []netip.Addr { return v.dir.HostsAt(v.self, port) }

// Between implements hostnotify.Fences.
func (f *fencing) Between(a, b netip.Addr) (snsd.Fence, bool) {
	if len(f.table) == 0 {
		return snsd.Fence{}, false
	}
	to, blockedTo := f.at(a, b)
	from, blockedFrom := f.at(b, a)
	if from.Level > to.Level {
		to = from
	}
	return to, blockedTo || blockedFrom
}

// at is what is fenced between an array and a host: where the array is at several ports the least
// counts.
func (f *fencing) at(array, host netip.Addr) (least snsd.Fence, blocked bool) {
	if f.arrays[array] == 0 {
		return snsd.Fence{}, false
	}
	first := true
	for _, h := range f.dir.Attachments(array) {
		if h.Claim == zone.ClaimRival {
			continue
		}
		var is snsd.Fence
		for _, p := range f.table[h.HostKey] {
			if !p.Host.IsValid() || p.Host == host {
				blocked = true
				if got := p.Fence(); got.Level > is.Level {
					is = got
				}
			}
		}
		switch {
		case first || is.Level < least.Level:
			least = is
		case is.Level == least.Level && is.Level != snsd.FenceNone:
			least.Hold, least.Took = min(least.Hold, is.Hold), max(least.Took, is.Took)
		}
		first = false
	}
	return least, blocked
}

// put takes what is fenced at an array. It gives the hosts that were, or are, listed.
func (f *fencing) put(k zone.HostKey, peers []wire.FencePeer) (hosts []netip.Addr) {
	was := f.table[k]
	if len(was) > 0 {
		f.arrays[k.Addr]--
	}
	if f.table[k] = peers; len(peers) == 0 {
		delete(f.table, k)
	} else {
		f.arrays[k.Addr]++
	}
	if f.arrays[k.Addr] == 0 {
		delete(f.arrays, k.Addr)
	}
	for _, list := range [...][]wire.FencePeer{was, peers} {
		for i := range list {
			if list[i].Host.IsValid() && !slices.Contains(hosts, list[i].Host) {
				hosts = append(hosts, list[i].Host)
			}
		}
	}
	return hosts
}

// refenced has the local hosts notified of what is blocked or fenced at an array now.
func (c *Core) refenced(k zone.HostKey, hosts []netip.Addr, now time.Time) {
	c.notify.Refenced(k.Addr)
	for _, h := range hosts {
		if f, _ := c.fence.Between(k.Addr, h); f.Level != snsd.FenceNone {
			c.notify.Detour(h, k.Addr, f, now)
		}
	}
}

// fenceFacts takes over what has changed of what is blocked here: the reflectors hear of it with the
// next flush.
func (c *Core) fenceFacts(now time.Time) {
	for _, fact := range c.fence.machine.Facts() {
		k := zone.HostKey{Addr: fact.Array, Device: c.self, Port: fact.Port}
		var peers []wire.FencePeer
		if _, known := c.local[k]; known {
			for _, p := range fact.Peers {
				if len(peers) == wire.MaxFencePeers {
					c.counters.FencesCut++
					break
				}
				peers = append(peers, wire.FencePeer{Host: p.Host, Level: p.Level, Since: p.Since.Round(0), Hold: min(p.Hold, wire.MaxFenceHold), Took: min(p.Took, wire.MaxFenceTook)})
			}
		}
		was := c.fence.table[k]
		if slices.Equal(was, peers) {
			continue
		}
		hosts := c.fence.put(k, peers)
		c.client.SetFence(k.Port, k.Addr, peers)
		c.refenced(k, hosts, now)
		c.fenceEvent(k, was, peers, now)
	}
}

// fenceEvent makes known what is blocked or fenced at an array of this switch.
func (c *Core) fenceEvent(k zone.HostKey, was, is []wire.FencePeer, now time.Time) {
	c.say(func() api.Event {
		text := fmt.Sprintf("array %s on port %s: ", k.Addr, k.Port)
		confirmed := 0
		var took time.Duration
		for i := range is {
			if is[i].Level != snsd.FenceNone {
				confirmed++
				took = max(took, is[i].Took)
			}
		}
		switch {
		case len(is) == 0:
			text += "blocks lifted"
		case len(is) == 1 && !is[0].Host.IsValid() && confirmed == 1:
			text += fmt.Sprintf("fenced from all hosts: network by switch in %v", took)
		case len(is) == 1 && !is[0].Host.IsValid():
			text += "the port is blocked, not confirmed yet"
		case confirmed == len(is):
			text += fmt.Sprintf("fenced from %d host address(es): network by switch in %v", confirmed, took)
		default:
			text += fmt.Sprintf("%d host address(es) blocked, %d of them confirmed", len(is), confirmed)
		}
		return api.Event{Time: now, Kind: "fence", Port: k.Port, Addr: k.Addr.String(), Text: text,
			Fields: map[string]string{"blocked": fmt.Sprint(len(is)), "confirmed": fmt.Sprint(confirmed), "before": fmt.Sprint(len(was))}}
	})
}

// fenceChanges has the hosts looked at of which something changed.
func (c *Core) fenceChanges(changes zone.Changes, now time.Time) {
	for i := range changes {
		c.fence.machine.Note(changes[i].Addr, now)
	}
}

// fencePort takes that nothing passes a port, by a fault.
func (c *Core) fencePort(p *port, now time.Time) {
	if p.present && p.Up() {
		return
	}
	c.fence.machine.PortDown(p.Name, p.fault.since, now)
	c.fenceFacts(now)
}

// closed reports whether a port is blocked as a whole: its hosts cannot be reached.
func (c *Core) closed(p *port) bool { return c.fence.machine.Closed(p.Name) }

// Fences lists the blocks of this device, those of others that it knows of, and the faults that were
// not answered by one.
func (c *Core) Fences() []api.Fence {
	list := []api.Fence{}
	if c.client == nil {
		return list
	}
	for _, s := range c.fence.machine.Show() {
		f := api.Fence{Device: c.self, Port: s.Port, Array: s.Array, Host: s.Host, Since: stamp(s.Since), Until: stamp(s.Until), Confirmed: !s.Confirmed.IsZero(), Fenced: "not fenced: " + s.Why}
		if f.Confirmed && s.Why == "" {
			took := max(0, s.Confirmed.Sub(s.Fault))
			f.Took, f.Fenced = api.Duration(took), fmt.Sprintf("fenced: network by switch in %v", took.Round(time.Millisecond))
		}
		list = append(list, f)
	}
	for k, peers := range c.fence.table {
		if k.Device == c.self {
			continue
		}
		for _, p := range peers {
			f := api.Fence{Device: k.Device, Port: k.Port, Array: k.Addr, Host: p.Host, Since: stamp(p.Since), Until: stamp(p.Since.Add(p.Hold)), Confirmed: p.Level != snsd.FenceNone, Fenced: "not fenced: that switch has not confirmed its block"}
			if f.Confirmed {
				f.Took, f.Fenced = api.Duration(p.Took), fmt.Sprintf("fenced: network by switch in %v", p.Took)
			}
			list = append(list, f)
		}
	}
	return list
}
