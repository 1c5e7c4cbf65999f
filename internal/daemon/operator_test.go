package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
)

// A state directory that fails is said by the status, with the error and that it is
// tried again, until a later try succeeds.
func TestTheStatusSaysThatTheStateIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("box", "10.0.0.9", "standalone", "eth1")
		settle(time.Second)
		warned := func() string {
			st, err := n.d.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range st.Warnings {
				if strings.Contains(w.Text, "state file") {
					return w.Text
				}
			}
			return ""
		}
		if w := warned(); w != "" {
			t.Fatalf("at the start: %q", w)
		}
		dir := n.cfg.State
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		f.host("t1", "box", "eth1", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		if w := warned(); !strings.Contains(w, "cannot be written, tried again every 10s") || !strings.Contains(w, dir) {
			t.Errorf("while it fails: %q", w)
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
		settle(saveRetry + time.Second)
		if w := warned(); w != "" {
			t.Errorf("when it is there again: %q", w)
		}
		if _, err := os.Stat(filepath.Join(dir, keep.FileName)); err != nil {
			t.Error(err)
		}
	})
}

// A notice that nobody acked is given up when its host leaves, and shown so.
func TestANoticeToAHostThatLeftIsShownAsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		mute := f.hosts["i1"]
		mute.silent(true)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(10 * time.Second)
		last := func() api.Notice {
			list, err := ask[[]api.Notice](t.Context(), f.nodes["tor1"].d, "notices")
			if err != nil || len(list) == 0 {
				t.Fatalf("%d notices, %v", len(list), err)
			}
			return list[len(list)-1]
		}
		if n := last(); n.Status != api.NoticeSent || n.Retries < 3 || n.Subject.String() != t3 {
			t.Fatalf("while the host is silent: %+v", n)
		}
		settle(120 * time.Second) // its LLDP time to live ends
		if n := last(); n.Status != api.NoticeGivenUp || n.Acked != nil || n.Subject.String() != t3 {
			t.Errorf("when it has left: %+v", n)
		}
	})
}

// A corrected password takes effect with the reload, not when a back-off of up to five
// seconds ends.
func TestAReloadWakesTheDialers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		password := func(text string) string {
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("session: {password-file: %s}\n", path)
		}
		f.addWith("spine", reflectorID, "reflector", password("the right password"))
		n := f.addWith("tor1", "10.0.0.1", "client", password("another password"), "eth1")
		doc := fmt.Sprintf("device: {id: 10.0.0.1, name: tor1, roles: [client]}\nstate-directory: %s\n%sclient: {reflectors: [{address: %s}]}\nports: {access: [eth*]}\n",
			n.cfg.State, password("the right password"), reflectorID)
		settle(time.Minute)
		// A second after an attempt the next one is more than a second away.
		for dials := n.d.dialers[0].Counters().Dials; n.d.dialers[0].Counters().Dials == dials; {
			settle(100 * time.Millisecond)
		}
		settle(time.Second)
		if p := peersOf(t, n); len(p) != 1 || !strings.Contains(fmt.Sprint(p), "authentication failed") {
			t.Fatalf("with another password: %+v", p)
		}
		if err := n.d.Reload(t.Context(), f.load(doc), false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p := peersOf(t, n)[reflectorID]; p.State != api.PeerEstablished {
			t.Errorf("after the reload: %+v", p)
		}
	})
}
