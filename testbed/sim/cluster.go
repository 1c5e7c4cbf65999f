package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/testbed/pki"
	"github.com/openinof/inof/testbed/wires"
	"github.com/openinof/inof/zone"
)

// This file is about reflectors that are the members of a cluster. Their members are the
// real ones (cluster.Node): the library's Raft, our transport on connections in memory, our
// log entries and snapshots. They run as goroutines of their own, so that a run with them
// has to be in a bubble of testing/synctest: the world sleeps until its next event is due,
// and does what a member has for it in between, once all of them have done what they can at that
// moment. Which of two messages that wait for it a goroutine of the library takes first is left to
// the run time: equal seeds give much the same run, not always an equal one.

// quorum is the cluster as the world sees it: what operators asked of it, and the log that
// follows from that, kept apart from the code under test.
type quorum struct {
	w     *world
	net   wires.Net
	began time.Time // of the world, by the clock of the bubble

	mu    sync.Mutex
	inbox []func()
	kick  chan struct{}

	log     []logged // by index
	pending []*proposal
	asked   bool       // an operator looks after the members, and has no answer yet
	leader  netip.Addr // as the operator was told last
}

// logged is the version of the zones from an entry of the log on.
type logged struct {
	index   uint64
	version int
	vague   bool // the entry is this one or an earlier one: nobody was seen to take it by itself
}

// proposal is a change that an operator has asked for and that is not known to be made.
type proposal struct {
	entry  cluster.Entry
	at     string
	asking bool // no answer yet
	done   bool // it was answered that it is made
}

// member is what a reflector of a cluster has beside its Core.
type member struct {
	d       *device
	storage *cluster.Storage
	node    *cluster.Node
	ctx     context.Context
	stop    context.CancelFunc
	going   bool // the last process has not ended yet
	formed  bool // it has zones of the cluster
	votes   bool // as an operator was told last
	removed bool // an operator takes it out of the cluster
}

func newQuorum(w *world) *quorum {
	q := &quorum{w: w, began: time.Now(), kick: make(chan struct{}, 1)}
	for _, r := range w.reflectors {
		r.member = &member{d: r}
		r.member.wipe()
	}
	w.strikes = slices.Concat(w.strikes, memberStrikes)
	q.patrol()
	return q
}

// wipe gives the member an empty disk.
func (m *member) wipe() { m.storage, m.votes = cluster.MemoryStorage(), false }

// post has something done by the world's goroutine.
func (q *quorum) post(fn func()) {
	q.mu.Lock()
	q.inbox = append(q.inbox, fn)
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

func (q *quorum) take() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.inbox) == 0 {
		return nil
	}
	fn := q.inbox[0]
	q.inbox = q.inbox[1:]
	return fn
}

// next is clock.next with members that have their own time.
func (q *quorum) next(end time.Duration) bool {
	for {
		q.w.cfg.Wait()
		if fn := q.take(); fn != nil {
			q.w.now = max(q.w.now, time.Since(q.began))
			fn()
			return true
		}
		due := end
		if first, ok := q.w.queue.Next(); ok {
			due = min(due, time.Duration(first))
		}
		wait := due - time.Since(q.began)
		if wait <= 0 {
			return q.w.next(end)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-q.kick:
			t.Stop()
		}
	}
}

// close ends all members, for the bubble ends when every goroutine has.
func (q *quorum) close() {
	for _, r := range q.w.reflectors {
		q.net.Drop(r.id)
		if r.member.stop != nil {
			r.member.stop()
		}
	}
	for slices.ContainsFunc(q.w.reflectors, func(r *device) bool { return r.member.going }) {
		if fn := q.take(); fn != nil {
			fn()
		} else {
			<-q.kick
		}
	}
}

func memberAddress(id netip.Addr) netip.AddrPort { return netip.AddrPortFrom(id, 19517) }

// authority issues the certificates of all members of all runs.
var authority = sync.OnceValues(pki.New)

func certificates(dev netip.Addr) (*link.CredentialStore, error) {
	ca, err := authority()
	if err != nil {
		return nil, err
	}
	c, err := ca.Credentials(dev)
	return link.NewCredentialStore(c, nil), err
}

