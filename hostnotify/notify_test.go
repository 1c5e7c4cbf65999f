package hostnotify

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

const (
	hostA = "192.0.2.1" // local on p1
	hostB = "192.0.2.2" // local on p2
	farT  = "198.51.100.1"
	farU  = "198.51.100.2"
)

// twoHosts is a rig in which A (p1) and B (p2) share a zone with the remote T, all told.
func twoHosts(t testing.TB) *rig {
	r := newRig(t, Config{FirstSeq: 100})
	r.populate()
	r.settle()
	return r
}

// populate has two hosts register, and another one far away.
func (r *rig) populate() {
	r.w.put(ip(farT))
	r.w.join("z", ip(hostA), ip(hostB), ip(farT))
	r.local("p1", hostA)
	r.local("p2", hostB)
	r.changed(0, hostA, hostB)
}

func expect(t *testing.T, got []spoken, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, says(got)); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

func TestARegistrationIsToldAllActivePeersOfItsZones(t *testing.T) {
	r := newRig(t, Config{})
	r.w.put(ip(farT))
	r.w.put(ip(farU)) // in another zone
	r.w.put(ip("2001:db8::1"))
	r.w.join("z", ip(hostA), ip(farT), ip("2001:db8::1"))
	r.w.join("y", ip(farU))
	r.local("p1", hostA)
	expect(t, r.settle(), hostA+": "+farT+" active")
	if c := r.n.Counters(); c.FamilyMismatch == 0 {
		t.Error("the pair of two families was not counted")
	}
}

// ageOut has a subject age out while it is unreachable.
func (r *rig) ageOut(addr string, why snsd.Reason) {
	r.fault(addr, why)
	r.settle()
	r.withdraw(addr, snsd.ReasonAgedOut)
	r.settle()
}

