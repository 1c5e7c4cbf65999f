package reflector

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// twoSwitches is a reflector with one zone of two hosts behind two switches, which both
// know of each other.
func twoSwitches(t *testing.T) (b *testbench, h zone.Host, restart func(hold bool)) {
	t.Helper()
	one, two := inoftest.DevID(0), inoftest.DevID(1)
	h = inoftest.HostAt(inoftest.HostIP(0), one, "eth1")
	set := zone.Set{Zones: []zone.Zone{{Name: "z", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(0)), inoftest.AddrMember(inoftest.HostIP(1))}}}}
	b = newBench(t, set, Config{}, 2)
	b.clients[one].PutHost(h)
	b.clients[two].PutHost(inoftest.HostAt(inoftest.HostIP(1), two, "eth1"))
	b.join(one)
	b.join(two)
	return b, h, func(hold bool) {
		b.leave(one)
		b.newClient(one, 8)
		if hold {
			b.clients[one].HoldBack(b.now.Add(time.Minute))
		}
		b.applied = map[netip.Addr][]client.Applied{}
		b.join(one)
	}
}

// gone lists the hosts that a client was told to be gone.
func (b *testbench) gone(dev netip.Addr) (list []netip.Addr) {
	for _, a := range b.applied[dev] {
		for _, r := range a.Hosts {
			if r.Op == wire.Withdraw {
				list = append(list, r.Host.Addr)
			}
		}
	}
	return list
}

func TestAClientThatForgotItsHostsTakesNoneBackBeforeItHadTheTimeToHearThem(t *testing.T) {
	b, h, restart := twoSwitches(t)
	restart(true)
	if got := b.gone(inoftest.DevID(1)); len(got) > 0 {
		t.Fatalf("after the first sync %v are gone", got)
	}
	if in, _ := b.refl.Sessions(inoftest.DevID(0)); in.Resumed || !strings.HasPrefix(in.Why, "the sender has started without its state") {
		t.Errorf("the reflector takes the sync for %+v", in)
	}
	b.clients[inoftest.DevID(0)].PutHost(h) // it is heard
	b.flush(inoftest.DevID(0))
	b.now = b.now.Add(time.Minute)
	b.flush(inoftest.DevID(0))
	if got := b.gone(inoftest.DevID(1)); len(got) > 0 {
		t.Errorf("%v are gone, which were heard", got)
	}
	if b.clients[inoftest.DevID(0)].HeldBack() != (time.Time{}) {
		t.Error("the time does not end")
	}
}

func TestAHostThatIsNotHeardInThatTimeIsGoneAtItsEnd(t *testing.T) {
	b, h, restart := twoSwitches(t)
	restart(true)
	b.now = b.now.Add(time.Minute)
	b.flush(inoftest.DevID(0))
	if got := b.gone(inoftest.DevID(1)); len(got) != 1 || got[0] != h.Addr {
		t.Errorf("gone: %v, want %v", got, h.Addr)
	}
}

// Without the time to hear its hosts all of them would be gone: what the others guard against.
func TestAClientThatKnowsItsHostsTakesBackWhatIsNoMore(t *testing.T) {
	b, h, restart := twoSwitches(t)
	restart(false)
	if got := b.gone(inoftest.DevID(1)); len(got) != 1 || got[0] != h.Addr {
		t.Errorf("gone: %v, want %v", got, h.Addr)
	}
}

func TestASessionThatResumesWithinThatTimeTakesNothingBackEither(t *testing.T) {
	b, h, restart := twoSwitches(t)
	restart(true)
	one := inoftest.DevID(0)
	b.clients[one].PutHost(h)
	b.flush(one)
	b.leave(one)
	b.resume(one)
	b.now = b.now.Add(time.Minute)
	b.flush(one)
	if got := b.gone(inoftest.DevID(1)); len(got) > 0 {
		t.Errorf("%v are gone", got)
	}
}

func TestAReflectorThatMissesTheEndOfThatTimeGetsAFullSync(t *testing.T) {
	b, h, restart := twoSwitches(t)
	restart(true)
	one := inoftest.DevID(0)
	b.leave(one)
	b.now = b.now.Add(time.Minute)
	b.clients[one].Flush(b.now) // nobody listens
	b.resume(one)
	if got := b.gone(inoftest.DevID(1)); len(got) != 1 || got[0] != h.Addr {
		t.Errorf("gone: %v, want %v", got, h.Addr)
	}
}

// resume begins a session in which both sides say what they have seen.
func (b *testbench) resume(dev netip.Addr) {
	b.t.Helper()
	b.joined[dev] = true
	offered, seen := b.refl.ResumePoint(dev), b.clients[dev].ResumePoint(inoftest.ReflID)
	up := b.clients[dev].Resume(inoftest.ReflID, offered, b.now)
	b.toClients(b.refl.Resume(dev, seen, offered, b.now))
	b.toReflector(dev, up)
}