// open makes the member of a process that starts; false: the last one has not ended yet.
func (m *member) open() bool {
	w := m.d.w
	if m.going {
		return false
	}
	var members []cluster.Member
	for _, r := range w.reflectors {
		members = append(members, cluster.Member{Device: r.id, Address: memberAddress(r.id)})
	}
	seed := w.zones[0]
	store, err := certificates(m.d.id)
	if err != nil {
		w.failf("%s: %v", m.d.name, err)
		return false
	}
	n, err := cluster.Open(cluster.Config{
		Self: m.d.id, Members: members, Storage: m.storage, TLS: func() *link.CredentialStore { return store },
		Seed: func() (zone.Set, error) { return seed, nil }, Rules: zone.Rules{},
		SnapshotEntries: 8, SnapshotInterval: 10 * time.Second, Trailing: 4,
		ListenOn: w.quorum.net.Listen, Dial: w.quorum.net.From(m.d.id),
		Event: func(e cluster.Event) { w.quorum.post(func() { w.tracef("%s: %s", m.d.name, e.Text) }) },
	})
	if err != nil {
		w.failf("%s: cluster: %v", m.d.name, err)
		return false
	}
	m.node = n
	set, stamp := n.Zones()
	if m.formed = stamp.Known(); m.formed {
		m.d.version = w.quorum.took(m, stamp.Index, set)
		m.d.had = append(m.d.had, m.d.version)
	}
	return true
}

// run is the member while its process runs.
func (m *member) run() {
	q, n := m.d.w.quorum, m.node
	ctx, stop := context.WithCancel(context.Background())
	m.ctx, m.stop, m.going = ctx, stop, true
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			q.post(func() { q.w.failf("%s: cluster: %v", m.d.name, err) })
		}
	})
	running.Go(func() {
		for {
			b, err := n.Next(ctx)
			if err != nil {
				return
			}
			done := make(chan struct{})
			q.post(func() {
				if ctx.Err() == nil {
					m.take(&b)
				}
				close(done)
			})
			<-done
			n.Done(b.Stamp.Index)
		}
	})
	go func() {
		running.Wait()
		q.post(func() { m.going = false })
	}()
}

// end is the end of the process: nothing that it says after it comes out.
func (m *member) end() {
	m.d.w.quorum.net.Drop(m.d.id)
	m.stop()
}

// take brings into force what is committed, as the daemon does.
func (m *member) take(b *cluster.Batch) {
	w, v := m.d.w, m.d.version
	if b.Set != nil {
		v = w.quorum.took(m, b.Stamp.Index, *b.Set)
	}
	for _, e := range b.Edits {
		if e.Zone.Name != "" {
			v = w.quorum.took(m, e.Index, edited(w.zones[w.quorum.at(e.Index).version], e))
		}
	}
	m.formed = m.formed || b.Stamp.Known()
	m.d.inForce(v, func() error {
		if n := b.InForce(m.d.core, w.time()); n > 0 {
			return fmt.Errorf("%d changes of the cluster are not taken", n)
		}
		return nil
	})
}

// edited is a set of zones after an edit.
func edited(s zone.Set, e cluster.Edit) zone.Set {
	out := zone.Set{AutoJoin: s.AutoJoin, Zones: slices.DeleteFunc(slices.Clone(s.Zones), func(z zone.Zone) bool { return z.Name == e.Zone.Name })}
	if !e.Gone {
		out.Zones = append(out.Zones, e.Zone)
	}
	return out.Canonical()
}

// at is the last entry of the log that is not after an index.
func (q *quorum) at(index uint64) *logged {
	i := len(q.log) - 1
	for i > 0 && q.log[i].index > index {
		i--
	}
	return &q.log[i]
}

// took checks what a member has as of an entry of the log, and gives its version: all members
// have the same as of one entry, and nothing but what operators asked for.
func (q *quorum) took(m *member, index uint64, set zone.Set) int {
	w := q.w
	set = set.Canonical()
	if len(q.log) == 0 {
		q.log = []logged{{index: index}} // the first entry: the seed
		w.tracef("%s has the first zones as of entry %d", m.d.name, index)
	}
	here := q.at(index)
	if w.zones[here.version].Equal(set) {
		return here.version
	}
	if here.version+1 < len(q.log) { // versions are places in the log
		if next := &q.log[here.version+1]; next.vague && w.zones[next.version].Equal(set) {
			next.index, next.vague = index, false
			return next.version
		}
		w.failf("%s has %v as of entry %d, others %v", m.d.name, set, index, w.zones[here.version])
		return here.version
	}
	steps, ok := q.explain(w.zones[here.version], set, q.pending)
	if !ok {
		w.failf("%s has %v as of entry %d, which nobody asked for; it was %v", m.d.name, set, index, w.zones[here.version])
		return here.version
	}
	for i, p := range steps {
		q.pending = slices.DeleteFunc(q.pending, func(o *proposal) bool { return o == p })
		w.zones = append(w.zones, p.after(w.zones.now().Set))
		w.changed = w.now
		v := w.zones.now().n
		w.tracef("entry %d: zones version %d: %v %s, which was asked of %s", index, v, p.entry.Kind, p.entry.Name, p.at)
		q.log = append(q.log, logged{index, v, i+1 < len(steps)})
	}
	for _, r := range w.reflectors {
		r.want = w.zones.now().n
	}
	return w.zones.now().n
}

