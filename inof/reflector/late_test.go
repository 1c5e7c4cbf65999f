package reflector

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A reflector that was stopped says what the other one said long before, word by
// word. Nothing of it counts any more, however often the record was there and gone.
func TestALateReflectorBringsNothingBack(t *testing.T) {
	for _, there := range []bool{true, false} { // how it ends
		n := newNetwork(t, 2, 2, client.AgreeIdentical, Config{})
		hears, speaks := inoftest.DevID(0), inoftest.DevID(1)
		prompt, late := n.ids[0], n.ids[1]
		for _, dev := range []int{0, 1} {
			for _, r := range n.ids {
				n.join(inoftest.DevID(dev), r)
			}
		}
		steady, moving := inoftest.HostAt(inoftest.HostIP(1), speaks, "eth1"), inoftest.HostAt(inoftest.HostIP(2), speaks, "eth2")
		flush := func() {
			n.fromClient(speaks, n.clients[speaks].Flush(n.now))
			for _, r := range n.ids {
				for n.deliverToRefl(speaks, r) {
				}
			}
			for n.deliverToClient(hears, prompt) {
			}
		}
		n.clients[hears].PutHost(inoftest.HostAt(inoftest.HostIP(0), hears, "eth1"))
		n.fromClient(hears, n.clients[hears].Flush(n.now))
		n.clients[speaks].PutHost(steady)
		flush()
		n.deliverAll()
		for i := range 7 {
			if i%2 == 0 {
				setDown(n.clients[speaks], "eth1", zone.Down{Why: snsd.ReasonLinkDown, Since: n.now}, steady.Addr)
				n.clients[speaks].WithdrawHost(moving.HostKey, snsd.ReasonAgedOut)
			} else {
				setDown(n.clients[speaks], "eth1", zone.Down{})
				n.clients[speaks].PutHost(moving)
			}
			flush()
		}
		if !there {
			setDown(n.clients[speaks], "eth1", zone.Down{})
			n.clients[speaks].PutHost(moving)
			flush()
		}
		now := func() map[zone.HostKey]zone.Host {
			hosts := maps.Clone(n.hosts[hears])
			for k, h := range hosts {
				hosts[k] = unclaimed(h) // one voice more or less
			}
			return hosts
		}
		want := now()
		if down := n.down(hears); (len(down) == 1) != there {
			t.Fatalf("at the end %v is down, want it: %v", down, there)
		}
		for i := 1; n.deliverToClient(hears, late); i++ {
			if diff := cmp.Diff(want, now(), inoftest.CmpOpts); diff != "" {
				t.Fatalf("fault there in the end: %v: late word %d brings back what was (-before +after):\n%s", there, i, diff)
			}
		}
		n.settle()
	}
}

