package portguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux/bpfpins"
)

// Config says what a guard does.
type Config struct {
	// Pins is the directory of the daemon's pins; empty: blocks end with this process.
	Pins string
	// AtArray guards the interfaces of an array instead of a switch's ports: the array's address is
	// the source of what leaves, and only blocks are enforced.
	AtArray bool
	// Way is how programs are attached; empty: the best that the kernel has.
	Way Way
}

// Way is how a program is attached.
type Way string

const (
	WayTCX    Way = "tcx"    // Linux 6.6
	WayClsact Way = "clsact" // cls_bpf
)

// Guard is the guard of the network namespace in which Open and SetPorts are called. Its methods may
// be called by several goroutines.
type Guard struct {
	dir     string // of the pins; empty: there are none
	way     Way
	in, out *ebpf.Program
	maps    map[string]*ebpf.Map

	mu     sync.Mutex
	ports  map[string]*attachment
	grace  time.Time // when the last grace period that has ended began
	closed bool
}

// ErrNoPins means that blocks end with the process.
var ErrNoPins = errors.New("blocks will not outlive the daemon")

// Open loads the programs and takes over pinned maps. Nothing is attached before SetPorts. An error
// that wraps ErrNoPins comes with a Guard that works.
func Open(cfg Config) (*Guard, error) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only
	g := &Guard{way: cfg.Way, maps: make(map[string]*ebpf.Map), ports: make(map[string]*attachment)}
	var pinErr error
	if cfg.Pins != "" {
		if pinErr = g.makePins(cfg.Pins); pinErr != nil {
			pinErr = fmt.Errorf("%w: %w", ErrNoPins, pinErr)
			g.dir = ""
		}
	}
	if err := g.open(cfg.AtArray); err != nil {
		_ = g.Close()
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("this process may not load eBPF programs; it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (docs/operations.md, port guard): %w", err)
		}
		return nil, err
	}
	return g, pinErr
}

// makePins makes the directory of this network namespace: interface indices mean nothing in another.
func (g *Guard) makePins(pins string) error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	if err := bpfpins.Make(pins); err != nil {
		return err
	}
	g.dir = filepath.Join(pins, fmt.Sprintf("guard-%d", st.Ino))
	removeDead(pins, g.dir)
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return fmt.Errorf("directory of the pins: %w", err)
	}
	return nil
}

// removeDead removes what was pinned in network namespaces that are gone.
func removeDead(pins, own string) {
	dirs, _ := filepath.Glob(filepath.Join(pins, "guard-*"))
	for _, dir := range dirs {
		links, _ := filepath.Glob(filepath.Join(dir, "link-*"))
		dead := len(links) > 0 && dir != own
		for _, pin := range links {
			l, err := link.LoadPinnedLink(pin, nil)
			if err != nil {
				continue
			}
			dead = dead && indexOf(l) == 0
			l.Close()
		}
		if dead {
			_ = bpfpins.Remove(dir)
		}
	}
}

func (g *Guard) open(atArray bool) error {
	spec, err := load(atArray)
	if err != nil {
		return err
	}
	for _, name := range []string{mapBlocks, mapPorts, mapLatest} {
		if err := g.openMap(name, spec.Maps[name]); err != nil {
			return fmt.Errorf("map %s of the port guard: %w", name, err)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: g.maps})
	if err != nil {
		return fmt.Errorf("load the port guard: %w", err)
	}
	g.in, g.out = c.DetachProgram(programIn), c.DetachProgram(programOut)
	c.Close()
	return nil
}

// openMap takes over a pinned map, or makes it. A map of another layout is replaced: its blocks end.
func (g *Guard) openMap(name string, spec *ebpf.MapSpec) error {
	if g.dir == "" {
		m, err := ebpf.NewMap(spec)
		if err == nil {
			g.maps[name] = m
		}
		return err
	}
	pin := filepath.Join(g.dir, name)
	m, err := ebpf.LoadPinnedMap(pin, nil)
	switch {
	case err == nil && spec.Compatible(m) == nil:
		g.maps[name] = m
		return nil
	case err == nil:
		m.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if m, err = ebpf.NewMap(spec); err != nil {
		return err
	}
	g.maps[name] = m
	_ = os.Remove(pin)
	return m.Pin(pin)
}

// Forbidden implements fabric.PortGuard.
func (g *Guard) Forbidden() (map[string]fabric.ForbiddenFrames, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string]fabric.ForbiddenFrames, len(g.ports))
	for name, p := range g.ports {
		var row portRow
		if err := g.maps[mapPorts].Lookup(uint32(p.port.Index), &row); err != nil {
			return out, fmt.Errorf("counts of port %s: %w", name, err)
		}
		out[name] = fabric.ForbiddenFrames{In: row.In, Out: row.Out, Src: row.Src, Type: row.Type}
	}
	return out, nil
}

// Close ends this process's part: with pins, programs and blocks stay.
func (g *Guard) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	var errs []error
	for _, p := range g.ports {
		if g.dir == "" {
			errs = append(errs, p.detach())
		}
		p.close()
	}
	if g.dir != "" && g.maps[mapPorts] != nil && len(keysOf[uint32, portRow](g.maps[mapPorts])) == 0 { // no program uses the maps
		errs = append(errs, bpfpins.Remove(g.dir))
	}
	clear(g.ports)
	for _, m := range g.maps {
		m.Close()
	}
	for _, p := range []*ebpf.Program{g.in, g.out} {
		if p != nil {
			p.Close()
		}
	}
	return errors.Join(errs...)
}

// Remove takes the guard and all blocks away.
func (g *Guard) Remove() error {
	g.SetPorts(nil)
	return g.Close()
}

// RemovePins takes the guards of processes that are gone out of the kernel. Where programs are at
// clsact (before Linux 6.6) they stay until `tc qdisc del dev PORT clsact`.
func RemovePins(pins string) error {
	dirs, err := filepath.Glob(filepath.Join(pins, "guard-*"))
	errs := []error{err}
	for _, dir := range dirs {
		if strings.Contains(filepath.Base(dir), ".") {
			continue
		}
		errs = append(errs, bpfpins.Remove(dir))
	}
	return errors.Join(errs...)
}
