package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// array is a host's tree of files with two paths to one array, one of them twice, and a
// discovery controller; the path files name a state and an address.
func array(t *testing.T) hostkernel.Tree {
	t.Helper()
	root := t.TempDir()
	for name, address := range map[string]string{
		"nvme0": "traddr=192.0.2.7,trsvcid=4420,host_traddr=192.0.2.1", "nvme1": "traddr=192.0.2.7,trsvcid=4420,host_traddr=192.0.2.1",
		"nvme2": "traddr=198.51.100.7,trsvcid=4420,host_traddr=198.51.100.1", "nvme3": "traddr=192.0.2.7,trsvcid=4421", "nvme4": "traddr=192.0.2.7,trsvcid=4420,host_traddr=192.0.2.9",
		"nvme5": "traddr=192.0.2.7,trsvcid=8009,host_traddr=192.0.2.1",
	} {
		kind := "io"
		if strings.HasSuffix(address, "8009,host_traddr=192.0.2.1") {
			kind = "discovery"
		}
		for file, text := range map[string]string{"transport": "tcp", "state": "live", "subsysnqn": "nqn.x", "address": address, "cntrltype": kind} {
			path := filepath.Join(root, "sys/class/nvme", name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return hostkernel.Tree{Root: root}
}

func notice(reason snsd.Reason) snsd.Notice {
	return snsd.Notice{Subject: netip.MustParseAddr("192.0.2.7"), Host: netip.MustParseAddr("192.0.2.1"), Reason: reason, Seq: 5}
}

// The sockets of the dead path are destroyed, each connection's once, and nobody else's: not of
// another target, another source, or a discovery controller.
func TestFailOverEndsTheDeadPathAlone(t *testing.T) {
	var killed []string
	m := newMover()
	m.kernel = array(t)
	m.destroy = func(s hostkernel.Sockets) (int, error) {
		killed = append(killed, s.Source.String()+" "+s.Target.String())
		return 3, nil
	}
	l := m.leave(notice(snsd.ReasonLinkDown))
	slices.Sort(killed)
	if want := []string{"192.0.2.1 192.0.2.7:4420", "192.0.2.1 192.0.2.7:4421"}; !slices.Equal(killed, want) {
		t.Errorf("destroyed %q, want %q", killed, want)
	}
	if l.Sockets != 6 || l.Error != "" || !slices.Equal(l.Controllers, []string{"nvme0", "nvme1", "nvme3"}) || !strings.Contains(l.text(), "6 socket(s) of 3 controller(s) destroyed") {
		t.Errorf("says %s", l.text())
	}
}

func TestFailOverSaysWhatKeepsItAway(t *testing.T) {
	m := newMover()
	m.kernel = array(t)
	m.destroy = func(hostkernel.Sockets) (int, error) { return 0, hostkernel.ErrNoDestroy }
	if l := m.leave(notice(snsd.ReasonBFDDown)); !strings.Contains(l.Error, "INET_DIAG_DESTROY") {
		t.Errorf("says %q", l.Error)
	}
	m.kernel = hostkernel.Tree{Root: t.TempDir()}
	m.destroy = func(hostkernel.Sockets) (int, error) { return 0, errors.New("must not be called") }
	if l := m.leave(notice(snsd.ReasonBFDDown)); !strings.Contains(l.Error, "no NVMe") {
		t.Errorf("says %q", l.Error)
	}
}

// Only what says that a path is dead ends its connections: packet errors do not, nor does an
// ordered leave; the notice itself never waits for the kernel.
func TestOnlyDeadPathsAreLeft(t *testing.T) {
	want := []snsd.Reason{snsd.ReasonLinkDown, snsd.ReasonPFCStorm, snsd.ReasonBFDDown}
	for r := snsd.Reason(0); r < 10; r++ {
		if got := deadPath(r); got != slices.Contains(want, r) {
			t.Errorf("%v: %t", r, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMover()
		m.kernel = array(t)
		m.destroy = func(hostkernel.Sockets) (int, error) { time.Sleep(time.Minute); return 1, nil }
		ctx, cancel := context.WithCancel(t.Context())
		go m.run(ctx)
		for range cap(m.work) {
			if begun := time.Now(); !m.take(notice(snsd.ReasonLinkDown)) || time.Since(begun) != 0 {
				t.Fatal("a notice waits for the kernel")
			}
		}
		synctest.Wait()
		m.take(notice(snsd.ReasonLinkDown))
		if m.take(notice(snsd.ReasonLinkDown)) {
			t.Error("more notices are kept than there can be pairs")
		}
		cancel()
		time.Sleep(time.Hour) // until the mover is back from the kernel
	})
}
