package inof

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// MaxClusterMembers is how many reflectors one cluster may have.
const MaxClusterMembers = 9

// ClusterStamp says that the zones of a reflector are those of a cluster, as of an
// entry of the cluster's log (docs/protocol.md, "Clusters"). The zero value is a
// reflector that stands for itself.
type ClusterStamp struct {
	ID    uint64 // of the cluster, random and never zero
	Index uint64 // of the last log entry that is in force at the reflector; 0: not said
}

// Known tells whether there is a cluster.
func (s ClusterStamp) Known() bool { return s.ID != 0 }

// SetCluster says that the zones that are set from now on are those of a cluster as
// of a log entry, and which reflectors are its members. Everything that is sent
// afterwards says so.
func (r *Reflector) SetCluster(s ClusterStamp, members []netip.Addr) {
	r.cluster = s
	if !slices.Equal(members, r.members) {
		r.members = slices.Clone(members[:min(len(members), MaxClusterMembers)])
	}
}

// Cluster is what SetCluster said last.
func (r *Reflector) Cluster() ClusterStamp { return r.cluster }

// endOfSyncNow is the End-of-Sync for a device that has got all there is.
func (r *Reflector) endOfSyncNow(resumed bool) *EndOfSync {
	e := &EndOfSync{Epoch: r.epoch, Seq: r.feed.handed, Resumed: resumed, Cluster: r.cluster, Members: r.members}
	if !resumed {
		e.Short, e.Resumed = r.shortOnes()
	}
	return e
}

func appendCluster(b []byte, s ClusterStamp) []byte {
	if !s.Known() {
		return b
	}
	b, at := beginTLV(b, tlvCluster)
	b = binary.BigEndian.AppendUint64(b, s.ID)
	return endTLV(binary.BigEndian.AppendUint64(b, s.Index), at)
}

func decodeCluster(r *reader) ClusterStamp {
	s := ClusterStamp{ID: r.u64("cluster.id"), Index: r.u64("cluster.index")}
	if r.err == nil && !s.Known() {
		r.fail("cluster.id", "0 is no cluster")
	}
	return s
}

// within is the stamp of a message that others of the same state follow.
func (s ClusterStamp) within() ClusterStamp { return ClusterStamp{ID: s.ID} }

func appendShort(b []byte, short []netip.Addr) ([]byte, error) {
	if len(short) > MaxSyncShort {
		return nil, malformed("EndOfSync.short", "%d, want at most %d", len(short), MaxSyncShort)
	}
	for _, dev := range short {
		if err := checkAddr("EndOfSync.short", dev); err != nil {
			return nil, err
		}
		var at int
		b, at = beginTLV(b, tlvSyncShort)
		b = endTLV(appendAddr(b, dev), at)
	}
	return b, nil
}

func appendMembers(b []byte, members []netip.Addr) ([]byte, error) {
	if len(members) > MaxClusterMembers {
		return nil, malformed("EndOfSync.members", "%d, want at most %d", len(members), MaxClusterMembers)
	}
	for _, m := range members {
		if err := checkAddr("EndOfSync.member", m); err != nil {
			return nil, err
		}
		var at int
		b, at = beginTLV(b, tlvClusterMember)
		b = endTLV(appendAddr(b, m), at)
	}
	return b, nil
}

// The reflectors of one cluster are one voice: of a zone counts what the one says
// that is furthest in the cluster's log. One that lags behind, or is cut off from
// the others, neither withdraws nor holds back anything.

// voice tells whether j and k are reflectors of one cluster.
func (l *learned) voice(j, k int) bool {
	a, b := l.sources[j].cluster, l.sources[k].cluster
	return j == k || a.Known() && a.ID == b.ID
}

// ranked are the sources of the voice of j, the one that counts most first.
func (l *learned) ranked(j int, out []int) []int {
	for k := range l.sources {
		if l.voice(j, k) {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return l.compareRank(a, b)
	})
	return out
}