func TestWhatChangesIsToldOnce(t *testing.T) {
	tests := []struct {
		name string
		do   func(r *rig)
		want []string
	}{
		{"link down", func(r *rig) { r.fault(farT, snsd.ReasonLinkDown) },
			[]string{hostA + ": " + farT + " inactive link-down", hostB + ": " + farT + " inactive link-down"}},
		{"a fault of a local host is told to the other one only", func(r *rig) { r.fault(hostA, snsd.ReasonPFCStorm) },
			[]string{hostB + ": " + hostA + " inactive pfc-storm"}},
		{"down and up again before anything was sent", func(r *rig) { r.fault(farT, snsd.ReasonLinkDown); r.fault(farT, 0) }, nil},
		{"another keep-alive reason", func(r *rig) {
			r.fault(farT, snsd.ReasonLinkDown)
			r.settle()
			r.fault(farT, snsd.ReasonBFDDown)
		}, nil},
		{"ageing out after the link went down", func(r *rig) {
			r.fault(farT, snsd.ReasonLinkDown)
			r.settle()
			r.withdraw(farT, snsd.ReasonAgedOut)
		}, nil},
		{"moved after the link went down", func(r *rig) {
			r.fault(farT, snsd.ReasonLinkDown)
			r.settle()
			r.withdraw(farT, snsd.ReasonIPChanged)
		}, []string{hostA + ": " + farT + " inactive ip-changed", hostB + ": " + farT + " inactive ip-changed"}},
		{"aged out", func(r *rig) { r.withdraw(farT, snsd.ReasonAgedOut) },
			[]string{hostA + ": " + farT + " inactive aged-out", hostB + ": " + farT + " inactive aged-out"}},
		{"out of the zone", func(r *rig) { delete(r.w.zones["z"], ip(hostA)); r.changed(snsd.ReasonZoneChanged, hostA) },
			[]string{hostA + ": " + hostB + " inactive zone-changed", hostA + ": " + farT + " inactive zone-changed", hostB + ": " + hostA + " inactive zone-changed"}},
		{"out of the zone while faulty", func(r *rig) {
			r.fault(farT, snsd.ReasonLinkDown)
			r.settle()
			delete(r.w.zones["z"], ip(farT))
			r.changed(snsd.ReasonZoneChanged, farT)
		}, []string{hostA + ": " + farT + " inactive zone-changed", hostB + ": " + farT + " inactive zone-changed"}},
		{"out of the zone, still faulty, after it had been gone", func(r *rig) {
			r.ageOut(farT, snsd.ReasonBFDDown)
			r.w.put(ip(farT))
			r.fault(farT, snsd.ReasonBFDDown)
			r.settle()
			delete(r.w.zones["z"], ip(farT))
			r.changed(snsd.ReasonZoneChanged, farT)
		}, []string{hostA + ": " + farT + " inactive zone-changed", hostB + ": " + farT + " inactive zone-changed"}},
		{"back in another zone than the hosts that still try to reach it", func(r *rig) {
			r.ageOut(farT, snsd.ReasonLinkDown)
			delete(r.w.zones["z"], ip(farT))
			r.w.put(ip(farT))
			r.changed(0, farT)
		}, []string{hostA + ": " + farT + " inactive zone-changed", hostB + ": " + farT + " inactive zone-changed"}},
		{"back and well after it had been gone", func(r *rig) {
			r.ageOut(farT, snsd.ReasonLinkDown)
			r.w.put(ip(farT))
			r.fault(farT, 0)
		}, []string{hostA + ": " + farT + " active", hostB + ": " + farT + " active"}},
		{"a new host that is faulty is told to nobody", func(r *rig) {
			r.w.put(ip(farU))
			r.w.join("z", ip(farU))
			r.fault(farU, snsd.ReasonLinkDown)
		}, nil},
		{"a name that an active host had not told is news", func(r *rig) { r.w.put(ip(farT)).Service.NQN = "nqn.2026-11.net.example:t"; r.changed(0, farT) },
			[]string{hostA + ": " + farT + " active", hostB + ": " + farT + " active"}},
		{"nothing changed", func(r *rig) { r.changed(0, farT, hostA, hostB) }, nil},
		{"a registration repeated", func(r *rig) { h := r.w.hosts[ip(hostA)]; r.n.Subscribe(h.Addr, "p1", h.MAC, r.now) }, nil},
		{"a query", func(r *rig) { r.n.Query(ip(hostA), r.now) }, []string{hostA + ": " + hostB + " active", hostA + ": " + farT + " active"}},
		{"a query repeats what cannot be reached: the agent may have been started anew", func(r *rig) {
			r.fault(farT, snsd.ReasonLinkDown)
			r.settle()
			r.n.Query(ip(hostA), r.now)
		}, []string{hostA + ": " + hostB + " active", hostA + ": " + farT + " inactive link-down"}},
		{"its own second address is no news to a host", func(r *rig) {
			r.w.put(ip("192.0.2.11"), r.w.hosts[ip(hostA)].MAC)
			r.w.join("z", ip("192.0.2.11"))
			r.changed(0, "192.0.2.11")
		}, []string{hostB + ": 192.0.2.11 active"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := twoHosts(t)
			tt.do(r)
			expect(t, r.settle(), tt.want...)
		})
	}
}

func TestAPairThatEndedIsForgotten(t *testing.T) {
	r := twoHosts(t)
	before := r.n.Counters().Pairs
	r.withdraw(farT, snsd.ReasonAgedOut)
	r.settle()
	if got := r.n.Counters().Pairs; got != before-2 {
		t.Errorf("pairs %d, want %d", got, before-2)
	}
	if len(r.n.subjects) != 2 {
		t.Errorf("subjects %d, want 2", len(r.n.subjects))
	}
	// Silence about it was kept; its return is told.
	r.w.put(ip(farT))
	r.changed(0, farT)
	expect(t, r.settle(), hostA+": "+farT+" active", hostB+": "+farT+" active")
}

