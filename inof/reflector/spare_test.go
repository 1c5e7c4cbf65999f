package reflector

import (
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// A full sync of one device needs memory for the records of one message, once these are given
// back, and tells the same.
func TestAFullSyncUsesTheMemoryOfItsRecordsAgain(t *testing.T) {
	const zones, hosts = 4000, 3000
	b := bigBench(t, zones, hosts)
	dev := inoftest.DevID(2)
	told := map[zone.HostKey]int{}
	named := map[string]int{}
	arrays := map[*wire.HostRecord]bool{}
	messages := 0
	take := func(ds []wire.Delivery) {
		for _, d := range ds {
			u, ok := d.Msg.(*wire.Update)
			if !ok {
				continue
			}
			if len(u.Hosts) > 1 {
				messages++
				arrays[&u.Hosts[0]] = true
			}
			for _, h := range u.Hosts {
				told[h.Host.HostKey]++
			}
			for i := range u.Zones {
				named[u.Zones[i].Zone.Name] += u.Zones[i].Packed.Count()
			}
			if _, err := d.Encode(); err != nil {
				t.Fatal(err)
			}
			if d.Form.Done != nil {
				d.Form.Done()
			}
		}
	}
	take(b.refl.Join(dev, inoftest.T0))
	out, err := b.refl.Receive(dev, &wire.EndOfSync{Epoch: 1}, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	take(out)
	take(b.refl.Pull(nil, inoftest.T0))
	for b.refl.Owing() {
		take(b.refl.Step(nil, inoftest.T0))
	}
	if messages < 5 || len(arrays) > 2 {
		t.Errorf("%d messages with hosts in %d arrays", messages, len(arrays))
	}
	if len(told) != hosts || len(named) != zones {
		t.Errorf("%d hosts and %d zones, want %d and %d", len(told), len(named), hosts, zones)
	}
	for k, n := range told {
		if e := b.refl.interest.at(k.Addr); n != 1 || !e.attachedTo(k.Device) {
			t.Fatalf("host %v was told %d times", k, n)
		}
	}
	for name, members := range named {
		if members != 2 {
			t.Fatalf("zone %s was told with %d members", name, members)
		}
	}
}
