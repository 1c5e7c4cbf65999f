package main

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/openinof/inof/hostkernel"
)

// An address that was taken from its interface has connections there still: its hosts get their fence.
// An address that never was here is another machine's: nothing is fenced for it.
func TestAnAddressThatHasGoneIsFencedWhereItWas(t *testing.T) {
	one, two, elsewhere := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.99")
	served := []hostkernel.Served{{Addr: one, Port: 4420}, {Addr: two, Port: 4420}, {Addr: elsewhere, Port: 4420}}
	own := netip.MustParseAddr("203.0.113.1") // serves nothing
	have := []hostkernel.Interface{
		{Name: "vlan7", Addrs: []netip.Addr{one}, Ports: []string{"eth0", "eth1"}},
		{Name: "eth2", Addrs: []netip.Addr{two}, Ports: []string{"eth2"}},
		{Name: "eth3", Addrs: []netip.Addr{own}, Ports: []string{"eth3"}},
	}
	all := map[netip.Addr][]string{one: {"eth0", "eth1"}, two: {"eth2"}}
	of, names := servedCables(served, have, nil)
	if !reflect.DeepEqual(of, all) || !slices.Equal(names, []string{"eth0", "eth1", "eth2"}) {
		t.Fatalf("%v, %v", of, names)
	}
	have[0].Addrs, have[0].Ports = nil, []string{"eth0"} // and a cable is gone
	if of, names = servedCables(served, have, of); !slices.Equal(of[one], []string{"eth0"}) || of[elsewhere] != nil || !slices.Equal(names, []string{"eth0", "eth2"}) {
		t.Errorf("the address has gone: %v, %v", of, names)
	}
	if of, _ = servedCables(served[1:], have, of); of[one] != nil {
		t.Errorf("it is served no longer: %v", of)
	}
}
