package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/internal/api"
)

var members = object[api.Cluster, api.ClusterMember]{
	name: "cluster", short: "The cluster of this reflector: members, leader, how far each has come",
	read: func(ctx context.Context, src Source, _ Asked) (api.Cluster, error) { return src.Cluster(ctx) },
	rows: func(c *api.Cluster) *[]api.ClusterMember { return &c.Members },
	whole: func(c *api.Cluster) {
		if c.Settings == nil {
			c.Settings = map[string]string{}
		}
	},
	show: showCluster,
}.query()

var memberColumns = []column[api.ClusterMember]{
	{"MEMBER", func(m *api.ClusterMember, _ *Page) string { return Addr(m.Device) }},
	{"ADDRESS", func(m *api.ClusterMember, _ *Page) string { return m.Address }},
	{"STATE", func(m *api.ClusterMember, _ *Page) string {
		if m.Self {
			return m.State + " (this)"
		}
		return m.State
	}},
	{"VOTE", func(m *api.ClusterMember, _ *Page) string {
		if !m.Voter {
			return "catches up"
		}
		return "yes"
	}},
	{"TERM", func(m *api.ClusterMember, _ *Page) string { return Count(m.Term) }},
	{"LAST", func(m *api.ClusterMember, _ *Page) string { return Count(m.Last) }},
	{"COMMITTED", func(m *api.ClusterMember, _ *Page) string { return Count(m.Committed) }},
	{"APPLIED", func(m *api.ClusterMember, _ *Page) string { return Count(m.Applied) }},
	{"LAST-CONTACT", func(m *api.ClusterMember, _ *Page) string {
		if m.LastContact == nil {
			return ""
		}
		return Human(time.Duration(*m.LastContact))
	}},
	{"ERROR", func(m *api.ClusterMember, _ *Page) string { return m.Error }},
}

func showCluster(p *Page, c *api.Cluster, _ Asked) {
	lines := [][2]string{
		{"Cluster", cmp.Or(c.ID, "not formed yet")},
		{"Leader", fmt.Sprintf("%s, term %d", cmp.Or(Addr(c.Leader), "none"), c.Term)},
		{"This member", Addr(c.Self)},
		{"Log", fmt.Sprintf("last %d, committed %d, applied %d, in force %d", c.Last, c.Committed, c.Applied, c.InForce)},
		{"Zone changes", "accepted"},
	}
	if !c.Accepts {
		lines[4][1] = "not accepted: " + c.Trouble
	}
	for _, name := range []string{"default-zone-auto-join", "hard-zoning"} {
		if v, ok := c.Settings[name]; ok {
			lines = append(lines, [2]string{name, v})
		}
	}
	p.Pairs(lines)
	p.rows(tableOf(p, c.Members, memberColumns))
}
