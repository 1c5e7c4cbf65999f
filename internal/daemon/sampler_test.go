package daemon

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
)

// drowsy is a dataplane that notes what is read of its ports, and where reads take
// time or hang.
type drowsy struct {
	fabric.Dataplane
	valid fabric.Fields
	takes time.Duration
	hang  chan struct{} // reads of "hung" wait for it
	reads map[string]*atomic.Int64
}

func newDrowsy(valid fabric.Fields, ports ...string) *drowsy {
	d := &drowsy{valid: valid, hang: make(chan struct{}), reads: map[string]*atomic.Int64{}}
	for _, p := range ports {
		d.reads[p] = &atomic.Int64{}
	}
	return d
}

func (d *drowsy) Health(port string, want fabric.Fields) (fabric.Health, error) {
	d.reads[port].Add(1)
	if port == "hung" {
		<-d.hang
	}
	if d.takes > 0 {
		<-time.After(d.takes)
	}
	if port == "bad" {
		return fabric.Health{}, fmt.Errorf("port %s: no answer", port)
	}
	return fabric.Health{At: time.Now(), Valid: d.valid & want}, nil
}

// sampling runs a sampler for a time and counts what it delivers.
func sampling(t *testing.T, d *drowsy, needs []errdown.Need, during time.Duration) (s *sampler, got map[string]int) {
	t.Helper()
	s, got = newSampler(d, time.Now), map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	go s.run(ctx)
	for p := range d.reads {
		s.set(p, needs)
	}
	end := time.After(during)
	for {
		select {
		case list := <-s.out:
			for _, x := range list {
				got[x.port]++
			}
			continue
		case <-end:
		}
		break
	}
	stop()
	synctest.Wait()
	close(d.hang)
	synctest.Wait()
	return s, got
}

func TestEachNeedIsReadAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a", "b")
		_, got := sampling(t, d, []errdown.Need{
			{Fields: fabric.FieldCounters, Every: time.Second},
			{Fields: fabric.FieldPause, Every: 100 * time.Millisecond},
			{Fields: fabric.FieldRxPower, Every: 5 * time.Second},
		}, 9950*time.Millisecond)
		// One hundred of the counters, two of the module.
		if got["a"] != 102 || got["b"] != 102 {
			t.Errorf("%v", got)
		}
	})
}

func TestAHungReadDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a", "hung", "z")
		s, got := sampling(t, d, []errdown.Need{{Fields: fabric.FieldCounters, Every: time.Second}}, time.Minute)
		if got["a"] < 55 || got["z"] < 55 || got["hung"] != 0 {
			t.Errorf("%v", got)
		}
		if c := s.counters(); c.Stuck != 1 || d.reads["hung"].Load() != 1 {
			t.Errorf("%+v", c)
		}
	})
}

func TestADriverThatDoesNotTellIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.FieldsOfCounters, "a", "bad")
		s, got := sampling(t, d, []errdown.Need{{Fields: fabric.FieldsOfPFC, Every: 100 * time.Millisecond}}, 59*time.Second)
		if c := s.counters(); got["a"] != 0 || d.reads["a"].Load() != 2 || c.Untold != 2 || c.Errors != 60 {
			t.Errorf("%v, %+v", got, c)
		}
	})
}

func TestDearReadsAreMadeLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a", "b")
		d.takes = 10 * time.Millisecond
		s, got := sampling(t, d, []errdown.Need{{Fields: fabric.FieldPause, Every: 100 * time.Millisecond}}, time.Minute)
		// 20 ms of reading in each 2.22 s, but for the first rounds.
		if got["a"] < 26 || got["a"] > 30 || s.counters().Late == 0 {
			t.Errorf("%v, %+v", got, s.counters())
		}
	})
}

// A process that was stopped in the middle of a round reads on at the usual pace: the
// round has not cost what it took.
func TestAProcessThatWasStoppedReadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a")
		s := newSampler(d, time.Now)
		l := s.lanes[0]
		for range 10 {
			begun := time.Now()
			<-time.After(100 * time.Microsecond)
			l.paid(begun)
			<-time.After(time.Second)
		}
		begun := time.Now()
		<-time.After(4 * time.Second)
		if rest := time.Until(l.paid(begun)); rest > 0 {
			t.Errorf("no port is watched for %s", rest)
		}
		if cost := time.Duration(s.counters().CounterRoundNS); cost > 2*time.Millisecond {
			t.Errorf("a round is said to cost %s", cost)
		}
	})
}

func TestNothingIsReadOfAPortThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a")
		s := newSampler(d, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.run(ctx)
		s.set("a", []errdown.Need{{Fields: fabric.FieldCounters, Every: time.Second}})
		<-s.out
		s.set("a", nil)
		<-time.After(time.Minute)
		if n := d.reads["a"].Load(); n != 1 {
			t.Errorf("%d reads", n)
		}
	})
}

// Ports that came at different times, and needs of different paces, are read in the same
// rounds, and rounds do not drift.
func TestRoundsHaveOneBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.AllFields, "a", "b", "c")
		d.takes = 50 * time.Microsecond
		s := newSampler(d, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.run(ctx)
		go func() {
			for {
				select {
				case <-s.out:
				case <-ctx.Done():
					return
				}
			}
		}()
		for _, port := range []string{"a", "b", "c"} {
			s.set(port, []errdown.Need{{Fields: fabric.FieldPause, Every: 100 * time.Millisecond}, {Fields: fabric.FieldCounters, Every: time.Second}})
			<-time.After(37 * time.Millisecond)
		}
		<-time.After(time.Second)
		before := s.counters()
		<-time.After(10 * time.Second)
		now := s.counters()
		if rounds, reads := now.Rounds-before.Rounds, now.Reads-before.Reads; rounds != 100 || reads != 300 {
			t.Errorf("%d rounds and %d reads in ten seconds, want 100 and 300", rounds, reads)
		}
	})
}

// A cause that is on and is not told what it needs is blind, whyever; one that is off never is.
func TestACauseWithoutReadingsIsBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrowsy(fabric.FieldCRC|fabric.FieldPause, "good", "bad")
		s, _ := sampling(t, d, []errdown.Need{
			{Cause: errdown.CRC, Fields: fabric.FieldCRC, Every: time.Second},
			{Cause: errdown.PFCStorm, Fields: fabric.FieldsOfPFC, Every: time.Second}, // PFC frames alone say nothing
			{Fields: fabric.FieldCounters, Every: time.Second},
		}, 5*time.Second)
		if got := s.blind(time.Now()); len(got) != 0 {
			t.Errorf("after 5 s: %v", got)
		}
		time.Sleep(6 * time.Second)
		want := map[string][]string{"crc": {"bad"}, "pfc-storm": {"bad", "good"}}
		if d := cmp.Diff(want, s.blind(time.Now())); d != "" {
			t.Error(d)
		}
	})
}
