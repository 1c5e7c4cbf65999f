package hostnotify

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// crowd is a rig with subscribers on one port and many remote targets in their zone.
func crowd(t testing.TB, cfg Config, hosts, targets int) *rig {
	r := newRig(t, cfg)
	for i := range targets {
		a := fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250)
		r.w.put(ip(a))
		r.w.join("z", ip(a))
	}
	for i := range hosts {
		a := fmt.Sprintf("192.0.2.%d", 1+i)
		r.w.join("z", ip(a))
		r.local("p1", a)
	}
	return r
}

func TestOneSilentHostDelaysNobody(t *testing.T) {
	r := crowd(t, Config{}, 2, 600)
	silent := ip("192.0.2.1")
	done := time.Duration(0)
	heard := 0
	for r.now.Sub(epoch) < 5*time.Second {
		for _, x := range r.poll() {
			if x.Host != silent {
				heard++
				done = x.At
				r.ack(x)
			}
		}
		r.now = r.n.Next()
	}
	if heard < 600 || done > 10*time.Millisecond {
		t.Errorf("the other host heard of %d of 600 within %v", heard, done)
	}
	if c := r.n.Counters(); c.InFlight > 256+8*32 { // a frame's worth more with each time-out
		t.Errorf("%d in flight to the silent host", c.InFlight)
	}
}

// Its acks may be all that is lost, and what a bad device has it told of may fill the places of
// what waits for them.
func TestAHostThatAcksNothingIsToldAll(t *testing.T) {
	r := crowd(t, Config{}, 1, 600)
	told := map[netip.Addr]bool{}
	for r.now.Sub(epoch) < 30*time.Second {
		for _, x := range r.poll() {
			told[x.Subject] = true
		}
		r.now = r.n.Next()
	}
	if len(told) != 600 {
		t.Errorf("told of %d of 600", len(told))
	}
}

// A device whose 400 hosts are another service each second fills every queue of a host that acks
// nothing, but for the turns that the devices take.
func TestADeviceKeepsNobodyWaitingForWhatOthersSay(t *testing.T) {
	for addrs := range 2 {
		r := crowd(t, Config{}, 1+addrs, 400)
		for a, h := range r.w.hosts {
			if h.Device = ip("10.0.0.1"); a.As4()[0] == 198 {
				h.Device = ip("10.66.0.1")
			}
		}
		var bad []string
		for _, a := range r.w.sorted() {
			if r.w.hosts[a].Device == ip("10.66.0.1") {
				bad = append(bad, a.String())
			}
		}
		r.poll() // there is no place left
		good := ip("203.0.113.1")
		r.w.put(good).Device = ip("10.0.0.2")
		r.w.join("z", good)
		told := map[netip.Addr]snsd.Notice{} // of the good one
		// until has 12 s pass at most while the bad ones change, and gives when all addresses were told.
		until := func(is func(snsd.Notice) bool) time.Duration {
			began, again := r.now, r.now
			for r.now.Sub(began) < 12*time.Second {
				if !r.now.Before(again) {
					again = again.Add(time.Second)
					for _, a := range bad {
						r.w.hosts[ip(a)].Service.Port++
					}
					r.changed(0, bad...)
				}
				for _, x := range r.poll() {
					if x.Subject == good {
						told[x.Host] = x.Notice
					}
				}
				n := 0
				for i := range 1 + addrs {
					if x, ok := told[ip(fmt.Sprintf("192.0.2.%d", 1+i))]; ok && is(x) {
						n++
					}
				}
				if n == 1+addrs {
					return r.now.Sub(began)
				}
				if r.now = r.n.Next(); r.now.After(again) {
					r.now = again
				}
			}
			return time.Hour
		}
		turn := time.Duration(1+addrs) * time.Second
		r.changed(0, good.String())
		if d := until(func(x snsd.Notice) bool { return x.State == snsd.Active }); d > turn {
			t.Errorf("%d addresses: told of a new host after %v", 1+addrs, d)
		}
		until(func(snsd.Notice) bool { return false })
		r.fault(good.String(), snsd.ReasonLinkDown)
		if d := until(func(x snsd.Notice) bool { return x.State == snsd.Inactive }); d > turn {
			t.Errorf("%d addresses: told of a fault after %v", 1+addrs, d)
		}
		r.fault(good.String(), 0)
		if d := until(func(x snsd.Notice) bool { return x.State == snsd.Active }); d > turn {
			t.Errorf("%d addresses: told of its end after %v", 1+addrs, d)
		}
		r.w.hosts[good].Service.Port = 9
		r.changed(0, good.String())
		if d := until(func(x snsd.Notice) bool { return x.State == snsd.Active && x.Service.Port == 9 }); d > (Config{}).Unheard(1+addrs) {
			t.Errorf("%d addresses: told of its new service after %v, want %v at most", 1+addrs, d, Config{}.Unheard(1+addrs))
		}
	}
}

