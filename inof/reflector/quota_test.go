package reflector

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// quotaSay lets a device say some hosts, and gives what it is told of refusals.
func quotaSay(t *testing.T, r *Reflector, dev netip.Addr, op wire.Op, first, n int) *wire.Refusal {
	t.Helper()
	u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
	for i := range n {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: op, Host: inoftest.HostAt(inoftest.ScaleHost(first+i), dev, "Ethernet0")})
	}
	ds, _ := r.Receive(dev, u, inoftest.T0)
	return toldRefusal(ds, dev)
}

func toldRefusal(ds []wire.Delivery, dev netip.Addr) (last *wire.Refusal) {
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok && u.Refused != nil && slices.Contains(d.To, dev) {
			last = u.Refused
		}
	}
	return last
}

func quotaReflector(t *testing.T, cfg Config, devs int) *Reflector {
	r, err := New(inoftest.ReflID, 1, zone.Set{AutoJoin: true}, cfg, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= devs; i++ {
		r.Join(inoftest.ScaleDev(i), inoftest.T0)
		if _, err := r.Receive(inoftest.ScaleDev(i), &wire.EndOfSync{Epoch: 1}, inoftest.T0); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func hostsOf(r *Reflector, dev netip.Addr) int { return len(r.devices[dev].hosts) }

// A device that says hosts without end leaves a reserve for those with less than their
// share, is told so, and is asked again when there is room.
func TestOneDeviceDoesNotFillTheHostTable(t *testing.T) {
	r := quotaReflector(t, Config{MaxHosts: 100}, 10)
	bad, good := inoftest.ScaleDev(1), inoftest.ScaleDev(2)
	if ref := quotaSay(t, r, bad, wire.Put, 1000, 200); hostsOf(r, bad) != 80 || ref == nil || ref.Hosts != 120 || ref.Limit != 10 {
		t.Errorf("%d hosts of the device were taken, it is told %+v", hostsOf(r, bad), ref)
	}
	if ref := quotaSay(t, r, good, wire.Put, 1, 10); hostsOf(r, good) != 10 || ref != nil {
		t.Errorf("another device has %d hosts, and is told %+v", hostsOf(r, good), ref)
	}
	if s := r.Short(); len(s) != 1 || s[0].Device != bad || s[0].Refused != 120 || s[0].Hosts != 80 {
		t.Errorf("operators see %+v", s)
	}
	if ref := quotaSay(t, r, bad, wire.Withdraw, 1000, 79); ref == nil || ref.Hosts != 0 || len(r.Short()) != 0 {
		t.Errorf("when there is room it is told %+v", ref)
	}
}

// A quota holds before the table is full.
func TestADeviceHasItsQuotaOfHosts(t *testing.T) {
	r := quotaReflector(t, Config{MaxHosts: 1000, MaxDeviceHosts: 7}, 3)
	if ref := quotaSay(t, r, inoftest.ScaleDev(1), wire.Put, 1, 9); hostsOf(r, inoftest.ScaleDev(1)) != 7 || ref == nil || ref.Hosts != 2 || ref.Limit != 7 {
		t.Errorf("%d hosts were taken, told %+v", hostsOf(r, inoftest.ScaleDev(1)), ref)
	}
	if quotaSay(t, r, inoftest.ScaleDev(1), wire.Put, 1, 7); hostsOf(r, inoftest.ScaleDev(1)) != 7 {
		t.Error("what is known is not taken again")
	}
}

// Hosts that were refused are not gone: a client that knows them from before keeps them,
// and the device says them again as soon as there is room.
func TestARefusedHostIsNeverToldAsGone(t *testing.T) {
	bad, good, third := inoftest.ScaleDev(1), inoftest.ScaleDev(2), inoftest.ScaleDev(3)
	device, watcher := client.New(good, 1), client.New(third, 1)
	for i := range 10 {
		device.PutHost(inoftest.HostAt(inoftest.ScaleHost(1+i), good, "Ethernet0"))
	}
	watcher.PutHost(inoftest.HostAt(inoftest.ScaleHost(500), third, "Ethernet0"))
	run := func(r *Reflector, c *client.Client, dev netip.Addr, ds []wire.Delivery, a *client.Applied) (told *wire.Refusal) {
		for _, d := range ds {
			out, _ := r.Receive(dev, d.Msg, inoftest.T0)
			for _, o := range out {
				if !slices.Contains(o.To, dev) {
					continue
				}
				if u, ok := o.Msg.(*wire.Update); ok && u.Refused != nil {
					told = u.Refused
				}
				got, err := c.Receive(r.self, o.Msg, inoftest.T0)
				if err != nil {
					t.Fatal(err)
				}
				a.Hosts = append(a.Hosts, got.Hosts...)
			}
		}
		return told
	}
	begin := func(r *Reflector, c *client.Client, dev netip.Addr) (a client.Applied, told *wire.Refusal) {
		out := c.Up(r.self, inoftest.T0)
		for _, d := range r.Join(dev, inoftest.T0) {
			got, err := c.Receive(r.self, d.Msg, inoftest.T0)
			if err != nil {
				t.Fatal(err)
			}
			a.Hosts = append(a.Hosts, got.Hosts...)
		}
		return a, run(r, c, dev, out, &a)
	}
	r := quotaReflector(t, Config{MaxHosts: 100}, 0)
	begin(r, device, good)
	if a, _ := begin(r, watcher, third); len(a.Hosts) != 10 {
		t.Fatalf("the watcher hears %d hosts, want 10", len(a.Hosts))
	}
	// The reflector starts anew, and a device that fills its table is back first.
	device.Down(inoftest.ReflID, inoftest.T0)
	watcher.Down(inoftest.ReflID, inoftest.T0)
	r = quotaReflector(t, Config{MaxHosts: 12}, 0)
	r.epoch = 2
	r.Join(bad, inoftest.T0)
	quotaSay(t, r, bad, wire.Put, 1000, 50)
	if _, told := begin(r, device, good); told == nil || told.Hosts == 0 || device.Refusals()[inoftest.ReflID].Hosts != told.Hosts {
		t.Fatalf("the device is told %+v and shows %+v", told, device.Refusals())
	}
	a, _ := begin(r, watcher, third)
	for _, h := range a.Hosts {
		if h.Op == wire.Withdraw {
			t.Errorf("host %v is told as gone: %v", h.Host.Addr, h.Why)
		}
	}
	u := &wire.Update{Origin: bad, Epoch: 1, Seq: 2}
	for k := range r.devices[bad].hosts {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: snsd.ReasonAgedOut})
	}
	ds, err := r.Receive(bad, u, inoftest.T0)
	if err != nil || toldRefusal(ds, good) == nil {
		t.Fatalf("there is room, and the device hears nothing: %v", err)
	}
	for _, d := range ds {
		if slices.Contains(d.To, good) {
			if _, err := device.Receive(inoftest.ReflID, d.Msg, inoftest.T0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if next := device.Next(); !next.Equal(inoftest.T0) || len(device.Refusals()) != 0 {
		t.Errorf("the next thing to do is at %v, refusals %v", next, device.Refusals())
	}
	if run(r, device, good, device.Flush(inoftest.T0), &a); hostsOf(r, good) != 10 {
		t.Errorf("%d hosts are known after there was room, want 10", hostsOf(r, good))
	}
}

// A device that fills the table keeps no sync from ending: what other devices do not repeat
// is gone, and only what that one does not may be there.
func TestADeviceThatFillsTheTableHoldsBackNobodysSync(t *testing.T) {
	bad, good, third := inoftest.ScaleDev(1), inoftest.ScaleDev(2), inoftest.ScaleDev(3)
	c := client.New(third, 1)
	before := func(dev netip.Addr, n int) wire.HostRecord {
		return wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(n), dev, "Ethernet0")}
	}
	c.Up(inoftest.ReflID, inoftest.T0)
	for _, m := range []wire.Message{&wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 1, Settings: &wire.Settings{AutoJoin: true}, Hosts: []wire.HostRecord{before(bad, 1000), before(good, 1)}}, &wire.EndOfSync{Epoch: 1, Seq: 1}} {
		if _, err := c.Receive(inoftest.ReflID, m, inoftest.T0); err != nil {
			t.Fatal(err)
		}
	}
	c.Down(inoftest.ReflID, inoftest.T0)
	r := quotaReflector(t, Config{MaxHosts: 100}, 2)
	quotaSay(t, r, bad, wire.Put, 2000, 200)
	c.Up(inoftest.ReflID, inoftest.T0)
	var gone []netip.Addr
	hear := func(ds []wire.Delivery) {
		for _, d := range ds {
			if !slices.Contains(d.To, third) {
				continue
			}
			a, err := c.Receive(inoftest.ReflID, d.Msg, inoftest.T0)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range a.Hosts {
				if h.Op == wire.Withdraw {
					gone = append(gone, h.Host.Addr)
				}
			}
			if e, ok := d.Msg.(*wire.EndOfSync); ok && (e.Resumed || !slices.Equal(e.Short, []netip.Addr{bad})) {
				t.Errorf("%+v", e)
			}
		}
	}
	hear(r.Join(third, inoftest.T0))
	ds, err := r.Receive(third, &wire.EndOfSync{Epoch: 1}, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	hear(ds)
	if !slices.Equal(gone, []netip.Addr{inoftest.ScaleHost(1)}) {
		t.Errorf("gone are %v, want %v", gone, inoftest.ScaleHost(1))
	}
}

// 400 faults of 16,384 addresses took 604 MB: a device says of its hosts that they are down, and
// what it has not takes no room.
func TestFaultsThatListWhatADeviceHasNotTakeNoRoom(t *testing.T) {
	r := quotaReflector(t, Config{}, 1)
	dev, list := inoftest.ScaleDev(1), make([]netip.Addr, wire.MaxDownAddrs)
	for i := range list {
		list[i] = inoftest.ScaleHost(i)
	}
	quotaSay(t, r, dev, wire.Put, 0, 300)
	addrs, heap := len(r.interest.addrs), inoftest.Heap()
	for i := range 400 {
		u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1, Downs: []wire.DownRecord{{Device: dev, Port: fmt.Sprintf("e%d", i), Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: list}}}
		if ds, err := r.Receive(dev, u, inoftest.T0); err != nil || len(ds) > 0 {
			t.Fatalf("%d messages, %v", len(ds), err)
		}
	}
	if n, now := len(r.interest.addrs), inoftest.Heap(); n != addrs || now > heap+1<<20 || len(r.dir.Faults()) > 0 {
		t.Errorf("%d addresses in place of %d, %d KiB of heap more, faults %v", n, addrs, (now-heap)>>10, r.dir.Faults())
	}
	own := &wire.Update{Origin: dev, Epoch: 1, Seq: 2, Downs: []wire.DownRecord{{Device: dev, Port: "Ethernet0", Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: list}}}
	if _, err := r.Receive(dev, own, inoftest.T0); err != nil || len(r.dir.Faults()) != 1 || len(r.dir.Faults()[0].Addrs) != 300 {
		t.Errorf("its own hosts: %v, %v", err, r.dir.Faults())
	}
}

// spareFabric is a client that knows hosts of a device from an earlier start of the reflector,
// which now has room for one of them.
type spareFabric struct {
	t          *testing.T
	r          *Reflector
	c          *client.Client
	bad, third netip.Addr
	held       map[zone.HostKey]bool // by the client, of the device
}

func newSpareFabric(t *testing.T) *spareFabric {
	f := &spareFabric{t: t, bad: inoftest.ScaleDev(1), third: inoftest.ScaleDev(3), held: map[zone.HostKey]bool{}}
	f.c = client.New(f.third, 1)
	f.c.PutHost(inoftest.HostAt(inoftest.ScaleHost(9), f.third, "Ethernet0"))
	for _, cfg := range []Config{{}, {Bindings: map[netip.Addr]wire.Binding{f.bad: {MaxHosts: 1}}}} {
		f.c.Down(inoftest.ReflID, inoftest.T0)
		f.r = quotaReflector(t, cfg, 1)
		f.r.epoch = uint64(len(cfg.Bindings) + 1)
		quotaSay(t, f.r, f.bad, wire.Put, 1, 5)
		f.join(nil)
	}
	f.holds(5)
	return f
}

// join begins a session of the client.
func (f *spareFabric) join(seen *wire.Resume) {
	f.t.Helper()
	own := f.c.Up(inoftest.ReflID, inoftest.T0)
	f.hear(f.r.Resume(f.third, seen, nil, inoftest.T0), nil)
	for _, d := range own {
		f.hear(f.r.Receive(f.third, d.Msg, inoftest.T0))
	}
}

// hear lets the client have what is for it.
func (f *spareFabric) hear(ds []wire.Delivery, err error) {
	f.t.Helper()
	for _, d := range ds {
		if slices.Contains(d.To, f.third) {
			a, err := f.c.Receive(inoftest.ReflID, d.Msg, inoftest.T0)
			if err != nil {
				f.t.Fatal(err)
			}
			for _, h := range a.Hosts {
				f.held[h.Host.HostKey] = h.Op == wire.Put
			}
		}
	}
	var refused *wire.RefusedError
	if err != nil && !errors.As(err, &refused) {
		f.t.Fatal(err)
	}
}

// say lets the device say, or take back, hosts from first on.
func (f *spareFabric) say(op wire.Op, first, n int) {
	f.t.Helper()
	u := &wire.Update{Origin: f.bad, Epoch: 1, Seq: 2}
	for i := range n {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: op, Host: inoftest.HostAt(inoftest.ScaleHost(first+i), f.bad, "Ethernet0")})
	}
	f.hear(f.r.Receive(f.bad, u, inoftest.T0))
}

