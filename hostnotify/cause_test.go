package hostnotify

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/internal/latency"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// clean is twoHosts whose figures begin here.
func clean(t *testing.T) *rig {
	r := twoHosts(t)
	r.n.latency = Latencies{}
	r.n.counters.Unmeasured = 0
	return r
}

// remote is a fault of farT that another device saw; by says when.
func (r *rig) remote(why snsd.Reason, by Cause) {
	r.w.fault[ip(farT)] = why
	by.Origin = netip.MustParseAddr("203.0.113.7")
	r.n.ChangedBy(zone.Changes{{Addr: ip(farT), Why: why}}, by, r.now)
}

func counts(s *latency.Series) [3]uint64 {
	x := s.Summary()
	return [3]uint64{x.Total.Count, x.Skewed, x.Held}
}

func TestStagesOfANotice(t *testing.T) {
	r := clean(t)
	const us = time.Microsecond
	r.sending = 20 * us
	at := r.now
	wall := func(d time.Duration) time.Time { return at.Add(d).Round(0) } // as from the wire: no monotonic reading
	by := Cause{FaultAt: wall(0), DecidedAt: wall(50 * us), SentAt: wall(60 * us), ReflectorAt: wall(200 * us), ReflectedAt: wall(300 * us), ReceivedAt: at.Add(400 * us)}
	r.pass(500 * us) // the owner gets to it
	r.remote(snsd.ReasonLinkDown, by)
	r.pass(30 * us)
	got := r.poll()
	if len(got) != 2 {
		t.Fatalf("told %v", says(got))
	}
	r.pass(time.Millisecond)
	for _, x := range got { // received 100 us before the owner gets to it
		r.n.AckAt(x.Port, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}, r.now.Add(-100*us), r.now)
	}
	all := r.n.Notices()
	n := all[len(all)-1]
	by.Origin = netip.MustParseAddr("203.0.113.7")
	want := Notice{Host: n.Host, Subject: ip(farT), Port: n.Port, Seq: n.Seq, Reason: snsd.ReasonLinkDown, Service: n.Service, Cause: by,
		Decided: at.Add(500 * us), Sent: at.Add(550 * us), Acked: at.Add(1430 * us)}
	if d := cmp.Diff(want, n, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	l := r.n.Latencies()
	for name, c := range map[string]struct {
		s    *latency.Series
		want time.Duration
	}{
		"frame":  {&l.Frame, 50 * us},
		"ack":    {&l.Ack, 880 * us},
		"notice": {&l.Notice[snsd.ReasonLinkDown], 550 * us},
		"acked":  {&l.Acked[snsd.ReasonLinkDown], 1430 * us},
	} {
		if x := c.s.Summary(); x.Total.Count != 2 || x.Sum != 2*c.want || x.Total.Max != c.want {
			t.Errorf("%s: %+v, want 2 of %v", name, x.Total, c.want)
		}
	}
	for i := range ReasonSlots {
		if i != int(snsd.ReasonLinkDown) && !(l.Notice[i].Empty() && l.Acked[i].Empty()) {
			t.Errorf("slot %d has values", i)
		}
	}
}

// A retry does not begin a stage anew: the ack counts from the first frame.
func TestAnAckAfterARetryCountsFromTheFirstFrame(t *testing.T) {
	r := clean(t)
	r.fault(farT, snsd.ReasonPFCStorm)
	r.poll()
	r.now = r.n.Next()
	again := r.poll()
	r.ack(again...)
	if x := r.n.Latencies().Ack.Summary(); x.Total.Count != 2 || x.Total.Max != 20*time.Millisecond {
		t.Errorf("%+v", x.Total)
	}
}

func TestAnEventByAnotherClockIsCountedApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind time.Duration // of the event's time against ours when it was received
		skewed bool
	}{
		{"in the future", -time.Millisecond, true},
		{"long ago", latency.MostSkew + 1, true},
		{"just now", 0, false},
		{"not quite as long ago", latency.MostSkew, false},
	} {
		r := clean(t)
		r.remote(snsd.ReasonBFDDown, Cause{FaultAt: r.now.Add(-c.behind).Round(0)})
		r.ack(r.poll()...)
		want := [3]uint64{2, 0, 0}
		if c.skewed {
			want = [3]uint64{0, 2, 0}
		}
		l := r.n.Latencies()
		for name, s := range map[string]*latency.Series{"notice": &l.Notice[snsd.ReasonBFDDown], "acked": &l.Acked[snsd.ReasonBFDDown]} {
			if got := counts(s); got != want {
				t.Errorf("%s: %s has count, skewed, held %v, want %v", c.name, name, got, want)
			}
		}
		if got := counts(&l.Frame); got != [3]uint64{2, 0, 0} {
			t.Errorf("%s: a stage of this device alone has %v", c.name, got)
		}
		if got := r.n.Counters().ClockSkewed; got != want[1] {
			t.Errorf("%s: counted %d", c.name, got)
		}
	}
}

