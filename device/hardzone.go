package device

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// hard is the enforcement of zones, as far as it is decided here. Changes of the table of hosts
// are noted on their way to the hosts that are told of them; rows follow after the notices.
type hard struct {
	cfg    hardzone.Config
	policy *hardzone.Policy // nil: nobody enforces
	status HardStatus
	asked  time.Time // when acks were looked at last
}

// HardStatus is how the dataplane does.
type HardStatus struct {
	Why []string // what is not as it should be; none: all is well
}

const (
	// hardSteps is how many hosts are looked at before the next event.
	hardSteps = 32
	// hardAcks is how often the acks are looked at for which pairs wait to be closed.
	hardAcks = 5 * time.Millisecond
)

// HardWanted reports whether zones are to be enforced, and whether that is known: nothing is
// begun or ended before a reflector was heard.
func (c *Core) HardWanted() (want, known bool) {
	return c.dir.Hard(), c.client != nil && c.Synced()
}

// BeginHard begins to follow what is to be enforced; what was in force before this process stays
// until its hosts had time to be heard.
func (c *Core) BeginHard(hosts []hardzone.Host, pairs []hardzone.PairKey, now time.Time) {
	c.hard.policy = hardzone.New(c.dir, c.hard.cfg)
	if len(hosts)+len(pairs) > 0 {
		c.hard.policy.Adopt(hosts, pairs, now.Add(c.cfg.Hosts.MaxTTL))
	}
	c.hard.policy.NoteAll()
}

// EndHard is the opposite.
func (c *Core) EndHard() { c.hard.policy, c.hard.status = nil, HardStatus{} }

// SetHardConfig changes how zones are enforced.
func (c *Core) SetHardConfig(cfg hardzone.Config) {
	c.hard.cfg = cfg
	if c.hard.policy != nil {
		c.hard.policy.SetConfig(cfg)
	}
}

// SetHardStatus says how the dataplane does.
func (c *Core) SetHardStatus(s HardStatus) { c.hard.status = s }

// HardWork gives the next rows that differ; whole: there are no others. It is called after the
// frames have left that the same events are behind.
func (c *Core) HardWork(now time.Time) (steps []hardzone.Step, whole bool) {
	p := c.hard.policy
	if p == nil {
		return nil, false
	}
	if _, known := c.HardWanted(); !known {
		return nil, false
	}
	if p.Closing() > 0 && now.Sub(c.hard.asked) >= hardAcks {
		c.hard.asked = now
		p.Settle(c.hardTold, now)
	}
	steps = p.Work(hardSteps, now)
	return steps, p.Waiting() == 0
}

// HardNext is when HardWork has something to do; zero: after the next event.
func (c *Core) HardNext(now time.Time) time.Time {
	p := c.hard.policy
	if p == nil {
		return time.Time{}
	}
	if _, known := c.HardWanted(); !known {
		return time.Time{}
	}
	next := p.Next(now)
	if p.Closing() > 0 {
		next = sooner(next, c.hard.asked.Add(hardAcks))
	}
	return next
}

// hardTold is what is known of the notice by which a local host leaves another one.
func (c *Core) hardTold(host, subject netip.Addr) hardzone.Told {
	t := c.notify.Told(host, subject)
	switch {
	case !t.Subscribes || !t.Usable || !t.Said && !t.Waiting:
		return hardzone.NotTold
	case t.Waiting || !t.Acked || t.State == snsd.Active:
		return hardzone.Waiting
	}
	return hardzone.Acked
}

// noteHard has the rows of an address looked at.
func (c *Core) noteHard(addr netip.Addr) {
	if c.hard.policy != nil {
		c.hard.policy.Note(addr)
	}
}

// noteHardChanges is noteHard for what changes of the table of hosts can concern.
func (c *Core) noteHardChanges(changes zone.Changes) {
	if c.hard.policy == nil {
		return
	}
	for i := range changes {
		if ch := &changes[i]; ch.Peers || !c.dir.Known(ch.Addr) { // a fault moves nobody
			c.hard.policy.Note(ch.Addr)
		}
	}
}

// HardPolicy is what is to be enforced; nil: nothing.
func (c *Core) HardPolicy() *hardzone.Policy { return c.hard.policy }

// CloseHardNow closes what waits for acks, and looks at all rows again.
func (c *Core) CloseHardNow(now time.Time) {
	if p := c.hard.policy; p != nil {
		p.CloseNow(now)
		p.NoteAll()
	}
}

// HardState is what hard zoning does, and what is wrong with it.
func (c *Core) HardState() (api.HardState, []string) {
	switch p := c.hard.policy; {
	case !c.View().Hard():
		return api.HardOff, nil
	case c.client == nil:
		return api.HardElsewhere, nil
	case len(c.hardTrouble()) > 0:
		return api.HardAbnormal, c.hardTrouble()
	case p == nil || p.Waiting() > 0:
		return api.HardProcessing, nil
	}
	return api.HardNormal, nil
}

// hardTrouble is what keeps zones from being enforced as they should be.
func (c *Core) hardTrouble() []string {
	list := slices.Clone(c.hard.status.Why)
	if p := c.hard.policy; p != nil {
		if n := p.NoRoom(); n > 0 {
			list = append(list, fmt.Sprintf("there is room for %d pairs of hosts (hard-zoning.max-pairs), %d that may talk have none and are dropped", c.hard.cfg.MaxPairs, n))
		}
	}
	return list
}

// HardPorts are the ports that are to be filtered.
func (c *Core) HardPorts() (list []hardzone.Port) {
	for _, name := range c.PortNames() {
		list = append(list, hardzone.Port{Name: name, Index: c.ports[name].Index})
	}
	return list
}

// whyHard says what the rows are between two hosts.
func (c *Core) whyHard(w *api.Why) {
	p := c.hard.policy
	if p == nil {
		return
	}
	a, b := w.Hosts[0].Addr, w.Hosts[1].Addr
	v := p.Between(a, b)
	h := &api.WhyHard{May: c.dir.MayExchange(a, b), Open: v.Open, NoRoom: v.NoRoom, Closing: stamp(v.Closing)}
	h.Here = v.A != nil && len(v.A.Ports) > 0 || v.B != nil && len(v.B.Ports) > 0
	w.Hard = h
}
