//go:build linux

package bfd

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// patience is how long a test waits for something that must happen.
const patience = 40 * time.Second

// space is a namespace in which daemons run.
type space struct {
	*netnstest.Space
	listen []netip.Addr // for multihop alone, as in the BFD process; empty: all addresses and ports
}

func newSpace(t testing.TB) *space {
	t.Helper()
	s := &space{Space: netnstest.New(t)}
	s.SetUp("lo", true)
	return s
}

// cable joins two namespaces by a veth pair with the same name on both sides.
func cable(t testing.TB, name string, a, b *space) {
	t.Helper()
	a.Veth(name, b.Space, name)
}

// command runs in the namespace.
func (s *space) command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + s.Path(), name}, args...)...)
}

func (s *space) mustRun(name string, args ...string) string {
	s.T.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.T.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// set writes a file below /proc/sys in the namespace.
func (s *space) set(file, value string) {
	s.T.Helper()
	s.mustRun("sh", "-c", "echo "+value+" >/proc/sys/"+file)
}

// mute has everything the namespace sends lost, while links stay up; unmute ends that.
func (s *space) mute() {
	s.T.Helper()
	s.mustRun("nft", "add table inet mute; add chain inet mute out { type filter hook output priority 0; policy accept; }; add rule inet mute out udp dport { 3784, 3785, 4784 } drop")
}

func (s *space) unmute() {
	s.T.Helper()
	s.mustRun("nft", "delete table inet mute")
}

// start runs a daemon until the test ends.
func (s *space) start(cmd *exec.Cmd, log string) {
	s.T.Helper()
	f, err := os.Create(log)
	if err != nil {
		s.T.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	s.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		f.Close()
		if s.T.Failed() {
			b, _ := os.ReadFile(log)
			s.T.Logf("%s:\n%s", log, b)
		}
	})
}

// daemon is our side: a Runner on sockets in a namespace.
type daemon struct {
	*Runner
	t      testing.TB
	events chan Event
	stop   func()
}

func (s *space) run(cfg RunnerConfig, peers ...Peer) *daemon {
	s.T.Helper()
	conn, err := NewSockets(SocketConfig{NetNS: s.Path(), Listen: s.listen, MultihopOnly: len(s.listen) > 0})
	if err != nil {
		s.T.Fatal(err)
	}
	d := &daemon{t: s.T, events: make(chan Event, 4096)}
	if cfg.Sink == nil {
		cfg.Sink = func(ev []Event) {
			for _, e := range ev {
				d.events <- e
			}
		}
	}
	cfg.Manager.Seed = uint64(time.Now().UnixNano())
	if cfg.Manager.MaxHoldUp == 0 {
		cfg.Manager.MaxHoldUp = time.Second // tests flap a lot
	}
	d.Runner = NewRunner(cfg, conn)
	if err := d.Reconcile(peers); err != nil {
		s.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.T.Error(err)
		}
	})
	s.T.Cleanup(d.stop)
	select {
	case <-d.Ready():
	case err := <-ended:
		ended <- err
		s.T.Fatal(err)
	}
	return d
}

// want waits for the next event, which must be a report of this kind.
func (d *daemon) want(r Report) Event {
	d.t.Helper()
	select {
	case e := <-d.events:
		if e.Report != r {
			d.t.Fatalf("the next report is %v (%v, peer %v), want %v", e.Report, e.Diag, e.RemoteDiag, r)
		}
		return e
	case <-time.After(patience):
		st, _ := d.Status()
		d.t.Fatalf("no report %v; sessions: %+v", r, st)
	}
	return Event{}
}

// detectedIn checks a Down because of silence: not before the detection time, and late
// by no more than this process was kept from running.
func (d *daemon) detectedIn(e Event, detect time.Duration) {
	d.t.Helper()
	c, _, err := d.Counters()
	if err != nil {
		d.t.Fatal(err)
	}
	allowed := 40*ms + c.PauseMax
	if c.Graced > 0 {
		allowed += detect
	}
	took := e.At.Sub(e.Heard)
	d.t.Logf("Down %v after the last packet, detection time %v", took, detect)
	if e.Diag != DiagDetectTime || took < detect || took > detect+allowed {
		d.t.Errorf("Down (%v) %v after the last packet, detection time %v, longest pause %v", e.Diag, took, detect, c.PauseMax)
	}
}

