package hostkernel

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/nvmetcp"
)

// world is a kernel, real or not, with a target that serves a subsystem.
type world struct {
	Kernel
	t       *testing.T
	connect Connect // to the target
	cut     func(on bool)
	await   func() // until a keep-alive of the kernel's is under way on a path that is cut
}

// behaviour is what both kernels must do alike.
var behaviour = map[string]func(w *world){
	"a connection comes about once": func(w *world) {
		n := w.connected()
		again := w.connect
		if _, err := w.Connect(&again); !errors.Is(err, ErrConnected) {
			w.t.Errorf("again: %v", err)
		}
		c := w.state(n, Live, 0)
		if c.NQN != w.connect.NQN || c.Target != w.connect.Target || c.Source != w.connect.Source || c.Transport != "tcp" || c.Discovery {
			w.t.Errorf("%+v", c)
		}
	},
	"nobody listens": func(w *world) {
		c := w.connect
		c.Target = netip.AddrPortFrom(c.Target.Addr(), 4499)
		if _, err := w.Connect(&c); !errors.Is(err, syscall.ECONNREFUSED) {
			w.t.Error(err)
		}
	},
	"a subsystem that is not there": func(w *world) {
		c := w.connect
		c.NQN = "nqn.2026-01.net.example:none"
		if _, err := w.Connect(&c); err == nil {
			w.t.Error("it is connected")
		}
	},
	"a target that does not answer": func(w *world) {
		w.cut(true)
		c := w.connect
		if _, err := w.Connect(&c); !errors.Is(err, syscall.ETIMEDOUT) {
			w.t.Error(err)
		}
	},
	"a live one is deleted at once": func(w *world) {
		n := w.connected()
		c := w.state(n, Live, 0)
		began := time.Now()
		if err := w.Delete(&c); err != nil || time.Since(began) > 10*time.Second {
			w.t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := w.Controller(n); !errors.Is(err, fs.ErrNotExist) {
			w.t.Error(err)
		}
		if err := w.Delete(&c); err != nil {
			w.t.Errorf("one that is gone: %v", err)
		}
	},
	"a live one answers": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		if err := w.KeepAlive(&c, time.Second); err != nil {
			w.t.Error(err)
		}
	},
	"a dead one does not answer, and is left by that": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		w.cut(true)
		if err := w.KeepAlive(&c, 100*time.Millisecond); err == nil {
			w.t.Error("it answers")
		}
		w.state(c.Instance, Connecting, 20*time.Second)
	},
	"without its sockets it connects again": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		w.cut(true)
		undo, err := w.HurryReconnect(&c)
		if err != nil {
			w.t.Fatal(err)
		}
		if n, err := w.Destroy(Sockets{Source: c.Source, Target: c.Target}); n == 0 || err != nil {
			w.t.Errorf("%d destroyed, %v", n, err)
		}
		w.state(c.Instance, Connecting, 5*time.Second)
		w.cut(false)
		w.state(c.Instance, Live, 30*time.Second)
		if err := undo(); err != nil {
			w.t.Error(err)
		}
	},
	// Linux 6.1 waits for it before it tears the controller down, however dead the path is.
	// Linux 6.1 holds it in `resetting` until the keep-alive is given up; 6.12 does not wait.
	"with a keep-alive under way it connects again in the end": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		w.cut(true)
		w.await()
		if n, err := w.Destroy(Sockets{Source: c.Source, Target: c.Target}); n == 0 || err != nil {
			w.t.Errorf("%d destroyed, %v", n, err)
		}
		w.state(c.Instance, Connecting, 10*time.Second)
	},
	"of another path nothing is destroyed": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		if n, err := w.Destroy(Sockets{Source: c.Source, Target: netip.AddrPortFrom(c.Target.Addr(), 4499)}); n != 0 || err != nil {
			w.t.Errorf("%d destroyed, %v", n, err)
		}
		w.state(c.Instance, Live, 0)
	},
	"one that connects is deleted at once": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		w.cut(true)
		if _, err := w.Destroy(Sockets{Source: c.Source, Target: c.Target}); err != nil {
			w.t.Error(err)
		}
		c = w.state(c.Instance, Connecting, 5*time.Second)
		began := time.Now()
		if err := w.Delete(&c); err != nil || time.Since(began) > 10*time.Second {
			w.t.Errorf("%v after %v", err, time.Since(began))
		}
	},
	"one that goes while it is read is no error": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		done := make(chan error, 1)
		go func() { done <- w.Delete(&c) }()
		for {
			list, err := w.Controllers()
			if err != nil {
				w.t.Error(err)
			}
			if len(list) == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	},
	"an owner is kept": func(w *world) {
		n := w.connected()
		if err := w.Claim(n, "snsd"); err != nil || w.state(n, Live, 0).Owner != "snsd" || w.Owner(n) != "snsd" {
			w.t.Errorf("%v, owner %q", err, w.Owner(n))
		}
		if err := w.Release(n); err != nil || w.Owner(n) != "" {
			w.t.Errorf("%v, owner %q", err, w.Owner(n))
		}
	},
	"what takes the number of one that is gone is nobody's": func(w *world) {
		n := w.connected()
		c := w.state(n, Live, 0)
		if err := w.Claim(n, "snsd"); err != nil {
			w.t.Error(err)
		}
		if err := w.Delete(&c); err != nil { // by another one, who releases nothing
			w.t.Error(err)
		}
		if w.connected() != n || w.Owner(n) != "" || w.state(n, Live, 0).Owner != "" {
			w.t.Errorf("owner %q", w.Owner(n))
		}
		if err := w.Tidy(); err != nil || w.Owner(n) != "" {
			w.t.Errorf("%v, owner %q", err, w.Owner(n))
		}
		if err := w.Claim(n, "stacd"); err != nil || w.Tidy() != nil || w.Owner(n) != "stacd" {
			w.t.Errorf("%v, owner %q", err, w.Owner(n))
		}
		_ = w.Release(n)
	},
	"the policy is numa unless somebody chose another": func(w *world) {
		c := w.state(w.connected(), Live, 0)
		if p, err := w.IOPolicy(&c); p != "numa" || err != nil {
			w.t.Errorf("%q, %v", p, err)
		}
	},
	"a discovery controller says what is served there, and is no path": func(w *world) {
		c := w.connect
		c.NQN = nvmetcp.DiscoveryNQN
		n, err := w.Connect(&c)
		if err != nil {
			w.t.Fatal(err)
		}
		d := w.state(n, Live, 0)
		if !d.Discovery {
			w.t.Errorf("%+v", d)
		}
		log, err := w.DiscoveryLog(&d)
		want := nvmetcp.Entry{Transport: nvmetcp.TCP, Kind: nvmetcp.Subsystem, NQN: w.connect.NQN, Addr: w.connect.Target.Addr(), Port: w.connect.Target.Port()}
		if err != nil || !slices.ContainsFunc(log.Entries, func(e nvmetcp.Entry) bool {
			e.PortID, e.Flags = 0, 0
			return e == want
		}) {
			w.t.Errorf("%+v, %v: want %+v", log, err, want)
		}
		if err := w.Delete(&d); err != nil {
			w.t.Error(err)
		}
		if _, err := w.DiscoveryLog(&d); !errors.Is(err, fs.ErrNotExist) {
			w.t.Errorf("one that is gone: %v", err)
		}
	},
	"it says which options it knows": func(w *world) {
		known, err := w.Options()
		if err != nil || len(w.connect.Only(known)) != 0 {
			w.t.Errorf("%v, %v", known, err)
		}
		for _, key := range []string{"ctrl_loss_tmo", "fast_io_fail_tmo", "host_iface"} {
			if !strings.Contains(strings.Join(known, " "), key) {
				w.t.Errorf("%s is missing in %v", key, known)
			}
		}
	},
}

