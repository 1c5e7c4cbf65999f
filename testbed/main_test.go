package testbed

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

// envHelper makes the test binary play another program.
const envHelper = "INOF_TESTBED_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(envHelper) {
	case "":
		code := m.Run()
		if binDir != "" {
			os.RemoveAll(binDir)
		}
		os.Exit(code)
	case "up-and-die":
		helperUpAndDie()
	case "nested":
		helperNested()
	case "relay":
		if err := RelayMain(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "ready":
		helperReady()
	}
}

// requireNetns skips, visibly, where the kernel forbids namespaces; with
// INOF_REQUIRE_NETNS=1 it fails instead.
func requireNetns(t testing.TB) {
	t.Helper()
	netnstest.Require(t, "namespaces are not to be had here", Privileged())
}

// testRoot is a short directory for labs: unix sockets live below it.
func testRoot(t testing.TB) string {
	t.Helper()
	d, err := os.MkdirTemp("", "inof-lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// mustParse is a topology whose startup-configs lie in dir.
func mustParse(t testing.TB, text, dir string) *Topology {
	t.Helper()
	topo, err := Parse("test.clab.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	topo.fsys, topo.dir = os.DirFS(dir), "."
	return topo
}

// mustUp builds a lab that the test's end takes down.
func mustUp(t testing.TB, topo *Topology, opt Options) *Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	l, err := Up(ctx, topo, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(l.Dir); err == nil {
			if err := l.Down(); err != nil {
				t.Error(err)
			}
		}
	})
	return l
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("not within 40 s: %s", what)
		}
		waitTick()
	}
}

// waitTick lets other processes work; their progress has no event to wait for.
func waitTick() { <-time.After(2 * time.Millisecond) }

// traces is everything a lab could leave behind on this machine.
type traces struct {
	Files, Mounts, Links, NetNames, Processes []string
}

func takeTraces(t testing.TB, root string) traces {
	t.Helper()
	var tr traces
	_ = filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if err == nil && p != root {
			tr.Files = append(tr.Files, p)
		}
		return nil
	})
	for _, m := range nsMounts() {
		if strings.HasPrefix(m, root) {
			tr.Mounts = append(tr.Mounts, m)
		}
	}
	if es, err := os.ReadDir("/sys/class/net"); err == nil {
		for _, e := range es {
			tr.Links = append(tr.Links, e.Name())
		}
	}
	if es, err := os.ReadDir(netnsDir); err == nil {
		for _, e := range es {
			if to, err := os.Readlink(filepath.Join(netnsDir, e.Name())); err == nil && strings.HasPrefix(to, root) {
				tr.NetNames = append(tr.NetNames, e.Name())
			}
		}
	}
	for _, p := range findProcesses(func(pid int) bool { return envBelow(pid, root) }) {
		tr.Processes = append(tr.Processes, fmt.Sprint(p.Name, " ", p.PID))
	}
	return tr
}

// envBelow reports whether a process carries the mark of a lab below root.
func envBelow(pid int, root string) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return slices.ContainsFunc(strings.Split(string(b), "\x00"), func(e string) bool {
		return strings.HasPrefix(e, envLab+"="+root+"/")
	})
}

// fakeBin builds a directory with shell scripts that stand in for the daemons.
func fakeBin(t testing.TB, scripts map[string]string) string {
	t.Helper()
	dir := testRoot(t)
	for name, body := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// killSelf ends this process as a crash would.
func killSelf() {
	_ = unix.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// helperReady tells READY=1 as a daemon does.
func helperReady() {
	c, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, err = c.Write([]byte("STATUS=up\nREADY=1\n"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
