package apitest

import (
	"context"
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
)

// AddMember implements api.ClusterSource.
func (s *Source) AddMember(_ context.Context, c api.ClusterChange) error {
	return s.change("add member %s %s", c.Device, c.Address)
}

// RemoveMember implements api.ClusterSource.
func (s *Source) RemoveMember(_ context.Context, device netip.Addr) error {
	return s.change("remove member %s", device)
}

// ReplaceMember implements api.ClusterSource.
func (s *Source) ReplaceMember(_ context.Context, c api.ClusterChange) error {
	return s.change("replace member %s %s", c.Device, c.Address)
}

// SetClusterSetting implements api.ClusterSource.
func (s *Source) SetClusterSetting(_ context.Context, v api.ClusterSetting) error {
	return s.change("set %s %s", v.Name, v.Value)
}

// sampleCluster is a cluster of three of which one is away.
func sampleCluster() api.Cluster {
	contact := api.Duration(40 * time.Millisecond)
	addr := netip.MustParseAddr
	return api.Cluster{
		ID: "5eed0000000000c1", Self: addr("192.0.2.250"), Leader: addr("192.0.2.251"), Term: 7, Last: 1042, Committed: 1042, Applied: 1041, InForce: 1041,
		Accepts: true, Settings: map[string]string{"default-zone-auto-join": "true", "hard-zoning": "false"},
		Members: []api.ClusterMember{
			{Device: addr("192.0.2.250"), Address: "192.0.2.250:19517", Incarnation: "00000000000000a1", Voter: true, Self: true, State: "follower", Term: 7, Last: 1042, Committed: 1042, Applied: 1041, LastContact: &contact},
			{Device: addr("192.0.2.251"), Address: "192.0.2.251:19517", Incarnation: "00000000000000b2", Voter: true, State: "leader", Term: 7, Last: 1042, Committed: 1042, Applied: 1041, LastContact: new(api.Duration)},
			{Device: addr("192.0.2.252"), Address: "192.0.2.252:19517", Incarnation: "00000000000000c3", Voter: true, State: "unreachable", Error: "connection refused"},
		},
	}
}