// holds checks how many hosts of the device the client knows.
func (f *spareFabric) holds(want int) {
	f.t.Helper()
	n := 0
	for _, there := range f.held {
		if there {
			n++
		}
	}
	if n != want {
		f.t.Errorf("the client knows %d hosts of the device, want %d", n, want)
	}
}

// What a client knows of a device from before, and a full sync spared because the reflector had
// no room for all of that device's hosts, ends when the device has no more of them than are there:
// also in a session that resumes, and behind one. Until then it stands.
func TestWhatASyncSparedEndsWhenNothingIsMissing(t *testing.T) {
	withdraw := func(f *spareFabric) { f.say(wire.Withdraw, 1, 5) }
	for name, run := range map[string]func(f *spareFabric){
		"withdrawn": withdraw,
		"said again": func(f *spareFabric) { // there is room, and some have left unsaid meanwhile
			f.r.cfg.Bindings = nil
			f.hear(f.r.Receive(f.bad, &wire.Update{Origin: f.bad, Epoch: 1, Seq: 2}, inoftest.T0))
			f.join(nil) // while the device is about to say everything
			f.holds(5)
			f.hear(f.r.Receive(f.bad, &wire.EndOfSync{Epoch: 1, Seq: 2}, inoftest.T0))
			f.holds(1)
			withdraw(f)
		},
		"gone": func(f *spareFabric) {
			f.r.Leave(f.bad, inoftest.T0)
			f.hear(f.r.Tick(inoftest.T0.Add(time.Hour)), nil)
		},
		"behind a session that resumed": func(f *spareFabric) {
			point := f.c.ResumePoint(inoftest.ReflID)
			f.r.Leave(f.third, inoftest.T0)
			f.c.Down(inoftest.ReflID, inoftest.T0)
			f.join(point)
			f.holds(5)
			withdraw(f)
		},
		"while there was no session": func(f *spareFabric) {
			point := f.c.ResumePoint(inoftest.ReflID)
			f.r.Leave(f.third, inoftest.T0)
			f.c.Down(inoftest.ReflID, inoftest.T0)
			withdraw(f)
			f.holds(5)
			f.join(point)
		},
		"short again before its end was told": func(f *spareFabric) {
			f.r.Leave(f.third, inoftest.T0)
			f.c.Down(inoftest.ReflID, inoftest.T0)
			f.r = quotaReflector(f.t, Config{Bindings: map[netip.Addr]wire.Binding{f.bad: {MaxHosts: 1}}}, 1)
			f.r.epoch = 3
			f.say(wire.Put, 11, 5) // others than the client knows
			f.join(nil)
			f.holds(6)
			f.r.cfg.Paced = true
			f.say(wire.Withdraw, 11, 5)
			f.say(wire.Put, 21, 5)
			f.r.cfg.Paced = false
			f.hear(f.r.Tick(inoftest.T0), nil)
			f.holds(6)
			f.say(wire.Withdraw, 21, 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSpareFabric(t)
			run(f)
			f.holds(0)
			if len(f.r.short) != 0 {
				t.Errorf("the device is short for ever")
			}
		})
	}
}

