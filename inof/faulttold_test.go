package inof

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// A host that comes or goes behind a port with a fault is told with one address, to the
// reflector and by it, and the client that hears of it knows the whole list.
func TestAHostBehindAFaultedPortIsToldAlone(t *testing.T) {
	const hosts = 200
	r, dev, _ := faultedPort(t, hosts)
	from := newPortClient(t, dev, hosts)
	to := NewClient(scaleDev(2), 1)
	to.Up(reflID, t0)
	r.Leave(scaleDev(2), t0)
	hear := func(ds []Delivery) (a Applied) {
		for _, d := range ds {
			if !slices.Contains(d.To, scaleDev(2)) {
				continue
			}
			var err error
			if a, err = to.Receive(reflID, d.Msg, t0); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	hear(r.Join(scaleDev(2), t0))
	for n := range 6 {
		u := from.toggle(scaleHost(100+hosts), n%2 == 0)
		if f := u.Faults[0]; f.Op != Change || len(f.Addrs)+len(f.Gone) != 1 {
			t.Errorf("the device says %v of %d and %d addresses", f.Op, len(f.Addrs), len(f.Gone))
		}
		ds, err := r.Receive(dev, u, t0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			for _, f := range d.Msg.(*Update).Faults {
				if f.Op != Change || len(f.Addrs)+len(f.Gone) != 1 {
					t.Errorf("the reflector says %v of %d and %d addresses", f.Op, len(f.Addrs), len(f.Gone))
				}
			}
		}
		want := hosts + (n+1)%2
		if a := hear(ds); len(a.Faults) != 1 || a.Faults[0].Op != Put || len(a.Faults[0].Addrs) != want {
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
			z.Members = append(slices.Clone(z.Members), addrMember(netip.MustParseAddr("203.0.113.9")))
			ds, err := r.PutZone(z, t0)
			if err != nil || len(ds) == 0 {
				t.Fatal(ds, err)
			}
			for _, d := range ds {
				if u := d.Msg.(*Update); len(u.Hosts)+len(u.Faults) > 0 {
					t.Errorf("%d hosts and %d faults are told", len(u.Hosts), len(u.Faults))
				}
			}
		})
	}
}
