package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// filed gives a standalone device with a configuration in a file, and what changes that.
func filed(t *testing.T) (n *node, write func(old, new string)) {
	t.Helper()
	f := newTestFabric(t)
	n = f.add("alone", "10.0.0.9", "standalone", "eth1")
	n.halt()
	path := filepath.Join(t.TempDir(), "inofd.yaml")
	text := "device: {id: 10.0.0.9, name: alone}\nstate-directory: " + n.cfg.State + "\nports: {access: [eth*]}\nlldp: {interval: 30s}\n"
	put := func() {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put()
	start := n.start
	load := func() {
		cfg, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		n.cfg = cfg
	}
	load()
	start()
	settle(time.Second)
	return n, func(old, new string) {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		text = strings.Replace(text, old, new, 1)
		put()
	}
}

func (n *node) interval() time.Duration { return n.d.cfg.Load().LLDP.Interval }

// restart begins anew with the file, as the program does.
func (n *node) restart() {
	n.t.Helper()
	n.halt()
	cfg, err := config.Load(n.cfg.File)
	if err != nil {
		n.t.Fatal(err)
	}
	n.cfg = cfg
	n.start()
	settle(3 * time.Second)
}

func TestAConfigurationThatNobodyConfirmsGoesBackAlsoOverARestart(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, write := filed(t)
			write("interval: 30s", "interval: 20s")
			r, err := n.d.CheckConfig(t.Context())
			if err != nil || len(r.Changes) != 1 || r.Changes[0] != (api.ConfigChange{Key: "lldp.interval", Old: "30s", New: "20s"}) {
				t.Fatalf("%+v, %v", r, err)
			}
			if r, err = n.d.CommitConfig(t.Context(), api.ConfigOrder{Confirm: api.Duration(time.Minute)}); err != nil || r.Confirm == nil || n.interval() != 20*time.Second {
				t.Fatalf("%+v, %v, interval %v", r, err, n.interval())
			}
			if _, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{}); !errors.Is(err, api.ErrConflict) {
				t.Errorf("another one while it waits: %v", err)
			}
			if _, err := n.d.ReloadConfig(t.Context(), false); !errors.Is(err, api.ErrConflict) {
				t.Errorf("a reload while it waits: %v", err)
			}
			if away {
				n.restart()
				if n.interval() != 20*time.Second {
					t.Errorf("after a restart within its time the interval is %v", n.interval())
				}
			}
			settle(time.Minute)
			if r, err = n.d.CheckConfig(t.Context()); err != nil || n.interval() != 30*time.Second || !r.Back || len(r.Changes) != 1 || r.Confirm != nil {
				t.Errorf("after its time: interval %v, %+v, %v", n.interval(), r, err)
			}
			if w := n.d.reloads.warning(); !strings.Contains(w, "was taken back") {
				t.Errorf("warning %q", w)
			}
			n.restart() // with the file that nobody confirmed
			if n.interval() != 30*time.Second {
				t.Errorf("a restart brought it into force: interval %v", n.interval())
			}
			write("interval: 20s", "interval: 25s") // mended
			if _, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{}); err != nil || n.interval() != 25*time.Second || n.d.reloads.warning() != "" {
				t.Errorf("%v, interval %v, warning %q", err, n.interval(), n.d.reloads.warning())
			}
			n.restart()
			if n.interval() != 25*time.Second {
				t.Errorf("interval %v", n.interval())
			}
		})
	}
}

func TestAConfigurationThatIsConfirmedStaysAndCanBeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, write := filed(t)
		if _, err := n.d.UndoConfig(t.Context()); !errors.Is(err, api.ErrRefused) {
			t.Errorf("nothing to undo: %v", err)
		}
		if _, err := n.d.ConfirmConfig(t.Context()); !errors.Is(err, api.ErrRefused) {
			t.Errorf("nothing to confirm: %v", err)
		}
		write("interval: 30s", "interval: 20s")
		if _, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{Confirm: api.Duration(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if r, err := n.d.ConfirmConfig(t.Context()); err != nil || r.Confirm != nil {
			t.Fatal(r, err)
		}
		settle(2 * time.Minute)
		n.restart()
		if n.interval() != 20*time.Second {
			t.Errorf("confirmed, and the interval is %v", n.interval())
		}
		if r, err := n.d.UndoConfig(t.Context()); err != nil || !r.Back || n.interval() != 30*time.Second {
			t.Errorf("%+v, %v, interval %v", r, err, n.interval())
		}
	})
}

func TestWhatCannotBeCommittedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, write := filed(t)
		for _, c := range []struct {
			old, new string
			kind     error
			says     string
		}{
			{"interval: 30s", "interval: 30 s", api.ErrInvalid, "lldp.interval"},
			{"interval: 30 s", "interval: 20s, max-hosts: 9000", api.ErrRefused, "only a restart changes lldp.max-hosts"},
		} {
			write(c.old, c.new)
			_, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{Confirm: api.Duration(time.Minute)})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || n.interval() != 30*time.Second {
				t.Errorf("%s: %v, interval %v", c.new, err, n.interval())
			}
		}
		settle(2 * time.Minute)
		if r, err := n.d.CheckConfig(t.Context()); err != nil || r.Back || r.Confirm != nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A reload that has begun before a commit does not end the commit's deadline.
func TestAReloadDoesNotForgetTheDeadlineOfACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, write := filed(t)
		committed := make(chan error, 1)
		n.d.env.Load = func() (*config.Config, error) {
			write("interval: 30s", "interval: 20s")
			go func() {
				_, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{Confirm: api.Duration(time.Minute)})
				committed <- err
			}()
			settle(time.Second)
			return config.Load(n.cfg.File)
		}
		if _, err := n.d.ReloadConfig(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := <-committed; err != nil {
			t.Fatal(err)
		}
		if r, err := n.d.CheckConfig(t.Context()); err != nil || r.Confirm == nil {
			t.Errorf("%+v, %v: what was committed with a deadline stays without a confirmation", r, err)
		}
	})
}

// A confirmation that could not be written is none: the deadline stands.
func TestAConfirmationThatIsNotOnTheDiskIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, write := filed(t)
		write("interval: 30s", "interval: 20s")
		if _, err := n.d.CommitConfig(t.Context(), api.ConfigOrder{Confirm: api.Duration(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.d.ConfirmConfig(ended); !errors.Is(err, api.ErrUnavailable) {
			t.Fatal(err)
		}
		settle(2 * time.Minute)
		if n.interval() != 30*time.Second {
			t.Errorf("nobody was told that it is confirmed, and the interval is %v", n.interval())
		}
	})
}

// Who returns up is not done afterwards.
func TestWhatIsQueuedForABusyOwnerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1")
		settle(time.Second)
		busy := make(chan struct{})
		first := make(chan error, 1)
		go func() {
			first <- n.d.device.Do(context.Background(), func(*device.Core, time.Time) { <-busy })
		}()
		settle(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun, ran := time.Now(), false
		ended := make(chan error, 1)
		go func() { ended <- n.d.device.Do(ctx, func(*device.Core, time.Time) { ran = true }) }()
		settle(5 * time.Second)
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		default:
			t.Errorf("waits for %v, of 1s", time.Since(begun))
		}
		close(busy)
		settle(time.Second)
		if err := <-first; err != nil || ran {
			t.Errorf("%v; done although it was given up: %t", err, ran)
		}
	})
}
