package reflector

import (
	"net/netip"
	"time"
)

// A loss is told at once. But a port, or a host, that fails and recovers without end makes as much
// work for each who is told as it has hosts, and what one is told waits behind what it was told
// before. So the first changes of one key are told at once, and while it goes on changing what it
// is then is told when nothing else is to do: once, however often it has changed since.

const (
	// oftenAtOnce is how many changes of one port, or one host, are told at once in oftenTime.
	oftenAtOnce = 4
	oftenTime   = time.Second
	// mostOften is how many keys of a device are looked at in that time.
	mostOften = 1024
	// againWork is what each host of a port makes its device pay for in a further one, in records
	// that are looked at: much of it is told to many.
	againWork = 64
)

// lately is how often the keys of a device have changed since a moment.
type lately struct {
	since   time.Time
	changes map[feedKey]*often
}

// often is how often one of them has.
type often struct {
	n int
	// gone is the last change of a port: what makes its other hosts the same is no other one, for a
	// long message is taken in pieces.
	gone bool
}

// damp marks the news of a change whose keys have changed too often of late.
func (r *Reflector) damp(t *change, by *cause) {
	d := r.devices[by.origin]
	if d == nil || by.came.IsZero() || len(t.news) == 0 {
		return
	}
	l := d.latelyAt(by.came)
	counted := map[feedKey]bool{}
	for i := range t.news {
		n := &t.news[i]
		k := n.feedKey
		switch n.kind {
		case keyDown: // all of a port together
			k.host.Addr = netip.Addr{}
		case keyHost:
		default:
			continue
		}
		if k.host.Device != d.id {
			continue
		}
		o := l.changes[k]
		switch {
		case o == nil && len(l.changes) >= mostOften:
			continue
		case o == nil:
			o = &often{n: 1}
			l.changes[k] = o
		case !counted[k] && (n.kind == keyHost || o.gone != n.gone):
			o.n++
		}
		counted[k], o.gone = true, n.gone
		if n.again = o.n > oftenAtOnce; n.again && n.kind == keyDown {
			r.work += againWork
		}
	}
}

// latelyAt is how often the keys of a device have changed, from a change on that came at a time.
func (d *device) latelyAt(came time.Time) *lately {
	l := &d.lately
	if l.changes == nil || came.Sub(l.since) > oftenTime {
		*l = lately{came, map[feedKey]*often{}}
	}
	return l
}

// first reports whether a key changes for the first time, and notes that it has.
func (l *lately) first(k feedKey) bool {
	if l.changes[k] != nil || len(l.changes) >= mostOften {
		return false
	}
	l.changes[k] = &often{n: 1}
	return true
}