func TestUnackedNoticesAreRetriedWithTheSameNumber(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	start := r.now
	first := r.poll()
	r.ack(first[0]) // one host answers, the other is silent
	silent := first[1]
	var at []time.Duration
	for range 10 {
		r.now = r.n.Next()
		for _, x := range r.poll() {
			if x.Notice != silent.Notice {
				t.Fatalf("retried %+v, want %+v", x.Notice, silent.Notice)
			}
			at = append(at, r.now.Sub(start))
		}
	}
	ms := time.Millisecond
	want := []time.Duration{20 * ms, 60 * ms, 140 * ms, 300 * ms, 620 * ms, 1260 * ms, 2260 * ms, 3260 * ms, 4260 * ms, 5260 * ms}
	if d := cmp.Diff(want, at); d != "" {
		t.Errorf("retries (-want +got):\n%s", d)
	}
	r.n.Unsubscribe(silent.Host, silent.Port, r.now)
	if c := r.n.Counters(); c.GivenUp != 1 || c.InFlight != 0 {
		t.Errorf("given up %d, in flight %d", c.GivenUp, c.InFlight)
	}
	if next := r.n.Next(); !next.IsZero() {
		t.Errorf("still expects something at %v", next)
	}
}

func TestTheLatestStateWinsOverAnUnackedOne(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	down := r.poll()
	r.fault(farT, 0)
	up := r.poll()
	expect(t, up, hostA+": "+farT+" active", hostB+": "+farT+" active")
	r.ack(down...) // late acks of what is superseded
	if c := r.n.Counters(); c.AcksStale != 2 || c.Superseded != 2 {
		t.Errorf("stale %d, superseded %d, want 2 and 2", c.AcksStale, c.Superseded)
	}
	r.pass(20 * time.Millisecond)
	expect(t, r.poll(), hostA+": "+farT+" active", hostB+": "+farT+" active")

	// Back to what is under way: nothing new, the old one is retried again.
	r.fault(farT, snsd.ReasonLinkDown)
	r.fault(farT, 0)
	got := r.settle()
	for _, x := range got {
		if x.Seq != up[0].Seq && x.Seq != up[1].Seq {
			t.Errorf("a new notice %v", x)
		}
	}
}

func TestAcksThatFitNothingAreCounted(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	got := r.poll()
	x := got[0]
	r.n.Ack("p9", snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}, r.now)
	r.n.Ack(x.Port, snsd.Ack{Subject: ip(farU), Host: x.Host, Seq: x.Seq}, r.now)
	r.n.Ack(x.Port, snsd.Ack{Subject: x.Subject, Host: ip(farU), Seq: x.Seq}, r.now)
	r.n.Ack(x.Port, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq + 77}, r.now)
	r.ack(x, x)
	c := r.n.Counters()
	if c.AcksUnknown != 3 || c.AcksStale != 1 || c.AcksRepeated != 1 || c.InFlight != 1 {
		t.Errorf("unknown %d, stale %d, repeated %d, in flight %d", c.AcksUnknown, c.AcksStale, c.AcksRepeated, c.InFlight)
	}
}

func TestAHostWhosePortWasDownIsToldEverythingOnceItIsUpAgain(t *testing.T) {
	r := twoHosts(t)
	r.n.PortDown("p1")
	r.fault(hostA, snsd.ReasonLinkDown)
	r.fault(farT, snsd.ReasonPacketError)
	r.w.put(ip(farU))
	r.w.join("z", ip(farU))
	r.changed(0, farU)
	expect(t, r.settle(), hostB+": "+hostA+" inactive link-down", hostB+": "+farT+" inactive packet-error", hostB+": "+farU+" active")
	r.pass(time.Second)
	r.n.PortUp("p1", mac(9), r.now)
	// Its agent may have forgotten, and sends nothing when its link comes back.
	got := r.poll()
	expect(t, got, hostA+": "+hostB+" active", hostA+": "+farT+" inactive packet-error", hostA+": "+farU+" active")
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	r.fault(hostA, 0)
	more := r.poll()
	expect(t, more, hostB+": "+hostA+" active")
	got = append(got, more...)
	r.n.Query(ip(hostA), r.now) // the query comes after all, before the acks: what is under way answers it
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.poll())
	r.ack(got...)
	r.pass(time.Minute)
	expect(t, r.settle())
}

