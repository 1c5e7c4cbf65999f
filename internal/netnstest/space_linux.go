package netnstest

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/plainns"
)

// Space is a fresh network namespace that lives until the test ends. Its methods fail
// the test when the kernel refuses.
type Space struct {
	T      testing.TB
	Handle netns.NsHandle
	NL     *netlink.Handle // routing netlink in the namespace
}

// New makes a namespace; see Require for where that is not permitted.
func New(t testing.TB) *Space {
	t.Helper()
	type result struct {
		h   netns.NsHandle
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		h, err := netns.New()
		if err == nil {
			err = plainns.Set()
		}
		done <- result{h, err}
	}()
	r := <-done
	Require(t, "making a network namespace (CAP_SYS_ADMIN)", r.err)
	nl, err := netlink.NewHandleAt(r.h, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	s := &Space{T: t, Handle: r.h, NL: nl}
	t.Cleanup(func() {
		nl.Close()
		s.Handle.Close()
	})
	return s
}

// Path names the namespace, for this process and its children.
func (s *Space) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(s.Handle)) }

// Link finds an interface.
func (s *Space) Link(name string) netlink.Link {
	s.T.Helper()
	l, err := s.NL.LinkByName(name)
	if err != nil {
		s.T.Fatalf("link %s: %v", name, err)
	}
	return l
}

// SetUp opens or shuts an interface.
func (s *Space) SetUp(name string, up bool) {
	s.T.Helper()
	set := s.NL.LinkSetDown
	if up {
		set = s.NL.LinkSetUp
	}
	if err := set(s.Link(name)); err != nil {
		s.T.Fatalf("set %s up=%t: %v", name, up, err)
	}
}

// Delete removes an interface.
func (s *Space) Delete(name string) {
	s.T.Helper()
	if err := s.NL.LinkDel(s.Link(name)); err != nil {
		s.T.Fatalf("delete %s: %v", name, err)
	}
}

// Addr adds addresses, in prefix notation, to an interface.
func (s *Space) Addr(ifname string, addrs ...string) {
	s.T.Helper()
	for _, a := range addrs {
		parsed, err := netlink.ParseAddr(a)
		if err != nil {
			s.T.Fatal(err)
		}
		parsed.Flags |= unix.IFA_F_NODAD // no seconds of waiting for duplicates
		if err := s.NL.AddrAdd(s.Link(ifname), parsed); err != nil {
			s.T.Fatalf("address %s: %v", a, err)
		}
	}
}

// Veth puts a cable between name here and peer there; both ends are opened.
func (s *Space) Veth(name string, there *Space, peer string) {
	s.T.Helper()
	la := netlink.NewLinkAttrs()
	la.Name = name
	v := &netlink.Veth{LinkAttrs: la, PeerName: peer, PeerNamespace: netlink.NsFd(int(there.Handle))}
	if err := s.NL.LinkAdd(v); err != nil {
		s.T.Fatalf("veth %s to %s: %v", name, peer, err)
	}
	s.SetUp(name, true)
	there.SetUp(peer, true)
}
