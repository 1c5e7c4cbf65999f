package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
)

// SetCluster says that the zones that are set from now on are those of a cluster as
// of a log entry, and which reflectors are its members. Everything that is sent
// afterwards says so.
func (r *Reflector) SetCluster(s wire.ClusterStamp, members []netip.Addr) {
	r.cluster = s
	if !slices.Equal(members, r.members) {
		r.members = slices.Clone(members[:min(len(members), wire.MaxClusterMembers)])
	}
}

// Cluster is what SetCluster said last.
func (r *Reflector) Cluster() wire.ClusterStamp { return r.cluster }

// endOfSyncNow is the End-of-Sync for a device that has got all there is.
func (r *Reflector) endOfSyncNow(resumed bool) *wire.EndOfSync {
	e := &wire.EndOfSync{Epoch: r.epoch, Seq: r.feed.handed, Resumed: resumed, Cluster: r.cluster, Members: r.members}
	if !resumed {
		e.Short, e.Resumed = r.shortOnes()
	}
	return e
}
