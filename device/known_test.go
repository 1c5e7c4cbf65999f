package device

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/zone"
)

// The next process waits with its End-of-Sync for every device that this one knew.
func TestTheNextProcessAwaitsOnlyDevicesThatLeftSomething(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	disk := &keep.Memory{}
	c, err := New(Config{Self: bareReflector, Reflect: true, Epoch: 1, Keep: disk}, nowhere{}, now)
	if err != nil {
		t.Fatal(err)
	}
	disk.Begin()
	c.Start(now)
	empty, full, here := netip.MustParseAddr(far1), netip.MustParseAddr(far2), netip.MustParseAddr(far3)
	host := zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(t1), Device: full, Port: "eth1"}, MAC: hostMAC(t1)}
	for _, dev := range []netip.Addr{empty, full, here} {
		c.ClientUp(dev, now)
		c.ClientMessage(dev, &wire.EndOfSync{Epoch: 1, Seq: 1}, now)
	}
	c.ClientMessage(full, &wire.Update{Origin: full, Epoch: 1, Seq: 2, Hosts: []wire.HostRecord{{Op: wire.Put, Host: host}}}, now)
	for _, dev := range []netip.Addr{empty, full} {
		c.ClientDown(dev, errors.New("cut"), now)
	}
	if got, want := keptIn(t, disk).Known, []netip.Addr{full, here}; !slices.Equal(got, want) {
		t.Errorf("the next process awaits %v, want %v", got, want)
	}
}
