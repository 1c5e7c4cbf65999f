package reflector

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// The fault of a port is one short message to the reflector and to each client, however many
// hosts it has, and a host that comes or goes behind it is told alone.
func TestAPortsFaultIsOneMessageAndAHostBehindItIsToldAlone(t *testing.T) {
	const hosts = 2000
	r, dev, _ := faultedPort(t, hosts)
	from := newPortClient(t, dev, hosts)
	to := client.New(inoftest.ScaleDev(2), 1)
	to.Up(inoftest.ReflID, inoftest.T0)
	r.Leave(inoftest.ScaleDev(2), inoftest.T0)
	var told []*wire.Update
	hear := func(ds []wire.Delivery) (a client.Applied) {
		told = nil
		for _, d := range ds {
			u, ok := d.Msg.(*wire.Update)
			if !slices.Contains(d.To, inoftest.ScaleDev(2)) || !ok {
				continue
			}
			told = append(told, u)
			var err error
			if a, err = to.Receive(inoftest.ReflID, d.Msg, inoftest.T0); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	receive := func(u *wire.Update) client.Applied {
		ds, err := r.Receive(dev, u, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return hear(ds)
	}
	hear(r.Join(inoftest.ScaleDev(2), inoftest.T0))
	var all []netip.Addr
	for k := range from.Hosts() {
		all = append(all, k.Addr)
	}
	for _, down := range []zone.Down{{}, from.down} { // it ends, and begins again
		setDown(from, "Ethernet0", down, all...)
		ds := from.Flush(inoftest.T0)
		if u := ds[0].Msg.(*wire.Update); len(ds) != 1 || len(u.Downs) != 1 || len(u.Hosts) > 0 {
			t.Fatalf("the device says %d messages, %d records", len(ds), len(u.Downs)+len(u.Hosts))
		}
		a := receive(ds[0].Msg.(*wire.Update))
		if len(told) != 1 || len(told[0].Downs) != 1 || len(told[0].Hosts) > 0 || len(inoftest.FrameOf(t, told[0])) > 5*hosts+200 {
			t.Fatalf("the reflector says %d messages", len(told))
		}
		if len(a.Downs) != 1 || len(a.Downs[0].Addrs) != hosts || a.Downs[0].Is() != down.Is() {
			t.Fatalf("the client hears %d records", len(a.Downs))
		}
	}
	for n := range 6 {
		u := from.toggle(inoftest.ScaleHost(100+hosts), n%2 == 0)
		if len(u.Hosts)+len(u.Downs) != 1 {
			t.Errorf("the device says %d records", len(u.Hosts)+len(u.Downs))
		}
		if a := receive(u); len(told) != 1 || len(told[0].Hosts)+len(told[0].Downs) != 1 || len(a.Hosts) != 1 || a.Hosts[0].Host.Down.Is() != (n%2 == 0) {
			t.Errorf("the reflector says %d messages, the client hears %+v", len(told), a.Hosts)
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
				if u := d.Msg.(*wire.Update); len(u.Hosts)+len(u.Downs) > 0 {
					t.Errorf("%d hosts and %d faults are told", len(u.Hosts), len(u.Downs))
				}
			}
		})
	}
}
