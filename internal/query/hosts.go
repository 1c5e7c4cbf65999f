package query

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

var hosts = list[api.Host]{
	name: "host", path: "hosts", short: "Hosts known here, or all about one address",
	example: "  inofctl show host --zone blue\n  inofctl show host 192.0.2.1",
	read:    func(ctx context.Context, src Source, f Asked) ([]api.Host, error) { return Hosts(ctx, src, f) },
	order: func(a, b api.Host) int {
		return cmp.Or(a.Addr.Compare(b.Addr), a.Device.Compare(b.Device), api.ComparePorts(a.Port, b.Port))
	},
	whole: func(rows *[]api.Host) {
		for i := range *rows {
			api.Some(&(*rows)[i].Zones)
		}
	},
	arg:  addrArg(func(h *api.Host) netip.Addr { return h.Addr }),
	none: "no host %s is known here",
	filters: []filter[api.Host]{
		having(Filter{Name: "zone", Usage: "only hosts in this zone", Words: ZoneNames}, func(h *api.Host) []string { return h.Zones }),
		at(Filter{Name: "device", Usage: "only hosts at this access device"}, func(h *api.Host) netip.Addr { return h.Device }),
		equal(Filter{Name: "port", Usage: "only hosts at this access port", Words: PortNames}, func(h *api.Host) string { return h.Port }),
		equal(Filter{Name: "type", Usage: "only local or remote hosts", Options: []string{"local", "remote"}}, func(h *api.Host) string { return string(h.Type) }),
		equal(Filter{Name: "state", Usage: "only active or inactive hosts", Options: []string{"active", "inactive"}}, func(h *api.Host) string { return h.State.String() }),
		equal(Filter{Name: "role", Usage: "only hosts of this role", Options: []string{"initiator", "target", "both", "unknown"}}, func(h *api.Host) string { return h.Role.String() }),
		equal(Filter{Name: "nqn", Usage: "only hosts with this NQN"}, func(h *api.Host) string { return h.NQN }),
	},
	columns: []column[api.Host]{
		{"ADDRESS", func(h *api.Host, _ *Page) string { return Addr(h.Addr) }},
		{"TYPE", func(h *api.Host, _ *Page) string { return string(h.Type) }},
		{"ROLE", func(h *api.Host, _ *Page) string { return h.Role.String() }},
		{"SERVICE", func(h *api.Host, _ *Page) string { return service(h) }},
		{"DEVICE", func(h *api.Host, _ *Page) string { return Addr(h.Device) }},
		{"PORT", func(h *api.Host, _ *Page) string { return h.Port }},
		{"STATE", func(h *api.Host, _ *Page) string { return hostState(h) }},
		{"REASON", whyState},
		{"ZONES", func(h *api.Host, _ *Page) string { return FewText(h.Zones, 3) }},
		{"HARD-ZONING", func(h *api.Host, _ *Page) string { return string(h.Hard) }},
		{"LEARNED-FROM", func(h *api.Host, _ *Page) string { return learned(h) }},
		{"KNOWN-FOR", func(h *api.Host, p *Page) string { return p.Age(h.Since) }},
		{"NQN", func(h *api.Host, _ *Page) string { return h.NQN }},
	},
	details: hostDetails,
}.query()

// Hosts reads the hosts that a device knows, in no order, with those it refuses. It may give
// more than was asked for.
func Hosts(ctx context.Context, src Source, f Asked) ([]api.Host, error) {
	var addrs []netip.Addr
	one, zone := f.Addr("addr"), f.Get("zone")
	err := src.Do(ctx, func(c *device.Core, _ time.Time) {
		switch {
		case one.IsValid():
			addrs = []netip.Addr{one}
		case zone != "":
			addrs = c.View().ZoneHosts(zone)
		default:
			addrs = c.Addresses()
		}
	})
	list := []api.Host{}
	for part := range slices.Chunk(addrs, chunk) {
		if err == nil {
			err = src.Do(ctx, func(c *device.Core, _ time.Time) {
				for _, a := range part {
					list = c.AppendHosts(list, a)
				}
			})
		}
	}
	if err == nil && zone == "" {
		err = src.Do(ctx, func(c *device.Core, _ time.Time) { list = c.AppendRefused(list, one) })
	}
	return list, err
}

// addrArg is an argument that is the address of a row.
func addrArg[T any](of func(*T) netip.Addr) *filter[T] {
	f := at(Filter{Name: "addr", Word: "ADDRESS", Words: HostAddrs}, of)
	return &f
}

// learned says where a host was learned: local ones by LLDP, unless it says otherwise.
func learned(h *api.Host) string {
	if h.Source == api.SourceConfigured {
		return h.LearnedFrom + " (" + h.Source + ")"
	}
	return h.LearnedFrom
}

// service gives protocol and port in one word.
func service(h *api.Host) string {
	if h.ServicePort == 0 {
		return h.Protocol.String()
	}
	return fmt.Sprintf("%s:%d", h.Protocol, h.ServicePort)
}

func hostState(h *api.Host) string {
	switch {
	case len(h.Refused) > 0:
		return "refused"
	case h.Conflict:
		return "conflict"
	}
	return h.State.String()
}

// whyState is the reason of a host's state, or what is about to become of it.
func whyState(h *api.Host, p *Page) string {
	if h.Removal != nil && h.Reason == snsd.ReasonNone {
		return removal(h.Removal, p)
	}
	return Because(h.Reason)
}

// removal says what becomes of hosts whose port is no longer looked after.
func removal(r *api.Removal, p *Page) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s; told at %s", r.Why, p.Stamp(r.ToldAt))
}

func hostDetails(p *Page, h *api.Host) {
	expires := ""
	if h.Expires != nil {
		expires = Human(h.Expires.Sub(p.Now))
	}
	conflict, mac := "no", ""
	if h.Conflict {
		conflict = "yes: another host claimed the address earlier, this one is ignored"
	}
	if !h.MAC.IsZero() {
		mac = h.MAC.String()
	}
	p.Pairs([][2]string{
		{"Address", Addr(h.Addr)},
		{"Type", string(h.Type)},
		{"State", h.State.String()},
		{"Reason", Because(h.Reason)},
		{"Role", h.Role.String()},
		{"Service", service(h)},
		{"NQN", h.NQN},
		{"Access device", Addr(h.Device)},
		{"Access port", h.Port},
		{"MAC", mac},
		{"Wants notices", YesNo(h.Subscribes)},
		{"Zones", strings.Join(h.Zones, ", ")},
		{"Hard zoning", strings.Join(append([]string{string(h.Hard)}, h.HardWhy...), "; ")},
		{"Learned from", learned(h)},
		{"Known for", p.Age(h.Since)},
		{"Expires in", expires},
		{"Conflict", conflict},
	})
	if h.Removal != nil {
		p.Pairs([][2]string{{"Its port", removal(h.Removal, p)}})
	}
	if h.Doubt {
		p.Pairs([][2]string{{"In doubt", "its LLDP frames come from another MAC address than they say (hosts.frame-source)"}})
	}
	for _, why := range h.Refused {
		p.Pairs([][2]string{{"Refused", why}})
	}
}
