package hostnotify

import (
	"fmt"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// The agent of package snsd behaves like the existing one, its flood guard included.
// A port with as many addresses as an agent can have, all in the zone of many
// targets, is told everything, twice, without its agent going deaf.
func TestAnAgentWith64AddressesIsToldEverythingWithoutGoingDeaf(t *testing.T) {
	const targets = 128 // times 64: what the agent remembers
	r := newRig(t, Config{})
	w := &flatWorld{newWorld()}
	r.n = New(Config{}, w)
	r.n.SetSynced(true)
	m := mac(42)
	cfg := snsd.AgentConfig{Interface: "eth0", MAC: m, Subscribes: true, Service: snsd.Service{Role: snsd.RoleInitiator}}
	for i := range snsd.MaxAgentAddrs {
		cfg.Addrs = append(cfg.Addrs, ip(fmt.Sprintf("192.0.2.%d", i+1)))
	}
	agent, err := snsd.NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	agent.LinkUp(r.now)
	for i := range targets {
		w.put(ip(fmt.Sprintf("198.51.%d.%d", 100+i/200, 1+i%200)))
	}
	r.n.PortUp("p1", mac(9), r.now)
	for _, a := range cfg.Addrs {
		w.put(a, m)
		r.n.Subscribe(a, "p1", m, r.now)
	}
	for range 2 {
		start, heard, acts := r.now, 0, r.n.Counters()
		for r.n.Counters().Waiting+r.n.Counters().InFlight > 0 {
			for _, o := range r.n.Poll(r.now) {
				heard += deliver(t, r, agent, o)
			}
			if c := r.n.Counters(); c.InFlight > 256 {
				t.Fatalf("%d in flight to one agent", c.InFlight)
			}
			r.now = r.now.Add(200 * time.Microsecond)
		}
		if heard != targets*len(cfg.Addrs) {
			t.Errorf("%d notices, want %d", heard, targets*len(cfg.Addrs))
		}
		c := r.n.Counters()
		t.Logf("%d notices in %d frames, %v", c.Sent-acts.Sent, c.Frames-acts.Frames, r.now.Sub(start))
		if took := r.now.Sub(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		for a, h := range w.hosts {
			if h.MAC != m {
				w.fault[a] = snsd.ReasonBFDDown
				r.changed(snsd.ReasonBFDDown, a.String())
			}
		}
	}
	if c := agent.Counters(); c.Deaf != 0 {
		t.Errorf("the agent dropped %d frames", c.Deaf)
	}
	if c := r.n.Counters(); c.Retried != 0 {
		t.Errorf("%d retries", c.Retried)
	}
}

// flatWorld has one zone for all.
type flatWorld struct{ *world }

func (w *flatWorld) Share(a, b netip.Addr) bool { return w.Known(a) && w.Known(b) }

func (w *flatWorld) Peers(a netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, b := range w.sorted() {
			if b != a && !yield(b) {
				return
			}
		}
	}
}

// deliver hands a frame to the agent and its acks back; it returns the notices acted upon.
func deliver(t *testing.T, r *rig, agent *snsd.Agent, o Out) (acted int) {
	out := agent.Frame(fabric.Frame{Port: "eth0", EtherType: fabric.EtherTypeNTS, Payload: o.Frame[fabric.EthernetHeaderLen:], At: r.now}, r.now)
	for _, e := range out.Events {
		if e.Kind == snsd.AgentReceived {
			acted++
		}
	}
	for _, f := range out.Frames {
		for _, a := range parse(t, f).Acks {
			r.n.Ack(o.Port, a, r.now)
		}
	}
	return acted
}
