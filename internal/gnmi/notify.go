package gnmi

import (
	"slices"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/openinof/inof/internal/telemetry"
)

// notification begins one, with the origin that was asked for and the target, if one was.
func (s *stream) notification(origin string, at time.Time) *pb.Notification {
	n := &pb.Notification{Timestamp: at.UnixNano()}
	if origin != "" || s.target != "" {
		n.Prefix = &pb.Path{Origin: origin, Target: s.target}
	}
	return n
}

// update is one leaf.
func (s *stream) update(v *telemetry.Value, again uint32) *pb.Update {
	if again == 0 {
		return s.updates.of(v, s.encoding)
	}
	return &pb.Update{Path: theSchema.pathOf(v), Val: typed(v, s.encoding), Duplicates: again}
}

// pathOf is where a value is.
func (x *schema) pathOf(v *telemetry.Value) *pb.Path {
	l := x.of[v.Leaf]
	return &pb.Path{Elem: l.path(v.Keys, len(l.elems))}
}

// updates are those made last: what many are told is made once. Messages share them and do not
// change them.
type updates struct{ made map[updateKey]madeUpdate }

type updateKey struct {
	leaf     *telemetry.Leaf
	keys     *string // of the row that was read: each reading has its own
	encoding pb.Encoding
}

type madeUpdate struct {
	v  any
	up *pb.Update
}

// maxUpdates bounds what is kept for others: a beat of a large device.
const maxUpdates = 1 << 14

func (u *updates) of(v *telemetry.Value, e pb.Encoding) *pb.Update {
	k := updateKey{leaf: v.Leaf, encoding: e}
	if len(v.Keys) > 0 {
		k.keys = &v.Keys[0]
	}
	if m, ok := u.made[k]; ok && telemetry.Equal(m.v, v.V) {
		return m.up
	}
	if u.made == nil || len(u.made) >= maxUpdates {
		u.made = map[updateKey]madeUpdate{}
	}
	up := &pb.Update{Path: theSchema.pathOf(v), Val: typed(v, e)}
	u.made[k] = madeUpdate{v.V, up}
	return up
}

// waited writes what has waited, events first.
func (s *stream) waited(events []told, order []*entry, now time.Time, send func(*pb.Notification) error) error {
	for _, t := range events {
		if err := send(s.eventNote(t)); err != nil {
			return err
		}
	}
	for _, e := range order {
		if err := s.entry(e, now, send); err != nil {
			return err
		}
	}
	return nil
}

// entry writes what waits of one place, a notification for each time of reading.
func (s *stream) entry(e *entry, now time.Time, send func(*pb.Notification) error) error {
	if len(e.gone) > 0 {
		n := s.notification(e.origin, now)
		for _, g := range e.gone {
			l := theSchema.of[g.leaf]
			depth := len(l.elems)
			if g.whole {
				depth = l.entry
			}
			n.Delete = append(n.Delete, &pb.Path{Elem: l.path(g.keys, depth)})
		}
		if err := send(n); err != nil {
			return err
		}
	}
	slices.SortStableFunc(e.values, func(a, b waits) int { return a.At.Compare(b.At) })
	for len(e.values) > 0 {
		at := e.values[0].At
		n := s.notification(e.origin, at)
		for len(e.values) > 0 && e.values[0].At.Equal(at) && len(n.Update) < tooLong {
			n.Update = append(n.Update, s.update(&e.values[0].Value, e.values[0].again))
			e.values = e.values[1:]
		}
		if err := send(n); err != nil {
			return err
		}
	}
	return nil
}

// eventNote is one event: all of it together.
func (s *stream) eventNote(e told) *pb.Notification {
	t := e.tree
	l := theSchema.of[t[0].Leaf]
	n := s.notification(e.origin, t[0].At)
	if n.Prefix == nil {
		n.Prefix = &pb.Path{}
	}
	top := len(l.elems) - 1
	n.Prefix.Elem, n.Atomic = l.path(nil, top), true
	for i := range t {
		n.Update = append(n.Update, &pb.Update{Path: &pb.Path{Elem: theSchema.pathOf(&t[i]).Elem[top:]}, Val: typed(&t[i], s.encoding)})
	}
	return n
}

// all writes everything that is there and asked for, list entry by list entry.
func (s *stream) all(tree telemetry.Tree, send func(*pb.Notification) error) error {
	for _, u := range s.subs {
		var n *pb.Notification
		var place string
		flush := func() error {
			if n == nil {
				return nil
			}
			done := n
			n = nil
			return send(done)
		}
		var last *telemetry.Value
		for i := range tree {
			v := &tree[i]
			w := u.leaves[v.Leaf]
			if w == nil || !w.covers(v.Keys) {
				continue
			}
			if u.suppress {
				u.sent[theSchema.of[v.Leaf].id(v.Keys)+"\x00"+v.Leaf.Path] = v.V
			}
			here := w.list
			if n != nil && (here != place || !slices.Equal(last.Keys, v.Keys) || !last.At.Equal(v.At) || len(n.Update) >= tooLong) {
				if err := flush(); err != nil {
					return err
				}
			}
			if n == nil {
				n, place = s.notification(u.origin, v.At), here
			}
			n.Update = append(n.Update, s.update(v, 0))
			last = v
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}
