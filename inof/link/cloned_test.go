package link

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Two devices have one id and different hosts. The one that came first stays, and what
// others know of it stays; the second is told whose place it wants. When sessions pushed
// each other out, each sync swept the hosts of the other: a notice each time.
func TestAClonedDeviceTakesNothingFromTheOneThatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		watcher := startClient(t, &f, auth, inoftest.DevID(1), 1, inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "p1"))
		first := startClient(t, &f, auth, inoftest.DevID(0), 1, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p1"))
		after(time.Second)
		if hosts, _ := watcher.knows(); hosts != 1 {
			t.Fatalf("%d hosts known", hosts)
		}
		watcher.withdrawn()
		clone := startClient(t, &f, auth, inoftest.DevID(0), 2)
		after(31 * time.Second)
		if hosts, _, _ := watcher.withdrawn(); hosts != 0 {
			t.Errorf("%d wrong withdrawals", hosts)
		}
		if info := first.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
			t.Errorf("the first: %+v", info)
		}
		if info := clone.dialer.Info(); info.State == StateEstablished || !strings.Contains(info.LastError, "two devices have this id") {
			t.Errorf("the clone: %+v", info)
		}
		if d := r.server.Refused(); len(d) != 1 || d[0].LastCode != wire.CodeDuplicate {
			t.Errorf("shown: %+v", d)
		}
		if n := r.server.Counters(); n.DuplicateRefused < 5 || n.Replaced != 0 || n.Established != 2 {
			t.Errorf("counters %+v", n)
		}
		first.stop() // the other may have the place now
		after(6 * time.Second)
		if info := clone.dialer.Info(); info.State != StateEstablished {
			t.Errorf("the clone, alone: %+v", info)
		}
		if d := r.server.Refused(); len(d) != 0 {
			t.Errorf("still shown: %+v", d)
		}
		clone.stop()
		watcher.stop()
		r.stop()
	})
}

// A device whose old connection is silent is back as soon as the question whether that
// one lives has waited for its answer.
func TestADeviceThatRestartsHasItsPlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f, later fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		watcher := startClient(t, &f, auth, inoftest.DevID(1), 1, inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "p1"))
		synctest.Wait()
		f.mu.Lock()
		old := fabricNet{l: f.l}
		later.l = f.l
		f.mu.Unlock()
		a := startClient(t, &old, auth, inoftest.DevID(0), 1, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p1"))
		after(time.Second)
		old.broken.Store(true) // its host lost power: nothing comes from there any more
		b := startClient(t, &later, auth, inoftest.DevID(0), 3, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p1"))
		after(probeTime + 200*time.Millisecond)
		if info := b.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
			t.Errorf("the restarted one: %+v", info)
		}
		if n := r.server.Counters(); n.Replaced != 1 || n.DuplicateRefused != 0 {
			t.Errorf("counters %+v", n)
		}
		if hosts, _, _ := watcher.withdrawn(); hosts != 0 {
			t.Errorf("%d wrong withdrawals", hosts)
		}
		a.stop()
		b.stop()
		watcher.stop()
		r.stop()
	})
}

// Of clones that come at the same time one has the place.
func TestOfClonesAtOnceOneStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		synctest.Wait()
		var clones []*clientNode
		for i := range 8 {
			clones = append(clones, startClient(t, &f, auth, inoftest.DevID(0), uint64(1+i)))
		}
		after(time.Minute)
		up := 0
		for _, c := range clones {
			if c.dialer.Info().State == StateEstablished {
				up++
			}
		}
		if n := r.server.Counters(); up != 1 || n.Established != 1 || n.Replaced != 0 {
			t.Errorf("%d stand, counters %+v", up, n)
		}
		var wg sync.WaitGroup
		for _, c := range clones {
			wg.Go(c.stop)
		}
		wg.Wait()
		r.stop()
	})
}
