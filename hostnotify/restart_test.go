package hostnotify

import (
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// restart gives a notifier that knows what the former one had saved, with hostA
// registered and nothing else learned yet.
func (r *rig) restart(cfg Config) (learn func()) {
	r.t.Helper()
	learn = r.restored(cfg)
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	return learn
}

// restored is restart before anybody is there.
func (r *rig) restored(cfg Config) (learn func()) {
	r.t.Helper()
	s := r.n.Snapshot()
	r.n = New(cfg, r.w)
	if err := r.n.Restore(s, r.now); err != nil {
		r.t.Fatal(err)
	}
	zones := r.w.zones
	r.w.zones = newWorld().zones
	return func() {
		r.w.zones = zones
		r.changed(0, hostA, hostB, farT)
		r.n.SetSynced(true)
	}
}

func TestAQueryBeforeTheSyncIsAnsweredOnceTheSubjectsAreKnown(t *testing.T) {
	r := twoHosts(t)
	learn := r.restart(Config{})
	r.n.Query(ip(hostA), r.now)
	expect(t, r.settle())
	learn()
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}

func TestAQueryDuringAFaultThatNobodyHeardOfIsAnsweredAfterIt(t *testing.T) {
	r := twoHosts(t)
	r.n.PortDown("p1")
	r.fault(farT, snsd.ReasonLinkDown)
	r.n.Query(ip(hostA), r.now)
	r.fault(farT, 0)
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}

func TestAnAnswerThatIsOwedSurvivesARestart(t *testing.T) {
	r := twoHosts(t)
	r.n.PortDown("p1")
	r.n.Query(ip(hostA), r.now) // the host's registration got lost: the answer waits
	expect(t, r.settle())
	r.restart(Config{})()
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}

func TestADeferredQuerySurvivesARestart(t *testing.T) {
	r := twoHosts(t)
	r.n.Query(ip(hostA), r.now)
	r.settle()
	r.n.Query(ip(hostA), r.now)
	if got := r.poll(); len(got) > 0 {
		t.Fatalf("answered at once: %v", says(got))
	}
	r.restart(Config{})()
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}

func TestAnActiveNoticeIsNotRepeatedAfterARestartBeforeThereIsGround(t *testing.T) {
	r := twoHosts(t)
	r.w.put(ip(farU))
	r.w.join("z", ip(farU))
	r.changed(0, farU)
	told := r.poll() // and not acked
	learn := r.restart(Config{})
	r.pass(10 * time.Second)
	if got := r.poll(); len(got) > 0 {
		t.Errorf("repeated without ground: %v", says(got))
	}
	r.n.Subscribe(ip(hostB), "p2", r.w.hosts[ip(hostB)].MAC, r.now)
	learn()
	got := r.poll()
	expect(t, got, hostA+": "+farU+" active")
	if got[0].Seq != told[0].Seq && got[0].Seq != told[1].Seq {
		t.Errorf("told as %d, want the number of before", got[0].Seq)
	}
	r.ack(got...)
	if c := r.n.Counters(); c.InFlight != 1 || c.Superseded != 0 { // hostB's port is down
		t.Errorf("in flight %d, superseded %d", c.InFlight, c.Superseded)
	}
}

func TestStartsFromTheSameRowsUseOtherNumbers(t *testing.T) {
	r := twoHosts(t)
	s := r.n.Snapshot()
	seqs := map[uint32]bool{}
	for _, first := range []uint32{1000, 2000} {
		n := New(Config{FirstSeq: first}, r.w)
		if err := n.Restore(s, r.now); err != nil {
			t.Fatal(err)
		}
		seqs[n.seq] = true
	}
	if len(seqs) != 2 || seqs[s.nextSeq()] {
		t.Errorf("numbers %v after %d", seqs, s.nextSeq())
	}
}
