package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/snsd"
)

// host runs one agent on one interface. Everything happens in the goroutine of loop.
type host struct {
	opts  options
	cfg   snsd.AgentConfig
	dp    fabric.Dataplane
	print printer
	now   func() time.Time
	err   error // of printing; ends the loop

	mover *mover // nil without --fail-over

	agent snsd.Machine // nil while the interface is not there
	up    bool
	count snsd.AgentCounters // what was printed of registrations and queries

	// ignored are the last notices about initiators by pair: the agent keeps no
	// state of them, but a repeated one is not to be printed as news.
	ignored map[pairKey]uint32
}

type pairKey struct{ host, subject netip.Addr }

// maxIgnored bounds host.ignored; beyond it repeated ones print as news.
const maxIgnored = snsd.MaxAgentPairs

// run opens the interface and works until ctx ends.
func (h *host) run(ctx context.Context) error {
	dp, err := linux.New(linux.Config{Access: []string{h.opts.ifname}, NetNS: h.opts.netns})
	if err != nil {
		return fmt.Errorf("--interface %q: %w", h.opts.ifname, err)
	}
	h.dp = dp
	// The dataplane outlives the loop, so that a farewell can still be sent.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- dp.Run(inner) }()
	err = h.loop(ctx, done)
	if err == nil {
		h.farewell()
		err = h.err
	}
	cancel()
	if runErr := <-done; err == nil {
		err = runErr
	}
	return err
}

// loop takes events, frames and time until ctx ends. done is put back for run.
func (h *host) loop(ctx context.Context, done chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var moved chan line
	if h.mover != nil {
		moved = h.mover.done
	}
	for h.err == nil {
		h.arm(timer)
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			done <- nil
			if err == nil {
				err = errors.New("the dataplane stopped")
			}
			return err
		case ev := <-h.dp.Events():
			h.event(ev)
		case f := <-h.dp.Frames():
			if h.agent != nil {
				h.take(h.agent.Frame(f, h.now()))
			}
		case l := <-moved:
			h.say(l)
		case <-timer.C:
			if h.agent != nil {
				h.take(h.agent.Tick(h.now()))
			}
		}
	}
	return h.err
}

func (h *host) arm(t *time.Timer) {
	if h.agent == nil {
		t.Stop()
		return
	}
	if next := h.agent.Next(); next.IsZero() {
		t.Stop()
	} else {
		t.Reset(next.Sub(h.now()))
	}
}

// event follows the interface: an agent exists while it does, and its link is the
// agent's.
func (h *host) event(ev fabric.Event) {
	if ev.Port.Name != h.opts.ifname {
		return
	}
	if ev.Kind == fabric.PortRemoved {
		h.link(ev.At, false, "gone")
		h.agent = nil
		return
	}
	if h.agent == nil || h.cfg.MAC != ev.Port.MAC {
		h.link(ev.At, false, "down")
		h.cfg.MAC = ev.Port.MAC
		agent, err := h.opts.machine(h.cfg)
		if err != nil { // cannot be: it was checked at the start
			h.err = err
			return
		}
		h.agent, h.count = agent, snsd.AgentCounters{}
		if !ev.Port.Up() {
			h.say(line{Time: ev.At, Event: "link", Interface: h.opts.ifname, Link: "down"})
		}
	}
	h.link(ev.At, ev.Port.Up(), map[bool]string{true: "up", false: "down"}[ev.Port.Up()])
}

func (h *host) link(at time.Time, up bool, name string) {
	if up == h.up && name != "gone" {
		return
	}
	h.up = up
	h.say(line{Time: at, Event: "link", Interface: h.opts.ifname, Link: name})
	switch {
	case h.agent == nil:
	case up:
		h.take(h.agent.LinkUp(h.now()))
	default:
		h.take(h.agent.LinkDown(h.now()))
		clear(h.ignored)
	}
}

// take does what the agent wants done: frames first, words later.
func (h *host) take(out snsd.AgentOutput) {
	for _, f := range out.Frames {
		if err := h.dp.Send(h.opts.ifname, f); err != nil {
			if ev := sendEvent(err); ev != "" {
				h.say(line{Time: h.now(), Event: ev, Error: err.Error()})
			}
		}
	}
	h.progress()
	for i := range out.Events {
		h.tell(&out.Events[i])
	}
}

// sendEvent is what to print of a frame that was not sent: nothing where the next event
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

// progress prints registrations and queries that were sent since the last time.
func (h *host) progress() {
	now, c := h.now(), h.agent.Counters()
	if c.Registrations != h.count.Registrations {
		svc := h.cfg.Service
		h.say(line{Time: now, Event: "registered", Interface: h.opts.ifname, Addresses: h.cfg.Addrs, Service: &svc})
	}
	if c.Queries != h.count.Queries {
		h.say(line{Time: now, Event: "query", Addresses: h.cfg.Addrs})
	}
	h.count = c
}

// tell prints what the agent says; "notice" is printed once for each sequence number.
func (h *host) tell(e *snsd.AgentEvent) {
	l := line{Time: e.At, Event: e.Kind.String()}
	switch e.Kind {
	case snsd.AgentReceived, snsd.AgentIgnored, snsd.AgentDuplicate:
		l = l.notice(&e.Notice)
		l.Event, l.Acked = "notice", &e.Acked
		l.Ignored = e.Kind == snsd.AgentIgnored
		if e.Kind == snsd.AgentDuplicate || (l.Ignored && h.repeated(&e.Notice)) {
			l.Event = "duplicate"
		}
		h.say(l)
		if e.Acked {
			seq := e.Notice.Seq
			h.say(line{Time: h.now(), Event: "ack", Host: e.Notice.Host, Subject: e.Notice.Subject, Seq: &seq})
		}
	case snsd.AgentRefused:
		l.Error = e.Err.Error()
		if e.Notice.Subject.IsValid() {
			l = l.notice(&e.Notice)
		}
		h.say(l)
	case snsd.AgentDropped:
		l = l.notice(&e.Notice)
		l.Error = "too many notices wait: it is neither acked nor acted upon"
		h.say(l)
	case snsd.AgentDeaf:
		l.Error = "500 frames or more within 500 ms: dropping everything for 10 s"
		h.say(l)
	default:
		if e.Kind == snsd.AgentProbe && h.mover != nil && deadPath(e.Notice.Reason) && !h.mover.take(e.Notice) {
			h.say(line{Time: h.now(), Event: "error", Error: "too many paths to leave at once"}.notice(&e.Notice))
		}
		h.say(l.notice(&e.Notice))
	}
}

// repeated tells whether this notice about an initiator was printed before.
func (h *host) repeated(n *snsd.Notice) bool {
	k := pairKey{n.Host, n.Subject}
	if seq, ok := h.ignored[k]; ok && seq == n.Seq {
		return true
	}
	if len(h.ignored) < maxIgnored {
		h.ignored[k] = n.Seq
	}
	return false
}

// farewell withdraws the registrations, if that was asked for.
func (h *host) farewell() {
	if !h.opts.shutdownPDU || h.agent == nil || !h.up {
		return
	}
	out := h.agent.Shutdown(h.now())
	h.count = h.agent.Counters() // a withdrawal is no registration to be printed
	h.take(out)
	h.say(line{Time: h.now(), Event: "withdrawn", Interface: h.opts.ifname, Addresses: h.cfg.Addrs})
}

// say prints a line; an output that is closed ends the program.
func (h *host) say(l line) {
	if err := h.print(l); err != nil && h.err == nil {
		h.err = fmt.Errorf("output: %w", err)
	}
}
