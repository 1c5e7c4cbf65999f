package hostagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Port is one port of the host, as the cable has it: what is registered over it.
type Port struct {
	snsd.AgentConfig              // Interface is its name; the MAC is filled in
	Like             bool         // with the habits of the existing agent
	Farewell         bool         // withdraw the registrations at the end
	Switch           []fabric.MAC // whose notices count; none: the one that LLDP shows
}

// Machine makes the machine of a port.
func (p *Port) Machine() (snsd.Machine, error) {
	if p.Like {
		return snsd.NewLikeAgent(snsd.LikeConfig{AgentConfig: p.AgentConfig})
	}
	return snsd.NewAgent(p.AgentConfig)
}

// Agent runs the host's side of the protocol on its ports. Everything happens in the goroutine of
// Run.
type Agent struct {
	dp    fabric.Dataplane
	actor *Actor // nil: nothing is done about notices
	array Array  // nil: this is none, or none that fences
	say   func(Line) error
	hooks *Hooks // nil: none
	now   func() time.Time
	ports map[string]*port
	err   error // of say; ends Run

	actions chan Action
	changes chan change
	ended   chan struct{} // Run is over
	asks    chan chan Status
	status  statusLog
}

// port is a port at work.
type port struct {
	Port
	machine snsd.Machine // nil while the interface is not there
	trust   trust
	up      bool
	count   snsd.AgentCounters // what was told of registrations and queries

	// ignored are the last notices about initiators by pair: the machine keeps no
	// state of them, but a repeated one is not to be told as news.
	ignored map[path]uint32
}

func newPort(p Port) *port {
	return &port{Port: p, ignored: make(map[path]uint32), trust: trust{named: p.Switch}}
}

// change is new settings of the ports; done is closed when they hold.
type change struct {
	ports []Port
	done  chan struct{}
}

// maxIgnored bounds port.ignored; beyond it repeated ones are told as news.
const maxIgnored = snsd.MaxAgentPairs

// waitingActions is how many actions wait for the loop; an actor that reports more waits.
const waitingActions = 1024

// New makes an agent. say is told every event; its error ends the agent.
func New(dp fabric.Dataplane, ports []Port, hooks *Hooks, say func(Line) error) *Agent {
	a := &Agent{dp: dp, say: say, hooks: hooks, now: time.Now, ports: make(map[string]*port),
		actions: make(chan Action, waitingActions), changes: make(chan change), ended: make(chan struct{}), asks: make(chan chan Status)}
	for _, p := range ports {
		a.ports[p.Interface] = newPort(p)
	}
	return a
}

// Act has an actor do what notices ask for. It is to be called before Run.
func (a *Agent) Act(actor *Actor) { a.actor = actor }

// Report takes what an actor did.
func (a *Agent) Report(act Action) { a.actions <- act }

// Change gives the ports anew: other addresses, services and times. Ports that are not named any
// more withdraw what they registered, and are forgotten; those that are new are at work once the
// dataplane has them. It waits until that is done: let the dataplane go before or after, not
// meanwhile.
func (a *Agent) Change(ctx context.Context, ports []Port) {
	c := change{ports, make(chan struct{})}
	select {
	case a.changes <- c:
	case <-a.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-c.done:
	case <-a.ended:
	case <-ctx.Done():
	}
}

// Run works until ctx ends. It may be called once.
func (a *Agent) Run(ctx context.Context) error {
	defer close(a.ended)
	// The dataplane outlives the loop, so that a farewell can still be sent.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.dp.Run(inner) }()
	err := a.loop(ctx, done)
	if err == nil {
		for _, name := range a.names() {
			if p := a.ports[name]; p.Farewell {
				a.withdraw(p)
			}
		}
		err = a.err
	}
	cancel()
	if runErr := <-done; err == nil {
		err = runErr
	}
	return err
}

