package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/internal/progress"
)

// Options say where and how a lab is built. The zero value is right for users.
type Options struct {
	// Root holds one directory per lab; empty: DefaultRoot.
	Root string
	// BinDir is searched first for inofd and snsd, then $INOF_BIN_DIR, the directory
	// of the running program, ./bin and PATH.
	BinDir string
	// ReadyTimeout bounds the wait for a daemon's READY=1; 0: 20 s.
	ReadyTimeout time.Duration
	// Replace removes a lab of the same name that is up.
	Replace bool
	// Own keeps the lab to this process: as long as it lives, nobody else can remove
	// or replace the lab. What it leaves when it is killed can be cleaned up as usual.
	Own bool
	// NoDaemons builds namespaces and links only.
	NoDaemons bool
	// Realtime gives the daemons of switches the scheduling class that dist/systemd/inofd.service
	// gives them (SCHED_RR), as far as this process may; the agents of hosts, which stand on other
	// machines, run at normal priority.
	Realtime bool
	// way names nodes in the order in which a message passes them. With Realtime each of them
	// stands above those before it: on machines of their own none of them would wait for what
	// another one does after it has passed a message on.
	way []string
	// OnStep hears what is about to be done, after it was written to the state file.
	OnStep func(step string)
	// OnOutput hears what an exec line of a node has printed.
	OnOutput func(node, text string)
	// Building hears how many of the nodes and links are made.
	Building *progress.Teller
}

func (o Options) withDefaults() Options {
	if o.Root == "" {
		o.Root = DefaultRoot()
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = 20 * time.Second
	}
	return o
}

// Lab is a handle on a lab that is up. Its methods are safe for concurrent use.
type Lab struct {
	Name string
	Dir  string // everything the lab has on disk

	opt Options

	mu      sync.Mutex
	st      *state
	handles map[string]*netlink.Handle // per node, for faults without set-up time
	reaped  map[int]chan struct{}      // closed when a process started by this handle was reaped
	lock    *os.File                   // held for as long as Options.Own wants
}

func newLab(opt Options, name string, st *state) *Lab {
	return &Lab{Name: name, Dir: filepath.Join(opt.Root, name), opt: opt, st: st,
		handles: make(map[string]*netlink.Handle), reaped: make(map[int]chan struct{})}
}

// Open gives a handle on a lab that some other process built.
func Open(name string, opt Options) (*Lab, error) {
	opt = opt.withDefaults()
	if !ValidName(name) {
		return nil, fmt.Errorf("%w: %q cannot name a lab", ErrNoLab, name)
	}
	st, err := readState(filepath.Join(opt.Root, name))
	if err != nil {
		return nil, err
	}
	if st.Phase != PhaseUp {
		return nil, fmt.Errorf("lab %s is not up: it was left while %s (%s); use lab down", name, st.Phase, st.Step)
	}
	if st.Boot != bootID() {
		return nil, fmt.Errorf("lab %s did not survive the restart of this machine; use lab down", name)
	}
	return newLab(opt, name, st), nil
}

// Close lets go of the handle; the lab stays up.
func (l *Lab) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.handles {
		h.Close()
	}
	clear(l.handles)
}

// NodeDir is a node's own directory: run/, state/ and log/ are below it.
func (l *Lab) NodeDir(node string) string { return filepath.Join(l.Dir, "nodes", node) }

// Socket is where the daemon of a node answers the management API, if its
// startup-config says ${INOF_NODE_RUN}/inofd.sock.
func (l *Lab) Socket(node string) string { return filepath.Join(l.NodeDir(node), "run", "inofd.sock") }

func (l *Lab) ns(node string) nsFiles { return nsFilesOf(l.Dir, node) }

// nodeVars are what ${...} in a startup-config stands for, and what a node's
// commands find in their environment.
func (l *Lab) nodeVars(node string) map[string]string {
	d := l.NodeDir(node)
	return map[string]string{
		"INOF_LAB":        l.Name,
		"INOF_NODE":       node,
		"INOF_NODE_DIR":   d,
		"INOF_NODE_RUN":   filepath.Join(d, "run"),
		"INOF_NODE_STATE": filepath.Join(d, "state"),
		"INOF_NODE_LOG":   filepath.Join(d, "log"),
	}
}

// step writes what is about to be done, then tells the listener.
func (l *Lab) step(format string, args ...any) error {
	s := fmt.Sprintf(format, args...)
	l.mu.Lock()
	l.st.Step = s
	err := writeState(l.Dir, l.st)
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("state of lab %s before %q: %w", l.Name, s, err)
	}
	if l.opt.OnStep != nil {
		l.opt.OnStep(s)
	}
	return nil
}

// update changes the state and writes it.
func (l *Lab) update(fn func(*state)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(l.st)
	return writeState(l.Dir, l.st)
}

// Nodes lists the names of the nodes in the order of the topology.
func (l *Lab) Nodes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, n := range l.st.Nodes {
		out = append(out, n.Name)
	}
	return out
}

// Process finds a process of a node by name ("inofd", "snsd-eth1", BFDProcess); an
// empty name means the only one.
func (l *Lab) Process(node, name string) (Process, error) {
	if name == BFDProcess {
		if err := l.hasNode(node); err != nil {
			return Process{}, err
		}
		return l.findBFD(node)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.st.node(node)
	if n == nil {
		return Process{}, l.noNode(node)
	}
	if name == "" && len(n.Processes) == 1 {
		return n.Processes[0], nil
	}
	var names []string
	for _, p := range n.Processes {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Process{}, fmt.Errorf("node %s has no process %q, it has [%s]", node, name, strings.Join(names, " "))
}

// noNode is called with mu held.
func (l *Lab) noNode(node string) error {
	var names []string
	for _, n := range l.st.Nodes {
		names = append(names, n.Name)
	}
	return fmt.Errorf("lab %s has no node %q, it has [%s]", l.Name, node, strings.Join(names, " "))
}

func (l *Lab) hasNode(node string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.st.node(node) == nil {
		return l.noNode(node)
	}
	return nil
}

// binary finds one of the project's programs.
func (l *Lab) binary(name string) (string, error) {
	dirs := []string{l.opt.BinDir, os.Getenv("INOF_BIN_DIR")}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	dirs = append(dirs, "bin")
	dirs = append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
	for _, d := range slices.Compact(dirs) {
		if d == "" {
			continue
		}
		p, err := filepath.Abs(filepath.Join(d, name))
		if err != nil {
			continue
		}
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("program %s not found in bin/, beside this program or in PATH; run make build, or name its directory with --bin-dir", name)
}
