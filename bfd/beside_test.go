//go:build linux

package bfd

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// besideIDs are device ids, on the loopback of the two devices of a pair.
var besideIDs = [2]string{"10.8.0.1", "10.8.0.2"}

// besidePair is two devices with ids that reach each other.
func besidePair(t *testing.T) (s [2]*space, multihop, hop [2]Key) {
	s[0], s[1] = pair(t)
	for i, d := range s {
		d.Addr("lo", besideIDs[i]+"/32")
		d.mustRun("ip", "route", "add", besideIDs[1-i]+"/32", "via", fmt.Sprintf("10.9.0.%d", 2-i))
	}
	multihop = [2]Key{{Peer: ip(besideIDs[1]), Local: ip(besideIDs[0]), Multihop: true}, {Peer: ip(besideIDs[0]), Local: ip(besideIDs[1]), Multihop: true}}
	return s, multihop, [2]Key{paths[0].ours, paths[0].theirs}
}

// runOn is run with sockets on one address, as in the BFD process.
func (s *space) runOn(id string, k Key) *daemon {
	s.listen = []netip.Addr{ip(id)}
	return s.run(RunnerConfig{}, Peer{Key: k, Timers: every(200*ms, 5), Auth: &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("secret")}}}})
}

// FRR's bfdd works on the same two devices: on one it is started before us, on the other after
// us. Its sessions and ours come up and stay; it has a single-hop session on the link, and one
// over several hops between other addresses.
func TestBesideFRRInEitherOrder(t *testing.T) {
	s, multihop, hop := besidePair(t)
	other := [2]string{"10.8.1.1", "10.8.1.2"}
	var ours [2]*daemon
	var theirs [2]*frr
	for i, d := range s {
		d.Addr("lo", other[i]+"/32")
		d.mustRun("ip", "route", "add", other[1-i]+"/32", "via", fmt.Sprintf("10.9.0.%d", 2-i))
		if i == 1 {
			ours[i] = d.runOn(besideIDs[i], multihop[i])
		}
		far := &frr{key: Key{Peer: ip(other[1-i]), Local: ip(other[i]), Multihop: true}}
		theirs[i] = frrPeer(t, d, hop[i], 200*ms, 5, " exit", " "+far.line(), "  transmit-interval 200", "  receive-interval 200", "  detect-multiplier 5")
		if i == 0 {
			ours[i] = d.runOn(besideIDs[i], multihop[i])
		}
	}
	for i, d := range ours {
		d.want(ReportUp)
		if !eventually(func() bool { return theirs[i].sessionsUp() == 2 }) {
			t.Errorf("bfdd of device %d does not bring its sessions up", i)
		}
	}
	for i, d := range ours {
		d.status("steadily up", func(st Status) bool { return st.State == StateUp && time.Since(st.Since) > 2*time.Second })
		if n := theirs[i].sessionsUp(); n != 2 {
			t.Errorf("bfdd of device %d has %d of 2 sessions up", i, n)
		}
		stray, err := d.Stray()
		if err != nil || stray.From.IsValid() {
			t.Errorf("stray packets: %+v, %v", stray, err)
		}
	}
}

// sessionsUp counts.
func (f *frr) sessionsUp() int {
	out, _ := f.vtysh("show bfd peers json")
	return strings.Count(out, `"status":"up"`)
}

// A multihop session of bfdd between the device ids themselves cannot work beside ours: its
// packets come to us. That is noticed, and ours works on.
func TestBesideFRRWithTheSameAddresses(t *testing.T) {
	s, multihop, _ := besidePair(t)
	var ours [2]*daemon
	for i, d := range s {
		frrPeer(t, d, multihop[i], 200*ms, 5)
		ours[i] = d.runOn(besideIDs[i], multihop[i])
	}
	for i, d := range ours {
		d.want(ReportUp)
		if !eventually(func() bool {
			stray, err := d.Stray()
			return err == nil && stray.From == ip(besideIDs[1-i]) && stray.Last.Sub(stray.Since) > 2*time.Second
		}) {
			stray, err := d.Stray()
			t.Errorf("stray packets: %+v, %v", stray, err)
		}
		d.none()
	}
}

