package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/keep"
)

// A switch that is killed and loses what it had kept takes nothing back: the hosts of the
// other switch hear nothing before there is something to hear, however often it happens,
// and whether its reflector has lost its memory too.
func TestASwitchThatLostItsStateTakesNothingBack(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "lost"})
	for _, nodes := range [][]string{{"tor1"}, {"spine", "tor1"}} {
		since, told := f.mark("i2"), f.mark("i1")
		for _, n := range nodes {
			f.kill(n)
			f.loseState(n)
		}
		for _, n := range nodes {
			f.start(n)
		}
		f.established("tor1")
		f.established("tor2")
		f.heardAgain("tor1", 2)
		f.awaitNotice("i1", told, notice{init1, target, "active", "none"}) // it is told everything anew
		f.quiet("i2", since)
		f.stillTells()
		if got := f.notices("i2", since); !slices.Equal(got, flap(init2)) {
			t.Errorf("%v: i2 was told %v, want %v", nodes, got, flap(init2))
		}
	}
}

// loseState removes what a daemon kept; zones are configuration.
func (f *fab) loseState(node string) {
	f.t.Helper()
	dir := filepath.Join(f.lab.NodeDir(node), "state")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		f.t.Fatalf("state of %s: %d files, %v", node, len(files), err)
	}
	for _, e := range files {
		if name := e.Name(); name == keep.FileName || strings.HasPrefix(name, "unsaved") || strings.HasPrefix(name, "store.") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}
