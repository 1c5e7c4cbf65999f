package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/store"
)

// What a newer version kept of its reflectors is refused and stays as it is: the daemon runs, and
// says so to operators.
func TestAStoreOfANewerVersionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1")
		settle(time.Second)
		n.halt()
		path := filepath.Join(n.cfg.State, store.LogName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[9]++ // the format
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		settle(10 * time.Second)
		said := false
		for _, e := range n.d.log.Events(0).Events {
			said = said || e.Kind == "error" && strings.Contains(e.Text, "newer version of the program: its format is 2, this version reads up to 1; start that version, or remove the file")
		}
		if !said || !strings.Contains(strings.Join(n.d.savingWarnings(), "\n"), "what reflectors said is not kept") {
			t.Errorf("said in an event: %v; warning %q", said, strings.Join(n.d.savingWarnings(), "\n"))
		}
		n.halt()
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, b) {
			t.Errorf("it was written to: %v", err)
		}
		n.start()
	})
}
