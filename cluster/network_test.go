package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed/pki"
	"github.com/openinof/inof/testbed/wires"
	"github.com/openinof/inof/zone"
)

// lab is some members of a cluster in one process.
type lab struct {
	t       *testing.T
	w       *wires.Net
	members []Member
	stores  map[netip.Addr]*Storage
	nodes   map[netip.Addr]*running
	seed    zone.Set
	tls     func(netip.Addr) *link.CredentialStore
	tune    func(*Config)

	mu     sync.Mutex
	events []string
}

// running is a Node with what brings its zones into force.
type running struct {
	*Node
	stop func()

	mu    sync.Mutex
	zones map[string]zone.Zone // in force, as a reflector would have them
	stamp wire.ClusterStamp
}

func devAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}) }

func memberAt(i int) Member {
	return Member{devAddr(i), netip.AddrPortFrom(devAddr(i), 19517)}
}

func newLab(t *testing.T, n int) *lab {
	l := &lab{t: t, w: &wires.Net{}, stores: map[netip.Addr]*Storage{}, nodes: map[netip.Addr]*running{}}
	l.tls = issuer(t)
	for i := range n {
		l.members = append(l.members, memberAt(i))
	}
	return l
}

// issuer returns the certificates of devices by one CA.
func issuer(t *testing.T) func(netip.Addr) *link.CredentialStore {
	ca, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	return func(dev netip.Addr) *link.CredentialStore {
		c, err := ca.Credentials(dev)
		if err != nil {
			t.Fatal(err)
		}
		return link.NewCredentialStore(c, nil)
	}
}

func (l *lab) node(i int) *running      { return l.nodes[devAddr(i)] }
func (l *lab) partition(sides ...[]int) { l.apart(sides, true) }
func (l *lab) heal(n int) {
	for i := range n {
		for j := range i {
			l.w.Part(devAddr(i), devAddr(j), false)
		}
	}
}

func (l *lab) apart(sides [][]int, cut bool) {
	for i, a := range sides {
		for _, b := range sides[i+1:] {
			for _, x := range a {
				for _, y := range b {
					l.w.Part(devAddr(x), devAddr(y), cut)
				}
			}
		}
	}
}

// start starts a member with what it has stored.
func (l *lab) start(i int) *running {
	dev := devAddr(i)
	if l.stores[dev] == nil {
		l.stores[dev] = MemoryStorage()
	}
	store := l.tls(dev)
	cfg := Config{Self: dev, Members: l.members, Storage: l.stores[dev], TLS: func() *link.CredentialStore { return store },
		Seed: func() (zone.Set, error) { return l.seed, nil }, ListenOn: l.w.Listen, Dial: l.w.From(dev),
		Event: func(e Event) { l.mu.Lock(); l.events = append(l.events, dev.String()+": "+e.Text); l.mu.Unlock() }}
	if !slices.ContainsFunc(cfg.Members, func(m Member) bool { return m.Device == dev }) {
		cfg.Members = append(slices.Clone(cfg.Members), memberAt(i))
	}
	if l.tune != nil {
		l.tune(&cfg)
	}
	n, err := Open(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	r := &running{Node: n, zones: map[string]zone.Zone{}}
	set, stamp := n.Zones()
	r.take(Batch{Set: &set, Stamp: stamp})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := n.Run(ctx); err != nil {
			l.t.Errorf("member %s: %v", dev, err)
		}
	})
	done.Go(func() {
		for {
			b, err := n.Next(ctx)
			if err != nil {
				return
			}
			c, _ := n.Counters() // a disk that takes nothing keeps nobody from what is decided
			if at := cfg.Storage.inForce(); at < b.Stamp.Index && c.DiskErrors == 0 {
				l.t.Errorf("%s is to bring entry %d into force, and its disk has %d: after a power cut it would say older zones again", dev, b.Stamp.Index, at)
			}
			r.take(b)
			n.Done(b.Stamp.Index)
		}
	})
	r.stop = func() { cancel(); done.Wait() }
	l.nodes[dev] = r
	return r
}

func (r *running) take(b Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Stamp.Index < r.stamp.Index {
		panic("the state goes back")
	}
	r.stamp = b.Stamp
	if b.Set != nil {
		clear(r.zones)
		for _, z := range b.Set.Zones {
			r.zones[z.Name] = z
		}
	}
	for _, e := range b.Edits {
		switch {
		case e.Gone:
			delete(r.zones, e.Zone.Name)
		case e.Zone.Name != "":
			r.zones[e.Zone.Name] = e.Zone
		}
	}
}

// shown is the members of a zone that are in force at a member, as text; "-": no such zone.
func (r *running) shown(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	z, ok := r.zones[name]
	if !ok {
		return "-"
	}
	parts := []string{}
	for _, m := range z.Members {
		parts = append(parts, m.String())
	}
	return strings.Join(parts, " ")
}

func (l *lab) crash(i int) {
	if r := l.node(i); r != nil {
		r.stop()
		delete(l.nodes, devAddr(i))
	}
}

func (l *lab) stopAll() {
	for dev := range l.nodes {
		l.nodes[dev].stop()
	}
	clear(l.nodes)
}

// await waits in virtual time for a condition.
func (l *lab) await(what string, within time.Duration, cond func() bool) {
	l.t.Helper()
	for end := time.Now().Add(within); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("after %v: not yet: %s\n%s", within, what, l.story())
		}
	}
}

func (l *lab) story() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.events, "\n")
}

// leader gives the member that all those of a list agree on.
func (l *lab) leader(among ...int) (int, bool) {
	found := -1
	for _, i := range among {
		if l.node(i) == nil {
			continue
		}
		rep := l.node(i).report()
		id, err := ParseMemberID(rep.Leader)
		if err != nil {
			return 0, false
		}
		at := int(id.Device.As4()[3]) - 1
		if found >= 0 && at != found {
			return 0, false
		}
		found = at
	}
	if found < 0 || l.node(found) == nil || l.node(found).report().State != "leader" || l.node(found).Trouble() != "" {
		return 0, false
	}
	return found, true
}

func (l *lab) awaitLeader(among ...int) (leader int) {
	l.t.Helper()
	l.await(fmt.Sprintf("a leader among %v", among), time.Minute, func() (ok bool) { leader, ok = l.leader(among...); return ok })
	return leader
}

func addZone(name string, members ...string) Entry {
	return Entry{Kind: KindAddZone, Name: name, Members: parse(members)}
}

func parse(texts []string) (out []zone.Member) {
	for _, s := range texts {
		m, err := zone.ParseMember(s)
		if err != nil {
			panic(err)
		}
		out = append(out, m)
	}
	return out
}

// inLab runs a test with members in a bubble of virtual time.
func inLab(t *testing.T, n int, test func(*testing.T, *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, n)
		defer l.stopAll()
		test(t, l)
	})
}

func seq(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}