// drain forgets what was reported.
func (d *daemon) drain() {
	for len(d.events) > 0 {
		<-d.events
	}
}

// none makes sure that nothing was reported.
func (d *daemon) none() {
	d.t.Helper()
	select {
	case e := <-d.events:
		d.t.Fatalf("unexpected report %v (%v)", e.Report, e.Diag)
	default:
	}
}

// status gives the only session once cond holds.
func (d *daemon) status(what string, cond func(Status) bool) Status {
	d.t.Helper()
	var last []Status
	if !eventually(func() bool {
		last, _ = d.Status()
		return len(last) == 1 && cond(last[0])
	}) {
		d.t.Fatalf("%s: not within %v: %+v", what, patience, last)
	}
	return last[0]
}

// eventually asks until the answer is yes or patience ends.
func eventually(cond func() bool) bool {
	tick := time.NewTicker(20 * ms)
	defer tick.Stop()
	for end := time.After(patience); ; {
		if cond() {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return cond()
		}
	}
}

// pair is two namespaces with a cable, and addresses of both families.
func pair(t testing.TB) (a, b *space) {
	t.Helper()
	a, b = newSpace(t), newSpace(t)
	cable(t, "eth1", a, b)
	a.Addr("eth1", "10.9.0.1/24", "2001:db8:9::1/64", "fe80::9:1/64")
	b.Addr("eth1", "10.9.0.2/24", "2001:db8:9::2/64", "fe80::9:2/64")
	return a, b
}

// routed is three namespaces in a row; the one in the middle forwards.
func routed(t testing.TB) (a, b, middle *space) {
	t.Helper()
	a, b, middle = newSpace(t), newSpace(t), newSpace(t)
	cable(t, "eth1", a, middle)
	middle.mustRun("ip", "link", "set", "eth1", "name", "eth2")
	cable(t, "eth1", b, middle)
	middle.SetUp("eth2", true)
	middle.Addr("eth2", "10.9.1.254/24", "2001:db8:91::fe/64")
	middle.Addr("eth1", "10.9.2.254/24", "2001:db8:92::fe/64")
	a.Addr("eth1", "10.9.1.1/24", "2001:db8:91::1/64")
	b.Addr("eth1", "10.9.2.2/24", "2001:db8:92::2/64")
	for s, via := range map[*space][2]string{a: {"10.9.1.254", "2001:db8:91::fe"}, b: {"10.9.2.254", "2001:db8:92::fe"}} {
		s.mustRun("ip", "route", "add", "default", "via", via[0])
		s.mustRun("ip", "-6", "route", "add", "default", "via", via[1])
	}
	middle.set("net/ipv4/ip_forward", "1")
	middle.set("net/ipv6/conf/all/forwarding", "1")
	return a, b, middle
}

// paths are the kinds of session, each with the keys of both ends.
var paths = []struct {
	name         string
	ours, theirs Key
}{
	{"IPv4", Key{Peer: ip("10.9.0.2"), Local: ip("10.9.0.1"), Interface: "eth1"}, Key{Peer: ip("10.9.0.1"), Local: ip("10.9.0.2"), Interface: "eth1"}},
	{"IPv6", Key{Peer: ip("2001:db8:9::2"), Local: ip("2001:db8:9::1"), Interface: "eth1"}, Key{Peer: ip("2001:db8:9::1"), Local: ip("2001:db8:9::2"), Interface: "eth1"}},
	{"link-local", Key{Peer: ip("fe80::9:2"), Local: ip("fe80::9:1"), Interface: "eth1"}, Key{Peer: ip("fe80::9:1"), Local: ip("fe80::9:2"), Interface: "eth1"}},
	{"multihop IPv4", Key{Peer: ip("10.9.2.2"), Local: ip("10.9.1.1"), Multihop: true}, Key{Peer: ip("10.9.1.1"), Local: ip("10.9.2.2"), Multihop: true}},
	{"multihop IPv6", Key{Peer: ip("2001:db8:92::2"), Local: ip("2001:db8:91::1"), Multihop: true}, Key{Peer: ip("2001:db8:91::1"), Local: ip("2001:db8:92::2"), Multihop: true}},
}

