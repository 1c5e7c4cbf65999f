package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
	"github.com/openinof/inof/model/live"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/snsd"
)

// host is a simulated machine with an agent, or plain LLDP, on each port. It is one
// goroutine.
type host struct {
	s    *Server
	spec scenario.LabHost
	dev  *live.Device
	nics map[string]*nic
	told chan func() // asks of others
}

// nic is one port.
type nic struct {
	name  string
	ep    model.EndpointID
	addr  netip.Addr
	mac   fabric.MAC
	up    bool
	agent *snsd.Agent       // nil: plain LLDP
	plain *lldp.Transmitter // nil: an agent
	said  []snsd.Notice     // the last about each subject
}

func newHost(s *Server, spec scenario.LabHost) *host {
	h := &host{s: s, spec: spec, dev: s.fabric.Device(spec.Node), nics: map[string]*nic{}, told: make(chan func())}
	sim := s.lab.Sim()
	for k := range sim.Ports(spec.Node) {
		p := sim.PortOf(spec.Node, k)
		ep := sim.EndpointOf(spec.Node, k)
		c := &nic{name: sim.PortShortName(p), ep: ep, addr: control.HostAddr(ep)}
		binary.BigEndian.PutUint32(c.mac[2:], uint32(p))
		c.mac[0], c.mac[1] = 0x02, 0x4d
		h.nics[c.name] = c
	}
	return h
}

// agents makes what speaks on the ports.
func (h *host) agents() error {
	for _, c := range h.nics {
		if !h.spec.Agent {
			c.plain = lldp.NewTransmitter(lldp.TxConfig{Local: lldp.Local{SysName: h.spec.Name, Mgmt: []netip.Addr{c.addr}}})
			continue
		}
		role := snsd.RoleTarget
		if h.spec.Initiator {
			role = snsd.RoleInitiator
		}
		a, err := snsd.NewAgent(snsd.AgentConfig{Interface: c.name, MAC: c.mac, Addrs: []netip.Addr{c.addr}, Subscribes: true, Restraint: max(h.s.lab.React().Restraint, model.Nanosecond).Duration(),
			Service: snsd.Service{Role: role, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-11.org.openinof:" + h.spec.Name}})
		if err != nil {
			return fmt.Errorf("host %s: %w", h.spec.Name, err)
		}
		c.agent = a
	}
	return nil
}

// run is the host's life.
func (h *host) run(ctx context.Context) error {
	if err := h.agents(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = h.dev.Run(ctx) }()
	defer func() { <-ended }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case e := <-h.dev.Events():
			h.port(e)
		case f := <-h.dev.Frames():
			if c := h.nics[f.Port]; c.agent != nil {
				h.do(c, c.agent.Frame(f, time.Now()))
			}
		case fn := <-h.told:
			fn()
		case <-timer.C:
			h.tick()
		case <-ctx.Done():
			return nil
		}
		if next := h.next(); !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
	}
}

func (h *host) next() time.Time {
	var next time.Time
	for _, c := range h.nics {
		var at time.Time
		if c.agent != nil {
			at = c.agent.Next()
		} else {
			at = c.plain.Next()
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func (h *host) tick() {
	for _, c := range h.nics {
		if c.agent != nil {
			h.do(c, c.agent.Tick(time.Now()))
			continue
		}
		for _, o := range c.plain.Due(time.Now()) {
			_ = h.dev.Send(o.Port, o.Frame)
		}
	}
}

// port follows the carrier.
func (h *host) port(e fabric.Event) {
	c, now := h.nics[e.Port.Name], time.Now()
	if c.up == e.Port.Up() {
		return
	}
	c.up = e.Port.Up()
	switch {
	case c.agent == nil && c.up:
		c.plain.PortUp(c.name, c.name, c.mac, now)
		h.tick()
	case c.agent == nil:
		c.plain.PortDown(c.name)
	case c.up:
		h.do(c, c.agent.LinkUp(now))
	default:
		c.said = nil
		h.do(c, c.agent.LinkDown(now))
	}
}

// again has the agents on ports of a switch register anew.
func (h *host) again(n model.NodeID) {
	sim := h.s.lab.Sim()
	for _, c := range h.nics {
		if sim.PortNode(sim.Peer(sim.EndpointPort(c.ep))) == n && c.up && c.agent != nil {
			h.do(c, c.agent.LinkDown(time.Now()))
			h.do(c, c.agent.LinkUp(time.Now()))
		}
	}
}

// do does what an agent wants done.
func (h *host) do(c *nic, out snsd.AgentOutput) {
	for _, f := range out.Frames {
		_ = h.dev.Send(c.name, f)
	}
	react := h.s.lab.React()
	for i := range out.Events {
		e := &out.Events[i]
		switch e.Kind {
		case snsd.AgentReceived:
			h.heard(c, e.Notice)
		case snsd.AgentConnect:
			h.act(c, e.Notice, control.Act{Use: true}, 0)
		case snsd.AgentDisconnect:
			h.act(c, e.Notice, control.Act{}, react.FailOver)
		case snsd.AgentProbe:
			h.act(c, e.Notice, control.Act{Probe: react.Probe}, react.FailOver)
		}
	}
}

// heard keeps a notice for the status.
func (h *host) heard(c *nic, n snsd.Notice) {
	for i := range c.said {
		if c.said[i].Subject == n.Subject {
			c.said = append(c.said[:i], c.said[i+1:]...)
			break
		}
	}
	c.said = append(c.said, n)
	why := ""
	if n.State == snsd.Inactive {
		why = fmt.Sprintf(" (%s)", n.Reason)
	}
	h.s.note(h.spec.Name, "notice on %s: %s is %s%s", c.name, h.s.address(n.Subject), n.State, why)
}

// act has the host's system do something about a path, after a while.
func (h *host) act(c *nic, n snsd.Notice, a control.Act, after model.Time) {
	subject, ok := control.HostEndpoint(n.Subject, h.s.lab.Sim().Endpoints())
	if !ok || !h.spec.Initiator {
		return
	}
	a.Host, a.Own, a.Subject = h.spec.Node, c.ep, subject
	time.AfterFunc(after.Duration(), func() {
		_ = h.s.fabric.Do(func(*model.Sim) error { return h.s.lab.Act(a) })
		what := "no longer uses"
		if a.Use {
			what = "uses"
		} else if a.Probe > 0 {
			what = "probes"
		}
		h.s.note(h.spec.Name, "%s the path to %s", what, h.s.address(n.Subject))
	})
}

// address names a host's address.
func (s *Server) address(a netip.Addr) string {
	sim := s.lab.Sim()
	if ep, ok := control.HostEndpoint(a, sim.Endpoints()); ok {
		return fmt.Sprintf("%s (%s:%s)", a, sim.NodeName(sim.EndpointNode(ep)), sim.PortShortName(sim.EndpointPort(ep)))
	}
	return a.String()
}
