package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Phases of a lab, as written to its state file.
const (
	PhaseStarting = "starting" // somebody builds it, or was killed doing so
	PhaseUp       = "up"
	PhaseStopping = "stopping" // somebody removes it, or was killed doing so
)

const (
	stateFile    = "state.json"
	stateVersion = 1
	// envRoot names the directory of all labs; see DefaultRoot.
	envRoot = "INOF_LAB_ROOT"
	// envLab marks every process of a lab with the lab's directory.
	envLab = "INOF_LAB_DIR"
)

// state is what is known about a lab on disk.
type state struct {
	Version  int         `json:"version"`
	Name     string      `json:"name"`
	File     string      `json:"file"`
	Phase    string      `json:"phase"`
	Step     string      `json:"step"` // what was about to be done
	Boot     string      `json:"boot_id"`
	Created  time.Time   `json:"created"`
	UserNS   uint64      `json:"user_ns"`          // inode of the user namespace the lab lives in
	Nested   bool        `json:"nested"`           // UserNS was made for the lab; it ends with its last process
	Holder   *Process    `json:"holder,omitempty"` // keeps the namespaces of a nested lab
	Nodes    []nodeState `json:"nodes"`
	Links    []linkState `json:"links"`
	NetNames []string    `json:"net_names,omitempty"` // symbolic links below /run/netns
	Ignored  []Ignored   `json:"ignored,omitempty"`
}

type nodeState struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	NetNS     uint64            `json:"net_ns"` // inode, 0 before it is made
	Env       map[string]string `json:"env,omitempty"`
	Agents    []Agent           `json:"agents,omitempty"`
	VM        *VM               `json:"vm,omitempty"`
	Container bool              `json:"container,omitempty"`
	Exec      []string          `json:"exec,omitempty"` // of a vm, at each start
	Processes []Process         `json:"processes,omitempty"`
}

type linkState struct {
	A      Endpoint `json:"a"`
	B      Endpoint `json:"b"`
	MTU    int      `json:"mtu,omitempty"`
	AIndex int      `json:"a_index"` // ifindex of A in its node
	BIndex int      `json:"b_index"`
}

func (s *state) node(name string) *nodeState {
	i := slices.IndexFunc(s.Nodes, func(n nodeState) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Nodes[i]
}

// DefaultRoot is the directory that holds one directory per lab: $INOF_LAB_ROOT,
// else $XDG_RUNTIME_DIR/inof-lab, else /run/inof-lab for root and
// $TMPDIR/inof-lab-UID for others.
func DefaultRoot() string {
	if d := os.Getenv(envRoot); d != "" {
		return d
	}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return filepath.Join(d, "inof-lab")
	}
	if os.Getuid() == 0 {
		return "/run/inof-lab"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("inof-lab-%d", os.Getuid()))
}

// makeRoot creates the root directory and makes sure that nobody else can put
// things there.
func makeRoot(root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("lab directory: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return fmt.Errorf("lab directory %s: %w", root, err)
	}
	if int(st.Uid) != os.Getuid() || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0 {
		return fmt.Errorf("lab directory %s: must be a directory of uid %d that nobody else can write; choose another with %s", root, os.Getuid(), envRoot)
	}
	return nil
}

// writeState replaces the state file in one step.
func writeState(dir string, s *state) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, stateFile+".new")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, stateFile))
}

// readState reads a lab's state. A lab whose maker was killed before the first
// write has a directory and no state: it comes back empty, phase starting.
func readState(dir string) (*state, error) {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrNoLab, filepath.Base(dir))
		}
		return &state{Version: stateVersion, Name: filepath.Base(dir), Phase: PhaseStarting, Boot: bootID()}, nil
	}
	if err != nil {
		return nil, err
	}
	s := &state{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("%s: version %d, this program writes %d", filepath.Join(dir, stateFile), s.Version, stateVersion)
	}
	if s.Name != filepath.Base(dir) {
		return nil, fmt.Errorf("%s: is about a lab %q", filepath.Join(dir, stateFile), s.Name)
	}
	return s, nil
}

// lockPatience is how long a lab that another process works on is waited for.
const lockPatience = 3 * time.Second

// lockLab takes the lab's directory for this process alone. The lock ends with the
// process, so a killed one never blocks the next: a child that it was just starting may
// have the lock for a moment longer, which is waited for.
func lockLab(dir string) (*os.File, error) {
	for end := time.Now().Add(lockPatience); ; {
		f, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", ErrNoLab, filepath.Base(dir))
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if time.Now().Before(end) {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			return nil, fmt.Errorf("%w: %s", ErrBusy, filepath.Base(dir))
		}
		// The directory may have been removed between opening and locking.
		mine, err1 := f.Stat()
		now, err2 := os.Stat(dir)
		if err1 == nil && err2 == nil && os.SameFile(mine, now) {
			return f, nil
		}
		f.Close()
	}
}

// Labs lists the names of the labs below root, sorted.
func Labs(root string) ([]string, error) {
	es, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if e.IsDir() && ValidName(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
