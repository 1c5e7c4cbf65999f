package reflector

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// comesAndGoes is a reflector with 1,000 hosts of one device, and one that has at most one host.
type comesAndGoes struct {
	t     *testing.T
	r     *Reflector
	bad   netip.Addr
	now   time.Time
	knows map[netip.Addr]bool // of the 1,000 hosts, as bad was told
	work  int
	heard int // records that bad was told
}

func newComesAndGoes(t *testing.T) *comesAndGoes {
	c := &comesAndGoes{t: t, r: quotaReflector(t, Config{}, 2), bad: inoftest.ScaleDev(1), now: inoftest.T0, knows: map[netip.Addr]bool{}}
	quotaSay(t, c.r, inoftest.ScaleDev(2), wire.Put, 0, 1000)
	return c
}

func (c *comesAndGoes) take(ds []wire.Delivery, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, d := range ds {
		u, ok := d.Msg.(*wire.Update)
		if !ok || d.To[0] != c.bad {
			continue
		}
		for _, h := range u.Hosts {
			if h.Host.Device != c.bad {
				c.knows[h.Host.Addr] = h.Op == wire.Put
				c.heard++
			}
		}
	}
}

// say lets the device say that its host is there, or has gone, a millisecond later.
func (c *comesAndGoes) say(op wire.Op) {
	c.now = c.now.Add(time.Millisecond)
	u := &wire.Update{Origin: c.bad, Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{{Op: op, Host: inoftest.HostAt(inoftest.ScaleHost(5000), c.bad, "Ethernet0")}}}
	c.take(c.r.Receive(c.bad, u, c.now))
	c.work += c.r.Work()
}

// wait passes time.
func (c *comesAndGoes) wait(d time.Duration) {
	for end := c.now.Add(d); ; {
		next := c.r.Next()
		if next.IsZero() || next.After(end) {
			c.now = end
			return
		}
		c.now = next
		c.take(c.r.Tick(c.now), nil)
	}
}

func (c *comesAndGoes) known() (n int) {
	for _, k := range c.knows {
		if k {
			n++
		}
	}
	return n
}

// A device whose only host in a zone comes and goes without end is told of the hosts there a few
// times a second, however often that is; and soon after the last time it knows what it is to know.
func TestAHostThatComesAndGoesMakesNoWorkOfAllHostsOfItsZone(t *testing.T) {
	for _, end := range []wire.Op{wire.Put, wire.Withdraw} {
		c := newComesAndGoes(t)
		for i := range 1000 {
			c.wait(0)
			c.say([]wire.Op{end, 3 - end}[i%2])
		}
		c.say(end)
		if most := 8 * 1000; c.work > most || c.heard > most {
			t.Errorf("1,000 changes of one host in a second: %d records were looked at and %d told, want at most %d", c.work, c.heard, most)
		}
		c.wait(3 * oftenTime)
		want := map[wire.Op]int{wire.Put: 1000}[end]
		if got := c.known(); got != want {
			t.Errorf("after the last %v the device knows %d hosts, want %d", end, got, want)
		}
		d := c.r.devices[c.bad]
		if len(d.lingers) != 0 || len(d.zones) != map[wire.Op]int{wire.Put: 1}[end] {
			t.Errorf("after the last %v the device lingers in %d of %d zones", end, len(d.lingers), len(d.zones))
		}
	}
}

// A host that leaves once, and one that comes back, are no such thing: nothing is put off.
func TestAHostThatLeavesOnceTakesItsDeviceOutOfTheZoneAtOnce(t *testing.T) {
	c := newComesAndGoes(t)
	for range 3 {
		c.say(wire.Put)
		if n := c.known(); n != 1000 {
			t.Errorf("with its host the device knows %d others, want 1000", n)
		}
		c.say(wire.Withdraw)
		if n := c.known(); n != 0 {
			t.Errorf("without a host the device knows %d, want none", n)
		}
		c.wait(2 * oftenTime)
	}
}

// The session of a device that lingers ends: it does so no more, and nothing of it stays.
func TestADeviceThatIsGoneLingersInNoZone(t *testing.T) {
	c := newComesAndGoes(t)
	for range 3 {
		c.say(wire.Put)
		c.say(wire.Withdraw)
	}
	d := c.r.devices[c.bad]
	if len(d.lingers) != 1 {
		t.Fatal("the device does not linger")
	}
	c.r.Leave(c.bad, c.now)
	if len(d.lingers)+len(d.zones) != 0 {
		t.Errorf("it lingers in %d zones and is in %d", len(d.lingers), len(d.zones))
	}
	c.wait(time.Hour)
	if c.r.devices[c.bad] != nil || !c.r.Next().IsZero() {
		t.Error("the device is still known")
	}
}
