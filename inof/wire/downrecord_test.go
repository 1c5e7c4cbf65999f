package wire

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// downsOf are hosts of two devices at ports that are down in two ways, at two times, or up again,
// and one port with more hosts than a record may have.
func downsOf() Downs {
	d := Downs{}
	t0 := time.Unix(1_700_000_000, 0)
	for i := range MaxDownAddrs + 3 {
		d[zone.HostKey{Addr: netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), Device: netip.MustParseAddr("10.0.0.9"), Port: "large"}] = zone.Down{Why: snsd.ReasonLinkDown, Since: t0}
	}
	for i := range 400 {
		k := zone.HostKey{Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Device: netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 2)}), Port: fmt.Sprint("p", i/2%3)}
		switch i % 5 {
		case 0:
			d[k] = zone.Down{}
		case 1:
			d[k] = zone.Down{Why: snsd.ReasonLinkDown, Since: t0}
		case 2:
			d[k] = zone.Down{Why: snsd.ReasonLinkDown, Since: t0.Add(1)}
		default:
			d[k] = zone.Down{Why: snsd.ReasonAgedOut, Since: t0}
		}
	}
	return d
}

// Each host is in one record, of its port and its state; records are as few as may be and, as the
// hosts in them, in an order that depends on nothing but what is said.
func TestHostsThatAreDownAlikeAreOneRecord(t *testing.T) {
	d := downsOf()
	recs := d.Records()
	if again := d.Records(); !slices.EqualFunc(recs, again, func(a, b DownRecord) bool {
		return a.Device == b.Device && a.Port == b.Port && a.Down.Same(b.Down) && slices.Equal(a.Addrs, b.Addrs)
	}) {
		t.Error("another order the second time")
	}
	if want := 2 + 2*3*4; len(recs) != want {
		t.Errorf("%d records, want %d", len(recs), want)
	}
	if !slices.IsSortedFunc(recs, func(a, b DownRecord) int {
		return cmp.Or(a.Device.Compare(b.Device), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Why, b.Why), a.Since.Compare(b.Since), a.Addrs[0].Compare(b.Addrs[0]))
	}) {
		t.Error("records are not in order")
	}
	seen := 0
	for i := range recs {
		r := &recs[i]
		if len(r.Addrs) > MaxDownAddrs || !slices.IsSortedFunc(r.Addrs, netip.Addr.Compare) {
			t.Errorf("record %d: %d addresses, at most %d, sorted: %v", i, len(r.Addrs), MaxDownAddrs, slices.IsSortedFunc(r.Addrs, netip.Addr.Compare))
		}
		for _, a := range r.Addrs {
			is, there := d[r.Key(a)]
			if !there || !is.Same(r.Down) {
				t.Fatalf("%v at %s of %v is said to be %v, want %v", a, r.Port, r.Device, r.Down, is)
			}
			seen++
		}
	}
	if seen != len(d) {
		t.Errorf("%d hosts are told, want %d", seen, len(d))
	}
}

// A port with 1,000 hosts that fails: what all who are told of it wait for.
func BenchmarkDownsOfAPort(b *testing.B) {
	d := Downs{}
	is := zone.Down{Why: snsd.ReasonLinkDown, Since: time.Unix(1_700_000_000, 0)}
	dev := netip.MustParseAddr("10.0.0.1")
	for i := range 1000 {
		d[zone.HostKey{Addr: netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), Device: dev, Port: "Ethernet12"}] = is
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := d.Records(); len(got) != 1 || len(got[0].Addrs) != 1000 {
			b.Fatal(len(got))
		}
	}
}
