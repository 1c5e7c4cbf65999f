package reflector

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
)

// agingRoom is a paced reflector with 1,000 hosts of one device, which has left, and another device
// that is told of them.
type agingRoom struct {
	t          *testing.T
	r          *Reflector
	gone, told netip.Addr
	now        time.Time
	knows      map[netip.Addr]bool
	lost       []netip.Addr // in the order in which they were withdrawn
}

const agingHosts = 1000

func newAgingRoom(t *testing.T, cfg Config, devs int) *agingRoom {
	a := &agingRoom{t: t, gone: inoftest.ScaleDev(1), told: inoftest.ScaleDev(2), now: inoftest.T0, knows: map[netip.Addr]bool{}}
	cfg.Grace = time.Minute
	a.r = quotaReflector(t, cfg, devs)
	for i := range agingHosts {
		a.knows[inoftest.ScaleHost(1000+i)] = true
	}
	quotaSay(t, a.r, a.gone, wire.Put, 1000, agingHosts)
	quotaSay(t, a.r, a.told, wire.Put, 1, 1)
	a.r.cfg.Paced = true
	a.r.Leave(a.gone, a.now)
	return a
}

// hear takes what there is to be told.
func (a *agingRoom) hear() {
	a.t.Helper()
	ds := a.r.Pull(nil, a.now)
	for a.r.Owing() {
		ds = append(ds, a.r.Step(nil, a.now)...)
	}
	for _, d := range ds {
		u, ok := d.Msg.(*wire.Update)
		if !ok || !slices.Contains(d.To, a.told) {
			continue
		}
		for _, h := range u.Hosts {
			if h.Op == wire.Withdraw && (h.Why != snsd.ReasonAgedOut || !a.knows[h.Host.Addr]) {
				a.t.Errorf("%v is withdrawn for the reason %v, known: %v", h.Host.Addr, h.Why, a.knows[h.Host.Addr])
			}
			if a.knows[h.Host.Addr] = h.Op == wire.Put; h.Op == wire.Withdraw {
				a.lost = append(a.lost, h.Host.Addr)
			}
		}
	}
}

// tick passes time to the next Tick, and gives how many hosts it drops.
func (a *agingRoom) tick() int {
	a.t.Helper()
	before := a.r.hosts
	a.now = a.r.Next()
	a.r.Tick(a.now)
	a.hear()
	return before - a.r.hosts
}

// begin passes the grace time, until some hosts are dropped.
func (a *agingRoom) begin() {
	a.t.Helper()
	for range 10 {
		if a.tick() > 0 {
			return
		}
	}
	a.t.Fatal("no host is dropped")
}

// endSync has a device end its sync, and gives in how many Ticks what it did not repeat is dropped.
func (a *agingRoom) endSync(dev netip.Addr, epoch uint64, most int) (ticks int) {
	a.t.Helper()
	if _, err := a.r.Receive(dev, &wire.EndOfSync{Epoch: epoch, Seq: 1}, a.now); err != nil {
		a.t.Fatal(err)
	}
	for a.hear(); a.r.devices[dev].ending != nil; ticks++ {
		began := a.now
		if n := a.tick(); n > most || a.now.Sub(began) != dropPause {
			a.t.Fatalf("%d hosts are dropped in a Tick, %v after the last", n, a.now.Sub(began))
		}
	}
	return ticks
}

// is checks that the reflector and the device that is told know so many hosts of the other one.
func (a *agingRoom) is(want int) {
	a.t.Helper()
	n := 0
	for _, k := range a.knows {
		if k {
			n++
		}
	}
	if n != want || a.r.hosts != want+1 || a.r.Directory().Len() != want+1 {
		a.t.Errorf("%d hosts are known to the other device, %d counted and %d in the table of the reflector, want %d and 1 more", n, a.r.hosts, a.r.Directory().Len(), want)
	}
}

