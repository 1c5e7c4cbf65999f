package fence

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// table is a View of one zone.
type table map[netip.Addr]Host

func (t table) Host(a netip.Addr) (Host, bool) { h, ok := t[a]; return h, ok }

func (t table) sorted() (list []netip.Addr) {
	for a := range t {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func (t table) Peers(a netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, p := range t.sorted() {
			if p != a && !yield(p) {
				return
			}
		}
	}
}

func (t table) Share(a, b netip.Addr) bool { return true }

func (t table) Local() (list []netip.Addr) {
	for a, h := range t {
		if len(h.Ports) > 0 {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func (t table) OfNQN(nqn string) (list []netip.Addr) {
	for a, h := range t {
		if h.NQN == nqn {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func (t table) Behind(port string) (list []netip.Addr) {
	for _, a := range t.sorted() {
		if slices.Contains(t[a].Ports, port) {
			list = append(list, a)
		}
	}
	return list
}

func (t table) add(addr, nqn string, role snsd.Role, ports ...string) netip.Addr {
	a := netip.MustParseAddr(addr)
	t[a] = Host{Addr: a, NQN: nqn, Role: role, Ports: ports, Up: true}
	return a
}

func (t table) fault(a netip.Addr, why snsd.Reason) {
	h := t[a]
	h.Up, h.Why = why == snsd.ReasonNone, why
	t[a] = h
}

// rig is a switch with an array at p1 and p2, hosts with one and two addresses elsewhere.
type rig struct {
	table
	*Machine
	now      time.Time
	a1, a2   netip.Addr
	two, one netip.Addr
}

func newRig(t *testing.T, cfg Config) *rig {
	r := &rig{table: table{}, now: begin}
	r.a1 = r.add("192.0.2.51", "sub", snsd.RoleTarget, "p1")
	r.a2 = r.add("192.0.2.52", "sub", snsd.RoleTarget, "p2")
	r.two = r.add("192.0.2.11", "two", snsd.RoleInitiator)
	r.add("192.0.2.12", "two", snsd.RoleInitiator)
	r.one = r.add("192.0.2.13", "one", snsd.RoleInitiator)
	r.Machine = New(cfg, r.table)
	r.Adopt(nil, r.now)
	return r
}

// work does all steps and gives their keys.
func (r *rig) work(err error) (keys []string) {
	for steps := r.Steps(r.now); len(steps) > 0; steps = r.Steps(r.now) {
		for _, s := range steps {
			keys = append(keys, fmt.Sprintf("%v %s %v %v", s.Op, s.Port, s.Array, s.Host))
			res := Result{Step: s, Drained: true, Err: err}
			if s.Op == OpBlock {
				res.Since = r.now
			}
			r.Done(res, r.now)
		}
	}
	return keys
}

var on = Config{On: true, Hold: 20 * time.Second}

func TestWhatIsBlocked(t *testing.T) {
	const whole = " invalid IP invalid IP"
	for _, c := range []struct {
		what  string
		cause func(r *rig)
		want  []string
	}{
		{"an array's port loses its carrier", func(r *rig) { r.PortDown("p1", r.now, r.now) }, []string{"block p1" + whole}},
		{"both do", func(r *rig) { r.PortDown("p1", r.now, r.now); r.PortDown("p2", r.now, r.now) }, []string{"block p1" + whole}},
		{"a port of no array does", func(r *rig) {
			r.add("192.0.2.14", "x", snsd.RoleInitiator, "p3")
			r.PortDown("p3", r.now, r.now)
		}, nil},
		{"one host has no other path", func(r *rig) {
			delete(r.table, r.a2)
			r.add("192.0.2.52", "sub", snsd.RoleTarget)
			far := r.add("192.0.2.15", "far", snsd.RoleInitiator)
			r.fault(netip.MustParseAddr("192.0.2.52"), snsd.ReasonLinkDown)
			r.fault(far, snsd.ReasonNone)
			r.PortDown("p1", r.now, r.now)
		}, nil},
		{"BFD to a host's device is down", func(r *rig) { r.fault(r.two, snsd.ReasonBFDDown); r.Note(r.two, r.now) },
			[]string{"block p1 192.0.2.51 192.0.2.11", "block p2 192.0.2.52 192.0.2.11", "drained p1 192.0.2.51 192.0.2.11", "drained p2 192.0.2.52 192.0.2.11"}},
		{"a host with one address: its last path", func(r *rig) { r.fault(r.one, snsd.ReasonLinkDown); r.Note(r.one, r.now) }, nil},
		{"the same, and the operator says that there are paths elsewhere", func(r *rig) {
			r.SetConfig(Config{On: true, Hold: on.Hold, AssumePaths: true})
			r.fault(r.one, snsd.ReasonLinkDown)
			r.Note(r.one, r.now)
		}, []string{"block p1 192.0.2.51 192.0.2.13", "block p2 192.0.2.52 192.0.2.13", "drained p1 192.0.2.51 192.0.2.13", "drained p2 192.0.2.52 192.0.2.13"}},
		{"a host leaves its zone", func(r *rig) { r.fault(r.two, snsd.ReasonZoneChanged); r.Note(r.two, r.now) }, nil},
		{"a host moves", func(r *rig) { r.fault(r.two, snsd.ReasonIPChanged); r.Note(r.two, r.now) }, nil},
		{"a host ages out", func(r *rig) { r.fault(r.two, snsd.ReasonAgedOut); r.Note(r.two, r.now) }, nil},
		{"a host that is not known any more", func(r *rig) { delete(r.table, r.two); r.Note(r.two, r.now) }, nil},
		{"off", func(r *rig) { r.SetConfig(Config{Hold: on.Hold}); r.work(nil); r.PortDown("p1", r.now, r.now) }, nil},
	} {
		r := newRig(t, on)
		c.cause(r)
		if got := r.work(nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// A port whose pairs do not all have another path is not closed: those that have one are blocked.
func TestAPortWithALastPathIsNotClosed(t *testing.T) {
	r := newRig(t, on)
	private := r.add("192.0.2.53", "private", snsd.RoleTarget, "p1") // a subsystem with one address
	r.PortDown("p1", r.now, r.now)
	for _, k := range r.work(nil) {
		if k == "block p1 invalid IP invalid IP" {
			t.Error("the port is closed")
		}
	}
	if r.Closed("p1") || r.blocks[Key{"p1", private, r.one}] != nil || r.blocks[Key{"p1", r.a1, r.one}] == nil {
		t.Errorf("closed: %v, blocks: %v", r.Closed("p1"), r.Show())
	}
}

// A block ends by its time, is begun again after an error, and is never one of too many.
func TestBlocksAreBounded(t *testing.T) {
	r := newRig(t, on)
	r.fault(r.two, snsd.ReasonBFDDown)
	r.Note(r.two, r.now)
	if r.work(errors.New("the table is full")); r.Counters().Errors != 2 || r.Counters().Confirmed != 0 {
		t.Errorf("%+v", r.Counters())
	}
	if why := r.Show()[0].Why; why != "the table is full" {
		t.Errorf("shown: %q", why)
	}
	r.now = r.Next(r.now)
	if r.work(nil); r.Counters().Confirmed != 2 {
		t.Errorf("after the error is over: %+v", r.Counters())
	}
	r.now = begin.Add(on.Hold)
	if got := r.work(nil); len(got) != 2 || r.Counters().Standing != 0 || r.Counters().Lifted != 2 {
		t.Errorf("after the hold: %q, %+v", got, r.Counters())
	}
	r.Note(r.two, r.now)
	if got := r.work(nil); len(got) != 0 {
		t.Errorf("the same fault is answered twice: %q", got)
	}
	for i := range MaxBlocks/2 + 1 { // each is kept from two arrays
		nqn := fmt.Sprint("host", i)
		a := r.add(fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), nqn, snsd.RoleInitiator)
		r.add(fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), nqn, snsd.RoleInitiator)
		r.fault(a, snsd.ReasonBFDDown)
		r.Note(a, r.now)
	}
	for len(r.queue) > 0 {
		r.Steps(r.now)
	}
	if c := r.Counters(); c.Standing != MaxBlocks || c.NoRoom == 0 {
		t.Errorf("%+v", c)
	}
}