// A client that has just started has heard of no withdrawal. It does not take for
// news what a reflector that lags behind says of faults, when the other one says the
// hosts as of a later state of their device, and no fault of theirs. In either order.
func TestALateReflectorBringsNothingBackAfterARestart(t *testing.T) {
	for _, lateFirst := range []bool{false, true} {
		n := newNetwork(t, 2, 2, client.AgreeIdentical, Config{})
		hears, speaks := inoftest.DevID(0), inoftest.DevID(1)
		prompt, late := n.ids[0], n.ids[1]
		h := inoftest.HostAt(inoftest.HostIP(1), speaks, "eth1")
		flush := func(to ...netip.Addr) {
			n.fromClient(speaks, n.clients[speaks].Flush(n.now))
			for _, r := range to {
				for n.deliverToRefl(speaks, r) {
				}
			}
		}
		for _, dev := range []netip.Addr{hears, speaks} {
			for _, r := range n.ids {
				n.join(dev, r)
			}
		}
		n.clients[hears].PutHost(inoftest.HostAt(inoftest.HostIP(0), hears, "eth1"))
		n.fromClient(hears, n.clients[hears].Flush(n.now))
		n.clients[speaks].PutHost(h)
		flush(n.ids...)
		n.deliverAll()
		fault := func(there bool, to ...netip.Addr) {
			if there {
				setDown(n.clients[speaks], "eth1", zone.Down{Why: snsd.ReasonLinkDown, Since: n.now}, h.Addr)
			} else {
				setDown(n.clients[speaks], "eth1", zone.Down{})
			}
			flush(to...)
		}
		fault(true, n.ids...)
		for i := range 6 { // only one of them hears how it goes on
			fault(i%2 == 1, prompt)
		}
		fault(false, prompt)
		n.clients[speaks].PutHost(inoftest.HostAt(inoftest.HostIP(2), speaks, "eth2"))
		flush(prompt)

		n.restartClient(hears, 8, client.AgreeIdentical)
		n.clients[hears].PutHost(inoftest.HostAt(inoftest.HostIP(0), hears, "eth1"))
		order := []netip.Addr{prompt, late}
		if lateFirst {
			order = []netip.Addr{late, prompt}
		}
		for _, r := range order {
			n.join(hears, r)
			n.fromClient(hears, n.clients[hears].Flush(n.now))
			for n.deliverToRefl(hears, r) || n.deliverToClient(hears, r) {
			}
		}
		for i := 0; ; i++ {
			if len(n.down(hears)) > 0 {
				t.Fatalf("late first: %v: word %d brings back the fault %v", lateFirst, i, n.down(hears))
			}
			if !n.deliverToRefl(speaks, late) {
				break
			}
			for n.deliverToClient(hears, late) {
				if len(n.down(hears)) > 0 {
					t.Fatalf("late first: %v: word %d brings back the fault %v", lateFirst, i, n.down(hears))
				}
			}
		}
		n.settle()
		fault(true, n.ids...) // a new one counts
		n.deliverAll()
		if len(n.down(hears)) != 1 {
			t.Errorf("the client holds the faults %v, want the new one", n.down(hears))
		}
		n.settle()
	}
}

// A host left and came back; its reflector heard that it left, and the session ended before
// it could answer. When the session resumes nothing is taken back for a moment that
// stands again by then.
func TestAResumedSessionTakesNothingBackForAMoment(t *testing.T) {
	n := newNetwork(t, 1, 2, client.AgreeIdentical, Config{})
	dev, other, r := inoftest.DevID(0), inoftest.DevID(1), n.ids[0]
	set := zone.Set{Zones: []zone.Zone{{Name: "z", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(0)), inoftest.AddrMember(inoftest.HostIP(1))}}}}
	ds, err := n.refls[r].SetZones(set, n.now)
	if err != nil {
		t.Fatal(err)
	}
	n.fromRefl(r, ds)
	own := inoftest.HostAt(inoftest.HostIP(0), dev, "eth1")
	n.clients[dev].PutHost(own)
	n.clients[other].PutHost(inoftest.HostAt(inoftest.HostIP(1), other, "eth1"))
	n.settle()
	if len(n.zones[dev]) != 1 || len(n.hosts[dev]) != 1 {
		t.Fatalf("it knows the zones %v and the hosts %v", n.zones[dev], n.hosts[dev])
	}
	n.clients[dev].WithdrawHost(own.HostKey, snsd.ReasonAgedOut)
	n.fromClient(dev, n.clients[dev].Flush(n.now))
	for n.deliverToRefl(dev, r) {
	}
	n.cut(dev, r)
	n.clients[dev].PutHost(own)
	n.clients[dev].Flush(n.now)
	n.join(dev, r)
	for n.deliverToRefl(dev, r) || n.deliverToClient(dev, r) {
		if len(n.zones[dev]) != 1 || len(n.hosts[dev]) != 1 {
			t.Fatalf("for a moment it knows the zones %v and the hosts %v", n.zones[dev], n.hosts[dev])
		}
	}
	if n.resumed == 0 {
		t.Error("the session did not resume")
	}
	n.settle()
}
