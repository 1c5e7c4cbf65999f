package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
)

// warnedOf gives the warnings of one rule.
func warnedOf(t *testing.T, n *node, rule string) (list api.Warnings) {
	t.Helper()
	s, err := n.d.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range s.Warnings {
		if w.Rule == rule {
			list = append(list, w)
		}
	}
	return list
}

func TestAHealthyFabricHasNoWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		settle(10 * time.Second)
		for name, n := range f.nodes {
			if s, err := n.d.Status(t.Context()); err != nil || len(s.Warnings) != 0 {
				t.Errorf("%s: %v, %+v", name, err, s.Warnings)
			}
		}
	})
}

// A reflector says which devices it waits for, and until when; after that it does not.
func TestTheStatusNamesAwaitedDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		f.nodes["tor3"].halt()
		settle(time.Second)
		list := warnedOf(t, f.nodes["spine"], "device-awaited")
		if len(list) != 1 || !strings.Contains(list[0].Text, "device 10.0.0.3 has no session: its 2 host(s) are kept until ") {
			t.Errorf("%+v", list)
		}
		f.nodes["spine"].halt() // and so does the next process, which knows it from its state
		f.nodes["spine"].start()
		settle(5 * time.Second)
		if list = warnedOf(t, f.nodes["spine"], "device-awaited"); len(list) != 1 || !strings.Contains(list[0].Text, "device 10.0.0.3 ") {
			t.Errorf("after a restart: %+v", list)
		}
		settle(10 * time.Minute)
		if list = warnedOf(t, f.nodes["spine"], "device-awaited"); len(list) != 0 {
			t.Errorf("when it was given up: %+v", list)
		}
	})
}

// A wrong password is a warning on both sides.
func TestTheStatusNamesRefusedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		password := func(text string) string {
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("session: {password-file: %s}\n", path)
		}
		spine := f.addWith("spine", reflectorID, "reflector", password("the right password"))
		tor := f.addWith("tor1", "10.0.0.1", "client", password("another password"), "eth1")
		settle(time.Minute)
		if list := warnedOf(t, spine, "client-password"); len(list) != 1 || !strings.Contains(list[0].Text, "authentication failed") {
			t.Errorf("the reflector: %+v", list)
		}
		if list := warnedOf(t, tor, "no-session"); len(list) != 1 || !strings.Contains(list[0].Text, "authentication failed") {
			t.Errorf("the client: %+v", list)
		}
		if p := peersOf(t, tor)[""]; p.LastCode == "" && len(peersOf(t, tor)) == 1 {
			for _, p := range peersOf(t, tor) {
				if p.LastCode != "authentication failed" {
					t.Errorf("%+v", p)
				}
			}
		}
		settle(time.Minute)
		tor.halt()
		settle(11 * time.Minute)
		if list := warnedOf(t, spine, "client-password"); len(list) != 0 {
			t.Errorf("eleven minutes later: %+v", list)
		}
	})
}

// A host that acks nothing is named after three seconds, until it acks.
func TestTheStatusNamesSilentHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		silence := f.hosts["i1"].silent
		silence(true)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(2 * time.Second)
		if list := warnedOf(t, f.nodes["tor1"], "hosts-silent"); len(list) != 0 {
			t.Errorf("after two seconds: %+v", list)
		}
		settle(3 * time.Second)
		list := warnedOf(t, f.nodes["tor1"], "hosts-silent")
		if len(list) != 1 || !strings.Contains(list[0].Text, "on port eth1 leaves 1 notice(s) unacked") {
			t.Errorf("after five seconds: %+v", list)
		}
		settle(time.Minute)
		silence(false)
		settle(2 * healthEvery)
		var told []string
		for _, e := range f.nodes["tor1"].d.Events(0).Events {
			if e.Kind == "warning" {
				told = append(told, e.Fields["rule"]+" "+e.Fields["state"])
			}
		}
		if !slices.Equal(told, []string{"hosts-silent raised", "hosts-silent over"}) {
			t.Errorf("events: %q", told)
		}
		if list := warnedOf(t, f.nodes["tor1"], "hosts-silent"); len(list) != 0 {
			t.Errorf("when it acks: %+v", list)
		}
	})
}

// What is wrong at a client is a warning of its reflector, for as long as it is so and the
// client has a session.
func TestAReflectorHasTheWarningsOfItsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		silence := f.hosts["i1"].silent
		silence(true)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(12 * time.Second)
		if list := warnedOf(t, f.nodes["spine"], "hosts-silent"); len(list) != 0 {
			t.Errorf("after two seconds of it: %+v", list)
		}
		settle(15 * time.Second)
		list := warnedOf(t, f.nodes["spine"], "hosts-silent")
		if len(list) != 1 || !strings.HasPrefix(list[0].Text, "device 10.0.0.1: host "+i1+" on port eth1 leaves 1 notice(s) unacked") ||
			len(list[0].Devices) != 1 || !strings.HasPrefix(list[0].Do, "there: ") {
			t.Errorf("%+v", list)
		}
		if list := warnedOf(t, f.nodes["tor2"], "hosts-silent"); len(list) != 0 {
			t.Errorf("another client: %+v", list)
		}
		silence(false)
		settle(15 * time.Second)
		if list := warnedOf(t, f.nodes["spine"], "hosts-silent"); len(list) != 0 {
			t.Errorf("when it is over: %+v", list)
		}
		silence(true)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", true)
		settle(25 * time.Second)
		if list := warnedOf(t, f.nodes["spine"], "hosts-silent"); len(list) != 1 {
			t.Errorf("again: %+v", list)
		}
		f.nodes["tor1"].halt()
		settle(time.Second)
		if list := warnedOf(t, f.nodes["spine"], "hosts-silent"); len(list) != 0 {
			t.Errorf("when the client has gone: %+v", list)
		}
	})
}

// Control frames that the kernel drops are told with their port, and forgotten again.
func TestDroppedFramesAreAWarningAndAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("box", "10.0.0.9", "standalone", "eth1", "eth2")
		settle(time.Second)
		if err := n.fake.Lose("eth2", 12); err != nil {
			t.Fatal(err)
		}
		settle(lossEvery)
		list := warnedOf(t, n, "frames-dropped")
		if len(list) != 1 || !strings.Contains(list[0].Text, "port eth2: the kernel dropped 12 control frame(s)") || list[0].Count != 1 {
			t.Errorf("%+v", list)
		}
		if !slices.ContainsFunc(n.d.Events(0).Events, func(e api.Event) bool { return e.Warning == "frames-dropped" && e.Port == "eth2" }) {
			t.Error("there is no event")
		}
		settle(11 * time.Minute)
		if list := warnedOf(t, n, "frames-dropped"); len(list) != 0 {
			t.Errorf("when nothing more was dropped: %+v", list)
		}
	})
}

// A reload that failed is a warning until one succeeds.
func TestAFailedReloadIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("box", "10.0.0.9", "standalone", "eth1")
		settle(time.Second)
		n.d.ReloadFailed(errors.New("inofd.yaml:3: typo\nsecond line"))
		list := warnedOf(t, n, "reload-failed")
		if len(list) != 1 || !strings.Contains(list[0].Text, "typo; second line") {
			t.Errorf("%+v", list)
		}
		if err := n.d.Reload(t.Context(), n.cfg, false); err != nil {
			t.Fatal(err)
		}
		if list := warnedOf(t, n, "reload-failed"); len(list) != 0 {
			t.Errorf("after a good one: %+v", list)
		}
	})
}
