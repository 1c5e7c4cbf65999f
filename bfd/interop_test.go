//go:build linux

package bfd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// peer is another implementation, in a namespace.
type peer interface {
	// session tells how it sees the session.
	session() (foreign, error)
	setTimers(interval time.Duration, mult int)
	shutdown(down bool)
	// stop and cont halt the process and let it go on.
	signal(s syscall.Signal)
}

// foreign is a session as the other side shows it.
type foreign struct {
	up                 bool
	detail             string
	txMs, rxMs, detect int // what it learned from us, 0 where it does not tell
}

// workDir is a directory that a daemon which drops its privileges can use.
func workDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bfd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // it drops its privileges to another user
		t.Fatal(err)
	}
	return dir
}

// frr is FRR's bfdd, with zebra, which tells it of interfaces.
type frr struct {
	t    testing.TB
	dir  string
	key  Key
	bfdd *exec.Cmd
}

const frrDir = "/usr/lib/frr"

func startFRR(t testing.TB, s *space, lines ...string) *frr {
	t.Helper()
	netnstest.Programs(t, frrDir+"/bfdd", frrDir+"/zebra", "vtysh")
	f := &frr{t: t, dir: workDir(t)}
	at := func(name string) string { return filepath.Join(f.dir, name) }
	if err := os.WriteFile(at("bfdd.conf"), []byte("bfd\n"+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := func(name string) []string {
		return []string{"-u", "frr", "-g", "frr", "-i", at(name + ".pid"), "-z", at("zebra.sock"), "--vty_socket", f.dir, "-A", "127.0.0.1", "-P", "0"}
	}
	zebra := s.command(frrDir+"/zebra", args("zebra")...)
	s.start(zebra, at("zebra.log"))
	if !eventually(func() bool { _, err := os.Stat(at("zebra.vty")); return err == nil }) {
		t.Fatal("zebra does not start")
	}
	f.bfdd = s.command(frrDir+"/bfdd", append(args("bfdd"), "--bfdctl", at("bfdd.sock"), "-f", at("bfdd.conf"))...)
	s.start(f.bfdd, at("bfdd.log"))
	if !eventually(func() bool { _, err := f.vtysh("show bfd peers json"); return err == nil }) {
		t.Fatal("bfdd does not start")
	}
	return f
}

func (f *frr) vtysh(commands ...string) (string, error) {
	args := []string{"--vty_socket", f.dir, "-d", "bfdd"}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	out, err := exec.Command("vtysh", args...).Output()
	return string(out), err
}

// line is the configuration command that names a session.
func (f *frr) line() string {
	s := "peer " + f.key.Peer.String()
	if f.key.Multihop {
		s += " multihop"
	}
	s += " local-address " + f.key.Local.String()
	if f.key.Interface != "" {
		s += " interface " + f.key.Interface
	}
	return s
}

func (f *frr) configure(lines ...string) {
	f.t.Helper()
	out, err := f.vtysh(append([]string{"configure terminal", "bfd", f.line()}, lines...)...)
	if err != nil || strings.Contains(out, "%") {
		f.t.Fatalf("vtysh: %v: %s", err, out)
	}
}

func (f *frr) setTimers(interval time.Duration, mult int) {
	f.configure(fmt.Sprintf("transmit-interval %d", interval.Milliseconds()), fmt.Sprintf("receive-interval %d", interval.Milliseconds()), fmt.Sprintf("detect-multiplier %d", mult))
}

func (f *frr) shutdown(down bool) {
	if down {
		f.configure("shutdown")
	} else {
		f.configure("no shutdown")
	}
}

func (f *frr) signal(s syscall.Signal) { _ = f.bfdd.Process.Signal(s) }

func (f *frr) session() (foreign, error) {
	out, err := f.vtysh("show bfd peers json")
	if err != nil {
		return foreign{}, err
	}
	var list []struct {
		Status     string `json:"status"`
		Diagnostic string `json:"diagnostic"`
		RemoteDiag string `json:"remote-diagnostic"`
		Rx         int    `json:"remote-receive-interval"`
		Tx         int    `json:"remote-transmit-interval"`
		Mult       int    `json:"remote-detect-multiplier"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return foreign{}, err
	}
	if len(list) != 1 {
		return foreign{}, fmt.Errorf("%d sessions", len(list))
	}
	p := list[0]
	return foreign{up: p.Status == "up", detail: p.Status + " / " + p.Diagnostic + " / " + p.RemoteDiag, txMs: p.Tx, rxMs: p.Rx, detect: p.Mult}, nil
}

func frrPeer(t testing.TB, s *space, k Key, interval time.Duration, mult int, more ...string) *frr {
	f := &frr{key: k}
	lines := append([]string{" " + f.line(), fmt.Sprintf("  transmit-interval %d", interval.Milliseconds()),
		fmt.Sprintf("  receive-interval %d", interval.Milliseconds()), fmt.Sprintf("  detect-multiplier %d", mult)}, more...)
	f = startFRR(t, s, lines...)
	f.key = k
	return f
}

// bird is BIRD's BFD protocol.
type bird struct {
	t    testing.TB
	s    *space
	dir  string
	key  Key
	auth string
	proc *exec.Cmd

	interval time.Duration
	mult     int
	disabled bool
}

func birdPeer(t testing.TB, s *space, k Key, interval time.Duration, mult int, auth string) *bird {
	t.Helper()
	netnstest.Programs(t, "bird", "birdc")
	b := &bird{t: t, s: s, dir: workDir(t), key: k, auth: auth, interval: interval, mult: mult}
	b.write()
	b.proc = s.command("bird", "-f", "-c", b.at("bird.conf"), "-s", b.at("bird.ctl"))
	s.start(b.proc, b.at("bird.log"))
	if !eventually(func() bool { _, err := b.birdc("show status"); return err == nil }) {
		t.Fatal("BIRD does not start")
	}
	return b
}

func (b *bird) at(name string) string { return filepath.Join(b.dir, name) }

func (b *bird) write() {
	b.t.Helper()
	kind, dev, neighbor := "interface \"eth1\"", ` dev "eth1"`, b.key.Peer.String()
	if b.key.Multihop {
		kind, dev = "multihop", ""
	}
	neighbor += dev + " local " + b.key.Local.String()
	if b.key.Multihop {
		neighbor += " multihop"
	}
	disabled := "no"
	if b.disabled {
		disabled = "yes"
	}
	conf := fmt.Sprintf(`router id 192.0.2.77;
protocol device {}
protocol bfd peer {
  disabled %s;
  %s { min rx interval %d ms; min tx interval %d ms; idle tx interval 1 s; multiplier %d; %s };
  neighbor %s;
}
`, disabled, kind, b.interval.Milliseconds(), b.interval.Milliseconds(), b.mult, b.auth, neighbor)
	if err := os.WriteFile(b.at("bird.conf"), []byte(conf), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bird) birdc(args ...string) (string, error) {
	out, err := exec.Command("birdc", append([]string{"-s", b.at("bird.ctl")}, args...)...).CombinedOutput()
	return string(out), err
}

func (b *bird) reconfigure() {
	b.t.Helper()
	b.write()
	if out, err := b.birdc("configure"); err != nil || !strings.Contains(out, "econfigur") {
		b.t.Fatalf("birdc: %v: %s", err, out)
	}
}

func (b *bird) setTimers(interval time.Duration, mult int) {
	b.interval, b.mult = interval, mult
	b.reconfigure()
}

func (b *bird) shutdown(down bool) {
	b.disabled = down
	b.reconfigure()
}

func (b *bird) signal(s syscall.Signal) { _ = b.proc.Process.Signal(s) }

func (b *bird) session() (foreign, error) {
	out, err := b.birdc("show", "bfd", "sessions")
	if err != nil {
		return foreign{}, err
	}
	for line := range strings.Lines(out) {
		// IP address, interface, state, since, interval, timeout
		if f := strings.Fields(line); len(f) >= 6 && f[0] == b.key.Peer.String() {
			return foreign{up: f[2] == "Up", detail: line}, nil
		}
	}
	return foreign{}, errors.New("no session: " + out)
}

// unhurried is the detection time of the tests (200 ms x 5): several daemons that no
// scheduler prefers run at once here, on a machine with other things to do.
const unhurried = time.Second

// exercise is what must work with every other implementation.
// saysAdminDown: it tells AdminDown when it is taken down, instead of falling silent.
func exercise(t *testing.T, ours Key, them, us *space, make func() peer, auth *Auth, saysAdminDown bool) {
	t.Helper()
	p := make()
	one := us.run(RunnerConfig{}, Peer{Key: ours, Timers: every(240*ms, 4), Auth: auth})
	up := func(what string) {
		t.Helper()
		one.want(ReportUp)
		var f foreign
		if !eventually(func() bool { f, _ = p.session(); return f.up }) {
			t.Fatalf("%s: not up there: %+v", what, f)
		}
	}
	up("first")
	// They ask for 200 ms x 5, we for 240 ms x 4.
	one.status("negotiated timers", func(s Status) bool {
		return !s.Polling && s.Remote.MinTx == 200*ms && s.Remote.MinRx == 200*ms && s.TxInterval == 240*ms && s.DetectTime == 1200*ms
	})
	f, _ := p.session()
	if f.detect != 0 && (f.txMs != 240 || f.rxMs != 240 || f.detect != 4) {
		t.Errorf("they learned %+v", f)
	}
	// They change their timers by a Poll Sequence, we ours.
	p.setTimers(300*ms, 6)
	one.status("their new timers", func(s Status) bool {
		return s.Remote.MinTx == 300*ms && s.TxInterval == 300*ms && s.DetectTime == 1800*ms
	})
	if err := one.Reconcile([]Peer{{Key: ours, Timers: every(400*ms, 3), Auth: auth}}); err != nil {
		t.Fatal(err)
	}
	one.status("our new timers, polled", func(s Status) bool {
		return !s.Polling && s.TxInterval == 400*ms && s.DetectTime == 2400*ms
	})
	if err := one.Reconcile([]Peer{{Key: ours, Timers: every(200*ms, 5), Auth: auth}}); err != nil {
		t.Fatal(err)
	}
	p.setTimers(200*ms, 5)
	one.status("fast again", func(s Status) bool { return !s.Polling && s.TxInterval == 200*ms && s.DetectTime == unhurried })
	one.none()

	// Their packets stop, carrier stays.
	them.mute()
	e := one.want(ReportDown)
	one.detectedIn(e, unhurried)
	them.unmute()
	up("after their silence")

	// Ours stop.
	us.mute()
	e = one.want(ReportDown)
	if e.Diag != DiagNeighborDown || e.RemoteDiag != DiagDetectTime {
		t.Errorf("they noticed our silence as %v, %v", e.Diag, e.RemoteDiag)
	}
	us.unmute()
	up("after our silence")

	// Their process stops while the kernel goes on.
	p.signal(syscall.SIGSTOP)
	if e = one.want(ReportDown); e.Diag != DiagDetectTime {
		t.Errorf("stopped process: %v", e.Diag)
	}
	p.signal(syscall.SIGCONT)
	// A peer that declares us dead when it wakes may flap once more.
	one.status("after their pause", func(s Status) bool {
		return s.Report == ReportUp && s.State == StateUp && time.Since(s.Since) > 2*time.Second
	})
	one.drain()

	// AdminDown, theirs and ours.
	p.shutdown(true)
	if saysAdminDown {
		one.want(ReportAdminDown)
	} else {
		one.want(ReportDown)
	}
	p.shutdown(false)
	up("after their AdminDown")
	if err := one.Reconcile([]Peer{{Key: ours, Timers: every(200*ms, 5), Auth: auth, AdminDown: true}}); err != nil {
		t.Fatal(err)
	}
	one.want(ReportAdminDown)
	if !eventually(func() bool { f, err := p.session(); return err == nil && !f.up }) {
		t.Error("they do not see our AdminDown")
	}
	f, _ = p.session()
	t.Logf("our AdminDown is seen as: %s", strings.TrimSpace(f.detail))
	if err := one.Reconcile([]Peer{{Key: ours, Timers: every(200*ms, 5), Auth: auth}}); err != nil {
		t.Fatal(err)
	}
	up("after our AdminDown")
	c, tc, err := one.Counters()
	if err != nil || c.BadLength+c.BadVersion+c.BadTTL+c.BadDiscr+c.AuthFailed+tc.ReadErrors > 0 {
		t.Errorf("%+v %+v %v", c, tc, err)
	}
}

func TestInteropFRR(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			netnstest.Programs(t, "nft")
			us, them := spaces(t, p.ours)
			exercise(t, p.ours, them, us, func() peer { return frrPeer(t, them, p.theirs, 200*ms, 5) }, nil, true)
		})
	}
}

func TestInteropBIRD(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			netnstest.Programs(t, "nft")
			us, them := spaces(t, p.ours)
			exercise(t, p.ours, them, us, func() peer { return birdPeer(t, them, p.theirs, 200*ms, 5, "") }, nil, false)
		})
	}
}

// FRR has no authentication; BIRD has both types. BIRD falls silent when its protocol
// is disabled.
func TestInteropBIRDAuthentication(t *testing.T) {
	for typ, words := range map[AuthType]string{AuthSHA1: "keyed sha1", AuthMeticulousSHA1: "meticulous keyed sha1"} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			netnstest.Programs(t, "nft")
			us, them := pair(t)
			auth := &Auth{Type: typ, Keys: []AuthKey{{ID: 5, Secret: []byte("not so secret")}}}
			line := fmt.Sprintf(`authentication %s; password "not so secret" { id 5; };`, words)
			exercise(t, paths[0].ours, them, us, func() peer { return birdPeer(t, them, paths[0].theirs, 200*ms, 5, line) }, auth, false)
		})
	}
}

// A passive FRR waits for us, and a passive session of ours for FRR.
func TestInteropFRRPassive(t *testing.T) {
	for _, theyWait := range []bool{true, false} {
		t.Run(fmt.Sprintf("they wait %v", theyWait), func(t *testing.T) {
			t.Parallel()
			us, them := pair(t)
			more := []string{}
			if theyWait {
				more = append(more, "  passive-mode")
			}
			frrPeer(t, them, paths[0].theirs, 100*ms, 3, more...)
			one := us.run(RunnerConfig{}, Peer{Key: paths[0].ours, Timers: every(100*ms, 3), Passive: !theyWait})
			one.want(ReportUp)
		})
	}
}

// Echo packets of FRR come back. On IPv4 it sends them to itself by way of us, as RFC
// 5881 section 4 has it, so the kernel that forwards returns them; on IPv6 it sends
// them to us, and we return them.
func TestInteropFRREcho(t *testing.T) {
	for _, p := range paths[:2] {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			us, them := pair(t)
			us.set("net/ipv4/ip_forward", "1")
			f := frrPeer(t, them, p.theirs, 300*ms, 3, "  echo-mode", "  echo transmit-interval 50")
			one := us.run(RunnerConfig{}, Peer{Key: p.ours, Timers: Timers{MinTx: 300 * ms, MinRx: 300 * ms, DetectMult: 3, MinEchoRx: 50 * ms}})
			// FRR may give up on the echo once before it has found its pace.
			one.status("steadily up", func(s Status) bool {
				return s.Report == ReportUp && s.State == StateUp && time.Since(s.Since) > 3*time.Second
			})
			in, out := f.echoes()
			c, _, err := one.Counters()
			if err != nil || in < 30 {
				t.Errorf("%d of %d echoes came back, %v", in, out, err)
			}
			t.Logf("%d of %d echoes came back; we returned %d, refused %d", in, out, c.EchoReturned, c.EchoRefused)
			if returned := c.EchoReturned > 0; returned != p.ours.Peer.Is6() {
				t.Errorf("we returned %d", c.EchoReturned)
			}
		})
	}
}

// echoes gives what FRR counted of echo packets.
func (f *frr) echoes() (in, out int) {
	text, err := f.vtysh("show bfd peers counters json")
	if err != nil {
		return 0, 0
	}
	var list []struct {
		In  int `json:"echo-packet-input"`
		Out int `json:"echo-packet-output"`
	}
	if json.Unmarshal([]byte(text), &list) != nil || len(list) != 1 {
		return 0, 0
	}
	return list[0].In, list[0].Out
}