// compareRank orders by log index. Of those that are equally far one whose word is
// complete, silent or not, comes before one whose sync is under way or was cut off:
// what that one says may be of a later state already, and is not all of it.
func (l *learned) compareRank(a, b int) int {
	x, y := &l.sources[a], &l.sources[b]
	return cmp.Or(cmp.Compare(y.cluster.Index, x.cluster.Index), cmp.Compare(x.standing(), y.standing()))
}

func (s *source) standing() int {
	if s.up && s.synced || !s.up && !s.partly {
		return 0
	}
	return 1
}

// speaks is what the voice of reflector j says of a zone: the word of the first
// that has one. Of those with the same rank the one that says the zone counts: what it
// says is what the log says, and the others only do not think that it concerns us.
func (l *learned) speaks(j int, z *learnedZone) (w *zoneWord, denied bool) {
	if !l.sources[j].cluster.Known() {
		return &z.said[j], z.said[j].gen == 0 && l.denies(j, z)
	}
	var buf [MaxReflectors]int
	order := l.ranked(j, buf[:0])
	for i := 0; i < len(order); {
		first := order[i]
		for ; i < len(order) && l.compareRank(first, order[i]) == 0; i++ {
			if k := order[i]; z.said[k].gen != 0 {
				return &z.said[k], false
			} else if l.denies(k, z) {
				denied = true
			}
		}
		if denied {
			break
		}
	}
	return &zoneWord{}, denied
}

// first tells whether j is the first source of its voice: the one that a voice is
// counted at.
func (l *learned) first(j int) bool {
	for k := range j {
		if l.voice(j, k) {
			return false
		}
	}
	return true
}

// follow notes of which state of a cluster the word of reflector i is from now on;
// whole tells that it has said all of that state. It tells whether that may matter.
func (l *learned) follow(i int, s ClusterStamp, whole bool) bool {
	old := l.sources[i].cluster
	if !whole && s.Index > 0 {
		l.sources[i].next = s
	}
	l.sources[i].partly = s.Index == 0 || !whole
	switch {
	case !s.Known() || old == s:
		return false
	case old.ID != s.ID && !whole:
		s.Index = 0
	case old.ID == s.ID && (s.Index == 0 || !whole):
		return false
	}
	l.sources[i].cluster = s
	return true
}

// reach is follow for the End-of-Sync of reflector i. A change that came after the
// End-of-Sync was made may have been put before it by a slow session's queue.
func (l *learned) reach(i int, m *EndOfSync) {
	s := &l.sources[i]
	s.cluster, s.fellows, s.partly = m.Cluster, m.Members, false
	if s.next.ID == s.cluster.ID {
		s.cluster.Index = max(s.cluster.Index, s.next.Index)
	}
}

// complement is for when the sync of reflector i is complete: what it does not say of
// hosts and settings may count now.
func (l *learned) complement(i int, resumed bool, a *Applied) {
	if s := l.resettle(); s != nil {
		a.Settings = s
	}
	if !l.sources[i].cluster.Known() || len(l.sources) < 2 {
		return
	}
	if !resumed {
		for k, e := range l.hosts {
			if e.said[i] == 0 {
				l.doubted(i, k)
			}
		}
	}
	l.redoubt(a)
}

// rejudge follows a change of who is ahead in a voice: that matters only where its
// members differ. Afresh: a reflector has turned out to be of a cluster.
func (l *learned) rejudge(afresh bool, a *Applied) {
	if afresh {
		l.judgeAll(a)
	} else {
		for name := range l.split {
			if z := l.zones[name]; z != nil {
				l.judge(name, z, a)
			}
		}
	}
	a.sort()
	l.redoubt(a)
	if s := l.resettle(); s != nil {
		a.Settings = s
	}
}

// splits tells whether the members of a voice differ about a zone at present.
func (l *learned) splits(z *learnedZone) bool {
	for j := range l.sources {
		if !l.sources[j].cluster.Known() {
			continue
		}
		for k := range j {
			if !l.voice(j, k) {
				continue
			}
			a, b := &z.said[j], &z.said[k]
			if (a.gen == 0) != (b.gen == 0) || !slices.Equal(a.members, b.members) {
				return true
			}
		}
	}
	return false
}