// A host that was refused, and that its device takes back, or does not say again, has gone also for
// a client that knows it from before, while others of the device are still refused.
func TestARefusedHostThatIsTakenBackIsGone(t *testing.T) {
	f := newSpareFabric(t)
	f.say(wire.Withdraw, 5, 1)
	f.holds(4)
	f.r.Leave(f.bad, inoftest.T0)
	f.r.Join(f.bad, inoftest.T0)
	f.say(wire.Put, 1, 3)
	f.holds(4)
	f.hear(f.r.Receive(f.bad, &wire.EndOfSync{Epoch: 1, Seq: 2}, inoftest.T0))
	f.holds(3)
	if len(f.r.short) != 1 {
		t.Errorf("%d devices have hosts that are refused, want 1", len(f.r.short))
	}
	f.say(wire.Withdraw, 7, 1) // it was never there
	f.holds(3)
}

// A device that was asked to say everything again is asked once more when its session broke
// before it has, and can resume.
func TestADeviceThatWasAskedAgainIsAskedInItsNextSession(t *testing.T) {
	dev := inoftest.ScaleDev(1)
	r := quotaReflector(t, Config{Bindings: map[netip.Addr]wire.Binding{dev: {MaxHosts: 1}}}, 1)
	quotaSay(t, r, dev, wire.Put, 1, 5)
	r.cfg.Bindings = nil
	if ds, _ := r.Receive(dev, &wire.Update{Origin: dev, Epoch: 1, Seq: 2}, inoftest.T0); toldRefusal(ds, dev) == nil || !toldRefusal(ds, dev).Again {
		t.Fatalf("it is told %+v", toldRefusal(ds, dev))
	}
	point := r.ResumePoint(dev)
	r.Leave(dev, inoftest.T0)
	r.Resume(dev, nil, point, inoftest.T0)
	ds, err := r.Receive(dev, &wire.EndOfSync{Epoch: 1, Seq: 2, Resumed: true}, inoftest.T0)
	if told := toldRefusal(ds, dev); err != nil || told == nil || !told.Again {
		t.Errorf("it is told %+v, %v", told, err)
	}
}
