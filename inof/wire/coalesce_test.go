package wire_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What waits for a slow reader keeps the times of the event that waits longest.
func TestCoalescedUpdatesKeepTheEarliestEvent(t *testing.T) {
	fault := func(seq uint64, port string, at time.Time) *wire.Update {
		return &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: seq, FaultAt: at, DecidedAt: at, SentAt: at,
			Downs: []wire.DownRecord{{Device: inoftest.DevID(0), Port: port, Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: []netip.Addr{inoftest.HostIP(0)}}}}
	}
	var c wire.Coalescer
	c.Add(&wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, SentAt: inoftest.Us(1), Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")}}})
	c.Add(fault(2, "p", inoftest.Us(7)))
	c.Add(fault(3, "q", inoftest.Us(3)))
	c.Add(fault(4, "r", inoftest.Us(9)))
	out := c.Take()
	if len(out) != 1 || out[0].(*wire.Update).Seq != 4 {
		t.Fatalf("%d messages, the first %+v", len(out), out[0])
	}
	if got, want := inoftest.TimesOf(out[0].(*wire.Update)), (inoftest.Stamped{Fault: inoftest.Us(3), Decided: inoftest.Us(3), Sent: inoftest.Us(3)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Whatever is collected for a slow peer, its messages say of every record the state
// of its device that was said last, all but the last are part of a run, and the last
// one carries the position of the last one collected.
func TestARunKeepsStampsAndPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c wire.Coalescer
		var last *wire.Update
		stamp := map[netip.Addr]wire.Stamp{}
		for i := range rapid.IntRange(2, 6).Draw(t, "updates") {
			u := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: uint64(i + 1), Pos: wire.Stamp{Epoch: 9, Seq: uint64(i + 1)}}
			for range rapid.IntRange(1, 150).Draw(t, "hosts") {
				h := inoftest.HostAt(inoftest.HostIP(rapid.IntRange(0, 600).Draw(t, "host")), inoftest.DevID(rapid.IntRange(0, 5).Draw(t, "device")), "Ethernet1")
				u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
			}
			u.StampDevices(func(dev netip.Addr) wire.Stamp {
				return wire.Stamp{Epoch: 5, Seq: uint64(100*i) + uint64(dev.As4()[3])}
			})
			for _, h := range u.Hosts {
				stamp[h.Host.Device] = u.StampOf(h.Host.Device)
			}
			c.Add(u)
			last = u
		}
		us := c.Take()
		for i, m := range us {
			u := m.(*wire.Update)
			for _, h := range u.Hosts {
				if got := u.StampOf(h.Host.Device); got != stamp[h.Host.Device] {
					t.Fatalf("message %d: device %v has %v, want %v", i, h.Host.Device, got, stamp[h.Host.Device])
				}
			}
			end := i == len(us)-1
			if u.Partial == end || (u.Pos == last.Pos) != end {
				t.Fatalf("message %d of %d: partial %v, position %v", i, len(us), u.Partial, u.Pos)
			}
			got, err := wire.Decode(inoftest.FrameOf(t, u))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wire.Message(u), got, inoftest.CmpOpts); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestNoKindOfRecordIsLostWhileItWaitsOrIsCut(t *testing.T) {
	addr := reflect.ValueOf([]netip.Addr{inoftest.DevID(1)})
	lists := reflect.TypeFor[wire.Batch]()
	for i := range lists.NumField() {
		name := lists.Field(i).Name
		if lists.Field(i).Type.Kind() != reflect.Slice {
			continue
		}
		fill := func(v reflect.Value) {
			list := v.FieldByName(name)
			list.Set(reflect.MakeSlice(list.Type(), 1, 1))
			if f := list.Index(0).FieldByName("Addrs"); f.IsValid() { // without any it says nothing
				f.Set(addr)
			}
		}
		holds := func(u wire.Message) bool { return reflect.ValueOf(u).Elem().FieldByName(name).Len() == 1 }
		var u wire.Update
		fill(reflect.ValueOf(&u).Elem())
		if u.Records() != 1 {
			t.Errorf("%s: an Update with one counts %d", name, u.Records())
		}
		var c wire.Coalescer
		c.Add(&wire.Update{Seq: 1})
		c.Add(&u)
		if out := c.Take(); !slices.ContainsFunc(out, holds) {
			t.Errorf("%s: lost while it waited", name)
		}
		var b wire.Batch
		fill(reflect.ValueOf(&b).Elem())
		var tooLarge uint64
		if out := b.Updates(&wire.Update{}, &tooLarge); b.Empty() || len(out) != 1 || !holds(out[0]) {
			t.Errorf("%s: lost on its way into messages", name)
		}
		long := wire.Update{Hosts: make([]wire.HostRecord, 100)}
		for i := range long.Hosts {
			long.Hosts[i].Op = wire.Put
		}
		if name != "Hosts" {
			fill(reflect.ValueOf(&long).Elem())
		}
		in := func(u *wire.Update) int { return reflect.ValueOf(u).Elem().FieldByName(name).Len() }
		pieces, got := 0, 0
		for rest, first := &long, (*wire.Update)(nil); rest != nil; pieces++ {
			first, rest = rest.Cut(32)
			got += in(first)
		}
		if pieces < 3 || got != in(&long) {
			t.Errorf("%s: %d of %d after a cut into %d pieces", name, got, in(&long), pieces)
		}
	}
}
