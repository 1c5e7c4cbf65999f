package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
)

// host is a machine with one port and the agent on it.
type host struct {
	w     *world
	name  string
	mac   fabric.MAC
	addrs []netip.Addr
	svc   snsd.Service
	link  *cable // nil: not plugged
	agent *snsd.Agent
	on    bool // the agent runs
	life  uint64
	tick  virtual.Look

	silent  bool
	heard   map[heardKey]heardOf         // since the agent forgot
	asked   map[netip.Addr]time.Duration // when zone queries arrived since then, by own address
	stirred time.Duration                // last moment of trouble of its own: it may be told things again
	givenUp map[netip.Addr]time.Duration
	forgot  time.Duration // when it did last
	unseen  bool          // and its switch saw no link go down that it had to: only a zone query tells it
}

type heardKey struct{ host, subject netip.Addr }

// heardOf is the last notice about a subject.
type heardOf struct {
	snsd.Notice
	at      time.Duration
	sent    time.Duration // by the switch
	unsaved bool          // the switch crashed before it had saved that it told this
}

func (h *host) boot() {
	a, err := snsd.NewAgent(snsd.AgentConfig{
		Interface: "eth0", MAC: h.mac, Addrs: h.addrs, Subscribes: true, Service: h.svc, Silent: h.silent,
	})
	if err != nil {
		h.w.failf("%s: agent: %v", h.name, err)
		return
	}
	h.agent, h.on = a, true
	h.life++
	h.tick.Forget()
	h.forget()
	if h.link != nil && h.link.carrier {
		h.unseen = true
		h.do(h.agent.LinkUp(h.w.time()))
	}
}

// halt ends the agent; orderly ones say goodbye.
func (h *host) halt(orderly bool) {
	h.w.tracef("%s agent stops, orderly %v", h.name, orderly)
	if orderly {
		h.do(h.agent.Shutdown(h.w.time()))
	}
	h.on = false
	h.forget()
}

// forget is what the agent does without its link, or when it ends.
func (h *host) forget() {
	h.heard = map[heardKey]heardOf{}
	h.asked = map[netip.Addr]time.Duration{}
	h.givenUp = map[netip.Addr]time.Duration{}
	h.forgot, h.unseen = h.w.now, false
	h.stir()
}

// stir notes trouble of the host's own.
func (h *host) stir() { h.stirred, h.w.changed = h.w.now, h.w.now }

func (h *host) carrier(up bool) {
	if !h.on {
		return
	}
	if up {
		h.unseen = h.unseen || h.bonded()
		h.do(h.agent.LinkUp(h.w.time()))
	} else {
		h.agent.LinkDown(h.w.time())
		h.forget()
		h.unseen = h.bonded()
	}
}

// bonded reports whether the switch still counts another port, which is up for all it knows, as
// the host's own too.
func (h *host) bonded() bool {
	return slices.ContainsFunc(h.link.dev.seen, func(c claimant) bool { return c.mac == h.mac && c.link != h.link && c.link.seen })
}

// plug puts the cable into a port, nil: into none.
func (h *host) plug(l *cable) {
	if old := h.link; old != nil {
		old.host, h.link = nil, nil
		old.refresh()
		if h.on {
			h.agent.LinkDown(h.w.time())
			h.forget()
		}
	}
	if l == nil {
		h.w.tracef("%s is unplugged", h.name)
		return
	}
	h.w.tracef("%s is plugged into %s", h.name, l.name())
	h.link, l.host = l, h
	l.refresh()
}

func (h *host) setSilent(on bool) {
	h.w.tracef("%s silent %v", h.name, on)
	h.silent = on
	h.stir()
	if h.on {
		h.do(h.agent.SetSilent(on, h.w.time()))
	}
}

// speak has the host register now.
func (h *host) speak() {
	if h.on && !h.silent {
		h.do(h.agent.SetSilent(true, h.w.time()))
		h.do(h.agent.SetSilent(false, h.w.time()))
	}
}

// readdress gives the host other addresses.
func (h *host) readdress(addrs []netip.Addr) {
	h.w.tracef("%s has now %v", h.name, addrs)
	h.addrs = addrs
	h.stir()
	h.w.unasked = h.w.now + presence.MostAgain
	for k := range h.heard {
		if !slices.Contains(addrs, k.host) {
			delete(h.heard, k)
		}
	}
	if !h.on {
		return
	}
	out, err := h.agent.SetAddrs(addrs, h.w.time())
	if err != nil {
		h.w.failf("%s: addresses: %v", h.name, err)
	}
	h.do(out)
}

// do sends what the agent wants sent and plans its next tick.
func (h *host) do(out snsd.AgentOutput) {
	nth := 0
	for _, b := range out.Frames {
		f := readFrame(h, b, &nth)
		if h.link != nil {
			if f.reg != nil && f.reg.ttl > 0 {
				h.w.claimed(h, f.reg)
			}
			h.w.queried(h, f.queries)
			h.link.toDevice(f)
		}
	}
	for _, e := range out.Events {
		if e.Kind == snsd.AgentDeaf {
			h.w.failf("%s was flooded with frames", h.name)
		}
	}
	h.plan()
}

func (h *host) plan() {
	next := h.agent.Next()
	if next.IsZero() || !h.on {
		return
	}
	life := h.life
	h.tick.Plan(h.w, next, func() bool { return h.on && h.life == life }, func() { h.do(h.agent.Tick(h.w.time())) })
}

// frame takes a frame of the switch, and when it was sent. Who has an address the kernel answers, with or
// without the agent.
func (h *host) frame(b []byte, sent time.Duration) {
	if r := presence.Reply(b, h.mac, func(a netip.Addr) bool { return slices.Contains(h.addrs, a) }); r != nil {
		h.link.toDevice(&hostFrame{host: h, bytes: r, answer: true})
	}
	if !h.on {
		return
	}
	out := h.agent.Frame(fabric.Frame{
		Port: "eth0", Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]), EtherType: uint16(b[12])<<8 | uint16(b[13]), Payload: slices.Clone(b[14:]),
	}, h.w.time())
	for _, e := range out.Events {
		if e.Kind == snsd.AgentReceived || e.Kind == snsd.AgentIgnored || e.Kind == snsd.AgentDuplicate {
			h.heard[heardKey{e.Notice.Host, e.Notice.Subject}] = heardOf{Notice: e.Notice, at: h.w.now, sent: sent, unsaved: h.forgotten(&e.Notice)}
			h.w.tracef("%s is told %s %s %s #%d (%v)", h.name, e.Notice.Subject, e.Notice.State, e.Notice.Reason, e.Notice.Seq, e.Kind)
		}
	}
	h.do(out)
}

// forgotten reports whether the switch that told this has crashed meanwhile and forgot it.
func (h *host) forgotten(n *snsd.Notice) bool {
	if h.link == nil {
		return false
	}
	last := h.w.wire[pairKey{h.link.dev.id, n.Host, n.Subject}]
	return last != nil && last.Seq == n.Seq && last.unsaved
}

// queried notes that a zone query arrived at a switch that knows the host there.
func (h *host) queried(addr netip.Addr, d *device, l *cable) {
	if d.seen.known(l.port, addr) {
		h.asked[addr] = h.w.now
		h.stir()
	}
}

func (h *host) String() string {
	where := "nowhere"
	if h.link != nil {
		where = h.link.name()
	}
	return fmt.Sprintf("%s%v at %s", h.name, h.addrs, where)
}