// Hosts need no consensus, but which of them concern this device is by the zones. One
// that only members say that others have overtaken, who do not say it, may be there
// because of zones that are no more: it stays known, for the zones in force at this
// device, and stays out of the default zone.

// concerned tells whether the word counts that a host concerns this device.
func (l *learned) concerned(c *claim) bool {
	for j := range l.sources {
		s := &l.sources[j]
		if s.up && c.said[j] >= s.valid && c.said[j] != 0 && !l.overruled(j, c) {
			return true
		}
	}
	return false
}

// denials tells whether it counts that somebody has said the record, and since then
// that it is in no zone of this device, or has answered so: not what a member says that
// another one, which says the record or that it is free, has overtaken.
func (l *learned) denials(c *claim) bool {
	for j := range l.sources {
		if c.stands[j] == StandingZoned && (c.said[j] == 0 || l.lags(j, c)) && !l.overtakenBy(j, func(k int) bool { return c.said[k] != 0 || c.stands[k].free() }) {
			return true
		}
	}
	return false
}

// overruled tells whether a member that is further than j does not say what j says.
func (l *learned) overruled(j int, c *claim) bool {
	return l.overtakenBy(j, func(k int) bool { return c.said[k] == 0 })
}

// overtakenBy tells whether a member of the same cluster is further than j, of those
// that are chosen.
func (l *learned) overtakenBy(j int, chosen func(k int) bool) bool {
	if !l.sources[j].cluster.Known() {
		return false
	}
	for k := range l.sources {
		if o := &l.sources[k]; o.up && o.synced && l.voice(j, k) && o.cluster.Index > l.sources[j].cluster.Index && chosen(k) {
			return true
		}
	}
	return false
}

// doubted notes a host whose concern must be looked at when a member has moved on.
func (l *learned) doubted(i int, k zone.HostKey) {
	if !l.sources[i].cluster.Known() || len(l.sources) < 2 {
		return
	}
	if l.doubt == nil {
		l.doubt = map[zone.HostKey]struct{}{}
	}
	l.doubt[k] = struct{}{}
}

// redoubt looks at the hosts in doubt.
func (l *learned) redoubt(a *Applied) {
	for k := range l.doubt {
		switch e := l.hosts[k]; {
		case e == nil || e.void:
			delete(l.doubt, k)
		case l.concerned(&e.claim):
			delete(l.doubt, k)
			a.Placed = append(a.Placed, k)
		default:
			a.Unplaced = append(a.Unplaced, k)
		}
	}
	slices.SortFunc(a.Unplaced, compareKeys)
}

// SetReflectorAddresses says at which addresses the reflectors are that
// SetReflectors counts. One that is never heard is not waited for when it is a
// member of a cluster that is.
func (c *Client) SetReflectorAddresses(addrs []netip.Addr) {
	c.learned.addrs = slices.Clone(addrs)
}

// spoken is how many of the configured reflectors were never heard themselves, but
// speak through another member of their cluster.
func (l *learned) spoken() int {
	n := 0
	for _, addr := range l.addrs {
		i, _ := l.index(addr)
		if i >= 0 && l.sources[i].heard {
			continue
		}
		for j := range l.sources {
			if s := &l.sources[j]; s.heard && slices.Contains(s.fellows, addr) {
				n++
				break
			}
		}
	}
	return n
}

// Clusters gives the state of a cluster's log of which each reflector's word is.
func (c *Client) Clusters() map[netip.Addr]ClusterStamp {
	out := map[netip.Addr]ClusterStamp{}
	for i := range c.learned.sources {
		if s := &c.learned.sources[i]; s.cluster.Known() {
			out[s.id] = s.cluster
		}
	}
	return out
}

// settingsOf are the settings of the voice of reflector j.
func (l *learned) settingsOf(j int) *Settings {
	if !l.sources[j].cluster.Known() {
		return l.sources[j].settings
	}
	var buf [MaxReflectors]int
	for _, k := range l.ranked(j, buf[:0]) {
		if s := l.sources[k].settings; s != nil {
			return s
		}
	}
	return nil
}
