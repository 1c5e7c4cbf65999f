package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/testbed/vm"
)

// netnsDir is where ip(8) looks for named namespaces.
const netnsDir = "/run/netns"

// Up builds a lab and starts its daemons. A killed attempt of the same name is
// cleaned up first. When it fails, or ctx ends, what was built is removed again and
// the error says what went wrong.
func Up(ctx context.Context, topo *Topology, opt Options) (*Lab, error) {
	opt = opt.withDefaults()
	if err := Privileged(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(topo.Nodes, func(n Node) bool { return n.Kind == KindVM }) && !opt.NoDaemons {
		if _, err := vm.Image(); err != nil {
			return nil, err
		}
	}
	l, err := claim(topo, opt)
	if err != nil {
		return nil, err
	}
	if err := l.build(ctx, topo); err != nil {
		if derr := l.remove(); derr != nil {
			err = errors.Join(err, fmt.Errorf("and cleaning up failed: %w", derr))
		}
		l.unlock()
		return nil, err
	}
	if !opt.Own {
		l.unlock()
	}
	return l, nil
}

// unlock lets others work on the lab.
func (l *Lab) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != nil {
		l.lock.Close()
		l.lock = nil
	}
}

// claim locks the lab's directory, empty of anything earlier, and writes the first state.
func claim(topo *Topology, opt Options) (*Lab, error) {
	if !ValidName(topo.Name) {
		return nil, fmt.Errorf("%q cannot name a lab", topo.Name)
	}
	if err := makeRoot(opt.Root); err != nil {
		return nil, err
	}
	dir := filepath.Join(opt.Root, topo.Name)
	// sockaddr_un holds 107 bytes; sockets live in nodes/NODE/run.
	for _, n := range topo.Nodes {
		if p := filepath.Join(dir, "nodes", n.Name, "run", "inofd.sock"); len(p) > 107 {
			return nil, fmt.Errorf("node %s: %s has %d bytes, a unix socket's path at most 107; choose a shorter %s", n.Name, p, len(p), envRoot)
		}
	}
	if err := Clean(dir, opt); err != nil && !errors.Is(err, ErrNoLab) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockLab(dir)
	if err != nil {
		return nil, err
	}
	st := &state{Version: stateVersion, Name: topo.Name, File: topo.File, Phase: PhaseStarting, Step: "begin",
		Boot: bootID(), Created: time.Now(), UserNS: currentNS(0, "user"), Nested: Nested(), Ignored: topo.Ignored}
	for _, n := range topo.Nodes {
		node := nodeState{Name: n.Name, Kind: n.Kind, Env: n.Env, Agents: n.Agents, VM: n.VM, Container: n.Container}
		if n.Kind == KindVM {
			node.Exec = n.Exec
		}
		st.Nodes = append(st.Nodes, node)
	}
	if err := writeState(dir, st); err != nil {
		lock.Close()
		return nil, err
	}
	l := newLab(opt, topo.Name, st)
	l.lock = lock
	return l, nil
}

// Clean removes what a killed process left of the lab at dir. A lab that is
// up is an error, unless opt.Replace.
func Clean(dir string, opt Options) error {
	lock, err := lockLab(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	st, err := readState(dir)
	if err != nil {
		return err
	}
	if st.Phase == PhaseUp && st.Boot == bootID() && !opt.Replace {
		return fmt.Errorf("%w: %s; use lab down, or --replace", ErrExists, st.Name)
	}
	if opt.OnStep != nil {
		opt.OnStep("clean up an earlier " + st.Name)
	}
	return newLab(opt, st.Name, st).remove()
}

func (l *Lab) build(ctx context.Context, topo *Topology) error {
	if err := os.MkdirAll(filepath.Join(l.Dir, "ns"), 0o700); err != nil {
		return err
	}
	if l.st.Nested {
		if err := l.startHolder(); err != nil {
			return err
		}
	}
	// Each node is made, configured and started.
	begun, done := time.Now(), 0
	did := func() { done++; l.opt.Building.At(done, 3*len(topo.Nodes)+len(topo.Links), time.Since(begun)) }
	for _, n := range topo.Nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.buildNode(topo, n); err != nil {
			return err
		}
		did()
	}
	for i, k := range topo.Links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.step("link %s", k); err != nil {
			return err
		}
		ls, err := l.createLink(i, k)
		if err != nil {
			return err
		}
		if err := l.update(func(s *state) { s.Links = append(s.Links, ls) }); err != nil {
			return err
		}
		did()
	}
	for _, n := range topo.Nodes {
		if err := l.configureNode(ctx, n); err != nil {
			return err
		}
		did()
	}
	if !l.opt.NoDaemons {
		for _, n := range topo.Nodes {
			if err := l.Start(ctx, n.Name, ""); err != nil {
				return err
			}
			did()
		}
	}
	return l.update(func(s *state) { s.Phase, s.Step = PhaseUp, "" })
}

