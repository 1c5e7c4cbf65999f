package reflector

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// feedDevices are devices with sessions, sorted.
func feedDevices(n int) []*device {
	out := make([]*device, n)
	for i := range out {
		out[i] = &device{id: inoftest.DevID(i), session: session{up: true}}
	}
	return out
}

func aHostKey(i int) feedKey {
	return feedKey{keyHost, zone.HostKey{Addr: inoftest.HostIP(i), Device: inoftest.DevID(0), Port: "p"}}
}

// Whatever lists of receivers posts have: each device is handed exactly what was posted for
// it since the last time, in one share with those and only those who were handed the same,
// and finds the same again by its place in the feed while that is not trimmed.
func TestFeedHandsOutToReceivers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devs := feedDevices(6)
		f := feed{most: rapid.IntRange(1, 8).Draw(t, "most")}
		subset := rapid.Custom(func(t *rapid.T) []*device {
			var out []*device
			for _, d := range devs {
				if rapid.Bool().Draw(t, "in") {
					out = append(out, d)
				}
			}
			return out
		})
		lists := [][]*device{subset.Draw(t, "list"), subset.Draw(t, "list"), devs}
		posted := map[*device][]uint64{} // since the last handing out
		type place struct {
			seq uint64
			key feedKey
		}
		all := map[*device][]place{}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				to := receivers{list: rapid.SampledFrom(lists).Draw(t, "to")}
				if len(to.list) > 0 && rapid.Bool().Draw(t, "but one") {
					i := rapid.IntRange(0, len(to.list)-1).Draw(t, "one")
					to.not = to.list[i : i+1]
				}
				k := aHostKey(rapid.IntRange(0, 4).Draw(t, "key"))
				f.post([]news{{feedKey: k}}, to, &cause{})
				for _, d := range to.list {
					if len(to.not) == 0 || to.not[0] != d {
						all[d] = append(all[d], place{f.seq, k})
						if d.hears() {
							posted[d] = append(posted[d], f.seq)
						}
					}
				}
			},
			"session": func(t *rapid.T) {
				d := rapid.SampledFrom(devs).Draw(t, "device")
				if d.up = !d.up; !d.up {
					delete(posted, d)
				} else {
					posted[d] = nil
					for _, p := range all[d] { // what is fresh is for it too
						if p.seq > f.handed {
							posted[d] = append(posted[d], p.seq)
						}
					}
				}
			},
			"hand out": func(t *rapid.T) {
				seen := map[*device]bool{}
				said := map[string]bool{}
				for _, s := range f.handOut() {
					var seqs []uint64
					for _, i := range s.posts {
						seqs = append(seqs, f.posts[i].seq)
					}
					if said[fmt.Sprint(seqs)] {
						t.Fatalf("two shares are handed %v", seqs)
					}
					said[fmt.Sprint(seqs)] = true
					for _, d := range s.devices {
						if seen[d] || !slices.Equal(posted[d], seqs) {
							t.Fatalf("%v is handed %v, want %v", d.id, seqs, posted[d])
						}
						seen[d] = true
					}
				}
				for d, want := range posted {
					if len(want) > 0 && !seen[d] {
						t.Fatalf("%v is handed nothing, want %v", d.id, want)
					}
				}
				clear(posted)
				f.trim()
				if len(f.posts)-f.head > f.most && len(f.posts)-f.head > 1 {
					t.Fatalf("%d posts, limit %d", len(f.posts)-f.head, f.most)
				}
			},
			"come back": func(t *rapid.T) {
				if f.fresh != len(f.posts) || f.base > f.handed {
					return
				}
				seq := uint64(rapid.IntRange(int(f.base), int(f.handed)).Draw(t, "seq"))
				d := rapid.SampledFrom(devs).Draw(t, "device")
				want := map[feedKey]bool{}
				for _, p := range all[d] {
					if p.seq > seq {
						want[p.key] = true
					}
				}
				if b := f.since(seq, d); len(b.keys) != len(want) {
					t.Fatalf("after %d %v has missed %v, want %v", seq, d.id, b.keys, want)
				}
			},
		})
	})
}