func TestInFlightStaysBelowTheAgentsQueue(t *testing.T) {
	r := crowd(t, Config{}, 1, 600)
	r.poll()
	if c := r.n.Counters(); c.InFlight != 192 {
		t.Errorf("%d active notices in flight, want 192 of 256", c.InFlight)
	}
	for a := range r.w.hosts {
		if a != ip("192.0.2.1") {
			r.w.fault[a] = snsd.ReasonLinkDown
		}
	}
	var all []string
	for _, a := range r.w.sorted() {
		all = append(all, a.String())
	}
	r.changed(snsd.ReasonLinkDown, all...)
	r.poll()
	if c := r.n.Counters(); c.InFlight != 192 || c.Waiting != 0 {
		t.Errorf("%d in flight, %d waiting; want the 192 that were told active", c.InFlight, c.Waiting)
	}
}

func TestAFaultOvertakesAResynchronisation(t *testing.T) {
	r := crowd(t, Config{FramesPerWindow: 8, MaxInFlight: 4000}, 1, 600)
	got := r.poll() // 6 of 8 frames of the window
	if len(r.raw) != 6 {
		t.Fatalf("%d frames, want 6", len(r.raw))
	}
	r.fault(got[0].Subject.String(), snsd.ReasonLinkDown)
	now := r.poll()
	if len(now) == 0 || now[0].State != snsd.Inactive || now[0].Subject != got[0].Subject {
		t.Errorf("the fault has to wait behind the active notices: %v", says(now))
	}
}

// A host that keeps trying to reach a peer that is gone is to be told if it comes back
// in no zone of its; but not for any price.
func TestWhatIsKeptOfSubjectsThatAreGoneIsBounded(t *testing.T) {
	const most = 3
	r := newRig(t, Config{MaxGone: most})
	r.w.join("z", ip(hostA))
	r.local("p1", hostA)
	var far []string
	for i := range 5 {
		a := fmt.Sprintf("198.51.100.%d", i+1)
		far = append(far, a)
		r.w.put(ip(a))
		r.w.join("z", ip(a))
		r.changed(0, a)
		r.settle()
		r.fault(a, snsd.ReasonLinkDown)
		r.settle()
		r.withdraw(a, snsd.ReasonAgedOut)
		r.settle()
	}
	if c := r.n.Counters(); c.Gone != most || c.Pairs != most || c.GoneForgotten != 2 {
		t.Errorf("%d kept, %d pairs, %d forgotten", c.Gone, c.Pairs, c.GoneForgotten)
	}
	r.w.zones["z"] = map[netip.Addr]bool{ip(hostA): true}
	for _, a := range far {
		r.w.put(ip(a))
	}
	r.changed(0, far...)
	expect(t, r.settle(), hostA+": "+far[2]+" inactive zone-changed", hostA+": "+far[3]+" inactive zone-changed", hostA+": "+far[4]+" inactive zone-changed")
	if c := r.n.Counters(); c.Gone != 0 || c.Pairs != 0 {
		t.Errorf("%d kept, %d pairs", c.Gone, c.Pairs)
	}
}

func TestLimitsAreKeptAndCounted(t *testing.T) {
	r := crowd(t, Config{MaxHosts: 2, MaxPairs: 5}, 3, 4)
	r.settle()
	c := r.n.Counters()
	if c.Hosts != 2 || c.HostsRefused != 1 || c.Pairs != 5 || c.PairsRefused == 0 {
		t.Errorf("%+v", c)
	}
	r.n.Subscribe(ip("127.0.0.1"), "p1", fabric.MAC{}, r.now)
	if c := r.n.Counters(); c.HostsRefused != 2 {
		t.Error("a loopback address was taken")
	}
}
