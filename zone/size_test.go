package zone

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// zoneOf is a zone of IPv4 addresses, no two of them one range, that takes so many bytes.
func zoneOf(size int) Zone {
	const each = 3 + 4
	n := (size - recordHead - 1) / each
	z := Zone{Name: strings.Repeat("z", size-recordHead-each*n), Members: make([]Member, n)}
	for i := range z.Members {
		z.Members[i] = Member{Kind: MemberAddr, First: netip.AddrFrom4([4]byte{10, byte(i >> 15), byte(i >> 7), byte(i << 1)})}
	}
	return z
}

func TestAZoneThatNoMessageHoldsIsRefused(t *testing.T) {
	most, beyond := zoneOf(MaxSize), zoneOf(MaxSize+1)
	twice := Zone{Name: most.Name, Members: append(slices.Clone(most.Members), most.Members...)}
	mapped := Zone{Name: most.Name, Members: slices.Clone(most.Members)}
	for i := range mapped.Members {
		mapped.Members[i].First = netip.AddrFrom16(mapped.Members[i].First.As16())
	}
	for name, c := range map[string]struct {
		rules Rules
		zone  Zone
		fits  bool
	}{
		"one that just fits":                 {Rules{}, most, true},
		"a byte more":                        {Rules{}, beyond, false},
		"one that names each member twice":   {Rules{}, twice, true},
		"one of IPv4-mapped addresses":       {Rules{}, mapped, true},
		"a byte more, where that is allowed": {Rules{MaxSize: MaxSize + 1}, beyond, true},
	} {
		one, all := c.rules.CheckZone(c.zone), c.rules.Check(Set{Zones: []Zone{c.zone}})
		var of *ZoneError
		if c.fits != (one == nil) || c.fits != (all == nil) || !c.fits && (!errors.Is(one, ErrTooLarge) || !errors.As(all, &of) || of.Zone != c.zone.Name) {
			t.Errorf("%s: %v, %v", name, one, all)
		}
	}
}
