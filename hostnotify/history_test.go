package hostnotify

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/snsd"
)

// kept follows what a history gives to be kept.
func kept(t *testing.T, n *Notifier, records map[uint64]Notice) {
	t.Helper()
	n.TakeHistory(func(id uint64, r Notice) { records[id] = r }, func(id uint64) { delete(records, id) })
	if n.HistoryChanged() {
		t.Error("there is more at once")
	}
}

func TestTheHistorySurvivesARestart(t *testing.T) {
	const limit = 5
	r := newRig(t, Config{Keep: true, History: limit})
	r.populate()
	records := map[uint64]Notice{}
	same := func(when string) {
		t.Helper()
		kept(t, r.n, records)
		again := New(Config{Keep: true, History: limit}, r.w)
		again.RestoreHistory(maps.Clone(records))
		if d := cmp.Diff(r.n.Notices(), again.Notices(), keptOptions); d != "" {
			t.Errorf("%s (-was +restored)\n%s", when, d)
		}
		if len(records) > limit {
			t.Errorf("%s: %d records", when, len(records))
		}
	}
	told := r.poll()
	same("sent")
	r.ack(told...)
	same("acked")
	for range 4 {
		r.fault(farT, snsd.ReasonLinkDown)
		r.settle()
		same("a fault")
		r.fault(farT, 0)
		r.settle()
	}
	same("over")

	r.fault(farT, snsd.ReasonLinkDown)
	under := r.poll()
	kept(t, r.n, records)
	s := r.n.Snapshot()
	r.n = New(Config{Keep: true, History: limit}, r.w)
	if err := r.n.Restore(s, r.now); err != nil {
		t.Fatal(err)
	}
	r.n.RestoreHistory(records)
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	for _, x := range under {
		if x.Host == ip(hostA) {
			r.n.Ack("p1", snsd.Ack{Host: x.Host, Subject: x.Subject, Seq: x.Seq}, r.now)
		}
	}
	acked := 0
	for _, x := range r.n.Notices() {
		if x.Host == ip(hostA) && x.Seq == under[0].Seq && !x.Acked.IsZero() || x.Host == ip(hostA) && x.Seq == under[1].Seq && !x.Acked.IsZero() {
			acked++
		}
	}
	if acked != 1 {
		t.Errorf("%d notices of before the restart were acked after it, want 1", acked)
	}
}

func TestAGapInTheHistoryEndsIt(t *testing.T) {
	n := New(Config{Keep: true, History: 10}, newWorld())
	records := map[uint64]Notice{3: {Seq: 3}, 4: {Seq: 4}, 6: {Seq: 6}, 7: {Seq: 7}}
	n.RestoreHistory(maps.Clone(records))
	if l := n.Notices(); len(l) != 2 || l[0].Seq != 6 {
		t.Errorf("%v", l)
	}
	kept(t, n, records)
	if len(records) != 2 {
		t.Errorf("%d records are left", len(records))
	}
}