// buildNode makes a node's directories, configuration and namespaces.
func (l *Lab) buildNode(topo *Topology, n Node) error {
	if err := l.step("node %s", n.Name); err != nil {
		return err
	}
	vars := l.nodeVars(n.Name)
	for _, v := range []string{"INOF_NODE_RUN", "INOF_NODE_STATE", "INOF_NODE_LOG"} {
		if err := os.MkdirAll(vars[v], 0o755); err != nil {
			return err
		}
	}
	if err := giveRun(vars["INOF_NODE_RUN"], os.Getenv("SUDO_GID")); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	for _, f := range []struct{ what, from, to string }{
		{"startup-config", n.StartupConfig, l.ConfigFile(n.Name)},
		{"zone file", n.Zones, filepath.Join(vars["INOF_NODE_STATE"], "zones.yaml")},
	} {
		if f.from == "" {
			continue
		}
		if err := copyFile(topo, f.from, f.to, vars); err != nil {
			return fmt.Errorf("node %s: %s: %w", n.Name, f.what, err)
		}
	}
	f := l.ns(n.Name)
	if err := createNS(f, n.Name); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := l.update(func(s *state) { s.node(n.Name).NetNS = nsInode(f.net) }); err != nil {
		return err
	}
	if err := l.publish(n.Name); err != nil {
		return err
	}
	return l.loopbackUp(n.Name)
}

// giveRun has the sockets in a node's run directory belong to a group: that of the user who called
// sudo, as SUDO_GID names it. The directory hands its group to whatever is made in it.
func giveRun(dir, group string) error {
	gid, err := strconv.Atoi(group)
	if err != nil || os.Geteuid() != 0 || Nested() {
		return nil
	}
	if err := os.Chown(dir, -1, gid); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755|os.ModeSetgid)
}

// copyFile copies a file of the topology, ${...} replaced.
func copyFile(topo *Topology, from, to string, vars map[string]string) error {
	b, err := topo.read(from)
	if err != nil {
		return err
	}
	text, err := substitute(string(b), vars)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(text), 0o600)
}

// ConfigFile is where a node's startup-config ends up.
func (l *Lab) ConfigFile(node string) string {
	return filepath.Join(l.NodeDir(node), "inofd.yaml")
}

// publish makes the node visible to `ip netns exec LAB-NODE`, where that is possible.
func (l *Lab) publish(node string) error {
	if l.st.Nested {
		return nil
	}
	if os.MkdirAll(netnsDir, 0o755) != nil {
		return nil
	}
	name := filepath.Join(netnsDir, l.Name+"-"+node)
	if _, err := os.Lstat(name); err == nil {
		return nil // somebody else's; the lab works without
	}
	// Written first: only a link that points into the lab is ever removed.
	if err := l.update(func(s *state) { s.NetNames = append(s.NetNames, name) }); err != nil {
		return err
	}
	_ = os.Symlink(l.ns(node).net, name)
	return nil
}

// configureNode applies sysctls and runs the exec lines of a node.
func (l *Lab) configureNode(ctx context.Context, n Node) error {
	for _, k := range slices.Sorted(maps.Keys(n.Sysctls)) {
		if err := l.Do(n.Name, func() error { return setSysctl(k, n.Sysctls[k]) }); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	if n.Kind == KindVM {
		return nil // it does not run yet
	}
	return l.runExec(ctx, n.Name, n.Exec)
}

// runExec runs the exec lines of a node.
func (l *Lab) runExec(ctx context.Context, node string, lines []string) error {
	for _, line := range lines {
		if err := l.step("exec on %s: %s", node, line); err != nil {
			return err
		}
		words, err := splitCommand(line)
		if err != nil {
			return fmt.Errorf("node %s: exec: %w", node, err)
		}
		out, err := l.Exec(ctx, node, words...)
		if err != nil {
			return fmt.Errorf("exec: %w", err)
		}
		if text := strings.TrimSpace(string(out)); text != "" && l.opt.OnOutput != nil {
			l.opt.OnOutput(node, text)
		}
	}
	return nil
}
