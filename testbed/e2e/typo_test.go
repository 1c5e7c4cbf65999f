package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// A typing mistake in ports.access ends no host: it is refused, by inofctl and by the
// signal; forced, the hosts are held, then they leave in order; corrected, they are told
// nothing of it.
func TestATypingMistakeInTheAccessPortsIsNoOutage(t *testing.T) {
	t.Parallel()
	s := newSolo(t, "typo")
	good, err := os.ReadFile(s.conf)
	if err != nil {
		t.Fatal(err)
	}
	access := func(entry, hold string) {
		t.Helper()
		text := strings.Replace(string(good), `{access: ["eth[1-9]"]}`, fmt.Sprintf("{access: [%s], removal-hold: %s}", entry, hold), 1)
		if err := os.WriteFile(s.conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := s.daemon("")
	s.running()
	since := s.marks("i", "t")

	access(`"Ethrnet*"`, "1h")
	if o := s.ctl("sw", "reload"); o.code != 1 || !hasAll(o.stderr, []string{"port eth1 with host " + target, "port eth2 with host " + init1, "inofctl reload --force"}) {
		t.Errorf("reload: %+v", o)
	}
	d.signal(unix.SIGHUP)
	s.awaitCounter("sw", "config.reloads_refused", 2)
	if w := s.status("sw").Warnings.String(); !strings.Contains(w, "was refused: ports.access would leave out") {
		t.Errorf("warnings %q", w)
	}
	if o := s.ctl("sw", "reload", "--force"); o.code != 0 {
		t.Errorf("forced: %+v", o)
	}
	removed := func() error {
		for _, p := range []string{"eth1", "eth2"} {
			if got := s.port("sw", p); got.State != api.PortRemoved || got.Removal == nil {
				return fmt.Errorf("port %+v", got)
			}
		}
		return nil
	}
	labtest.Eventually(t, "the ports to be held", removed)
	access("eth1-9", "1h")
	if o := s.ctl("sw", "reload"); o.code != 0 {
		t.Errorf("corrected: %+v", o)
	}
	s.stillTells()
	for node, from := range since { // nothing but what the pulled cable was for
		for _, n := range s.notices(node, from) {
			if n.Reason != "none" && n.Reason != "link-down" {
				t.Errorf("%s was told %+v", node, n)
			}
		}
	}

	since = s.marks("i", "t")
	access(`"eth*", "!eth1"`, "1s")
	began := time.Now()
	if o := s.ctl("sw", "reload", "--force"); o.code != 0 {
		t.Errorf("forced: %+v", o)
	}
	s.awaitNotice("i", since["i"], notice{init1, target, "inactive", "aged-out"})
	if held := time.Since(began); held < time.Second {
		t.Errorf("the host was held for %v only", held)
	}
}
