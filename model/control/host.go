package control

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/snsd"
)

// host is a machine with storage: on each port the agent, or plain LLDP where the
// host has no agent.
type host struct {
	p     *Plane
	node  model.NodeID
	name  string
	nics  []*nic
	busy  model.Time
	began bool
}

// nic is one port of a host.
type nic struct {
	h     *host
	port  model.PortID
	ep    model.EndpointID
	agent *snsd.Agent
	plain *lldp.Transmitter
	tick  virtual.Look
}

func newHost(p *Plane, n model.NodeID) *host {
	h := &host{p: p, node: n, name: p.sim.NodeName(n)}
	for k := range p.sim.Ports(n) {
		h.nics = append(h.nics, &nic{h: h, port: p.sim.PortOf(n, k), ep: p.sim.EndpointOf(n, k)})
	}
	return h
}

// start boots the agents.
func (h *host) start() {
	h.began = true
	what, agent := h.p.cfg.Hosts[h.node]
	for k, c := range h.nics {
		if !agent {
			c.plain = lldp.NewTransmitter(lldp.TxConfig{Local: lldp.Local{SysName: h.name, Mgmt: []netip.Addr{HostAddr(c.ep)}}})
		} else {
			a, err := snsd.NewAgent(snsd.AgentConfig{
				Interface: fmt.Sprintf("eth%d", k), MAC: portMAC(c.port), Addrs: []netip.Addr{HostAddr(c.ep)}, Subscribes: true,
				Service:  snsd.Service{Role: what.Role, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-11.org.openinof:" + h.name},
				Interval: h.p.cfg.Register, Restraint: max(h.p.cfg.React.Restraint, 1*model.Nanosecond).Duration(),
			})
			if err != nil {
				h.p.failed(fmt.Errorf("%w: host %s: %w", ErrConfig, h.name, err))
				return
			}
			c.agent = a
		}
		if h.p.ports[c.port].told {
			c.carrier(true)
		}
	}
}

// carrier takes the event of a port.
func (h *host) carrier(port model.PortID, up bool) {
	for _, c := range h.nics {
		if c.port == port && h.began {
			c.carrier(up)
		}
	}
}

func (c *nic) carrier(up bool) {
	now := c.h.p.time()
	switch {
	case c.agent != nil && up:
		c.do(c.agent.LinkUp(now))
	case c.agent != nil:
		c.do(c.agent.LinkDown(now))
	case up:
		c.plain.PortUp("eth", "eth", portMAC(c.port), now)
		c.speak()
	default:
		c.plain.PortDown("eth")
	}
}

// frame takes a frame off the wire, when the agent has done what came before.
func (h *host) frame(port model.PortID, b []byte) {
	for _, c := range h.nics {
		if c.port != port || c.agent == nil || !h.began {
			continue
		}
		f := fabric.Frame{Port: "eth", Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]), EtherType: binary.BigEndian.Uint16(b[12:]), Payload: b[fabric.EthernetHeaderLen:], At: h.p.time()}
		h.busy = max(h.busy, h.p.sim.Now()) + h.p.cfg.HostProcessing
		h.p.at(h.busy, func() { c.do(c.agent.Frame(f, h.p.time())) })
	}
}

// send puts frames on the wire.
func (c *nic) send(frame []byte) {
	c.h.p.failed(c.h.p.sim.SendControl(c.port, c.h.p.cfg.Class, frame))
}

// speak is plain LLDP.
func (c *nic) speak() {
	p := c.h.p
	for _, o := range c.plain.Due(p.time()) {
		c.send(o.Frame)
	}
	if next := c.plain.Next(); !next.IsZero() {
		c.at(next, c.speak)
	}
}

// at plans the next tick; an earlier one that is planned comes first.
func (c *nic) at(t time.Time, fn func()) {
	c.tick.Plan(c.h.p, t, func() bool { return true }, fn)
}

// do does what the agent wants done.
func (c *nic) do(out snsd.AgentOutput) {
	p := c.h.p
	for _, f := range out.Frames {
		c.send(f)
	}
	for i := range out.Events {
		c.event(&out.Events[i])
	}
	if next := c.agent.Next(); !next.IsZero() {
		c.at(next, func() { c.do(c.agent.Tick(p.time())) })
	}
}

// event is what the agent has to say.
func (c *nic) event(e *snsd.AgentEvent) {
	p := c.h.p
	n := &e.Notice
	switch e.Kind {
	case snsd.AgentReceived:
		p.note(StepFrameTaken, c.h.name, "", "%s", notices([]snsd.Notice{*n}))
	case snsd.AgentConnect:
		c.act(n, Act{Use: true}, 0)
	case snsd.AgentDisconnect:
		c.act(n, Act{}, p.cfg.React.FailOver)
	case snsd.AgentProbe:
		c.act(n, Act{Probe: p.cfg.React.Probe}, p.cfg.React.FailOver)
	}
}

// act has the host's system do something about a path, after a while.
func (c *nic) act(n *snsd.Notice, a Act, after model.Time) {
	p := c.h.p
	subject, ok := HostEndpoint(n.Subject, p.sim.Endpoints())
	if !ok || p.cfg.Hosts[c.h.node].Role == snsd.RoleTarget { // what arrays think of arrays is no path
		return
	}
	a.Host, a.Own, a.Subject = c.h.node, c.ep, subject
	what := "stops using"
	switch {
	case a.Use:
		what = "uses"
	case a.Probe > 0:
		what = "probes"
	}
	p.after(after, func() {
		p.note(StepActs, c.h.name, "", "%s the path to %s", what, n.Subject)
		if p.cfg.OnNotice != nil {
			p.failed(p.cfg.OnNotice(a))
		}
	})
}
