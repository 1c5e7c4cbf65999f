package chaos

import (
	"io/fs"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/truth"
	"github.com/openinof/inof/zone"
)

func TestTheFabricIsThatOfTheTopology(t *testing.T) {
	f, err := loadFabric("test")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.places) != 8 || len(f.reflectors) != 2 || len(f.switches) != 3 || len(f.inner) != 6 {
		t.Errorf("%d addresses, reflectors %v, switches %v, inner links %v", len(f.places), f.reflectors, f.switches, f.inner)
	}
	want := truth.Place{Addr: netip.MustParseAddr("192.0.2.92"), Node: "t9", NIC: "eth2", Agent: "snsd-eth2", Switch: "tor2", Port: "eth3", Device: netip.MustParseAddr("10.0.0.12"), Role: snsd.RoleTarget}
	if got := f.places[len(f.places)-1]; got != want {
		t.Errorf("the last place is %+v, want %+v", got, want)
	}
	if got := f.behind(link{"tor2", "eth3"}); len(got) != 1 || got[0] != want.Addr {
		t.Errorf("behind tor2:eth3 is %v", got)
	}
	if got := f.owns("t9/snsd-eth1"); len(got) != 1 || got[0] != netip.MustParseAddr("192.0.2.91") {
		t.Errorf("the agent of t9's eth1 owns %v", got)
	}
}

// The zones of the truth are written out by hand; they are those of the zone file.
func TestTheZonesAreThoseOfTheZoneFile(t *testing.T) {
	b, err := fs.ReadFile(labs.FS, "pair/zones.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := config.ParseZones("zones.yaml", b, zone.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := loadFabric("test")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]netip.Addr{}
	for _, z := range set.Zones {
		for _, p := range f.places {
			nqn := f.topo.Node(p.Node).Labels["inof.nqn"]
			for _, m := range z.Members {
				byAddr := (m.Kind == zone.MemberAddr || m.Kind == zone.MemberRange) && !p.Addr.Less(m.First) && (m.First == p.Addr || m.Last.IsValid() && !m.Last.Less(p.Addr))
				if byAddr || m.Kind == zone.MemberNQN && m.NQN == nqn {
					got[z.Name] = append(got[z.Name], p.Addr)
				}
			}
		}
	}
	sorted := cmpopts.SortSlices(func(a, b netip.Addr) bool { return a.Less(b) })
	if diff := cmp.Diff(baseZones(), got, sorted, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}
