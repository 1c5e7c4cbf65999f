package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// observes waits until devices observe, or act.
func (f *fab) observes(want bool, nodes ...string) {
	f.t.Helper()
	for _, n := range nodes {
		labtest.Eventually(f.t, n+" to change its mode", func() error {
			s, err := f.tryStatus(n)
			if err == nil && s.Mode.Observes != want {
				err = fmt.Errorf("mode %s", s.Mode)
			}
			return err
		})
	}
}

// A fabric is halted while a client floods it and a cable is pulled again and again: no host hears
// anything from then on, what would have been sent is recorded, and a restart changes nothing. At
// the end every host hears what is true.
func TestAHaltOfTheFabricWhileItIsFlooded(t *testing.T) {
	t.Parallel()
	f, _ := hostileFabric(t, "halted")
	stop := make(chan struct{})
	var bad sync.WaitGroup
	bad.Go(func() { f.flooding(stop) })
	bad.Go(func() {
		for up := false; ; up = !up {
			_, _ = f.lab.Fault("tor1", "eth1", up)
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	done := sync.OnceFunc(func() { close(stop); bad.Wait() })
	t.Cleanup(done)
	f.awaitCounter("tor2", "hostnotify.sent", 5)

	begun := time.Now()
	if out := f.ctl("spine", "halt", "--fabric", "--reason", "test"); out.code != 0 {
		t.Fatal(out)
	}
	f.observes(true, "tor1", "tor2")
	t.Logf("halted after %v", time.Since(begun).Round(time.Millisecond))
	f.awaitCounter("tor2", "hostnotify.observed", 3)
	done()

	since := f.marks("i1", "i2", "t1")
	f.fault("tor1", "eth1", true)
	f.fault("tor1", "eth1", false)
	f.kill("tor2")
	f.start("tor2")
	f.established("tor2")
	f.observes(true, "tor1", "tor2")
	f.awaitEvent("spine", 0, "mode", "halted", "test")
	for node, at := range since {
		f.quiet(node, at)
	}
	if seen, err := ask(f, "tor1", noticesAt); err != nil || len(observedOf(seen)) == 0 {
		t.Errorf("%d notices, none of them observed (%v)", len(seen), err)
	}

	if out := f.ctl("spine", "resume", "--fabric"); out.code != 0 {
		t.Fatal(out)
	}
	f.observes(false, "tor1", "tor2")
	f.awaitState("i1", init1, target, "inactive", "") // whatever it had heard at the halt
	f.awaitState("i2", init2, target, "inactive", "")
	f.fault("tor1", "eth1", true)
	f.awaitState("i1", init1, target, "active", "") // else the next loss is no news
	f.awaitState("i2", init2, target, "active", "")
	f.stillTells()
}

func observedOf(list []api.Notice) (seen []api.Notice) {
	for _, n := range list {
		if n.Status == api.NoticeObserved {
			seen = append(seen, n)
		}
	}
	return seen
}
