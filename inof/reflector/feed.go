package reflector

import (
	"cmp"
	"net/netip"
	"slices"
	"unsafe"
)

// The feed of a reflector is which keys have changed, in order, each with the devices that
// are to hear of it. It holds no states: what a device is told of a key is the state when it
// pulls. So a device that pulls late, or comes back, hears the latest state of each key once,
// and a full sync is no more than a pull of all keys that concern the device.
//
// A device that pulls as fast as keys change has nothing but its place in the feed. What
// another one is still to be told is its backlog, which is never more than there are keys.

func sameMemory(a, b []*device) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// post is what one change means for some devices.
type post struct {
	seq  uint64
	news []news
	to   receivers
	by   *cause
	cost int
}

// Limits of the feed.
const (
	maxFeedPosts = 65536
	maxFeedCost  = 16 << 20 // bytes of memory of keys and lists of receivers, about
)

// feed are the last posts of a reflector, in order.
type feed struct {
	posts  []post
	head   int
	fresh  int // posts from here on were handed to nobody yet
	cost   int
	most   int    // posts, limit
	seq    uint64 // of the last post
	handed uint64 // of the last one that was handed out
	base   uint64 // posts up to this one are no longer there
}

func (f *feed) post(list []news, to receivers, by *cause) {
	f.seq++
	p := post{f.seq, list, to, by, int(unsafe.Sizeof(post{})) + len(list)*int(unsafe.Sizeof(news{})) + 8*len(to.not)}
	// A list that several posts share is counted with the first of them. It is there until
	// the last has gone, which is a list or two more than the limit.
	if n := len(f.posts); n == f.head || !sameMemory(f.posts[n-1].to.list, to.list) {
		p.cost += 8 * len(to.list)
	}
	f.posts = append(f.posts, p)
	f.cost += p.cost
}

// trim drops the oldest posts beyond the limits, but none that is fresh.
func (f *feed) trim() {
	for f.head < f.fresh && len(f.posts)-f.head > 1 && (f.cost > maxFeedCost || len(f.posts)-f.head > f.most) {
		first := &f.posts[f.head]
		f.base, f.cost = first.seq, f.cost-first.cost
		*first = post{}
		f.head++
	}
	if f.head > len(f.posts)/2 && f.head > 1024 {
		f.posts = append([]post(nil), f.posts[f.head:]...)
		f.fresh -= f.head
		f.head = 0
	}
}

// since gives what was posted for a device after a number, as a backlog.
func (f *feed) since(seq uint64, d *device) *backlog {
	i, _ := slices.BinarySearchFunc(f.posts[f.head:], seq+1, func(p post, seq uint64) int { return cmp.Compare(p.seq, seq) })
	b := &backlog{}
	for j := f.head + i; j < f.fresh; j++ {
		if p := &f.posts[j]; p.to.has(d) {
			b.add(p)
		}
	}
	return b
}

// share are devices to which fresh posts are handed and that had the same to be told before:
// they see it all alike.
type share struct {
	devices []*device // sorted
	owed    *backlog  // nil: nothing waited
	posts   []int     // indexes
}

// turn is a step on the way of a device through the lists of receivers of fresh posts: who
// is at the same turn got the same.
type turn struct {
	before *turn
	list   int // index of a list
	next   map[int]*turn
	last   *turn // of next, the one that was asked for last
	to     []*share
}

func (t *turn) step(list int) *turn {
	if t.last != nil && t.last.list == list {
		return t.last
	}
	n := t.next[list]
	if n == nil {
		n = &turn{before: t, list: list}
		if t.next == nil {
			t.next = map[int]*turn{}
		}
		t.next[list] = n
	}
	t.last = n
	return n
}

// handOut divides the fresh posts among those that are there to hear of them, in an order
// that depends on nothing but the posts.
func (f *feed) handOut() []*share {
	if f.fresh == len(f.posts) {
		return nil
	}
	type place struct {
		list, not   **device
		nList, nNot int
	}
	type route struct {
		to    receivers
		posts []int
	}
	var routes []route
	at := map[place]int{}
	for i := f.fresh; i < len(f.posts); i++ {
		to := f.posts[i].to
		k := place{first(to.list), first(to.not), len(to.list), len(to.not)}
		n, seen := at[k]
		if !seen {
			n = len(routes)
			at[k] = n
			routes = append(routes, route{to: to})
		}
		routes[n].posts = append(routes[n].posts, i)
	}
	f.fresh, f.handed = len(f.posts), f.seq
	if len(routes) == 1 {
		return shareOut(routes[0].to, routes[0].posts)
	}
	var touched []*device
	var root turn
	for n := range routes {
		routes[n].to.each(func(d *device) {
			if d.turn == nil {
				d.turn = &root
				touched = append(touched, d)
			}
			d.turn = d.turn.step(n)
		})
	}
	var shares []*share
	for _, d := range touched {
		t := d.turn
		d.turn = nil
		i := slices.IndexFunc(t.to, func(s *share) bool { return s.owed == d.owed })
		if i < 0 {
			s := &share{owed: d.owed}
			for at := t; at.before != nil; at = at.before {
				s.posts = append(s.posts, routes[at.list].posts...)
			}
			slices.Sort(s.posts)
			i = len(t.to)
			t.to = append(t.to, s)
			shares = append(shares, s)
		}
		t.to[i].devices = append(t.to[i].devices, d)
	}
	for _, s := range shares {
		slices.SortFunc(s.devices, compareDevices)
	}
	return shares
}

// shareOut is handOut of posts that are all for the same devices.
func shareOut(to receivers, posts []int) (shares []*share) {
	alike := len(to.not) == 0 && len(to.list) > 0
	for _, d := range to.list {
		alike = alike && d.hears() && d.owed == to.list[0].owed
	}
	if alike {
		return []*share{{to.list, to.list[0].owed, posts}}
	}
	var by map[*backlog]*share // made when there are several
	var s *share
	to.each(func(d *device) {
		if s == nil || s.owed != d.owed {
			if s != nil && by == nil {
				by = map[*backlog]*share{s.owed: s}
			}
			if s = by[d.owed]; s == nil {
				s = &share{make([]*device, 0, len(to.list)), d.owed, posts}
				shares = append(shares, s)
				if by != nil {
					by[d.owed] = s
				}
			}
		}
		s.devices = append(s.devices, d)
	})
	return shares
}

func first(list []*device) **device {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// Losses are the devices of which a change that was not pulled yet tells a loss (a fault, or
// a host that has gone): none, one, or several.
type Losses struct {
	Any, Several bool
	One          netip.Addr // the first
}

func (l *Losses) add(dev netip.Addr) {
	l.Several = l.Several || l.Any && l.One != dev
	if !l.Any {
		l.Any, l.One = true, dev
	}
}

// post lets devices hear of something.
func (r *Reflector) post(list []news, to receivers, by *cause) {
	r.feed.post(list, to, by)
	if !r.losses.Several && slices.ContainsFunc(list, func(n news) bool { return n.loss() }) {
		r.losses.add(by.origin)
	}
}