func TestAFaultThatItsDeviceForgotIsOverForAHostThatItHears(t *testing.T) {
	b, h, restart := twoSwitches(t)
	one, two := inoftest.DevID(0), inoftest.DevID(1)
	setDown(b.clients[one], "eth1", zone.Down{Why: snsd.ReasonLinkDown, Since: b.now}, h.Addr)
	b.flush(one)
	restart(true)
	last := func() *wire.DownRecord {
		for _, a := range b.applied[two] {
			if len(a.Downs) > 0 {
				return &a.Downs[len(a.Downs)-1]
			}
		}
		return nil
	}
	if f := last(); f != nil {
		t.Fatalf("before the host is heard: %+v", f)
	}
	b.clients[one].PutHost(h)
	b.flush(one)
	if f := last(); f == nil || f.Is() {
		t.Errorf("after the host is heard: %+v, want it over", f)
	}
}

func TestAReflectorWithoutItsStateEndsNothingForAClientThatHoldsRecords(t *testing.T) {
	b, h, _ := twoSwitches(t)
	two := inoftest.DevID(1)
	b.leave(inoftest.DevID(0))
	b.leave(two)
	set := zone.Set{Zones: []zone.Zone{{Name: "z", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(0)), inoftest.AddrMember(inoftest.HostIP(1))}}}}
	var err error
	if b.refl, err = New(inoftest.ReflID, 2, set, Config{Unsure: true, Grace: time.Minute}, b.now); err != nil {
		t.Fatal(err)
	}
	b.applied = map[netip.Addr][]client.Applied{}
	b.resume(two) // the other one is late
	if got := b.gone(two); len(got) > 0 {
		t.Fatalf("gone before the other switch is back: %v", got)
	}
	fresh := inoftest.DevID(5)
	b.newClient(fresh, 9)
	b.resume(fresh)
	if !b.clients[fresh].Synced() {
		t.Error("a client that holds nothing is made to wait")
	}
	b.now = b.now.Add(time.Minute)
	if next := b.refl.Next(); next.After(b.now) {
		t.Fatalf("the reflector waits until %v", next)
	}
	b.toClients(b.refl.Tick(b.now))
	if got := b.gone(two); len(got) != 1 || got[0] != h.Addr {
		t.Errorf("gone after the grace time: %v, want %v", got, h.Addr)
	}
}

func TestAClientWhoseHostsWereToldThingsSaysSo(t *testing.T) {
	c := client.New(inoftest.DevID(0), 7)
	if p := c.ResumePoint(inoftest.ReflID); p != nil {
		t.Errorf("a new client resumes from %+v", p)
	}
	other := inoftest.DevID(9)
	c.Relies(map[netip.Addr]uint64{other: 5})
	if p := c.ResumePoint(inoftest.ReflID); p == nil || p.Epoch != 1 {
		t.Errorf("resumes from %+v, want epoch 1", p)
	}
	if p := c.ResumePoint(other); p == nil || p.Epoch != 5 {
		t.Errorf("resumes from %+v, want epoch 5", p)
	}
}

// The reflector is new, as is all that it knows, and the client was started again: what
// the client's hosts were told was of the same reflector.
func TestANewReflectorDoesNotMakeAClientWaitThatKnewIt(t *testing.T) {
	b := newBench(t, zone.Set{}, Config{Unsure: true}, 1)
	one := inoftest.DevID(0)
	b.clients[one].PutHost(inoftest.HostAt(inoftest.HostIP(0), one, "eth1"))
	b.resume(one)
	epochs := b.clients[one].Epochs()
	b.leave(one)
	c := client.New(one, 8)
	c.PutHost(inoftest.HostAt(inoftest.HostIP(0), one, "eth1"))
	c.Relies(epochs)
	b.clients[one] = c
	b.resume(one)
	if !c.Synced() {
		t.Error("it is made to wait")
	}
	if in, _ := c.Sessions(inoftest.ReflID); in.Resumed {
		t.Error("what it has forgotten is not sent")
	}
}

// The client is started again while it still waits for the end of the sync of a reflector
// that has lost its state: it goes on waiting.
func TestAClientThatIsStartedAgainStillWaitsForANewReflector(t *testing.T) {
	b, _, _ := twoSwitches(t)
	two := inoftest.DevID(1)
	b.leave(inoftest.DevID(0))
	b.leave(two)
	var err error
	set := zone.Set{Zones: []zone.Zone{{Name: "z", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(0)), inoftest.AddrMember(inoftest.HostIP(1))}}}}
	if b.refl, err = New(inoftest.ReflID, 2, set, Config{Unsure: true, Grace: time.Minute}, b.now); err != nil {
		t.Fatal(err)
	}
	b.resume(two)
	epochs := b.clients[two].Epochs()
	b.leave(two)
	c := client.New(two, 9)
	c.PutHost(inoftest.HostAt(inoftest.HostIP(1), two, "eth1"))
	c.Relies(epochs)
	b.clients[two] = c
	b.resume(two)
	if c.Synced() {
		t.Errorf("it takes the sync for complete, though it knew epochs %v", epochs)
	}
}
