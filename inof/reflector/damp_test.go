package reflector

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// flapping is a reflector with a device of 1,000 hosts at one port, one of one host, and others who
// see all of them.
type flapping struct {
	t        *testing.T
	r        *Reflector
	bad      netip.Addr
	good     netip.Addr
	watchers []netip.Addr
	hosts    []netip.Addr
	now      time.Time
	bytes    int
}

func newFlapping(t *testing.T) *flapping {
	f := &flapping{t: t, bad: inoftest.ScaleDev(1), good: inoftest.ScaleDev(2), now: inoftest.T0}
	f.r = quotaReflector(t, Config{}, 10)
	for i := 3; i <= 10; i++ {
		f.watchers = append(f.watchers, inoftest.ScaleDev(i))
		quotaSay(t, f.r, inoftest.ScaleDev(i), wire.Put, 5000+i, 1)
	}
	quotaSay(t, f.r, f.bad, wire.Put, 0, 1000)
	quotaSay(t, f.r, f.good, wire.Put, 2000, 1)
	for i := range 1000 {
		f.hosts = append(f.hosts, inoftest.ScaleHost(i))
	}
	f.r.cfg.Paced = true
	return f
}

// change has a port fail, or recover, and gives what is told of it at once.
func (f *flapping) change(dev netip.Addr, down bool, hosts ...netip.Addr) []wire.Delivery {
	f.t.Helper()
	fault := wire.DownRecord{Device: dev, Port: "Ethernet0", Addrs: hosts}
	if down {
		fault.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: f.now}
	}
	if _, err := f.r.Receive(dev, &wire.Update{Origin: dev, Epoch: 1, Seq: 1, Downs: []wire.DownRecord{fault}}, f.now); err != nil {
		f.t.Fatal(err)
	}
	return f.count(f.r.Pull(nil, f.now))
}

// count adds up what watchers are told, in bytes.
func (f *flapping) count(ds []wire.Delivery) []wire.Delivery {
	for _, d := range ds {
		e, err := wire.Encode(d.Msg)
		if err != nil {
			f.t.Fatal(err)
		}
		f.bytes += e.Len() * len(d.To)
	}
	return ds
}

// A port with 1,000 hosts that fails and recovers without end is told at once a few times; then
// what a fault elsewhere waits behind does not grow with it, and what the port is at last is told.
func TestAPortThatFlapsDelaysNobodysFault(t *testing.T) {
	f := newFlapping(t)
	for i := range 100 {
		f.now = f.now.Add(time.Millisecond)
		f.change(f.bad, i%2 == 0, f.hosts...)
	}
	if n := f.r.Work(); n < againWork*len(f.hosts) {
		t.Errorf("the last of 100 flaps was held for a work of %d, want %d at least", n, againWork*len(f.hosts))
	}
	once := len(f.watchers) * 1000 * 5
	if f.bytes > oftenAtOnce*once+100_000 {
		t.Errorf("100 flaps are told in %d bytes before anything else could be, want those of %d", f.bytes, oftenAtOnce)
	}
	f.change(f.bad, true, f.hosts...)
	f.bytes = 0
	ds := f.change(f.good, true, inoftest.ScaleHost(2000))
	to := map[netip.Addr]bool{}
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok && slices.ContainsFunc(u.Downs, func(r wire.DownRecord) bool { return r.Device == f.good }) {
			for _, dev := range d.To {
				to[dev] = true
			}
		}
	}
	if len(to) < len(f.watchers) || f.bytes > 2000*len(to) {
		t.Errorf("a fault elsewhere is told to %d devices at once, in %d bytes", len(to), f.bytes)
	}
	last := map[netip.Addr]int{}
	for f.r.Owing() {
		for _, d := range f.count(f.r.Step(nil, f.now)) {
			if u, ok := d.Msg.(*wire.Update); ok {
				for _, r := range u.Downs {
					if r.Device == f.bad && r.Is() {
						for _, dev := range d.To {
							last[dev] += len(r.Addrs)
						}
					}
				}
			}
		}
	}
	for _, dev := range f.watchers {
		if last[dev] != 1000 {
			t.Errorf("%v is told at last of %d hosts that are down, want 1000", dev, last[dev])
		}
	}
	// Later it counts anew: what fails once is told at once.
	f.now = f.now.Add(2 * oftenTime)
	if ds := f.change(f.bad, false, f.hosts...); len(ds) == 0 {
		t.Error("a recovery a while later is not told at once")
	}
}
