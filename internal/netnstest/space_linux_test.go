package netnstest

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/openinof/inof/internal/plainns"
)

func TestACableJoinsTwoSpaces(t *testing.T) {
	a, b := New(t), New(t)
	a.Veth("eth1", b, "eth2")
	a.Addr("eth1", "192.0.2.1/24", "2001:db8::1/64")
	up := func(s *Space, name string) bool {
		return s.Link(name).Attrs().OperState == netlink.OperUp
	}
	if !up(a, "eth1") || !up(b, "eth2") {
		t.Errorf("up: %t and %t", up(a, "eth1"), up(b, "eth2"))
	}
	a.SetUp("eth1", false)
	if up(b, "eth2") {
		t.Error("the other end does not see that the cable is dead")
	}
	b.Delete("eth2")
	if _, err := a.NL.LinkByName("eth1"); err == nil {
		t.Error("half a cable is left")
	}
	if a.Path() == b.Path() {
		t.Error("two namespaces, one path")
	}
}

// verdict plays a test and keeps how it ended.
type verdict struct {
	testing.TB
	failed, skipped bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Name() string          { return "TestPlayed" }
func (v *verdict) Fatalf(string, ...any) { v.failed = true }
func (v *verdict) Errorf(string, ...any) { v.failed = true }
func (v *verdict) Skipf(string, ...any)  { v.skipped = true }
func (v *verdict) Logf(string, ...any)   {}

func TestNoSkipPassesForASuccess(t *testing.T) {
	t.Setenv(EnvSkipped, "")
	for _, c := range []struct {
		env     string
		err     error
		verdict verdict
	}{
		{"", nil, verdict{}},
		{"1", nil, verdict{}},
		{"", errors.New("x"), verdict{skipped: true}},
		{"0", errors.New("x"), verdict{skipped: true}},
		{"1", errors.New("x"), verdict{failed: true}},
	} {
		t.Setenv("INOF_REQUIRE_NETNS", c.env)
		var got verdict
		if Require(&got, "trying", c.err); got != c.verdict {
			t.Errorf("INOF_REQUIRE_NETNS=%q, error %v: %+v, want %+v", c.env, c.err, got, c.verdict)
		}
	}
}

// The namespace begins as on a Docker host whose distribution sets rp_filter.
func TestANamespaceDoesNotTakeOverWhatTheMachineForwards(t *testing.T) {
	s := New(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := netns.Set(s.Handle); err != nil {
			t.Error(err)
			return
		}
		files := []string{"ipv4/ip_forward", "ipv4/conf/all/forwarding", "ipv4/conf/default/forwarding", "ipv4/conf/default/rp_filter", "ipv6/conf/all/forwarding"}
		for _, f := range files {
			if err := os.WriteFile("/proc/sys/net/"+f, []byte("1\n"), 0); err != nil {
				t.Error(err)
			}
		}
		if err := plainns.Set(); err != nil {
			t.Error(err)
		}
		for _, f := range files {
			if b, err := os.ReadFile("/proc/sys/net/" + f); err != nil || strings.TrimSpace(string(b)) != "0" {
				t.Errorf("%s: %q, %v", f, b, err)
			}
		}
	}()
	<-done
}
