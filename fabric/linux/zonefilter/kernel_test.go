package zonefilter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/netnstest"
)

// hasTCX reports whether this kernel has the traffic control hook that we use: Linux 6.6.
func hasTCX() bool {
	var u unix.Utsname
	var major, minor int
	_ = unix.Uname(&u)
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 6
}

// within is in for what can fail.
func within(t testing.TB, s *netnstest.Space, fn func() error) {
	t.Helper()
	in(t, s, func() {
		if err := fn(); err != nil {
			t.Error(err)
		}
	})
}

func address(name, addr string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(addr)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(l, a)
}

// A host sends to one that it may reach and to one that it may not: real frames, in each place
// where this kernel can have the program.
func TestEachPlaceLetsPassWhatMayPassAndNothingElse(t *testing.T) {
	s, far := netnstest.New(t), netnstest.New(t)
	s.Veth("p1", far, "h1")
	within(t, s, func() error { return errors.Join(address("p1", hB.String()+"/24"), address("p1", hC.String()+"/24")) })
	within(t, far, func() error { return address("h1", hA.String()+"/24") })
	cfg := hardzone.Default()
	f := open(t, cfg)
	fill(t, f, cfg)
	index := s.Link("p1").Attrs().Index
	got := map[netip.Addr]*net.UDPConn{}
	var from *net.UDPConn
	within(t, s, func() (err error) {
		for _, a := range []netip.Addr{hB, hC} {
			if got[a], err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 4420))); err != nil {
				return err
			}
			t.Cleanup(func() { got[a].Close() })
		}
		return nil
	})
	within(t, far, func() (err error) {
		from, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(hA, 4420)))
		return err
	})
	if t.Failed() {
		return
	}
	defer from.Close()
	arrives := func(to netip.Addr) bool {
		b := make([]byte, 16)
		for range 8 {
			if _, err := from.WriteToUDPAddrPort([]byte("x"), netip.AddrPortFrom(to, 4420)); err != nil {
				t.Fatal(err)
			}
			_ = got[to].SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if _, _, err := got[to].ReadFromUDP(b); err == nil {
				return true
			}
		}
		return false
	}
	if !arrives(hB) || !arrives(hC) {
		t.Fatal("frames do not pass without a filter")
	}
	for _, way := range []hardzone.Attach{hardzone.AttachNative, hardzone.AttachTC, hardzone.AttachGeneric} {
		cfg.Attach = way
		must(t, f.Configure(cfg, bindings))
		var st hardzone.PortState
		in(t, s, func() { st = f.SetPorts([]hardzone.Port{{Name: "p1", Index: index}})[0] })
		if way == hardzone.AttachTC && !hasTCX() {
			if st.Err == nil || st.Attach != "" {
				t.Errorf("this kernel has no %s, and it is not said: %+v", way, st)
			}
			continue
		}
		if st.Err != nil || st.Attach != way {
			t.Errorf("%s: %+v", way, st)
			continue
		}
		if !arrives(hB) {
			t.Errorf("%s: what may pass does not", way)
		}
		if arrives(hC) {
			t.Errorf("%s: what may not pass does", way)
		}
		in(t, s, func() { f.SetPorts(nil) })
		if !arrives(hC) {
			t.Errorf("%s: the filter is gone and still drops", way)
		}
	}
}

// A loopback interface has no XDP of its own, as many drivers.
func TestAPortWithoutXDPGetsTheNextBest(t *testing.T) {
	s := netnstest.New(t)
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	want := hardzone.AttachTC
	if !hasTCX() {
		want = hardzone.AttachGeneric
	}
	cfg := hardzone.Default()
	in(t, s, func() {
		port := []hardzone.Port{{Name: "lo", Index: 1}}
		if st := f.SetPorts(port)[0]; st.Attach != want || st.Err != nil {
			t.Errorf("%+v, want %s", st, want)
		}
		f.SetPorts(nil)
		cfg.Attach = hardzone.AttachNative
		must(t, f.Configure(cfg, nil))
		if st := f.SetPorts(port)[0]; st.Attach != "" || st.Err == nil || !strings.Contains(st.Err.Error(), "port lo cannot be filtered: native") {
			t.Errorf("%+v", st)
		}
	})
}

// again runs a test of this binary as another process.
func again(t *testing.T, test string, attr *syscall.SysProcAttr, env ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env, cmd.SysProcAttr, cmd.Dir = append(os.Environ(), env...), attr, "/"
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Fatalf("%v\n%s", err, out)
	}
}

const envChild = "INOF_TEST_ZONEFILTER_CHILD"

func TestWithoutRightsItIsSaidWhichAreNeeded(t *testing.T) {
	if os.Getenv(envChild) == "" {
		open(t, hardzone.Default())
		again(t, t.Name(), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, envChild+"=1")
		return
	}
	f, err := Open(hardzone.Config{MaxPairs: 1024})
	if f != nil || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF") {
		t.Errorf("%v %v", f, err)
	}
}

// The program asks for nothing of the kernel's own types.
func TestTheProgramNeedsNoBTFOfTheKernel(t *testing.T) {
	if os.Getenv(envChild) == "" {
		open(t, hardzone.Default())
		again(t, t.Name(), &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}, envChild+"=1")
		return
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if err := unix.Mount("none", "/sys/kernel/btf", "tmpfs", 0, ""); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	for _, way := range []hardzone.Attach{hardzone.AttachNative, hardzone.AttachTC} {
		run := runner(t, f, "p1", way)
		if !run(packet{port: "p1", src: hA, dst: hB, protocol: 6}.bytes(t)) || run(packet{port: "p1", src: hA, dst: hC, protocol: 6}.bytes(t)) {
			t.Errorf("%s says something else", way)
		}
	}
}
