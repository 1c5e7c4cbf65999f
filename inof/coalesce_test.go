package inof

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What waits for a slow reader keeps the times of the event that waits longest.
func TestCoalescedUpdatesKeepTheEarliestEvent(t *testing.T) {
	fault := func(seq uint64, port string, at time.Time) *Update {
		return &Update{Origin: devID(0), Epoch: 1, Seq: seq, FaultAt: at, DecidedAt: at, SentAt: at,
			Faults: []FaultRecord{{Op: Put, Device: devID(0), Port: port, Addrs: []netip.Addr{hostIP(0)}}}}
	}
	var c Coalescer
	c.Add(&Update{Origin: devID(0), Epoch: 1, Seq: 1, SentAt: us(1), Hosts: []HostRecord{{Op: Put, Host: hostAt(hostIP(0), devID(0), "p")}}})
	c.Add(fault(2, "p", us(7)))
	c.Add(fault(3, "q", us(3)))
	c.Add(fault(4, "r", us(9)))
	out := c.Take()
	if len(out) != 1 || out[0].(*Update).Seq != 4 {
		t.Fatalf("%d messages, the first %+v", len(out), out[0])
	}
	if got, want := timesOf(out[0].(*Update)), (stamped{Fault: us(3), Decided: us(3), Sent: us(3)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Whatever is collected for a slow peer, its messages say of every record the state
// of its device that was said last, all but the last are part of a run, and the last
// one carries the position of the last one collected.
func TestARunKeepsStampsAndPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Coalescer
		var last *Update
		stamp := map[netip.Addr]Stamp{}
		for i := range rapid.IntRange(2, 6).Draw(t, "updates") {
			u := &Update{Origin: reflID, Epoch: 1, Seq: uint64(i + 1), Pos: Stamp{9, uint64(i + 1)}}
			for range rapid.IntRange(1, 150).Draw(t, "hosts") {
				h := hostAt(hostIP(rapid.IntRange(0, 600).Draw(t, "host")), devID(rapid.IntRange(0, 5).Draw(t, "device")), "Ethernet1")
				u.Hosts = append(u.Hosts, HostRecord{Op: Put, Host: h})
			}
			u.stampDevices(func(dev netip.Addr) Stamp { return Stamp{5, uint64(100*i) + uint64(dev.As4()[3])} })
			for _, h := range u.Hosts {
				stamp[h.Host.Device] = u.StampOf(h.Host.Device)
			}
			c.Add(u)
			last = u
		}
		us := c.Take()
		for i, m := range us {
			u := m.(*Update)
			for _, h := range u.Hosts {
				if got := u.StampOf(h.Host.Device); got != stamp[h.Host.Device] {
					t.Fatalf("message %d: device %v has %v, want %v", i, h.Host.Device, got, stamp[h.Host.Device])
				}
			}
			end := i == len(us)-1
			if u.Partial == end || (u.Pos == last.Pos) != end {
				t.Fatalf("message %d of %d: partial %v, position %v", i, len(us), u.Partial, u.Pos)
			}
			got, err := Decode(frameOf(t, u))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Message(u), got, cmpOpts); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