// An agent that was stopped reads late that its link went and came back several times:
// it forgets what it was just told, and acked, and asks again. That query is answered.
func TestAQueryAfterTheAcksOfAReturnIsAnswered(t *testing.T) {
	r := twoHosts(t)
	r.n.PortDown("p1")
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	all := []string{hostA + ": " + hostB + " active", hostA + ": " + farT + " active"}
	expect(t, r.settle(), all...)
	for range 3 {
		r.n.Query(ip(hostA), r.now)
	}
	expect(t, r.settle(), all[0], all[0], all[1], all[1]) // one at once, the others together and later
	r.pass(time.Minute)
	expect(t, r.settle())
}

// A query that is put off is answered by what a returning link brings.
func TestAReturnAnswersAQueryThatWasPutOff(t *testing.T) {
	r := twoHosts(t)
	all := []string{hostA + ": " + hostB + " active", hostA + ": " + farT + " active"}
	r.n.Query(ip(hostA), r.now)
	expect(t, r.settle(), all...)
	r.n.Query(ip(hostA), r.now)
	r.n.PortDown("p1")
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.settle(), all...)
	r.pass(time.Minute)
	expect(t, r.settle())
}

func TestABondIsToldOnOneLinkAndRetriedOnTheOther(t *testing.T) {
	r := twoHosts(t)
	h := r.w.hosts[ip(hostA)]
	r.n.PortUp("p3", mac(8), r.now)
	r.n.Subscribe(h.Addr, "p3", h.MAC, r.now)
	expect(t, r.settle())
	r.fault(farT, snsd.ReasonLinkDown)
	first := r.poll()
	var on []string
	for range 2 {
		for _, x := range first {
			if x.Host == h.Addr {
				on = append(on, x.Port)
			}
		}
		r.now = r.n.Next()
		first = r.poll()
	}
	if d := cmp.Diff([]string{"p1", "p3"}, on); d != "" {
		t.Error(d)
	}
	// The link it stands on is lost: the other one takes over at once.
	r.n.PortDown("p3")
	for _, x := range r.poll() {
		if x.Host == h.Addr && x.Port != "p1" {
			t.Errorf("told on %s", x.Port)
		}
	}
	r.n.Unsubscribe(h.Addr, "p3", r.now)
	if r.n.Counters().Hosts != 2 {
		t.Error("the host was given up with one link left")
	}
}

func TestAnotherMachineWithTheAddressIsIgnoredUntilTheFirstOneLeft(t *testing.T) {
	r := twoHosts(t)
	r.n.PortUp("p3", mac(8), r.now)
	r.n.Subscribe(ip(hostA), "p3", mac(77), r.now)
	expect(t, r.settle())
	if r.n.Counters().Conflicts != 1 {
		t.Error("the conflict was not counted")
	}
	r.n.Unsubscribe(ip(hostA), "p1", r.now)
	got := r.settle()
	expect(t, got, hostA+": "+hostB+" active", hostA+": "+farT+" active")
	if got[0].Port != "p3" {
		t.Errorf("told on %s", got[0].Port)
	}
}

func TestAbsenceIsNoNewsBeforeTheDirectoryIsComplete(t *testing.T) {
	r := twoHosts(t)
	r.n.SetSynced(false)
	zones := r.w.zones
	r.w.zones = map[string]map[netip.Addr]bool{}
	delete(r.w.hosts, ip(farT))
	r.changed(0, farT, hostA, hostB)
	expect(t, r.settle())
	r.w.zones = zones
	r.n.SetSynced(true)
	expect(t, r.settle(), hostA+": "+farT+" inactive aged-out", hostB+": "+farT+" inactive aged-out")
}

func TestAWithdrawalWithAReasonIsNewsAtAnyTime(t *testing.T) {
	r := twoHosts(t)
	r.n.SetSynced(false)
	r.withdraw(farT, snsd.ReasonIPChanged)
	expect(t, r.settle(), hostA+": "+farT+" inactive ip-changed", hostB+": "+farT+" inactive ip-changed")
}

