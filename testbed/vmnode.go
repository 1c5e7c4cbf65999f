package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/safchain/ethtool"

	"github.com/openinof/inof/testbed/vm"
)

// Labels of a vm, and what they may say.
const (
	labelMemory     = "inof.memory" // MiB
	labelCPUs       = "inof.cpus"
	minVMMemory     = 256 // MiB; less does not hold the initial file system
	maxVMMemory     = 65536
	maxVMCPUs       = 16
	defaultVMMemory = 512
)

// vmPatience bounds the time until a machine takes commands: 4 s with a core to itself.
const vmPatience = 2 * time.Minute

// VM is what the labels of a vm ask for.
type VM struct {
	Memory int `json:"memory"` // MiB
	CPUs   int `json:"cpus"`
}

func vmLabel(m *VM, key, v string) error {
	to, lo, hi := &m.Memory, minVMMemory, maxVMMemory
	if key == labelCPUs {
		to, lo, hi = &m.CPUs, 1, maxVMCPUs
	}
	if err := wantNumber(v, lo, hi); err != nil {
		return err
	}
	*to, _ = strconv.Atoi(v)
	return nil
}

// VMMain is the whole of `inofctl lab vm`: it runs the machine of a node, inside the
// node's namespace, until ctx ends.
func VMMain(ctx context.Context, cfg vm.Config) error {
	image, err := vm.Image()
	if err != nil {
		return err
	}
	cfg.Image = image
	return vm.Run(ctx, cfg)
}

func (l *Lab) isVM(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.st.node(node)
	return n != nil && n.Kind == KindVM
}

func (l *Lab) vmSocket(node string) string { return filepath.Join(l.NodeDir(node), "run", "vm.sock") }

// machine is the program of a vm; mu is held.
func (l *Lab) machine(n *nodeState) program {
	args := []string{"lab", "vm", "--name", n.Name, "--dir", l.NodeDir(n.Name), "--socket", l.vmSocket(n.Name),
		"--memory", strconv.Itoa(n.VM.Memory), "--cpus", strconv.Itoa(n.VM.CPUs)}
	for _, k := range l.st.Links {
		for _, e := range []Endpoint{k.A, k.B} {
			if e.Node == n.Name {
				args = append(args, "--port", e.Port)
			}
		}
	}
	return program{name: "vm", binary: "inofctl", args: args, notify: true, exec: n.Exec, boot: vmPatience}
}

// ownChecksums has a port compute the checksums of what its kernel sends: the card of a
// machine at the other end of its link would not.
func (l *Lab) ownChecksums(e Endpoint) error {
	if l.isVM(e.Node) {
		return nil // nothing but its machine sends there
	}
	err := l.Do(e.Node, func() error {
		h, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer h.Close()
		return h.Change(e.Port, map[string]bool{"tx-checksum-ip-generic": false})
	})
	if err != nil {
		return fmt.Errorf("%s: checksums: %w", e, err)
	}
	return nil
}
