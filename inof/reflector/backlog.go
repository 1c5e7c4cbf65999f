package reflector

import (
	"maps"
	"slices"
)

// backlog is what some devices are still to be told, the same to each of them: keys, not
// states, each once however often it changed.
type backlog struct {
	users int // devices whose backlog it is
	keys  map[feedKey]news
	queue [ranks][]feedKey // in the order of their first change; some have changed their rank
	dump  *dump            // of a full sync
	known int              // of the roll of hosts, ahead: those that the device knows are told anew
	area  bool             // keyArea is among the keys
	large bool             // it had more than a few keys
	full  bool             // it is that of a full sync
	anew  bool             // of which nothing was told yet
	more  bool             // the last message said that more zones follow
	last  *cause
}

// backlog gives an empty one, in the memory of the last.
func (r *Reflector) backlog(users int) *backlog {
	b := &backlog{users: users, keys: r.keys}
	r.keys = nil
	return b
}

// add takes in a post.
func (b *backlog) add(p *post) {
	for i := range p.news {
		n := p.news[i]
		n.by = p.by
		b.put(n)
	}
	b.last = p.by
}

func (b *backlog) put(n news) {
	if b.keys == nil {
		b.keys = map[feedKey]news{}
	}
	old, had := b.keys[n.feedKey]
	b.keys[n.feedKey] = n
	b.large = b.large || len(b.keys) > smallChange
	b.area = b.area || n.kind == keyArea
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

func (b *backlog) empty() bool { return len(b.keys) == 0 && b.dump == nil && b.known == 0 }

// walks reports whether all hosts that the device knows are to be told, a few at a time.
func (b *backlog) walks() bool { return b.known > 0 || b.area }

// urgent reports whether a loss is among it.
func (b *backlog) urgent() bool { return len(b.queue[rankGone])+len(b.queue[rankDown]) > 0 }

// patient reports whether all that is among it are losses that need not be told at once.
func (b *backlog) patient() bool {
	for r := range ranks {
		if r != rankAgain && len(b.queue[r]) > 0 {
			return false
		}
	}
	return b.dump == nil && b.known == 0 && len(b.queue[rankAgain]) > 0
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

// owe says what devices are still to be told, nil: nothing.
func (r *Reflector) owe(devs []*device, b *backlog) {
	for _, d := range devs {
		if d.owed = b; b != nil && !d.owing {
			d.owing = true
			r.owing = append(r.owing, d)
		}
	}
}

// disown forgets what a device is still to be told.
func (r *Reflector) disown(d *device) {
	if d.owed != nil {
		d.owed.users--
		d.owed = nil
	}
	r.takeBack(d)
}