func TestQueriesInShortOrderAreAnsweredTogether(t *testing.T) {
	r := twoHosts(t)
	for range 100 {
		r.n.Query(ip(hostA), r.now)
	}
	start := r.now
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+hostB+" active", hostA+": "+farT+" active", hostA+": "+farT+" active")
	if d := r.now.Sub(start); d != time.Second {
		t.Errorf("the second answer came after %v, want 1s", d)
	}
	r.n.Query(ip("203.0.113.9"), r.now)
	if c := r.n.Counters(); c.QueriesDeferred != 99 || c.QueriesUnknown != 1 {
		t.Errorf("deferred %d, unknown %d", c.QueriesDeferred, c.QueriesUnknown)
	}
}

// What left after a query that was put off is a part of its answer, and not told again with the
// rest.
func TestWhatLeftSinceAQueryIsItsAnswer(t *testing.T) {
	r := twoHosts(t)
	near, far, other := hostA+": "+hostB+" active", hostA+": "+farT, hostB+": "+farT
	r.n.Query(ip(hostA), r.now)
	r.pass(time.Millisecond)
	expect(t, r.settle(), near, far+" active")
	r.n.Query(ip(hostA), r.now) // within the second
	r.pass(100 * time.Millisecond)
	r.fault(farT, snsd.ReasonLinkDown)
	down := r.poll()
	r.ack(down...)
	expect(t, down, far+" inactive link-down", other+" inactive link-down")
	r.pass(100 * time.Millisecond)
	r.fault(farT, snsd.ReasonNone)
	expect(t, r.settle(), near, far+" active", other+" active")
}

func TestAHistoryTellsWhatHappenedToANotice(t *testing.T) {
	r := twoHosts(t)
	faultAt := r.now
	r.fault(farT, snsd.ReasonLinkDown)
	r.pass(300 * time.Microsecond)
	r.poll()
	r.now = r.n.Next()
	again := r.poll()
	r.pass(time.Millisecond)
	r.ack(again...)
	all := r.n.Notices()
	n := all[len(all)-1]
	sent := faultAt.Add(300 * time.Microsecond)
	want := Notice{Host: n.Host, Subject: ip(farT), Port: n.Port, Seq: n.Seq, Reason: snsd.ReasonLinkDown, Service: r.w.hosts[ip(farT)].Service,
		Cause: Cause{FaultAt: faultAt}, Decided: faultAt, Sent: sent, Acked: sent.Add(21 * time.Millisecond), Retries: 1}
	if d := cmp.Diff(want, n, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	r := crowd(t, Config{History: 10}, 1, 50)
	r.settle()
	all := r.n.Notices()
	if len(all) != 10 || all[9].Seq != 49 || all[0].Seq != 40 {
		t.Errorf("%d notices, %v", len(all), all)
	}
}

// A host behind a link that is back is told things before it is heard, and its zones may
// change before that too.
func TestAChangeOfZonesIsToldToAHostThatIsUnreachableItself(t *testing.T) {
	r := twoHosts(t)
	r.fault(hostA, snsd.ReasonLinkDown)
	r.w.put(ip(farU))
	r.w.join("y", ip(farU))
	r.changed(0, farU)
	r.settle()
	r.w.join("y", ip(hostA))
	r.n.Changed(zone.Changes{{Addr: ip(hostA), Why: snsd.ReasonLinkDown, Peers: true}}, r.now, r.now)
	expect(t, r.settle(), hostA+": "+farU+" active")
}

// A query that was put off comes due while another claim has the host's address: nothing is under way
// to it then. It hears all when it has the address again.
func TestAQueryOfAHostThatLostItsAddressIsNotAnswered(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.n.Query(ip(hostA), r.now)
	r.settle()
	r.n.Query(ip(hostA), r.now) // put off
	r.n.Yield(ip(hostA), "p1", r.now)
	r.now = r.now.Add(5 * time.Second)
	expect(t, r.settle())
	if c := r.n.Counters(); c.InFlight != 0 || c.Waiting != 0 {
		t.Errorf("%d notices are under way, %d wait", c.InFlight, c.Waiting)
	}
}