// spaces makes the network a session of this key runs over.
func spaces(t testing.TB, k Key) (a, b *space) {
	t.Helper()
	if k.Multihop {
		a, b, _ = routed(t)
		return a, b
	}
	return pair(t)
}

func TestOurselvesOverSockets(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			netnstest.Programs(t, "nft")
			a, b := spaces(t, p.ours)
			one := a.run(RunnerConfig{}, Peer{Key: p.ours, Timers: every(200*ms, 5)})
			two := b.run(RunnerConfig{}, Peer{Key: p.theirs, Timers: every(200*ms, 5), MinTTL: 64})
			one.want(ReportUp)
			two.want(ReportUp)
			one.status("negotiated", func(s Status) bool { return s.DetectTime == unhurried && !s.Polling })
			b.mute()
			one.detectedIn(one.want(ReportDown), unhurried)
			if e := two.want(ReportDown); e.Diag != DiagNeighborDown {
				t.Errorf("%+v", e)
			}
			b.unmute()
			one.want(ReportUp)
			two.want(ReportUp)
			two.stop()
			one.want(ReportAdminDown)
			if c, tc, err := one.Counters(); err != nil || c.BadTTL+c.BadSource+c.BadLength+tc.SendErrors+tc.BindErrors > 0 {
				t.Errorf("%+v %+v %v", c, tc, err)
			}
		})
	}
}

// A packet that came over a router does not get into a single-hop session (RFC 5881
// section 5), and ours leave with TTL 255.
func TestGTSMOnSockets(t *testing.T) {
	a, b, _ := routed(t)
	k := Key{Peer: ip("10.9.2.2"), Local: ip("10.9.1.1")}
	one := a.run(RunnerConfig{}, Peer{Key: k})
	b.run(RunnerConfig{}, Peer{Key: Key{Peer: k.Local, Local: k.Peer}})
	if !eventually(func() bool {
		c, _, err := one.Counters()
		return err == nil && c.BadTTL > 0
	}) {
		t.Error("no packet was refused because of its TTL")
	}
	one.status("stays down", func(s Status) bool { return s.State == StateDown && s.PacketsIn == 0 })
}

// Source ports are those of RFC 5881 section 4, each for one session.
func TestSourcePorts(t *testing.T) {
	a, b := pair(t)
	var peers []Peer
	for i := range 20 {
		addr := netip.AddrFrom4([4]byte{10, 9, 0, byte(100 + i)})
		b.Addr("eth1", addr.String()+"/24")
		peers = append(peers, Peer{Key: Key{Peer: addr}})
	}
	d := a.run(RunnerConfig{}, peers...)
	if !eventually(func() bool {
		st, _ := d.Status()
		for _, s := range st {
			if s.PacketsOut == 0 {
				return false
			}
		}
		return len(st) == len(peers)
	}) {
		t.Fatal("nothing was sent")
	}
	seen := map[string]bool{}
	for line := range strings.Lines(a.mustRun("ss", "-Huan")) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		local := f[3]
		port := local[strings.LastIndexByte(local, ':')+1:]
		if len(port) == 5 && port >= "49152" && port <= "65535" {
			if seen[port] {
				t.Errorf("port %s twice", port)
			}
			seen[port] = true
		}
	}
	if len(seen) != len(peers) {
		t.Errorf("%d source ports for %d sessions: %v", len(seen), len(peers), seen)
	}
	// Sessions that end give theirs back.
	if err := d.Reconcile(nil); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return strings.Count(a.mustRun("ss", "-Huan"), "\n") == 6 }) {
		t.Errorf("sockets left:\n%s", a.mustRun("ss", "-Huan"))
	}
}
