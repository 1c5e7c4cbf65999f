package reflector

import (
	"maps"
	"net/netip"
	"slices"
)

// backlog is what some devices are still to be told, the same to each of them: keys, not
// states, each once however often it changed.
type backlog struct {
	users int // devices whose backlog it is
	keys  map[feedKey]news
	queue [ranks][]feedKey // in the order of their first change; some have changed their rank
	dump  *dump            // of a full sync
	full  bool             // it is that of a full sync
	anew  bool             // of which nothing was told yet
	more  bool             // the last message said that more zones follow
	last  *cause
	cause *cause // with the earliest fault, or the last one
}

// add takes in a post.
func (b *backlog) add(p *post) {
	for i := range p.news {
		b.put(p.news[i])
	}
	b.last = p.by
	if b.cause == nil || b.cause.fault.IsZero() || !p.by.fault.IsZero() && p.by.fault.Before(b.cause.fault) {
		b.cause = p.by
	}
}

func (b *backlog) put(n news) {
	if b.keys == nil {
		b.keys = map[feedKey]news{}
	}
	old, had := b.keys[n.feedKey]
	b.keys[n.feedKey] = n
	if r := n.rank(); !had || old.rank() != r {
		q := append(b.queue[r], n.feedKey)
		if len(q) > 2*len(b.keys)+8 { // keys that went to and fro
			q = b.tidy(q, r)
		}
		b.queue[r] = q
	}
}

// tidy drops from a queue what is not of its rank, or there twice.
func (b *backlog) tidy(q []feedKey, r rank) []feedKey {
	seen := map[feedKey]struct{}{}
	return slices.DeleteFunc(q, func(k feedKey) bool {
		n, there := b.keys[k]
		_, again := seen[k]
		seen[k] = struct{}{}
		return again || !there || n.rank() != r
	})
}

// next takes out the first key of a rank; ok is false when there is none.
func (b *backlog) next(r rank) (n news, ok bool) {
	for len(b.queue[r]) > 0 {
		k := b.queue[r][0]
		b.queue[r] = b.queue[r][1:]
		if n, ok = b.keys[k]; ok && n.rank() == r {
			delete(b.keys, k)
			return n, true
		}
	}
	b.queue[r] = nil
	return n, false
}

func (b *backlog) empty() bool { return len(b.keys) == 0 && b.dump == nil }

// urgent reports whether a loss is among it.
func (b *backlog) urgent() bool { return len(b.queue[rankGone])+len(b.queue[rankDown]) > 0 }

// patient reports whether all that is among it are losses that need not be told at once.
func (b *backlog) patient() bool {
	for r := range ranks {
		if r != rankAgain && len(b.queue[r]) > 0 {
			return false
		}
	}
	return b.dump == nil && len(b.queue[rankAgain]) > 0
}

// zonesWait reports whether zones or settings are among it.
func (b *backlog) zonesWait() bool {
	if b.dump != nil && b.dump.zones > 0 {
		return true
	}
	for _, r := range [...]rank{rankSettings, rankZone} {
		for _, k := range b.queue[r] {
			if _, there := b.keys[k]; there && k.kind != keyRefused {
				return true
			}
		}
	}
	return false
}

// clone gives one of its own to some of the devices whose backlog it is.
func (b *backlog) clone(users int) *backlog {
	c := *b
	b.users -= users
	c.users = users
	c.keys = maps.Clone(b.keys)
	for r := range c.queue {
		c.queue[r] = slices.Clone(b.queue[r])
	}
	if b.dump != nil {
		d := *b.dump
		c.dump = &d
	}
	return &c
}

// dump is how far a full sync has come with the tables: what is ahead. It goes through them
// as they are at each step. What is put into a table meanwhile is behind it, and posted as
// any change; so each key is told that is there throughout, and now and then one twice.
type dump struct {
	zones, hosts int          // of rolls
	few          []netip.Addr // of hosts only these; nil: all that the roll has
}

// roll holds rows in an order in which they can be walked a few at a time, from the end to
// the beginning, while rows come and go: one that comes is put at the end, where the walk
// has been, and so is one that takes the place of another that goes.
type roll[R placed] struct{ list []R }

// placed are rows that know their place in a roll.
type placed interface{ at() *place }

// place is one more than the index of a row in its roll; 0: it is in none.
type place int32

func (p *place) at() *place { return p }

func (l *roll[R]) add(row R) {
	if p := row.at(); *p == 0 {
		l.list = append(l.list, row)
		*p = place(len(l.list))
	}
}

func (l *roll[R]) remove(row R) {
	p := row.at()
	if *p == 0 {
		return
	}
	var none R
	last := len(l.list) - 1
	moved := l.list[last]
	l.list[*p-1], *moved.at() = moved, *p
	l.list[last] = none
	l.list, *p = l.list[:last], 0
}
