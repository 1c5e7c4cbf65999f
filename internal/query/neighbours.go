package query

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

var neighbours = list[api.Neighbour]{
	name: "lldp", short: "LLDP neighbours with age and time to live",
	parts: (*device.Core).NeighbourPorts,
	rows:  (*device.Core).AppendNeighbours,
	order: func(a, b api.Neighbour) int {
		return cmp.Or(api.ComparePorts(a.Port, b.Port), cmp.Compare(a.ChassisID, b.ChassisID), cmp.Compare(a.PortID, b.PortID))
	},
	filters: []filter[api.Neighbour]{
		{Filter{"port", "only neighbours at this port", PortNames}, func(n *api.Neighbour, want string) bool { return n.Port == want }},
	},
	columns: []column[api.Neighbour]{
		{"PORT", func(n *api.Neighbour, _ time.Time) string { return n.Port }},
		{"CHASSIS", func(n *api.Neighbour, _ time.Time) string { return n.ChassisID }},
		{"PORT-ID", func(n *api.Neighbour, _ time.Time) string { return n.PortID }},
		{"SYSTEM", func(n *api.Neighbour, _ time.Time) string { return n.SysName }},
		{"ROLE", func(n *api.Neighbour, _ time.Time) string { return n.Role.String() }},
		{"ADDRESSES", func(n *api.Neighbour, _ time.Time) string { return Few(n.Addresses, 2) }},
		{"TTL", func(n *api.Neighbour, _ time.Time) string { return fmt.Sprintf("%ds", n.TTL) }},
		{"AGE", func(n *api.Neighbour, _ time.Time) string { return Human(time.Duration(n.Age)) }},
		{"EXPIRES-IN", func(n *api.Neighbour, _ time.Time) string { return Human(time.Duration(n.ExpiresIn)) }},
		{"CONFIRMED", func(n *api.Neighbour, _ time.Time) string { return believed(n) }},
	},
}.query()

// believed says whether a neighbour was heard since its port came up, and what is not believed of it.
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
