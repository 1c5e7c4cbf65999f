package wire_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What one record says of many hosts is taken a piece at a time, whole and in order, and the
// message stays as it was.
func TestALongRecordIsTakenInPieces(t *testing.T) {
	const records = 32
	var addrs []netip.Addr
	for i := range 1000 {
		addrs = append(addrs, inoftest.HostIP(i))
	}
	down := zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}
	u := &wire.Update{Downs: []wire.DownRecord{
		{Device: inoftest.DevID(1), Port: "a", Addrs: addrs[:3], Down: down},
		{Device: inoftest.DevID(1), Port: "b", Addrs: addrs, Down: down},
		{Device: inoftest.DevID(1), Port: "c", Addrs: addrs[:2]},
	}, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(addrs[0], inoftest.DevID(1), "c")}}}
	got := map[string][]netip.Addr{}
	hosts := 0
	for first, rest := u.Cut(records); ; first, rest = rest.Cut(records) {
		if w := wire.Weight(first); w > 2*records {
			t.Errorf("a piece weighs %d", w)
		}
		for _, r := range first.Downs {
			if hosts > 0 {
				t.Error("a host comes before those that are down")
			}
			if r.Is() != (r.Port != "c") {
				t.Errorf("port %s is down: %v", r.Port, r.Is())
			}
			got[r.Port] = append(got[r.Port], r.Addrs...)
		}
		if hosts += len(first.Hosts); rest == nil {
			break
		}
	}
	if !slices.Equal(got["a"], addrs[:3]) || !slices.Equal(got["b"], addrs) || !slices.Equal(got["c"], addrs[:2]) || hosts != 1 {
		t.Errorf("taken: %d, %d, %d hosts that are down or not, %d that come", len(got["a"]), len(got["b"]), len(got["c"]), hosts)
	}
	if len(u.Downs) != 3 || len(u.Downs[1].Addrs) != 1000 {
		t.Errorf("the message is another one now: %d records", len(u.Downs))
	}
}
