package hostnotify

import (
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

func TestObservingRecordsAndSendsNothing(t *testing.T) {
	r := twoHosts(t)
	r.n.SetObserving(true, r.now)
	sent := r.n.Counters().Frames
	r.fault(farT, snsd.ReasonLinkDown)
	for range 50 { // nothing is repeated either
		r.now = r.now.Add(time.Second)
		if out := r.n.Poll(r.now); len(out) > 0 {
			t.Fatalf("%d frames were sent", len(out))
		}
	}
	var seen []string
	for _, n := range r.n.Notices() {
		if n.Observed {
			seen = append(seen, n.Host.String()+" "+n.State.String())
			if !n.Acked.IsZero() || n.Retries > 0 {
				t.Errorf("%+v", n)
			}
		}
	}
	if len(seen) != 2 || r.n.Counters().Observed != 2 || r.n.Counters().InFlight != 0 {
		t.Errorf("recorded %v, counters %+v (frames before: %d)", seen, r.n.Counters(), sent)
	}

	// What is kept is what the hosts really heard.
	for _, h := range r.n.Snapshot().Hosts {
		for _, told := range h.Told {
			if told.State != snsd.Active {
				t.Errorf("host %s is kept as told %+v", h.Addr, told)
			}
		}
	}

	// Acting again, they hear what changed meanwhile, and what is active.
	r.n.SetObserving(false, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" inactive link-down",
		hostB+": "+hostA+" active", hostB+": "+farT+" inactive link-down")
	r.fault(farT, 0)
	expect(t, r.settle(), hostA+": "+farT+" active", hostB+": "+farT+" active")
}

// A device that observed from its first start has told its hosts nothing: they hear all that is
// active, and nothing of what failed before.
func TestActingAfterAPilotTellsWhatIsActive(t *testing.T) {
	r := newRig(t, Config{})
	r.n.SetObserving(true, r.now)
	r.populate()
	r.settle()
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.n.SetObserving(false, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostB+": "+hostA+" active")
	r.fault(farT, 0)
	expect(t, r.settle(), hostA+": "+farT+" active", hostB+": "+farT+" active")
}

// What was under way when the halt came was heard by nobody for sure: it is sent again.
func TestANoticeUnderWayAtAHaltIsSentAfterIt(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	if len(r.n.Poll(r.now)) == 0 {
		t.Fatal("nothing was sent")
	}
	r.n.SetObserving(true, r.now)
	r.now = r.now.Add(time.Minute)
	if out := r.n.Poll(r.now); len(out) > 0 {
		t.Fatalf("%d frames were sent", len(out))
	}
	r.n.SetObserving(false, r.now)
	got := says(r.settle())
	var again int
	for _, g := range got {
		if g == hostA+": "+farT+" inactive link-down" || g == hostB+": "+farT+" inactive link-down" {
			again++
		}
	}
	if again < 2 {
		t.Errorf("told %v", got)
	}
}
