package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var neighbours = list[api.Neighbour]{
	name: "lldp", short: "LLDP neighbours with age and time to live",
	read: func(ctx context.Context, src Source, _ Asked) ([]api.Neighbour, error) { return Neighbours(ctx, src) },
	order: func(a, b api.Neighbour) int {
		return cmp.Or(api.ComparePorts(a.Port, b.Port), cmp.Compare(a.ChassisID, b.ChassisID), cmp.Compare(a.PortID, b.PortID))
	},
	filters: []filter[api.Neighbour]{
		equal(Filter{Name: "port", Usage: "only neighbours at this port", Words: PortNames}, func(n *api.Neighbour) string { return n.Port }),
	},
	columns: []column[api.Neighbour]{
		{"PORT", func(n *api.Neighbour, _ *Page) string { return n.Port }},
		{"CHASSIS", func(n *api.Neighbour, _ *Page) string { return n.ChassisID }},
		{"PORT-ID", func(n *api.Neighbour, _ *Page) string { return n.PortID }},
		{"SYSTEM", func(n *api.Neighbour, _ *Page) string { return n.SysName }},
		{"ROLE", func(n *api.Neighbour, _ *Page) string { return n.Role.String() }},
		{"ADDRESSES", func(n *api.Neighbour, _ *Page) string { return Few(n.Addresses, 2) }},
		{"TTL", func(n *api.Neighbour, _ *Page) string { return fmt.Sprintf("%ds", n.TTL) }},
		{"AGE", func(n *api.Neighbour, _ *Page) string { return Human(time.Duration(n.Age)) }},
		{"EXPIRES-IN", func(n *api.Neighbour, _ *Page) string { return Human(time.Duration(n.ExpiresIn)) }},
		{"CONFIRMED", func(n *api.Neighbour, _ *Page) string { return believed(n) }},
		{"MAC", func(n *api.Neighbour, _ *Page) string {
			if n.MAC.IsZero() {
				return ""
			}
			return n.MAC.String()
		}},
		{"DESCRIPTION", func(n *api.Neighbour, _ *Page) string { return Clip(n.SysDesc, mostDescription) }},
	},
}.query()

// mostDescription bounds what a table shows of a system's description, in characters.
const mostDescription = 48

// believed says whether a neighbour was heard since its port came up, and what is not believed of
// it.
func believed(n *api.Neighbour) string {
	text := YesNo(n.Confirmed)
	if n.Doubt {
		text += ", in doubt"
	}
	for _, r := range n.Refused {
		text += ", refused " + r
	}
	return text
}

// Neighbours reads all LLDP neighbours, a port at a time.
func Neighbours(ctx context.Context, src Source) (list []api.Neighbour, err error) {
	var at []string
	err = src.Do(ctx, func(c *device.Core, _ time.Time) { at = c.NeighbourPorts() })
	for _, port := range at {
		if err == nil {
			err = src.Do(ctx, func(c *device.Core, now time.Time) { list = c.AppendNeighbours(list, port, now) })
		}
	}
	return list, err
}
