package hostnotify

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/snsd"
)

var keptOptions = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Kept{})}

// Snapshot is all that would be kept now, whether it has changed or not, in a stable order.
func (n *Notifier) Snapshot() Kept {
	var k Kept
	add := func(kind RowKind, key, value []byte) {
		if err := k.Add(kind, key, value); err != nil {
			panic(err)
		}
	}
	var subjects []*subject
	for _, s := range n.order {
		unkept := s.unkept
		n.putHost(s, add)
		s.unkept = unkept
		for _, p := range s.list {
			if p.told.none() {
				continue
			}
			was, row := *p, p.subj.row
			p.subj.row = true
			n.putTold(p, add)
			p.unkept, p.row, p.subj.row = was.unkept, was.row, row
			if !slices.Contains(subjects, p.subj) {
				subjects = append(subjects, p.subj)
			}
		}
	}
	for _, s := range n.subjects { // a row stays while somebody is about to be told
		if s.row && !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	for _, s := range subjects {
		was := *s
		n.putSubject(s, add)
		s.row, s.unkept = was.row, was.unkept
	}
	return k.sorted()
}

func (k Kept) sorted() Kept {
	slices.SortFunc(k.Subjects, func(a, b KeptSubject) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(k.Hosts, func(a, b KeptHost) int { return a.Addr.Compare(b.Addr) })
	for i := range k.Hosts {
		slices.SortFunc(k.Hosts[i].Told, func(a, b KeptTold) int { return a.Subject.Compare(b.Subject) })
	}
	return k
}

// shelf holds rows as they were put.
type shelf map[string][]byte

func (s shelf) put(kind RowKind, key, value []byte) {
	if k := string(append([]byte{byte(kind)}, key...)); value == nil {
		delete(s, k)
	} else {
		s[k] = slices.Clone(value)
	}
}

func (s shelf) kept(t interface {
	Helper()
	Fatal(...any)
}) Kept {
	t.Helper()
	var k Kept
	for key, value := range s {
		if err := k.Add(RowKind(key[0]), []byte(key[1:]), value); err != nil {
			t.Fatal(err)
		}
	}
	return k.sorted()
}

func TestTheRowsThatChangedAreTheTruth(t *testing.T) {
	r := newRig(t, Config{Keep: true})
	r.populate()
	s := shelf{}
	step := func(name string, do func()) {
		t.Helper()
		do()
		r.n.Rows(s.put)
		if diff := cmp.Diff(r.n.Snapshot(), s.kept(t), keptOptions); diff != "" {
			t.Errorf("%s (-truth +rows)\n%s", name, diff)
		}
		r.n.Rows(func(kind RowKind, key, _ []byte) { t.Errorf("%s: row %d %x is given twice", name, kind, key) })
	}
	step("told and acked", func() { r.settle() })
	step("a fault", func() { r.fault(farT, snsd.ReasonPFCStorm) })
	step("sent", func() { r.poll() })
	step("over", func() { r.fault(farT, 0); r.settle() })
	step("a query", func() { r.n.Query(ip(hostA), r.now) })
	step("a second one", func() { r.n.Query(ip(hostA), r.now) })
	step("answered", func() { r.pass(2 * time.Second); r.settle() })
	step("the port is down", func() { r.n.PortDown("p1") })
	step("another service", func() { r.w.hosts[ip(farT)].Service.Port = 4421; r.changed(0, farT) })
	step("the port is up", func() {
		r.n.PortUp("p1", mac(9), r.now)
		r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
		r.settle()
	})
	step("another machine", func() {
		r.n.Unsubscribe(ip(hostA), "p1", r.now)
		r.n.Subscribe(ip(hostA), "p1", mac(77), r.now)
		r.settle()
	})
	step("a subject is gone", func() {
		delete(r.w.hosts, ip(farT))
		r.changed(snsd.ReasonIPChanged, farT)
		r.settle()
	})
	step("a host is gone", func() { r.n.Unsubscribe(ip(hostB), "p2", r.now) })
	if len(s) == 0 {
		t.Error("no rows at all")
	}
}

// What a frame says is among the rows before the frame has left.
func TestTheRowsOfAFrameAreThoseOfItsNotices(t *testing.T) {
	r := newRig(t, Config{Keep: true})
	r.populate()
	r.settle()
	s := shelf{}
	r.n.Rows(s.put)
	r.fault(farT, snsd.ReasonLinkDown)
	out := r.n.Poll(r.now)
	if len(out) == 0 {
		t.Fatal("no frame")
	}
	for _, o := range out {
		r.n.RowsOf(o, s.put)
	}
	found := 0
	for _, h := range s.kept(t).Hosts {
		for _, told := range h.Told {
			if told.Subject == ip(farT) && told.State == snsd.Inactive && !told.Acked {
				found++
			}
		}
	}
	if found != 2 {
		t.Errorf("%d rows say what was sent, want 2", found)
	}
	r.n.Rows(func(kind RowKind, key, _ []byte) {
		if kind == RowTold {
			t.Errorf("row %x is given twice", key)
		}
	})
}

func TestAHostWhosePortMovedWhileTheProcessWasAwayIsToldEverything(t *testing.T) {
	for _, first := range []string{"moved", "up"} {
		t.Run(first, func(t *testing.T) {
			r := twoHosts(t)
			learn := r.restored(Config{})
			r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
			if first == "moved" {
				r.n.Moved("p1")
			}
			r.n.PortUp("p1", mac(9), r.now)
			if first != "moved" {
				r.n.Moved("p1")
			}
			learn()
			expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
			r.pass(time.Minute)
			expect(t, r.settle())
		})
	}
}

// As with a link-down that is seen: whoever has another port that was up all the time, where
// the host may well be, was not cut off.
func TestAHostWithAnotherPortThatDidNotMoveIsToldNothing(t *testing.T) {
	for both, want := range map[bool][]string{
		false: nil,
		true:  {hostA + ": " + hostB + " active", hostA + ": " + farT + " active"},
	} {
		r := twoHosts(t)
		learn := r.restored(Config{})
		for _, p := range []string{"p1", "p3"} {
			r.n.Subscribe(ip(hostA), p, r.w.hosts[ip(hostA)].MAC, r.now)
		}
		for _, p := range []string{"p1", "p3"} {
			r.n.PortUp(p, mac(9), r.now)
			if p == "p1" || both {
				r.n.Moved(p)
			}
		}
		learn()
		expect(t, r.settle(), want...)
	}
}

// The events of a start come one by one.
func TestAHostWhoseOnePortMovedAndWhoseOtherIsDownIsToldEverythingOnce(t *testing.T) {
	for _, owed := range []bool{false, true} {
		r := twoHosts(t)
		if owed {
			r.n.PortDown("p1")
		}
		learn := r.restored(Config{})
		for _, p := range []string{"p1", "p3"} {
			r.n.Subscribe(ip(hostA), p, r.w.hosts[ip(hostA)].MAC, r.now)
		}
		r.n.PortUp("p1", mac(9), r.now)
		r.n.Moved("p1")
		r.n.PortDown("p3")
		learn()
		expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
		r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
		expect(t, r.settle())
	}
}

func TestWhereNothingProvesThePortEverythingIsRepeatedOnceWithItsNumbers(t *testing.T) {
	r := twoHosts(t)
	seqs := map[netip.Addr]uint32{}
	for _, h := range r.n.Snapshot().Hosts {
		for _, told := range h.Told {
			if h.Addr == ip(hostA) {
				seqs[told.Subject] = told.Seq
			}
		}
	}
	learn := r.restored(Config{})
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Repeat("p1")
	if got := r.poll(); len(got) > 0 {
		t.Errorf("repeated without ground: %v", says(got))
	}
	learn()
	got := r.settle()
	expect(t, got, hostA+": "+hostB+" active", hostA+": "+farT+" active")
	for _, x := range got {
		if x.Seq != seqs[x.Subject] {
			t.Errorf("%s is told as %d, was %d", x.Subject, x.Seq, seqs[x.Subject])
		}
	}
}

func TestRowsThatCannotBeReadAreRefused(t *testing.T) {
	var k Kept
	for _, c := range []struct {
		kind       RowKind
		key, value string
	}{
		{RowHost, "", "\x00\x00\x00\x00\x00\x00\x00"},
		{RowHost, "\x04abcd", "short"},
		{RowHost, "\x05abcde", "\x00\x00\x00\x00\x00\x00\x00"},
		{RowHost, "\x04abc", "\x00\x00\x00\x00\x00\x00\x00"},
		{RowTold, "\x04abcd", "\x00\x00\x00\x00\x00\x00\x00"},
		{RowTold, "\x04abcd\x04abcd\x04abcd", "\x00\x00\x00\x00\x00\x00\x00"},
		{RowSubject, "\x04abcd", "abc"},
		{9, "\x04abcd", "\x00\x00\x00\x00\x00\x00\x00"},
	} {
		if err := k.Add(c.kind, []byte(c.key), []byte(c.value)); err == nil {
			t.Errorf("%d %q %q is taken", c.kind, c.key, c.value)
		}
	}
	if len(k.Hosts)+len(k.Subjects) > 0 {
		t.Errorf("%+v", k)
	}
}

// What a restart made of a row is what the next one finds: an answer that is owed is given once.
func TestAQueryBeforeARestartIsNotAnsweredAfterTheNextOneToo(t *testing.T) {
	cfg := Config{FirstSeq: 100, Keep: true}
	r := newRig(t, cfg)
	r.populate()
	r.settle()
	r.n.Query(ip(hostA), r.now)
	r.settle()
	r.n.Query(ip(hostA), r.now) // put off
	disk := shelf{}
	r.n.Rows(disk.put)
	r.n = New(cfg, r.w)
	if err := r.n.Restore(disk.kept(t), r.now); err != nil {
		t.Fatal(err)
	}
	r.n.Rows(disk.put)
	if d := cmp.Diff(r.n.Snapshot(), disk.kept(t), keptOptions); d != "" {
		t.Errorf("the rows are not what the Notifier holds (-holds +rows)\n%s", d)
	}
}
