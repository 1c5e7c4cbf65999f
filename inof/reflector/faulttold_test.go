package reflector

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// A host that comes or goes behind a port with a fault is told with one address, to the
// reflector and by it, and the client that hears of it knows the whole list.
func TestAHostBehindAFaultedPortIsToldAlone(t *testing.T) {
	const hosts = 200
	r, dev, _ := faultedPort(t, hosts)
	from := newPortClient(t, dev, hosts)
	to := client.New(inoftest.ScaleDev(2), 1)
	to.Up(inoftest.ReflID, inoftest.T0)
	r.Leave(inoftest.ScaleDev(2), inoftest.T0)
	hear := func(ds []wire.Delivery) (a client.Applied) {
		for _, d := range ds {
			if !slices.Contains(d.To, inoftest.ScaleDev(2)) {
				continue
			}
			var err error
			if a, err = to.Receive(inoftest.ReflID, d.Msg, inoftest.T0); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	hear(r.Join(inoftest.ScaleDev(2), inoftest.T0))
	for n := range 6 {
		u := from.toggle(inoftest.ScaleHost(100+hosts), n%2 == 0)
		if f := u.Faults[0]; f.Op != wire.Change || len(f.Addrs)+len(f.Gone) != 1 {
			t.Errorf("the device says %v of %d and %d addresses", f.Op, len(f.Addrs), len(f.Gone))
		}
		ds, err := r.Receive(dev, u, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			for _, f := range d.Msg.(*wire.Update).Faults {
				if f.Op != wire.Change || len(f.Addrs)+len(f.Gone) != 1 {
					t.Errorf("the reflector says %v of %d and %d addresses", f.Op, len(f.Addrs), len(f.Gone))
				}
			}
		}
		want := hosts + (n+1)%2
		if a := hear(ds); len(a.Faults) != 1 || a.Faults[0].Op != wire.Put || len(a.Faults[0].Addrs) != want {
			t.Fatalf("%d: the client hears %v", n, a.Faults)
		}
	}
}

// A zone change that moves no host behind a port costs the same however many there are:
// measured by BenchmarkFaultedPort, counted here by what is told.
func TestAZoneChangeTellsNothingOfHostsThatStay(t *testing.T) {
	for _, hosts := range []int{1, 300} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			r, _, z := faultedPort(t, hosts)
			z.Members = append(slices.Clone(z.Members), inoftest.AddrMember(netip.MustParseAddr("203.0.113.9")))
			ds, err := r.PutZone(z, inoftest.T0)
			if err != nil || len(ds) == 0 {
				t.Fatal(ds, err)
			}
			for _, d := range ds {
				if u := d.Msg.(*wire.Update); len(u.Hosts)+len(u.Faults) > 0 {
					t.Errorf("%d hosts and %d faults are told", len(u.Hosts), len(u.Faults))
				}
			}
		})
	}
}