func (w *world) connected() int {
	w.t.Helper()
	c := w.connect
	n, err := w.Connect(&c)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// state waits until a controller has a state.
func (w *world) state(instance int, want State, within time.Duration) Controller {
	w.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		c, err := w.Controller(instance)
		if err == nil && c.State == want {
			return c
		}
		if time.Now().After(end) {
			w.t.Fatalf("nvme%d is %s, %v: want %s within %v", instance, c.State, err, want, within)
		}
	}
}

// end heals the path and takes away what a case left.
func (w *world) end() {
	w.cut(false)
	list, _ := w.Controllers()
	for i := range list {
		if err := w.Delete(&list[i]); err != nil {
			w.t.Error(err)
		}
	}
}

func TestTheFakeBehavesLikeAKernel(t *testing.T) {
	for name, do := range behaviour {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFake()
				at := netip.MustParseAddrPort("192.0.2.7:4420")
				f.Serve(at, "nqn.x")
				w := &world{Kernel: f, t: t, connect: Connect{Transport: "tcp", NQN: "nqn.x", Target: at, Source: netip.MustParseAddr("192.0.2.1"), HostNQN: "nqn.h", HostID: "h"}}
				w.cut = func(on bool) {
					if on {
						f.Break(at.Addr())
					} else {
						f.Mend(at.Addr())
					}
				}
				w.await = func() { f.UnderWay = true }
				do(w)
				w.end()
				time.Sleep(5 * time.Minute)
			})
		})
	}
}

// EnvKernel has the same held against the kernel that runs: "SUBSYSTEM TARGET:PORT SOURCE
// INTERFACE", the interface being the one that is cut off. testbed/failover does so in a virtual
// machine.
const EnvKernel = "INOF_KERNEL"

func TestTheKernelBehavesLikeTheFake(t *testing.T) {
	words := strings.Fields(os.Getenv(EnvKernel))
	if len(words) != 4 {
		t.Skip("SKIPPED: it runs in a virtual machine, by testbed/failover")
	}
	k := Linux{}
	id, err := k.Identity()
	if err != nil {
		t.Fatal(err)
	}
	base := Connect{Transport: "tcp", NQN: words[0], Target: netip.MustParseAddrPort(words[1]), Source: netip.MustParseAddr(words[2]), HostNQN: id.NQN, HostID: id.ID}
	for name, do := range behaviour {
		t.Run(name, func(t *testing.T) {
			// It is sent when nothing came for up to half of keep_alive_tmo, 5 s, and given up
			// after that.
			w := &world{Kernel: k, t: t, connect: base, await: func() { time.Sleep(3 * time.Second) }}
			isCut := false
			w.cut = func(on bool) {
				if on == isCut {
					return
				}
				isCut = on
				args := []string{"qdisc", "add", "dev", words[3], "root", "netem", "loss", "100%"}
				if !on {
					args = []string{"qdisc", "del", "dev", words[3], "root"}
				}
				if out, err := exec.Command("/usr/sbin/tc", args...).CombinedOutput(); err != nil {
					t.Fatalf("tc: %v: %s", err, out)
				}
			}
			defer w.end()
			do(w)
		})
	}
}