func (a *Agent) names() []string {
	var list []string
	for n := range a.ports {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// loop takes events, frames and time until ctx ends. done is put back for Run.
func (a *Agent) loop(ctx context.Context, done chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for a.err == nil {
		a.arm(timer)
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			done <- nil
			if err == nil {
				err = errors.New("the dataplane stopped")
			}
			return err
		case ev := <-a.dp.Events():
			a.event(ev)
		case f := <-a.dp.Frames():
			if p := a.ports[f.Port]; p != nil {
				a.frame(p, f)
			}
		case act := <-a.actions:
			a.status.note(act)
			a.tellLine(Line{Time: act.Done, Event: act.Kind, Action: &act})
		case c := <-a.changes:
			a.change(c.ports)
			close(c.done)
		case reply := <-a.asks:
			reply <- a.snapshot()
		case <-timer.C:
			now := a.now()
			for _, p := range a.ports {
				if p.machine != nil {
					a.take(p, p.machine.Tick(now))
				}
			}
		}
	}
	return a.err
}

func (a *Agent) arm(t *time.Timer) {
	var next time.Time
	for _, p := range a.ports {
		if p.machine == nil {
			continue
		}
		if at := p.machine.Next(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		t.Stop()
	} else {
		t.Reset(next.Sub(a.now()))
	}
}

// event follows an interface: a machine exists while it does, and its link is the
// machine's.
func (a *Agent) event(ev fabric.Event) {
	p := a.ports[ev.Port.Name]
	if p == nil {
		return
	}
	if ev.Kind == fabric.PortRemoved {
		a.link(p, ev.At, false, "gone")
		p.machine = nil
		return
	}
	if p.machine == nil || p.MAC != ev.Port.MAC {
		a.link(p, ev.At, false, "down")
		p.MAC = ev.Port.MAC
		if err := a.renew(p); err != nil {
			a.tellLine(Line{Time: ev.At, Event: "error", Interface: p.Interface, Error: err.Error()})
			return
		}
		if !ev.Port.Up() {
			a.tellLine(Line{Time: ev.At, Event: "link", Interface: p.Interface, Link: "down"})
		}
	}
	a.link(p, ev.At, ev.Port.Up(), map[bool]string{true: "up", false: "down"}[ev.Port.Up()])
}

// renew makes a port's machine. One that has no addresses yet has none.
func (a *Agent) renew(p *port) error {
	p.machine, p.count = nil, snsd.AgentCounters{}
	if len(p.Addrs) == 0 {
		return nil
	}
	p.Elsewhere = a.elsewhere(p)
	m, err := p.Machine()
	if err != nil {
		return err
	}
	p.machine = m
	return nil
}

// change takes new settings of the ports.
func (a *Agent) change(ports []Port) {
	wanted := map[string]bool{}
	for _, n := range ports {
		wanted[n.Interface] = true
		p := a.ports[n.Interface]
		if p == nil { // the dataplane tells of it once it has it
			a.ports[n.Interface] = newPort(n)
			continue
		}
		n.MAC = p.MAC
		if err := a.set(p, n); err != nil {
			a.tellLine(Line{Time: a.now(), Event: "error", Interface: p.Interface, Error: err.Error()})
		}
	}
	for _, name := range a.names() {
		if p := a.ports[name]; !wanted[name] {
			a.withdraw(p)
			delete(a.ports, name)
		}
	}
}

// set gives a port new settings.
func (a *Agent) set(p *port, n Port) error {
	old := p.Port
	p.Port = n
	p.trust.named = n.Switch
	if len(n.Addrs) == 0 {
		p.Port.Addrs = old.Addrs // of what is withdrawn
		a.withdraw(p)
		p.Port.Addrs = nil
		return nil
	}
	if own, ok := p.machine.(*snsd.Agent); ok {
		if same(&old.AgentConfig, &n.AgentConfig) {
			return nil
		}
		n.Elsewhere = a.elsewhere(p)
		out, err := own.Set(n.AgentConfig, a.now())
		if err != nil {
			p.Port = old
			return err
		}
		a.take(p, out)
		a.take(p, own.Query(a.now()))
		return nil
	}
	if err := a.renew(p); err != nil {
		return err
	}
	if p.machine != nil && p.up {
		a.take(p, p.machine.LinkUp(a.now()))
	}
	return nil
}

// withdraw takes back what a port registered.
func (a *Agent) withdraw(p *port) {
	if p.machine != nil && p.up {
		out := p.machine.Shutdown(a.now())
		p.count = p.machine.Counters() // a withdrawal is no registration to be told
		a.take(p, out)
		a.tellLine(Line{Time: a.now(), Event: "withdrawn", Interface: p.Interface, Addresses: p.Addrs})
	}
	p.machine = nil
}

// same reports whether two settings are.
func same(a, b *snsd.AgentConfig) bool {
	return slices.Equal(a.Addrs, b.Addrs) && a.Service == b.Service && a.Subscribes == b.Subscribes && a.Interval == b.Interval && a.TTL == b.TTL &&
		maps.Equal(a.Services, b.Services) && a.Restraint == b.Restraint && a.Legacy == b.Legacy && a.Silent == b.Silent && a.Extensions == b.Extensions
}

// take does what the machine wants done: frames first, then paths, words later.
func (a *Agent) take(p *port, out snsd.AgentOutput) {
	for i := range out.Events {
		a.act(p, &out.Events[i])
	}
	for _, f := range out.Frames {
		if err := a.dp.Send(p.Interface, f); err != nil {
			if ev := sendEvent(err); ev != "" {
				a.tellLine(Line{Time: a.now(), Event: ev, Interface: p.Interface, Error: err.Error()})
			}
		}
	}
	a.progress(p)
	for i := range out.Events {
		a.tell(p, &out.Events[i])
	}
}

// act hands to the actor what is to be done about a path.
func (a *Agent) act(p *port, e *snsd.AgentEvent) {
	switch e.Kind {
	case snsd.AgentProbe, snsd.AgentDisconnect:
		if a.actor != nil {
			a.actor.Tell(e.Notice, e.At)
		}
		a.hook(p, e)
	case snsd.AgentIgnored:
		a.hostLost(&e.Notice)
	case snsd.AgentFenced:
		if a.actor != nil {
			a.actor.Fenced(e.Notice)
		}
	case snsd.AgentReceived:
		if a.actor != nil && e.Notice.State == snsd.Active {
			a.actor.Tell(e.Notice, e.At)
		}
	case snsd.AgentConnect:
		if a.actor != nil {
			a.actor.Connect(e.Notice, e.At)
		}
		a.hook(p, e)
	}
}

// hook calls what the operator wants called; observing, it is only reported.
func (a *Agent) hook(p *port, e *snsd.AgentEvent) {
	if a.actor == nil || !a.actor.Policy().Observe {
		a.hooks.call(&e.Notice, e.At, p.Interface)
		return
	}
	if a.hooks.wants(&e.Notice) {
		n, now := &e.Notice, a.now()
		act := Action{Kind: "hook", Subject: n.Subject, Host: n.Host, Reason: n.Reason, Seq: n.Seq, Received: e.At, Begun: now, Done: now, Observed: true}
		a.status.note(act)
		a.tellLine(Line{Time: now, Event: act.Kind, Action: &act})
	}
}

// sendEvent is what to tell of a frame that was not sent: nothing where the next event
// reports the link down; "dropped" where the driver did not take it, which is a frame
// lost as on the wire (the carrier may just have gone, which the kernel tells later).
func sendEvent(err error) string {
	switch {
	case errors.Is(err, fabric.ErrPortDown), errors.Is(err, fabric.ErrNoPort):
		return ""
	case errors.Is(err, fabric.ErrPortBusy):
		return "dropped"
	}
	return "error"
}

// progress tells of registrations and queries that were sent since the last time.
func (a *Agent) progress(p *port) {
	if p.machine == nil {
		return
	}
	now, c := a.now(), p.machine.Counters()
	if c.Registrations != p.count.Registrations {
		svc := p.Service
		a.tellLine(Line{Time: now, Event: "registered", Interface: p.Interface, Addresses: p.Addrs, Service: &svc})
	}
	if c.Queries != p.count.Queries {
		a.tellLine(Line{Time: now, Event: "query", Addresses: p.Addrs})
	}
	p.count = c
}

// tell says what the machine says; "notice" once for each sequence number.
func (a *Agent) tell(p *port, e *snsd.AgentEvent) {
	l := Line{Time: e.At, Event: e.Kind.String()}
	switch e.Kind {
	case snsd.AgentReceived, snsd.AgentIgnored, snsd.AgentDuplicate, snsd.AgentFenced:
		l = l.Notice(&e.Notice)
		l.Event, l.Acked = "notice", &e.Acked
		l.Ignored = e.Kind == snsd.AgentIgnored
		if e.Kind == snsd.AgentDuplicate || (l.Ignored && p.repeated(&e.Notice)) {
			l.Event = "duplicate"
		}
		a.tellLine(l)
		if e.Acked {
			seq := e.Notice.Seq
			a.tellLine(Line{Time: a.now(), Event: "ack", Host: e.Notice.Host, Subject: e.Notice.Subject, Seq: &seq})
		}
	case snsd.AgentRefused:
		l.Error = e.Err.Error()
		if e.Notice.Subject.IsValid() {
			l = l.Notice(&e.Notice)
		}
		a.tellLine(l)
	case snsd.AgentDropped:
		l = l.Notice(&e.Notice)
		l.Error = "too many of them: it is neither acked nor acted upon"
		a.tellLine(l)
	case snsd.AgentDeaf:
		l.Error = "500 frames or more within 500 ms: dropping everything for 10 s"
		a.tellLine(l)
	default:
		a.tellLine(l.Notice(&e.Notice))
	}
}

// repeated tells whether this notice about an initiator was told before.
func (p *port) repeated(n *snsd.Notice) bool {
	k := path{n.Host, n.Subject}
	if seq, ok := p.ignored[k]; ok && seq == n.Seq {
		return true
	}
	if len(p.ignored) < maxIgnored {
		p.ignored[k] = n.Seq
	}
	return false
}

// tellLine says a line; an output that is closed ends the agent.
func (a *Agent) tellLine(l Line) {
	if err := a.say(l); err != nil && a.err == nil {
		a.err = fmt.Errorf("output: %w", err)
	}
}