// What waits in the queue of a slow host for longer than clocks may differ is true.
func TestALongWaitHereIsNoSkew(t *testing.T) {
	r := clean(t)
	r.remote(snsd.ReasonLinkDown, Cause{FaultAt: r.now.Round(0)})
	got := r.poll()
	r.pass(time.Minute)
	r.ack(got...)
	if x := r.n.Latencies().Acked[snsd.ReasonLinkDown].Summary(); x.Total.Count != 2 || x.Total.Max != time.Minute {
		t.Errorf("%+v", x)
	}
}

func TestAHostWithoutAPortIsHeldApart(t *testing.T) {
	r := clean(t)
	r.n.PortDown("p1")
	r.fault(farT, snsd.ReasonLinkDown) // A cannot be told now
	r.ack(r.poll()...)
	r.pass(time.Hour)
	r.local("p1", hostA)
	r.ack(r.poll()...)
	l := r.n.Latencies()
	if x := l.HeldFrame.Summary(); x.Total.Count == 0 || x.Total.Max != time.Hour {
		t.Errorf("held: %+v, want an hour", x.Total)
	}
	if got := counts(&l.Notice[snsd.ReasonLinkDown]); got != [3]uint64{1, 0, 1} {
		t.Errorf("notice: %v, want one counted and one held", got)
	}
	if got := counts(&l.Acked[snsd.ReasonLinkDown]); got != [3]uint64{1, 0, 1} {
		t.Errorf("acked: %v, want one counted and one held", got)
	}
	// One that is under way when the port goes was told in time; its ack was not.
	r = clean(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.poll()
	r.n.PortDown("p1")
	r.pass(time.Hour)
	r.local("p1", hostA)
	r.ack(r.poll()...)
	l = r.n.Latencies()
	if got := counts(&l.Notice[snsd.ReasonLinkDown]); got != [3]uint64{2, 0, 0} {
		t.Errorf("notice: %v, want two", got)
	}
	if got := counts(&l.Ack); got[2] == 0 {
		t.Errorf("ack: %v, want one held", got)
	}
	if x := l.HeldAck.Summary(); x.Total.Count == 0 || x.Total.Max != time.Hour {
		t.Errorf("held: %+v, want an hour", x.Total)
	}
}

func TestWhatIsNoEventIsNotMeasured(t *testing.T) {
	r := clean(t)
	r.w.fault[ip(farT)] = snsd.ReasonLinkDown
	r.n.Changed(zone.Changes{{Addr: ip(farT), Why: snsd.ReasonLinkDown}}, time.Time{}, r.now)
	r.ack(r.poll()...)
	l := r.n.Latencies()
	if c := r.n.Counters(); c.Unmeasured != 2 || !l.Notice[snsd.ReasonLinkDown].Empty() || !l.Acked[snsd.ReasonLinkDown].Empty() {
		t.Errorf("%+v", c)
	}
	if n := r.n.Notices(); !n[len(n)-1].FaultAt.IsZero() {
		t.Errorf("the history knows of an event: %+v", n[len(n)-1])
	}
}

// The cause of a verdict that was taken back does not replace that of the notice under way.
func TestANoticeUnderWayKeepsItsCause(t *testing.T) {
	r := clean(t)
	r.fault(farT, snsd.ReasonLinkDown)
	got := r.poll()
	r.pass(time.Second)
	r.fault(farT, 0)
	r.pass(time.Second)
	r.fault(farT, snsd.ReasonLinkDown) // before the active notice left: the first one is true again
	r.ack(got...)
	if x := r.n.Latencies().Acked[snsd.ReasonLinkDown].Summary(); x.Total.Count != 2 || x.Total.Max != 2*time.Second {
		t.Errorf("%+v", x)
	}
}

func TestReasonSlots(t *testing.T) {
	for _, c := range []struct {
		s    snsd.State
		r    snsd.Reason
		want int
	}{
		{snsd.Active, snsd.ReasonNone, 0}, {snsd.Active, snsd.ReasonLinkDown, 0}, {snsd.Inactive, snsd.ReasonLinkDown, 1},
		{snsd.Inactive, snsd.ReasonBFDDown, 7}, {snsd.Inactive, 200, 8}, {snsd.Inactive, snsd.ReasonNone, 8},
	} {
		if got := ReasonSlot(c.s, c.r); got != c.want {
			t.Errorf("%v %v in slot %d, want %d", c.s, c.r, got, c.want)
		}
	}
}

func TestAHostThatLeftGaveUpItsNotices(t *testing.T) {
	r := clean(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.poll()
	r.now = r.n.Next()
	r.poll() // a retry
	r.n.Unsubscribe(ip(hostA), "p1", r.now)
	given := map[bool]int{}
	for _, n := range r.n.Notices() {
		if n.Reason == snsd.ReasonLinkDown {
			given[n.GivenUp]++
			if n.GivenUp && (n.Host != ip(hostA) || n.Dropped || n.Retries != 1) {
				t.Errorf("%+v", n)
			}
		}
	}
	if given[true] != 1 || given[false] != 1 {
		t.Errorf("given up, and not: %v", given)
	}
}
