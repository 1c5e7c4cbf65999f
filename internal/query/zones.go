package query

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var zones = list[api.Zone]{
	name: "zone", path: "zones", short: "Zones, or all about one zone",
	read:  func(ctx context.Context, src Source, f Asked) ([]api.Zone, error) { return Zones(ctx, src, f) },
	order: func(a, b api.Zone) int { return cmp.Compare(a.Name, b.Name) },
	whole: func(rows *[]api.Zone) {
		for i := range *rows {
			api.Some(&(*rows)[i].Members)
			api.Some(&(*rows)[i].Hosts)
		}
	},
	arg:  nameArg("NAME", ZoneNames, func(z *api.Zone) string { return z.Name }),
	none: "no zone %q is known here",
	filters: []filter[api.Zone]{
		{Filter{Name: "addr", Flag: "host", Usage: "only zones this host is in", Kind: Address}, func(want string) func(*api.Zone) bool {
			addr, _ := netip.ParseAddr(want)
			return func(z *api.Zone) bool { return slices.Contains(z.Hosts, addr.Unmap()) }
		}},
		{Filter{Name: "inconsistent", Usage: "only zones about which the reflectors differ", Kind: Yes}, func(want string) func(*api.Zone) bool {
			return func(z *api.Zone) bool { return want != "true" || z.Inconsistent }
		}},
	},
	show: func(p *Page, rows *[]api.Zone, f Asked) {
		if f.Yes("inconsistent") {
			inconsistentTable(p, *rows)
			return
		}
		p.rows(tableOf(p, *rows, zoneColumns))
	},
	details: zoneDetails,
}.query()

var zoneColumns = []column[api.Zone]{
	{"ZONE", func(z *api.Zone, _ *Page) string { return z.Name }},
	{"MEMBERS", func(z *api.Zone, _ *Page) string { return Count(len(z.Members)) }},
	{"HOSTS", func(z *api.Zone, _ *Page) string { return Count(len(z.Hosts)) }},
	{"LEARNED-FROM", func(z *api.Zone, _ *Page) string { return z.LearnedFrom }},
	{"INCONSISTENT", func(z *api.Zone, _ *Page) string { return YesNo(z.Inconsistent) }},
	{"CONFIGURED", func(z *api.Zone, _ *Page) string { return FewText(z.Members, 3) }},
}

// Zones reads the zones that are asked for.
func Zones(ctx context.Context, src Source, f Asked) ([]api.Zone, error) {
	var names []string
	err := src.Do(ctx, func(c *device.Core, _ time.Time) {
		switch host, name := f.Addr("addr"), f.Get("name"); {
		case host.IsValid():
			names = c.View().ZonesOf(host)
		case name != "":
			names = []string{name}
		default:
			names = c.ZoneNames()
		}
	})
	list := []api.Zone{}
	for part := range slices.Chunk(names, chunk) {
		if err == nil {
			err = src.Do(ctx, func(c *device.Core, _ time.Time) {
				for _, name := range part {
					if z, ok := c.Zone(name); ok {
						list = append(list, z)
					}
				}
			})
		}
	}
	return list, err
}

// nameArg is an argument that is the name of a row.
func nameArg[T any](word string, words Words, of func(*T) string) *filter[T] {
	f := equal(Filter{Name: "name", Word: word, Words: words}, of)
	return &f
}

// inconsistentTable shows beside what is in force what each reflector says.
func inconsistentTable(p *Page, list []api.Zone) {
	cells := [][]string{}
	for _, z := range list {
		for _, r := range z.Words {
			says := "no such zone here"
			if r.Said {
				says = FewText(r.Members, 8)
			}
			cells = append(cells, []string{z.Name, FewText(z.Members, 4), r.Reflector.String(), says})
		}
	}
	p.rows("ZONE IN-FORCE REFLECTOR SAYS", cells)
}

func zoneDetails(p *Page, z *api.Zone) {
	p.Pairs([][2]string{{"Zone", z.Name}, {"Learned from", z.LearnedFrom}})
	p.lines(fmt.Sprintf("Members (%d):", len(z.Members)), z.Members)
	for _, r := range z.Words {
		p.lines(fmt.Sprintf("Reflector %s says (%d):", r.Reflector, len(r.Members)), r.Members)
	}
	p.lines(fmt.Sprintf("Hosts (%d):", len(z.Hosts)), Texts(z.Hosts))
}

// lines writes a list below a title.
func (p *Page) lines(title string, list []string) {
	fmt.Fprintln(p, title)
	for _, text := range list {
		fmt.Fprintln(p, "  "+Printable(text))
	}
}
