package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/cluster"
)

// This file breaks clusters, and has an operator mend what only one can.

// memberStrikes are the faults of a cluster beyond those of every reflector.
var memberStrikes = []fault{
	{3, (*world).stopLeader},
	{4, (*world).partMembers},
	{2, (*world).dismissMember},
}

// leads reports whether a member is the leader, as an operator was told last.
func (m *member) leads() bool { return m.d.id == m.d.w.quorum.leader }

// stopLeader stops the leader, in order or not.
func (w *world) stopLeader() {
	if m := w.quorum.someMember((*member).leads); m != nil {
		w.tracef("%s is the leader", m.d.name)
		w.restartMaybeLost(m.d, 30*time.Second)
	}
}

// partMembers sets members apart for a while: clients still reach all of them.
func (w *world) partMembers() {
	sides := slices.Clone(w.reflectors)
	w.rng.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	k := 1 + w.rng.IntN(len(sides)-1)
	until := w.short(60 * time.Second)
	w.tracef("%s is apart from %s for %v", names(sides[:k]), names(sides[k:]), until)
	w.quorum.part(sides[:k], sides[k:], true)
	w.after(until, func() { w.quorum.part(sides[:k], sides[k:], false) })
}

func (q *quorum) part(some, others []*device, apart bool) {
	for _, a := range some {
		for _, b := range others {
			q.net.Part(a.id, b.id, apart)
		}
	}
}

func names(ds []*device) (out []string) {
	for _, d := range ds {
		out = append(out, d.name)
	}
	return out
}

// dismissMember has an operator take a member out of the cluster, and add it again later.
func (w *world) dismissMember() {
	if w.quorum.lacks() {
		return
	}
	r := pick(w, w.reflectors)
	w.tracef("%s is to be a member no more", r.name)
	r.member.removed, r.member.votes = true, false
	w.after(w.short(60*time.Second), func() { r.member.removed = false })
}

// lacks reports whether a member is missing that an operator has to bring back. Without two of
// three a cluster is lost.
func (q *quorum) lacks() bool {
	return slices.ContainsFunc(q.w.reflectors, func(r *device) bool { return !r.member.votes })
}

// patrol has an operator look after the members again and again: one that has lost its disk is
// replaced, one that is not to be a member is removed, and the others are added.
func (q *quorum) patrol() {
	q.w.after(2*time.Second, q.patrol)
	m := q.someMember(func(m *member) bool { return m.formed && !m.removed })
	if m == nil || q.asked {
		return
	}
	q.asked = true
	n, ctx := m.node, m.ctx
	go func() {
		st := n.Status(ctx)
		q.post(func() {
			of, mend := q.look(&st)
			go func() {
				err := mend(ctx, n)
				q.post(func() {
					q.asked = false
					if err != nil {
						q.w.tracef("the operator fails: %v", err)
					}
					if err != nil && strings.Contains(err.Error(), "nothing was ever in force") { // and what to do
						q.w.restart(of, true, time.Second)
						of.member.wipe()
					}
				})
			}()
		})
	}()
}

// look takes what a member says of all, and gives what the operator does about it.
func (q *quorum) look(st *cluster.Status) (of *device, mend func(context.Context, *cluster.Node) error) {
	nothing := func(context.Context, *cluster.Node) error { return nil }
	if !st.Quorum {
		return nil, nothing
	}
	q.leader = st.Leader
	for _, r := range q.w.reflectors {
		i := slices.IndexFunc(st.Members, func(s cluster.MemberStatus) bool { return s.Device == r.id })
		switch {
		case r.member.removed && i >= 0:
			q.w.tracef("the operator removes %s", r.name)
			return r, func(ctx context.Context, n *cluster.Node) error { return n.Remove(ctx, r.id) }
		case r.member.removed || !r.running:
		case i < 0:
			q.w.tracef("the operator adds %s", r.name)
			return r, func(ctx context.Context, n *cluster.Node) error { return n.Add(ctx, r.id, memberAddress(r.id)) }
		case st.Members[i].ID != r.member.node.Self().String():
			q.w.tracef("the operator replaces %s", r.name)
			return r, func(ctx context.Context, n *cluster.Node) error { return n.Replace(ctx, r.id, memberAddress(r.id)) }
		default:
			r.member.votes = st.Members[i].Voter
		}
	}
	return nil, nothing
}

// heal ends what was done to the members. What an operator has to mend takes its time.
func (q *quorum) heal() {
	q.net.Join()
	for _, r := range q.w.reflectors {
		r.member.removed = false
	}
}
