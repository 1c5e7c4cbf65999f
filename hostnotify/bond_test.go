package hostnotify

import (
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// Which of its ports a host is behind nobody knows while it acks nothing: what is repeated for
// something else must not turn a notice back to the port it went over before.
func TestADeafHostIsToldEverythingOverBothOfItsPorts(t *testing.T) {
	for at := time.Duration(0); at < 4*time.Second; at += 50 * time.Millisecond {
		r := twoHosts(t)
		h := r.w.hosts[ip(hostA)]
		r.n.PortUp("p3", mac(8), r.now)
		r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
		r.settle()
		deaf := func(d time.Duration) { // B acks
			for end := r.now.Add(d); ; {
				for _, x := range r.poll() {
					if x.Host != h.Addr {
						r.ack(x)
					}
				}
				if next := r.n.Next(); next.IsZero() || next.After(end) {
					r.now = end
					return
				} else if next.After(r.now) {
					r.now = next
				}
			}
		}
		r.fault(farT, snsd.ReasonLinkDown)
		r.fault(hostB, snsd.ReasonLinkDown)
		deaf(10*time.Second + at)
		r.fault(farT, 0)
		came := len(r.wire)
		deaf(6 * time.Second)
		over := map[string]bool{}
		for _, x := range r.wire[came:] {
			if x.Host == h.Addr && x.Subject == ip(farT) && x.State == snsd.Active {
				over[x.Port] = true
			}
		}
		if len(over) != 2 {
			t.Errorf("%v: told over %v", at, over)
		}
	}
}

// Three ports in turn would take 15 s to come around.
func TestADeafHostThatRegistersOnAnotherPortIsToldThereAtOnce(t *testing.T) {
	r := twoHosts(t)
	h := r.w.hosts[ip(hostA)]
	r.n.PortUp("p3", mac(8), r.now)
	r.n.PortUp("p4", mac(8), r.now)
	r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
	r.fault(farT, snsd.ReasonLinkDown)
	for end := r.now.Add(10 * time.Second); r.now.Before(end); r.now = r.n.Next() {
		r.poll()
	}
	r.n.Subscribe(h.Addr, "p4", h.MAC, r.now)
	for _, x := range r.poll() {
		if x.Host == h.Addr && x.Subject == ip(farT) && x.Port == "p4" {
			return
		}
	}
	t.Error("it is not told there")
}

// A machine was moved twice: its first port is in use by another machine now, so that it seems up,
// its second one is down, and now it registers on a third one. It may have been restarted
// meanwhile.
func TestAHostThatRegistersOnAnotherPortWhileOneIsDownIsToldEverything(t *testing.T) {
	r := twoHosts(t)
	h := r.w.hosts[ip(hostA)]
	for _, p := range []string{"p3", "p4"} {
		r.n.PortUp(p, mac(8), r.now)
	}
	r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
	expect(t, r.settle()) // a bond of two ports that are up: nothing is new
	r.n.PortDown("p3")
	expect(t, r.settle())
	r.n.Subscribe(h.Addr, "p4", h.MAC, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
	r.n.Subscribe(h.Addr, "p4", h.MAC, r.now)
	expect(t, r.settle())
}

// A port that turns out to be another machine's, which claims the address of a host with another
// port too, is none of the host's: what is under way there goes over the other one at once.
func TestWhatWentToAnotherMachineIsToldOverTheHostsOwnPortAtOnce(t *testing.T) {
	r := twoHosts(t)
	h := r.w.hosts[ip(hostA)]
	r.n.PortUp("p3", mac(8), r.now)
	r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
	r.settle()
	r.fault(farT, snsd.ReasonLinkDown)
	over := func() (ports []string) {
		for _, x := range r.poll() {
			if x.Host == h.Addr {
				ports = append(ports, x.Port)
			}
		}
		return ports
	}
	if got := over(); !slices.Equal(got, []string{"p1"}) {
		t.Fatalf("told over %v", got)
	}
	r.n.Subscribe(h.Addr, "p1", mac(77), r.now)
	if got := over(); !slices.Equal(got, []string{"p3"}) {
		t.Errorf("then told over %v, want p3", got)
	}
}

// The first port lost its carrier while another claim had the address, so that no host was behind
// it.
func TestAPortThatWentDownWithoutAHostDoesNotCountAsOneThatIsUp(t *testing.T) {
	r := twoHosts(t)
	h := r.w.hosts[ip(hostA)]
	r.n.PortUp("p3", mac(8), r.now)
	r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
	for _, p := range []string{"p1", "p3"} {
		r.n.Yield(h.Addr, p, r.now)
	}
	r.now = r.now.Add(time.Minute)
	r.settle() // nothing was sent there for a while
	r.n.PortDown("p1")
	for _, p := range []string{"p1", "p3"} {
		r.n.Subscribe(h.Addr, p, h.MAC, r.now)
	}
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
	r.n.PortDown("p3")
	expect(t, r.settle())
	r.n.PortUp("p3", mac(8), r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}

func TestAPortThatIsGoneIsForgotten(t *testing.T) {
	r := newRig(t, Config{})
	before := len(r.n.portList)
	r.n.PortUp("gone", mac(8), r.now)
	r.n.PortDown("gone")
	r.n.PortGone("gone")
	if is := len(r.n.portList); is != before || len(r.n.ports) != before {
		t.Errorf("%d ports are listed and %d known, there were %d", is, len(r.n.ports), before)
	}
}
