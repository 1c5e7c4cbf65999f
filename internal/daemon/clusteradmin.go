package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/internal/api"
)

// member gives the cluster this device is in, or the error that says it is in none.
func (d *Daemon) member() (*clusterStore, error) {
	if d.cluster == nil {
		return nil, fmt.Errorf("%w: device %s is in no cluster (reflector.cluster in its configuration)", api.ErrRefused, d.cfg.Load().Device.ID)
	}
	return d.cluster, nil
}

// Cluster implements query.Source.
func (d *Daemon) Cluster(ctx context.Context) (api.Cluster, error) {
	s, err := d.member()
	if err != nil {
		return api.Cluster{}, err
	}
	return s.show(s.node.Status(ctx)), nil
}

func (s *clusterStore) show(st cluster.Status) api.Cluster {
	c := api.Cluster{Self: st.Self.Device, Leader: st.Leader, Term: st.Term, Last: st.Last, Committed: st.Commit, Applied: st.Applied, InForce: st.InForce,
		Accepts: st.Quorum, Trouble: st.Lack, Settings: s.node.Settings()}
	if st.Cluster != 0 {
		c.ID = fmt.Sprintf("%016x", st.Cluster)
	}
	for _, m := range st.Members {
		_, inc, _ := strings.Cut(m.ID, "/")
		row := api.ClusterMember{Device: m.Device, Address: m.Address, Incarnation: inc, Voter: m.Voter, Self: m.Self, State: m.State,
			Term: m.Term, Last: m.Last, Committed: m.Commit, Applied: m.Applied, Error: m.Error}
		if m.Contact >= 0 {
			contact := api.Duration(m.Contact)
			row.LastContact = &contact
		}
		c.Members = append(c.Members, row)
	}
	return c
}

// AddMember implements api.ClusterSource.
func (d *Daemon) AddMember(ctx context.Context, c api.ClusterChange) error {
	return d.changeMembers(ctx, fmt.Sprintf("member %s at %s was added to the cluster", c.Device, c.Address), func(n *cluster.Node) error {
		return n.Add(ctx, c.Device, c.Address)
	})
}

// RemoveMember implements api.ClusterSource.
func (d *Daemon) RemoveMember(ctx context.Context, device netip.Addr) error {
	return d.changeMembers(ctx, fmt.Sprintf("member %s was removed from the cluster", device), func(n *cluster.Node) error {
		return n.Remove(ctx, device)
	})
}

// ReplaceMember implements api.ClusterSource.
func (d *Daemon) ReplaceMember(ctx context.Context, c api.ClusterChange) error {
	return d.changeMembers(ctx, fmt.Sprintf("member %s of the cluster was replaced, by that at %s", c.Device, c.Address), func(n *cluster.Node) error {
		return n.Replace(ctx, c.Device, c.Address)
	})
}

func (d *Daemon) changeMembers(ctx context.Context, done string, do func(*cluster.Node) error) error {
	s, err := d.member()
	if err != nil {
		return err
	}
	if err := clusterError(do(s.node)); err != nil {
		return err
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "cluster", Text: done + " by " + api.By(ctx), Fields: callerFields(ctx)})
	return nil
}

// SetClusterSetting implements api.ClusterSource. What is no setting of this version
// is refused here: the log would keep it.
func (d *Daemon) SetClusterSetting(ctx context.Context, v api.ClusterSetting) error {
	s, err := d.member()
	if err != nil {
		return err
	}
	if v.Name != cluster.SettingAutoJoin && v.Name != cluster.SettingHard {
		return fmt.Errorf("%w: %.80q is no setting; there are %s and %s", api.ErrInvalid, v.Name, cluster.SettingAutoJoin, cluster.SettingHard)
	}
	if err := s.enter(ctx, cluster.Entry{Kind: cluster.KindSetting, Meta: d.meta(ctx, ""), Name: v.Name, Value: v.Value}); err != nil {
		return err
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "zone", Text: fmt.Sprintf("%s was set to %s by %s", v.Name, v.Value, api.By(ctx)), Fields: callerFields(ctx)})
	return nil
}
