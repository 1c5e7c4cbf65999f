package hostnotify

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// The host must let go of the machine that had the address before it connects to the one
// that has it now, though the address was active all the time.
func TestAnAddressThatMovesIsTakenBackBeforeItIsActiveAgain(t *testing.T) {
	r := twoHosts(t)
	moved := func() {
		r.w.moves = map[netip.Addr]uint32{ip(farT): r.w.moves[ip(farT)] + 1}
		r.changed(0, farT)
	}
	moved()
	expect(t, r.settle(), hostA+": "+farT+" active", hostA+": "+farT+" inactive ip-changed",
		hostB+": "+farT+" active", hostB+": "+farT+" inactive ip-changed") // sorted
	r.changed(0, farT)
	expect(t, r.settle())
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	delete(r.w.fault, ip(farT))
	moved() // from a port with a fault
	expect(t, r.settle(), hostA+": "+farT+" active", hostA+": "+farT+" inactive ip-changed",
		hostB+": "+farT+" active", hostB+": "+farT+" inactive ip-changed") // sorted
	r.w.moves = nil // the address was not known for a while
	r.changed(0, farT)
	expect(t, r.settle())
}

// Whoever is asked whether it is there gets what it has acked once more.
func TestANoticeIsRepeatedForItsAck(t *testing.T) {
	r := twoHosts(t)
	before := r.n.Counters()
	r.n.Nudge(ip(hostA), r.now)
	r.n.Nudge(ip(hostA), r.now)
	expect(t, r.settle(), hostA+": "+farT+" active")
	if c := r.n.Counters(); c.Retried != 1 || c.InFlight != 0 || c.Sent != before.Sent || c.Acked != before.Acked+1 {
		t.Errorf("repeated %d times, %d under way, %d new ones, %d acks", c.Retried, c.InFlight, c.Sent-before.Sent, c.Acked-before.Acked)
	}
}

// What is kept of a subject that is gone stands in a list of its own, and is not repeated.
func TestNothingIsRepeatedOfASubjectThatIsGone(t *testing.T) {
	r := newRig(t, Config{})
	r.w.put(ip(farT))
	r.w.join("z", ip(hostA), ip(farT))
	r.local("p1", hostA)
	r.changed(0, hostA)
	r.settle()
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.withdraw(farT, snsd.ReasonAgedOut)
	r.settle()
	if c := r.n.Counters(); c.Gone != 1 {
		t.Fatalf("%d kept", c.Gone)
	}
	r.n.Nudge(ip(hostA), r.now)
	expect(t, r.settle())
}

// A host whose address another claim has for a while may be the same machine at another
// device: it is told nothing here meanwhile, and all that is true when it is back, also what
// is not active any more of what it was told before.
func TestAHostThatHadLostItsAddressIsToldAgain(t *testing.T) {
	r := twoHosts(t)
	r.n.Yield(ip(hostA), "p1", r.now)
	r.fault(farT, snsd.ReasonLinkDown)
	expect(t, r.settle(), hostB+": "+farT+" inactive link-down")
	r.n.Query(ip(hostA), r.now)
	expect(t, r.settle())
	if c := r.n.Counters(); c.Waiting != 0 || c.InFlight != 0 {
		t.Errorf("%d notices wait and %d are under way for a host without its address", c.Waiting, c.InFlight)
	}
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down") // sorted
	r.n.Yield(ip(hostA), "p1", r.now)
	r.n.Unsubscribe(ip(hostA), "p1", r.now)
	if c := r.n.Counters(); c.Hosts != 1 {
		t.Errorf("%d hosts are known, want the one that is left", c.Hosts)
	}
}

// What a host was told while a notice was under way is repeated when it has its address again.
func TestANoticeUnderWayOutlivesTheLossOfTheAddress(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.poll() // lost
	r.n.Yield(ip(hostA), "p1", r.now)
	expect(t, r.settle(), hostB+": "+farT+" inactive link-down")
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down") // sorted
}