// A process that does not share the port, or has bound the same address, is named.
func TestWhoHasThePortIsNamed(t *testing.T) {
	s := newSpace(t)
	s.Addr("lo", "10.8.0.1/32")
	us := fmt.Sprintf("(pid %d)", os.Getpid())
	for address, reuse := range map[string]bool{"0.0.0.0": false, "10.8.0.1": true} {
		holder, stop := s.holdPort(address, reuse)
		conn, err := NewSockets(SocketConfig{NetNS: s.Path(), Listen: []netip.Addr{ip("10.8.0.1")}, MultihopOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: it enters the namespace
			started <- conn.Start()
		}()
		err = <-started
		if err == nil || !strings.Contains(err.Error(), "10.8.0.1:4784: address already in use") || !strings.Contains(err.Error(), holder) || strings.Contains(err.Error(), us) {
			t.Errorf("%s: %v, want it to name %s", address, err, holder)
		}
		conn.Close()
		stop()
	}
}

// holdPort has another process bind UDP port 4784; it is named as we should name it.
func (s *space) holdPort(address string, reuse bool) (name string, stop func()) {
	s.T.Helper()
	program := `socket(S, PF_INET, SOCK_DGRAM, 0) or die $!;
		if ($ARGV[1]) { setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1) or die $! }
		bind(S, sockaddr_in(4784, inet_aton($ARGV[0]))) or die $!;
		$| = 1; print "bound\n"; <STDIN>`
	cmd := s.command("/usr/bin/perl", "-MSocket", "-e", program, address, map[bool]string{true: "1", false: "0"}[reuse])
	in, err := cmd.StdinPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "bound\n" {
		s.T.Fatalf("holding the port: %q, %v", line, err)
	}
	return fmt.Sprintf("perl (pid %d)", cmd.Process.Pid), func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			s.T.Error(err)
		}
	}
}

// The kernel's tables have addresses as words in the byte order of the machine, this one's here.
func TestHoldersAreReadFromTheKernelsTable(t *testing.T) {
	s := newSpace(t)
	s.Addr("lo", "2001:db8::1/128", "10.8.0.1/32")
	_, stop := s.holdPort("10.8.0.1", true)
	defer stop()
	list, err := parseHolders(strings.NewReader(s.mustRun("cat", "/proc/net/udp")), 4784)
	if err != nil || len(list) != 1 || list[0].Address != ip("10.8.0.1") {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := parseHolders(strings.NewReader(s.mustRun("cat", "/proc/net/udp")), 4785); err != nil || len(list) != 0 {
		t.Errorf("another port: %+v, %v", list, err)
	}
	s.listen = []netip.Addr{ip("2001:db8::1")}
	s.run(RunnerConfig{})
	list, err = parseHolders(strings.NewReader(s.mustRun("cat", "/proc/net/udp6")), 4784)
	if err != nil || len(list) != 1 || list[0].Address != ip("2001:db8::1") || list[0].user == "" {
		t.Errorf("%+v, %v", list, err)
	}
	mapped, text := ip("::ffff:10.8.0.1").As16(), ""
	for i := 0; i < len(mapped); i += 4 {
		text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(mapped[i:]))
	}
	list, err = parseHolders(strings.NewReader("1: "+text+":12B0 0:0 07 0:0 0:0 0 0 0 5 2 0 0\n"), 4784)
	if err != nil || len(list) != 1 || list[0].Address != ip("10.8.0.1") {
		t.Errorf("a socket of IPv6 on an IPv4 address: %+v, %v", list, err)
	}
	if _, err := parseHolders(strings.NewReader("1: XYZ:12B0 0:0 07 0:0 0:0 0 0 0 5 2 0 0\n"), 4784); err == nil {
		t.Error("an address that is none is taken")
	}
}
