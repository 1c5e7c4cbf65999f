package zone_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Pairs that are gained and lost are those that two tables, asked one pair after the other, differ
// in; and so are the paths that are left and the hosts without a partner.
func TestThePairsOfAnImpactAreThoseThatTwoTablesDifferIn(t *testing.T) {
	dev := netip.MustParseAddr("10.0.0.1")
	rapid.Check(t, func(t *rapid.T) {
		var hosts []zone.Host
		for i := range byte(7) {
			h := zone.Host{HostKey: zone.HostKey{Addr: netip.AddrFrom4([4]byte{192, 0, 2, i + 1}), Device: dev, Port: fmt.Sprintf("eth%d", i)}, MAC: fabric.MAC{2, 0, 0, 0, 0, i}, Subscribes: true}
			if h.Role = rapid.SampledFrom([]snsd.Role{snsd.RoleInitiator, snsd.RoleTarget}).Draw(t, "role"); h.Role == snsd.RoleTarget {
				h.NQN = rapid.SampledFrom([]string{"", "nqn.a", "nqn.b"}).Draw(t, "nqn")
			}
			hosts = append(hosts, h)
		}
		draw := func() (s zone.Set) {
			s.AutoJoin = rapid.Bool().Draw(t, "auto-join")
			for _, name := range []string{"a", "b"} {
				z := zone.Zone{Name: name}
				for _, h := range hosts {
					if rapid.Bool().Draw(t, "member") {
						z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: h.Addr})
					}
				}
				s.Zones = append(s.Zones, z)
			}
			return s
		}
		before, after := draw(), draw()
		x := zone.ImpactOf(before, after, hosts, nil, 1000)
		was, is := zone.NewDirectory(netip.Addr{}), zone.NewDirectory(netip.Addr{})
		was.SetZones(before)
		is.SetZones(after)
		for _, h := range hosts {
			was.PutHost(h)
			is.PutHost(h)
		}
		var lost, gained []string
		all, cut := 0, map[string]bool{}
		alone := 0
		for i, a := range hosts {
			had, has := false, false
			for j, b := range hosts {
				w, n := was.MayExchange(a.Addr, b.Addr), is.MayExchange(a.Addr, b.Addr)
				had, has = had || w, has || n
				if a.Role != snsd.RoleInitiator || i == j {
					continue
				}
				left := 0
				for _, c := range hosts {
					if is.MayExchange(a.Addr, c.Addr) && (c.Addr == b.Addr || c.NQN == b.NQN && c.NQN != "") {
						left++
					}
				}
				text := fmt.Sprintf("%s %s %s %d", a.Addr, b.Addr, b.NQN, left)
				switch {
				case w && !n:
					if lost = append(lost, text); left == 0 {
						cut[a.Addr.String()+b.NQN+map[bool]string{true: b.Addr.String()}[b.NQN == ""]] = true
					}
				case n && !w:
					gained = append(gained, text)
				}
				if w {
					all++
				}
			}
			if had && !has {
				alone++
			}
		}
		for _, c := range []struct {
			what string
			want []string
			got  []zone.PathPair
			n    int
		}{{"lost", lost, x.Lost, x.PairsLost}, {"gained", gained, x.Gained, x.PairsGained}} {
			var got []string
			for _, p := range c.got {
				got = append(got, fmt.Sprintf("%s %s %s %d", p.Host, p.Target, p.NQN, p.Paths))
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) || c.n != len(c.want) {
				t.Fatalf("%s: %d, %q, want %q", c.what, c.n, got, c.want)
			}
		}
		if x.PairsBefore != all || x.CutOff != len(cut) || x.Alone != alone || x.LostActive != x.PairsLost {
			t.Fatalf("%d pairs before, %d cut off, %d alone, %d active lost; want %d, %d, %d, %d", x.PairsBefore, x.CutOff, x.Alone, x.LostActive, all, len(cut), alone, x.PairsLost)
		}
	})
}
