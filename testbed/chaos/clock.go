package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The clock of the system is everybody's, and a namespace has none of its own. So the daemons of a
// run are built with the tag clocksteps, and read by how much their clock is off from a file.
const clockEnv = "INOF_CLOCK_STEPS"

// clocks gives each switch such a file.
func (r *runner) clocks() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "inofctl-chaos-clocks-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	for _, p := range r.fab.targets().daemons {
		n := r.fab.topo.Node(p.node)
		if n.Env == nil {
			n.Env = map[string]string{}
		}
		n.Env[clockEnv] = filepath.Join(dir, p.node)
		if err := os.WriteFile(n.Env[clockEnv], make([]byte, 8), 0o600); err != nil {
			remove()
			return nil, err
		}
	}
	return remove, nil
}

// clocksStep checks that each daemon looks at its file, if clocks are to be set.
func (r *runner) clocksStep() error {
	if !slices.Contains(r.Kinds, Clock) {
		return nil
	}
	for _, p := range r.fab.targets().daemons {
		now, err := r.lab.Process(p.node, p.name)
		if err != nil {
			return err
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", now.PID))
		if err != nil {
			return err
		}
		if !strings.Contains(string(maps), r.fab.topo.Node(p.node).Env[clockEnv]) {
			return fmt.Errorf("%s: its clock cannot be set: it is not built with -tags clocksteps", p)
		}
	}
	return nil
}

// setClock sets the clock that the daemon of a switch reads, and sets it right after a while.
func (r *runner) setClock(ctx context.Context, f Fault) error {
	set := func(step time.Duration) error {
		file, err := os.OpenFile(r.fab.topo.Node(f.Node).Env[clockEnv], os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("%s: clock: %w", f.Node, err)
		}
		defer file.Close()
		_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(step/time.Second))), 0)
		return err
	}
	if err := set(f.Step); err != nil {
		return err
	}
	r.sleep(ctx, f.For)
	return set(0)
}
