package wire

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// Downs are hosts of which is to be said whether they are down, the latest of each.
type Downs map[zone.HostKey]zone.Down

// Records gives one record for all hosts of a port that are down alike, in an order that
// depends on nothing but what is said.
func (d Downs) Records() (out []DownRecord) {
	keys := slices.SortedFunc(maps.Keys(d), func(a, b zone.HostKey) int {
		return cmp.Or(a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port),
			cmp.Compare(d[a].Why, d[b].Why), d[a].Since.Compare(d[b].Since), a.Addr.Compare(b.Addr))
	})
	for _, k := range keys {
		last := len(out) - 1
		if last < 0 || out[last].Device != k.Device || out[last].Port != k.Port || !out[last].Down.Same(d[k]) || len(out[last].Addrs) == MaxDownAddrs {
			out = append(out, DownRecord{Device: k.Device, Port: k.Port, Down: d[k]})
			last++
		}
		out[last].Addrs = append(out[last].Addrs, k.Addr)
	}
	return out
}

// Key is that of one of its hosts.
func (r *DownRecord) Key(addr netip.Addr) zone.HostKey {
	return zone.HostKey{Addr: addr, Device: r.Device, Port: r.Port}
}

// Op is Put of hosts that are down and Withdraw of hosts that are no more, for people.
func (r *DownRecord) Op() Op {
	if r.Is() {
		return Put
	}
	return Withdraw
}
