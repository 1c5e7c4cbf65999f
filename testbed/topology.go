package testbed

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/openinof/inof/fabric"
)

// Kinds of nodes.
const (
	KindLinux  = "linux"       // a namespace and nothing else
	KindSwitch = "inof-switch" // runs inofd with the startup-config
	KindHost   = "inof-host"   // runs one snsd for each interface that has addresses in its labels
	KindVM     = "vm"          // a kernel of its own, in QEMU (package vm); its exec lines run there
)

// Kinds lists the node kinds that a topology may use.
var Kinds = []string{KindLinux, KindSwitch, KindHost, KindVM}

// Limits of a topology file.
const (
	MaxTopologySize = 1 << 20 // bytes of a topology file
	MaxConfigSize   = 8 << 20 // bytes of a startup-config, before and after substitution
	MaxNodes        = 1024
	MaxLinks        = 4096
	MaxExec         = 256   // exec lines of one node, inherited ones included
	MaxIfName       = 15    // IFNAMSIZ - 1, linux/if.h
	MinMTU          = 68    // RFC 791, smallest every IPv4 module must forward; also veth's minimum
	MaxMTU          = 65535 // veth's maximum
)

// Topology is one parsed lab file. Nodes and links keep the order of the file.
type Topology struct {
	Name    string
	Nodes   []Node
	Links   []Link
	Ignored []Ignored // keys that containerlab knows and that mean nothing without containers

	File string // name used in messages
	fsys fs.FS  // where startup-configs are read from
	dir  string // directory of the file inside fsys
}

// Node is one network namespace and what runs in it.
type Node struct {
	Name          string
	Kind          string
	Exec          []string // command lines, run without a shell before the node's daemons start; in a vm once it runs
	Env           map[string]string
	Labels        map[string]string
	Sysctls       map[string]string // net.* only: the other trees are the host's
	StartupConfig string            // file name, relative to the topology file
	Zones         string            // zone file of an inof-switch, likewise; from its labels
	Line          int
	Agents        []Agent // what the labels of an inof-host ask for
	VM            *VM     `json:",omitempty"` // what those of a vm ask for
	// Container is a node of kind linux with this project's image: what the container would
	// have for itself is below the node's own directory here.
	Container bool `json:",omitempty"`
}

// Agent is one snsd process of an inof-host node.
type Agent struct {
	Port string   `json:"port"`
	Args []string `json:"args"` // complete argument list
}

// Endpoint is one end of a link.
type Endpoint struct {
	Node string     `json:"node"`
	Port string     `json:"port"`
	MAC  fabric.MAC `json:"mac,omitzero"` // zero: the kernel chooses
}

func (e Endpoint) String() string { return e.Node + ":" + e.Port }

// Link is one veth pair.
type Link struct {
	A, B Endpoint
	MTU  int // bytes; 0: the kernel's default of 1500
	Line int
}

func (l Link) String() string { return l.A.String() + " -- " + l.B.String() }

// Ignored is a key that was understood but has no effect here.
type Ignored struct {
	Line int    `json:"line"`
	Path string `json:"path"` // dotted path of the key
	Why  string `json:"why"`
}

func (i Ignored) String() string { return fmt.Sprintf("line %d: %s: %s", i.Line, i.Path, i.Why) }

// Node finds a node by name, nil if there is none.
func (t *Topology) Node(name string) *Node {
	for i := range t.Nodes {
		if t.Nodes[i].Name == name {
			return &t.Nodes[i]
		}
	}
	return nil
}

// read reads a file that a node names.
func (t *Topology) read(name string) ([]byte, error) {
	name = path.Join(t.dir, name)
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := readLimited(f, MaxConfigSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

var (
	nameRE   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	ifnameRE = regexp.MustCompile(`^[^\s/:[:cntrl:]]{1,15}$`)
	sysctlRE = regexp.MustCompile(`^net\.[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)*$`)
)

// ValidName reports whether s can name a lab or a node: letters, digits, '_', '.'
// and '-', 1 to 63 bytes, beginning with a letter or digit, so that it is a safe
// file name and host name.
func ValidName(s string) bool { return nameRE.MatchString(s) }

func validIfName(s string) error {
	switch {
	case !ifnameRE.MatchString(s) || s == "." || s == "..":
		return fmt.Errorf("%q is not an interface name (1..%d bytes, no blank, '/' or ':')", s, MaxIfName)
	case strings.ContainsRune(s, '%'):
		return fmt.Errorf("interface name %q: '%%' asks the kernel for a number; write the name out", s)
	case s == "lo" || s == "all" || s == "default":
		return fmt.Errorf("interface name %q is taken in every namespace", s)
	}
	return nil
}