// A machine that has moved back behind a port is told things there until its switch hears that the
// address is known elsewhere: its ack comes after that, and shows that it is there all the same.
func TestAnAckShowsThatAHostIsThereAfterTheLossOfTheAddress(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.poll()
	n := r.n.Notices()
	ack := func(port string) bool {
		for i := range n {
			if n[i].Host == ip(hostA) && n[i].State == snsd.Inactive {
				return r.n.Ack(port, snsd.Ack{Host: n[i].Host, Subject: n[i].Subject, Seq: n[i].Seq}, r.now)
			}
		}
		t.Fatal("nothing was told")
		return false
	}
	if ack("p2") {
		t.Error("an ack over a port on which the host is not shows that it is there")
	}
	r.n.Yield(ip(hostA), "p1", r.now)
	if !ack("p1") || ack("p1") {
		t.Error("the first ack shows that the host is there, and only that")
	}
	r.poll()
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	if got := r.n.Told(ip(hostA), ip(farT)); !got.Acked {
		t.Error("it is forgotten that the host has acked")
	}
}

// A host that did not answer for its address, and is not registered any more, may have been there
// and heard nothing: when it registers in time it is told what changed meanwhile.
func TestAHostThatWasWithdrawnIsToldWhatItMissed(t *testing.T) {
	r := twoHosts(t)
	grace := r.n.cfg.Grace
	r.n.Withdraw(ip(hostA), "p1", r.now)
	r.fault(farT, snsd.ReasonLinkDown)
	expect(t, r.settle(), hostB+": "+farT+" inactive link-down")
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down") // sorted
	r.pass(2 * grace)
	r.settle()
	if c := r.n.Counters(); c.Hosts != 2 {
		t.Errorf("%d hosts are known after a while, want both: they are registered", c.Hosts)
	}
}

// A host that was withdrawn is not kept for ever, nor in the place of one that is there.
func TestAHostThatWasWithdrawnIsForgotten(t *testing.T) {
	r := twoHosts(t)
	grace := r.n.cfg.Grace
	r.n.Withdraw(ip(hostA), "p1", r.now)
	r.pass(grace - time.Second)
	r.poll()
	if c := r.n.Counters(); c.Hosts != 2 {
		t.Fatalf("%d hosts are known before the time is over, want 2", c.Hosts)
	}
	r.pass(time.Second)
	r.poll()
	if c := r.n.Counters(); c.Hosts != 1 {
		t.Errorf("%d hosts are known when the time is over, want 1", c.Hosts)
	}
	r.n.Withdraw(ip(hostB), "p2", r.now)
	r.n.cfg.MaxHosts = 1
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	if c := r.n.Counters(); c.Hosts != 1 || c.HostsRefused != 0 {
		t.Errorf("%d hosts are known and %d were refused, want 1 and 0: the one that is gone makes room", c.Hosts, c.HostsRefused)
	}
}

// An address that is registered on two ports while a machine elsewhere has it is not forgotten when
// one of the two goes.
func TestWhatAHostWasToldOutlivesTheEndOfAnotherClaim(t *testing.T) {
	r := twoHosts(t)
	mac := r.w.hosts[ip(hostA)].MAC
	r.n.Yield(ip(hostA), "p3", r.now) // never had it
	r.n.Yield(ip(hostA), "p1", r.now)
	r.fault(farT, snsd.ReasonLinkDown)
	expect(t, r.settle(), hostB+": "+farT+" inactive link-down")
	r.n.Unsubscribe(ip(hostA), "p3", r.now)
	r.n.Unsubscribe(ip(hostA), "p4", r.now) // it never was there
	r.n.Subscribe(ip(hostA), "p1", mac, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down") // sorted
}

// A host that registers on a second port while another claim has the address there, and then leaves
// the first one, is told nothing more, and all again when it has the address.
func TestAHostOfWhichOnlyAClaimIsLeftIsToldAgainWhenItHasTheAddress(t *testing.T) {
	r := twoHosts(t)
	r.n.PortUp("p9", mac(9), r.now)
	r.fault(farT, snsd.ReasonLinkDown)
	r.ack(r.poll()[1]) // hostB's: the other one stays under way
	r.n.Yield(ip(hostA), "p9", r.now)
	r.n.Unsubscribe(ip(hostA), r.n.subs[ip(hostA)].links[0].port.name, r.now)
	if c := r.n.Counters(); c.InFlight != 0 {
		t.Errorf("%d under way to a host that has no port", c.InFlight)
	}
	r.n.Subscribe(ip(hostA), "p9", r.n.subs[ip(hostA)].mac, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down")
}