// The hosts of a device whose grace time is over go a few in a Tick, in the order of their
// addresses, and those who know them hear of each once.
func TestATickDropsAFewHosts(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		a := newAgingRoom(t, Config{SyncStep: most}, 2)
		if most == 0 {
			most = dropStep
		}
		over := inoftest.T0.Add(time.Minute)
		ticks := 0
		for ; !a.r.Next().IsZero() && ticks < 2*agingHosts; ticks++ {
			if n := a.tick(); n > most || n > 0 && a.now.Before(over) {
				t.Fatalf("a Tick at %v drops %d hosts, want at most %d after %v", a.now, n, most, over)
			}
			if left := a.r.hosts > 1; left != a.r.Knows(a.gone) || left && a.now.After(over) && !a.r.Next().After(a.now) {
				t.Fatalf("with %d hosts the device is known: %v; next is at %v, now it is %v", a.r.hosts, a.r.Knows(a.gone), a.r.Next(), a.now)
			}
		}
		a.is(0)
		if len(a.lost) != agingHosts || !slices.IsSortedFunc(a.lost, netip.Addr.Compare) {
			t.Errorf("%d hosts were withdrawn, sorted: %v; want %d in order", len(a.lost), slices.IsSortedFunc(a.lost, netip.Addr.Compare), agingHosts)
		}
		if n := a.r.Counters().AgedOut; n != agingHosts || a.r.ageing != 0 || a.r.devices[a.gone] != nil {
			t.Errorf("%d hosts aged out, want %d; of %d devices some are left", n, agingHosts, a.r.ageing)
		}
		if took := a.now.Sub(over); took > time.Duration(ticks)*dropPause {
			t.Errorf("it took %v, %d ticks", took, ticks)
		}
	}
}

// Of several devices whose grace time is over one Tick drops no more than of one.
func TestATickDropsAFewHostsOfAllDevices(t *testing.T) {
	a := newAgingRoom(t, Config{}, 12)
	a.r.cfg.Paced = false
	for i := 3; i <= 12; i++ {
		quotaSay(t, a.r, inoftest.ScaleDev(i), wire.Put, 3000+20*i, 20)
		a.r.Leave(inoftest.ScaleDev(i), a.now)
	}
	a.r.cfg.Paced = true
	for i := 3060; i < 3260; i++ {
		a.knows[inoftest.ScaleHost(i)] = true
	}
	a.is(agingHosts + 200)
	for range 100 {
		if a.r.Next().IsZero() {
			break
		}
		if n := a.tick(); n > dropStep {
			t.Fatalf("a Tick drops %d hosts, want at most %d", n, dropStep)
		}
	}
	a.is(0)
	if n := len(a.r.devices); n != 1 {
		t.Errorf("%d devices are known, want 1", n)
	}
}

// A device that is back while its hosts are dropped keeps those that are left, and says everything
// again; what it does not say is dropped at its End-of-Sync.
func TestADeviceThatIsBackKeepsTheHostsThatAreLeft(t *testing.T) {
	a := newAgingRoom(t, Config{}, 2)
	point := a.r.ResumePoint(a.gone)
	if point == nil {
		t.Fatal("within its grace time it can not resume")
	}
	a.begin()
	left := a.r.hosts - 1
	if a.is(left); left == 0 || a.r.ResumePoint(a.gone) != nil {
		t.Fatalf("%d hosts are left; it may resume after %v", left, a.r.ResumePoint(a.gone))
	}
	if ds := a.r.Resume(a.gone, nil, point, a.now); len(ds) != 1 || ds[0].Msg.Type() != wire.TypeNotification {
		t.Errorf("where it was to resume it gets %v", ds)
	}
	a.r.Join(a.gone, a.now)
	a.hear()
	a.r.Tick(a.now.Add(time.Hour))
	if a.hear(); !a.r.Next().IsZero() {
		t.Errorf("something is due at %v", a.r.Next())
	}
	a.is(left)
	last := 1000 + agingHosts - 10
	u := &wire.Update{Origin: a.gone, Epoch: 2, Seq: 1, Partial: true}
	for _, i := range []int{1000, last, last + 1} { // one that has gone, and two that are left
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(i), a.gone, "Ethernet0")})
	}
	if _, err := a.r.Receive(a.gone, u, a.now); err != nil {
		t.Fatal(err)
	}
	a.hear()
	a.is(left + 1)
	if ticks := a.endSync(a.gone, 2, dropStep); ticks != (left-2+dropStep-1)/dropStep {
		t.Errorf("%d hosts are dropped in %d Ticks, want %d in each", left-2, ticks, dropStep)
	}
	a.is(3)
	a.r.Leave(a.gone, a.now) // it has another grace time
	if a.r.ResumePoint(a.gone) == nil {
		t.Error("it can not resume")
	}
	for !a.r.Next().IsZero() {
		if n := a.tick(); n > 0 && a.now.Sub(inoftest.T0) < 2*time.Minute {
			t.Errorf("%d hosts are dropped after %v", n, a.now.Sub(inoftest.T0))
		}
	}
	a.is(0)
}

