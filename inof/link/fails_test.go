package link

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// portUpdate says that ports of a device have failed, or that they are well again.
func portUpdate(dev netip.Addr, down bool, ports ...string) *wire.Update {
	u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
	for _, p := range ports {
		r := wire.DownRecord{Device: dev, Port: p, Addrs: []netip.Addr{dev}}
		if down {
			r.Down = zone.Down{Why: snsd.ReasonLinkDown}
		}
		u.Downs = append(u.Downs, r)
	}
	return u
}

// What tells of a loss, message by message of one device.
func TestAPortThatFailsAgainIsNoNews(t *testing.T) {
	dev := inoftest.DevID(1)
	gone := portUpdate(dev, true, "p")
	gone.Hosts = hostsUpdate(dev, wire.Withdraw, 1).Hosts
	type said struct {
		after time.Duration
		u     *wire.Update
		loss  bool
	}
	for name, all := range map[string][]said{
		"fails, recovers, fails": {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {0, portUpdate(dev, true, "p"), false}},
		"and goes on": {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {failsAnew - 1, portUpdate(dev, true, "p"), false},
			{0, portUpdate(dev, false, "p"), false}, {failsAnew - 1, portUpdate(dev, true, "p"), false}},
		"a second later":        {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {failsAnew, portUpdate(dev, true, "p"), true}},
		"in several messages":   {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, true, "p"), true}},
		"another port":          {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {0, portUpdate(dev, true, "q"), true}},
		"another port with it":  {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {0, portUpdate(dev, true, "p", "q"), true}},
		"a host that goes":      {{0, portUpdate(dev, true, "p"), true}, {0, portUpdate(dev, false, "p"), false}, {0, gone, true}},
		"recovers without both": {{0, portUpdate(dev, false, "p"), false}, {0, portUpdate(dev, true, "p"), true}},
		"in one message":        {{0, portUpdate(dev, true, "p"), true}, {0, &wire.Update{Downs: append(portUpdate(dev, false, "p").Downs, portUpdate(dev, true, "p").Downs...)}, false}},
	} {
		var f failing
		now := inoftest.T0
		for i, s := range all {
			now = now.Add(s.after)
			if got := f.tellsLoss(s.u, now); got != s.loss {
				t.Errorf("%s: message %d tells a loss: %v", name, i, got)
			}
		}
	}
}

// Who names ports without end fills no memory, and what cannot be remembered is a loss.
func TestPortsThatFailAreForgotten(t *testing.T) {
	dev := inoftest.DevID(1)
	var f failing
	for i := range 3 * mostFailed {
		port := fmt.Sprint("p", i)
		for _, down := range []bool{true, false} {
			if f.tellsLoss(portUpdate(dev, down, port), inoftest.T0) != down {
				t.Fatalf("%s, down %v", port, down)
			}
		}
		if again := f.tellsLoss(portUpdate(dev, true, port), inoftest.T0); again == (i < mostFailed) {
			t.Fatalf("%s fails again: a loss %v", port, again)
		}
	}
	if len(f) != mostFailed {
		t.Errorf("%d ports are remembered", len(f))
	}
	f.tellsLoss(portUpdate(dev, true, "later"), inoftest.T0.Add(failsAnew))
	if len(f) != 1 {
		t.Errorf("%d ports are remembered a second later", len(f))
	}
}

// Of a device that rests, a port that fails is taken at once with all that it has said before; that
// it fails again is not, until another loss is behind it.
func TestAPortThatFlapsRestsWithItsDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPacers(Pace{PerSecond: 100, Burst: 1000}, 10, func(netip.Addr) bool { return true })
		p := inboxPeer(1)
		p.c = &conn{pace: ps.of(p.device)}
		b := NewInbox(1 << 20)
		p.c.pace.charge(1000, time.Now())
		p.c.pace.charge(1000, time.Now()) // ten seconds
		taken := func() (n int) {
			for {
				if _, _, ok := b.Take(); !ok {
					return n
				}
				n++
			}
		}
		say := func(down bool, port string) { b.Put(inboxMessage(p, portUpdate(p.device, down, port), 100), true, nil) }
		say(true, "p")
		say(false, "p")
		say(true, "p")
		if n := taken(); n != 1 {
			t.Errorf("%d messages are taken at once, want that the port has failed", n)
		}
		say(true, "q")
		if n := taken(); n != 3 {
			t.Errorf("%d messages are taken with another loss, want all", n)
		}
		time.Sleep(failsAnew)
		say(false, "p")
		say(true, "p")
		if n := taken(); n != 2 {
			t.Errorf("%d messages are taken a second later, want both", n)
		}
	})
}