// The devices that an area lists are handed the same as one by one, and in an order that
// depends on nothing but the posts.
func TestFeedHandsOutInOrder(t *testing.T) {
	devs := feedDevices(5)
	for _, c := range []struct {
		name string
		to   []receivers
		want string
	}{
		{"all", []receivers{{list: devs}}, "[0 1 2 3 4] [0] "},
		{"but one", []receivers{{devs, devs[2:3]}}, "[0 1 3 4] [0] "},
		{"nobody", []receivers{{}}, ""},
		{"two lists", []receivers{{list: devs}, {list: devs[:2]}}, "[0 1] [0 1] [2 3 4] [0] "},
		{"the same list twice", []receivers{{list: devs}, {list: devs}}, "[0 1 2 3 4] [0 1] "},
		{"in turn", []receivers{{list: devs[:1]}, {list: devs}, {list: devs[:1]}}, "[0] [0 1 2] [1 2 3 4] [1] "},
		{"origins", []receivers{{devs, devs[:1]}, {devs, devs[1:2]}}, "[1] [0] [2 3 4] [0 1] [0] [1] "},
	} {
		f := feed{most: 100}
		for _, to := range c.to {
			f.post([]news{{feedKey: aHostKey(0)}}, to, &cause{})
		}
		got := ""
		for _, s := range f.handOut() {
			var ids []byte
			for _, d := range s.devices {
				ids = append(ids, d.id.As4()[3]-1)
			}
			got += fmt.Sprint(ids, s.posts, " ")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if f.handOut() != nil || f.handed != uint64(len(c.to)) {
			t.Errorf("%s: handed out twice", c.name)
		}
	}
}

// backlogModel is a backlog beside the simplest thing that does the same.
type backlogModel struct {
	t    inoftest.Failer
	b    backlog
	keys map[feedKey]news
}

func (m *backlogModel) put(n news) {
	m.b.put(n)
	m.keys[n.feedKey] = n
}

func (m *backlogModel) take() {
	m.t.Helper()
	for r := range ranks {
		n, ok := m.b.next(r)
		if !ok {
			for k, want := range m.keys {
				if want.rank() == r {
					m.t.Fatalf("%v of rank %d is not told", k, r)
				}
			}
			continue
		}
		if want, there := m.keys[n.feedKey]; !there || want != n || n.rank() != r {
			m.t.Fatalf("told %+v at rank %d, want %+v", n, r, want)
		}
		delete(m.keys, n.feedKey)
		break
	}
	if m.b.empty() != (len(m.keys) == 0) {
		m.t.Fatalf("%d keys wait, empty is %v", len(m.keys), m.b.empty())
	}
}

// bounded: nothing grows with how often keys change.
func (m *backlogModel) bounded() {
	m.t.Helper()
	n := 0
	for _, q := range m.b.queue {
		n += len(q)
	}
	if most := int(ranks) * (2*len(m.b.keys) + 8); n > most {
		m.t.Fatalf("%d places for %d keys", n, len(m.b.keys))
	}
	if len(m.b.keys) != len(m.keys) {
		m.t.Fatalf("%d keys, want %d", len(m.b.keys), len(m.keys))
	}
}

func someNews(b byte) news {
	n := news{feedKey: aHostKey(int(b % 5)), gone: b&64 != 0, why: snsd.Reason(b & 1)}
	switch b % 7 {
	case 5:
		n.feedKey = zoneKey(fmt.Sprint("z", b%3))
	case 6:
		n.kind = keyDown
	}
	return n
}

// However keys change while a device does not pull: it is told each once, as it was put last,
// losses first, and what waits never grows with the changes.
func TestBacklogKeepsTheLatestOfEachKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &backlogModel{t: t, keys: map[feedKey]news{}}
		t.Repeat(map[string]func(*rapid.T){
			"put":  func(t *rapid.T) { m.put(someNews(rapid.Byte().Draw(t, "news"))) },
			"put2": func(t *rapid.T) { m.put(someNews(rapid.Byte().Draw(t, "news"))) },
			"take": func(*rapid.T) { m.take() },
			"clone": func(*rapid.T) {
				c := m.b.clone(0)
				for k := range m.b.keys {
					c.put(news{feedKey: k, gone: true}) // changes nothing here
				}
			},
			"": func(*rapid.T) { m.bounded() },
		})
		for !m.b.empty() {
			m.take()
		}
	})
}

func FuzzBacklog(f *testing.F) {
	f.Add([]byte{1, 65, 1, 65, 255, 6, 255})
	f.Add(slices.Repeat([]byte{1, 65}, 40))
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := &backlogModel{t: t, keys: map[feedKey]news{}}
		for _, op := range ops {
			if op == 255 {
				m.take()
			} else {
				m.put(someNews(op))
			}
			m.bounded()
		}
		for !m.b.empty() {
			m.take()
		}
	})
}

// A walk comes to each key that is there from its beginning to its end, while others come
// and go.
func TestRollWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l roll[*zoneRow]
		var rows [12]zoneRow
		key := func() *zoneRow { return &rows[rapid.IntRange(0, len(rows)-1).Draw(t, "key")] }
		for range rapid.IntRange(0, 12).Draw(t, "keys") {
			l.add(key())
		}
		throughout, visited := map[*zoneRow]bool{}, map[*zoneRow]bool{}
		for _, k := range l.list {
			throughout[k] = true
		}
		for at := len(l.list); ; {
			if at = min(at, len(l.list)); at == 0 {
				break
			}
			at--
			visited[l.list[at]] = true
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				if k := key(); rapid.Bool().Draw(t, "add") {
					l.add(k)
				} else {
					l.remove(k)
					delete(throughout, k)
				}
			}
		}
		for k := range throughout {
			if !visited[k] {
				t.Fatalf("the walk has not come to %p", k)
			}
		}
		for i, k := range l.list {
			if int(k.place) != i+1 {
				t.Fatalf("row %d is at %d", i, k.place-1)
			}
		}
		for i := range rows {
			if k := &rows[i]; (k.place > 0) != slices.Contains(l.list, k) {
				t.Fatalf("a row is at %d of %d", k.place-1, len(l.list))
			}
		}
	})
}