// The sync of a device has not ended before all is dropped that it did not repeat: what it says
// meanwhile stays, and if its session ends first it says everything again.
func TestASyncEndsWhenAllIsDroppedThatWasNotRepeated(t *testing.T) {
	for _, ends := range []bool{false, true} {
		a := newAgingRoom(t, Config{}, 2)
		a.r.Join(a.gone, a.now)
		say := func(first, n int) { quotaSay(t, a.r, a.gone, wire.Put, first, n) }
		say(1000, 10)
		if _, err := a.r.Receive(a.gone, &wire.EndOfSync{Epoch: 2, Seq: 1}, a.now); err != nil {
			t.Fatal(err)
		}
		a.hear()
		a.is(agingHosts)
		a.tick()
		say(1500, 10)
		for i := range 10 {
			a.knows[inoftest.ScaleHost(2000+i)] = true
		}
		say(2000, 10)
		a.hear()
		if d := a.r.devices[a.gone]; d.ending == nil || d.synced || a.r.Counters().Swept != dropStep {
			t.Errorf("its sync is over: %v, %d are dropped", d.synced, a.r.Counters().Swept)
		}
		want := 30
		if ends {
			a.r.Leave(a.gone, a.now)
			if p := a.r.ResumePoint(a.gone); p != nil || a.r.ageing != 0 {
				t.Errorf("its session has ended before its sync: it may resume after %v", p)
			}
			if n := a.tick(); n > 0 && a.now.Before(inoftest.T0.Add(time.Minute)) {
				t.Errorf("%d hosts are dropped within its grace time", n)
			}
			a.now = a.now.Add(time.Second)
			a.r.Join(a.gone, a.now)
			say(1000, 10)
			want = 10
			a.endSync(a.gone, 3, dropStep)
		}
		for a.r.devices[a.gone].ending != nil {
			a.tick()
		}
		a.is(want)
		if d := a.r.devices[a.gone]; !d.synced || !d.whole || a.r.ResumePoint(a.gone) == nil || a.r.ageing != 0 {
			t.Errorf("its sync has ended: %v; it is told all: %v; %d devices are aging", d.synced, d.whole, a.r.ageing)
		}
	}
}

// Hosts that are excluded while the others are dropped are gone once.
func TestAHostThatIsExcludedWhileOthersAreDroppedGoesOnce(t *testing.T) {
	a := newAgingRoom(t, Config{}, 2)
	a.begin()
	left := a.r.hosts - 1
	last := inoftest.ScaleHost(1000 + agingHosts - 1)
	a.r.SetBindings(map[netip.Addr]wire.Binding{a.gone: {Prefixes: []netip.Prefix{netip.PrefixFrom(last, last.BitLen())}}}, a.now)
	a.hear()
	a.is(1)
	for !a.r.Next().IsZero() {
		a.tick()
	}
	a.is(0)
	if n := a.r.Counters().AgedOut; n != uint64(agingHosts-left+1) {
		t.Errorf("%d hosts aged out, want %d", n, agingHosts-left+1)
	}
}

// A device of which hosts were refused is asked again once there is all the room that another one
// leaves, not after each few hosts; also when the other one is back before.
func TestWhoIsShortIsAskedWhenAllIsDropped(t *testing.T) {
	for _, back := range []bool{false, true} {
		a := newAgingRoom(t, Config{MaxHosts: 1100}, 3)
		short := inoftest.ScaleDev(3)
		a.r.cfg.Paced = false
		quotaSay(t, a.r, short, wire.Put, 5000, 500)
		if a.r.cfg.Paced = true; len(a.r.devices[short].refused) == 0 {
			t.Fatal("no host is refused")
		}
		a.begin()
		a.tick()
		if a.r.devices[short].again != notAgain {
			t.Error("it is asked while hosts are dropped")
		}
		if back {
			a.r.Join(a.gone, a.now)
			a.endSync(a.gone, 2, dropStep)
		}
		for !back && !a.r.Next().IsZero() {
			a.tick()
		}
		if a.r.devices[short].again == notAgain {
			t.Errorf("it is not asked; the other device was back: %v", back)
		}
	}
}