// explain finds changes that were asked for and make one set of zones another one; those
// without an answer first.
func (q *quorum) explain(from, to zone.Set, by []*proposal) ([]*proposal, bool) {
	if from.Equal(to) {
		return nil, true
	}
	by = slices.Clone(by)
	slices.SortStableFunc(by, func(a, b *proposal) int {
		switch {
		case a.asking == b.asking:
			return 0
		case a.asking:
			return -1
		}
		return 1
	})
	for depth := 1; depth <= len(by); depth++ {
		if steps, ok := search(from, to, by, depth); ok {
			return steps, true
		}
	}
	return nil, false
}

func search(from, to zone.Set, by []*proposal, depth int) ([]*proposal, bool) {
	for i, p := range by {
		next := p.after(from)
		switch {
		case next.Equal(from):
		case next.Equal(to):
			return []*proposal{p}, true
		case depth > 1:
			if rest, ok := search(next, to, slices.Concat(by[:i], by[i+1:]), depth-1); ok {
				return append([]*proposal{p}, rest...), true
			}
		}
	}
	return nil, false
}

// after is what the change makes of some zones, naively; the same when it is refused.
func (p *proposal) after(s zone.Set) zone.Set {
	out := zone.Set{AutoJoin: s.AutoJoin, Zones: slices.Clone(s.Zones)}
	e := &p.entry
	i := slices.IndexFunc(out.Zones, func(z zone.Zone) bool { return z.Name == e.Name })
	switch {
	case e.Kind == cluster.KindSetting:
		out.AutoJoin = e.Value == "true"
	case e.Kind == cluster.KindAddZone && i < 0:
		out.Zones = append(out.Zones, zone.Zone{Name: e.Name, Members: e.Members})
	case e.Kind == cluster.KindAddZone || i < 0:
	case e.Kind == cluster.KindRemoveZone:
		out.Zones = slices.Delete(out.Zones, i, i+1)
	case e.Kind == cluster.KindAddMembers:
		out.Zones[i].Members = slices.Concat(out.Zones[i].Members, e.Members)
	case e.Kind == cluster.KindRemoveMembers:
		left := slices.Clone(out.Zones[i].Members)
		for _, gone := range e.Members {
			k := slices.Index(left, gone)
			if k < 0 {
				return s
			}
			left = slices.Delete(left, k, k+1)
		}
		out.Zones[i].Members = left
	}
	return out.Canonical()
}

// propose asks some member for a change. While one has no answer there is no other, as of one
// operator.
func (q *quorum) propose(e cluster.Entry) {
	m := q.someMember(func(m *member) bool { return m.formed })
	if m == nil || slices.ContainsFunc(q.pending, func(p *proposal) bool { return p.asking }) {
		return
	}
	p := &proposal{entry: e, at: m.d.name, asking: true}
	q.pending = append(q.pending, p)
	q.w.tracef("%v %s is asked of %s", e.Kind, e.Name, m.d.name)
	n, ctx := m.node, m.ctx
	go func() {
		res, err := n.Change(ctx, e)
		q.post(func() { q.answered(p, res, err) })
	}()
}

// answered takes the answer to a proposal.
func (q *quorum) answered(p *proposal, res cluster.Result, err error) {
	p.asking = false
	open := slices.Contains(q.pending, p)
	var refused *cluster.Refusal
	q.w.tracef("%v %s was asked of %s: %v", p.entry.Kind, p.entry.Name, p.at, err)
	switch {
	case err == nil:
		p.done = true
		if as := q.w.zones[q.at(res.Index).version]; open && p.after(as).Equal(as) { // it changed nothing
			q.drop(p)
		}
	case errors.As(err, &refused), errors.Is(err, cluster.ErrNoLeader):
		if !open {
			q.w.failf("%v %s is made, and %s said: %v", p.entry.Kind, p.entry.Name, p.at, err)
		}
		q.drop(p)
	}
}

func (q *quorum) drop(p *proposal) {
	q.pending = slices.DeleteFunc(q.pending, func(o *proposal) bool { return o == p })
}

// settled reports whether every member has all that was committed; why not.
func (q *quorum) settled() (string, bool) {
	for _, p := range q.pending {
		if p.asking || p.done {
			return fmt.Sprintf("%v %s, which was asked of %s, is not made", p.entry.Kind, p.entry.Name, p.at), false
		}
	}
	for _, r := range q.w.reflectors {
		if text := r.member.node.Trouble(); text != "" {
			return r.name + ": " + text, false
		}
		if !r.member.votes {
			return r.name + " has no vote in the cluster", false
		}
	}
	return "", true
}

func (q *quorum) someMember(which func(*member) bool) *member {
	var some []*member
	for _, r := range q.w.reflectors {
		if r.running && which(r.member) {
			some = append(some, r.member)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return pick(q.w, some)
}
