//go:build linux

package bfd

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

// The benchmarks of this file take minutes and want the machine for themselves:
//
//	INOF_BENCH_BFD=1 go test -run 'TestBench' -v ./bfd
//
// INOF_BENCH_TRIALS and INOF_BENCH_SECONDS change their length.
func benchmarking(t *testing.T) {
	if os.Getenv("INOF_BENCH_BFD") != "1" {
		netnstest.LeftTo(t, "INOF_BENCH_BFD=1 go test -v ./bfd")
	}
}

func setting(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return standard
}

// quantile of sorted durations.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Microsecond)
}

// TestBenchDetection measures how long it takes to notice that a peer has gone
// silent, for us and for bfdd, at the same time on the same machine. The peer of both
// is a bfdd that is stopped; both are judged by the packets on the wire.
func TestBenchDetection(t *testing.T) {
	benchmarking(t)
	trials := setting("INOF_BENCH_TRIALS", 15)
	for _, interval := range []time.Duration{10 * ms, 50 * ms, 300 * ms} {
		var wg sync.WaitGroup
		lines := make([]string, 2)
		subjects := []string{"inof", "bfdd"}
		for i, name := range subjects {
			here, there := pair(t)
			c := here.watch(t, "eth1")
			if name == "inof" {
				here.run(RunnerConfig{Priority: PriorityProcess, Sink: func([]Event) {}}, Peer{Key: paths[0].ours, Timers: every(interval, 3)})
			} else {
				frrPeer(t, here, paths[0].ours, interval, 3)
			}
			stopped := frrPeer(t, there, paths[0].theirs, interval, 3)
			wg.Add(1)
			go func() {
				defer wg.Done()
				lines[i] = detectionTrials(t, name, c, stopped, interval, trials)
			}()
		}
		wg.Wait()
		t.Log(strings.Join(lines, "\n"))
	}
}

// detectionTrials stops the peer again and again.
func detectionTrials(t *testing.T, name string, c *capture, p peer, interval time.Duration, trials int) string {
	var fromFault, fromPacket []time.Duration
	for range trials {
		if !eventually(func() bool { return c.steady(max(500*ms, 3*interval)) }) {
			t.Errorf("%s: not up", name)
			break
		}
		c.down0()
		fault := time.Now()
		p.signal(syscall.SIGSTOP)
		last, down, ok := c.down()
		p.signal(syscall.SIGCONT)
		if !ok {
			t.Errorf("%s: no Down on the wire", name)
			break
		}
		fromFault, fromPacket = append(fromFault, down.Sub(fault)), append(fromPacket, down.Sub(last))
	}
	slices.Sort(fromFault)
	slices.Sort(fromPacket)
	return fmt.Sprintf("%-5s %v x 3, %d trials: fault to Down median %v max %v; last packet to Down median %v p99 %v max %v", name, interval, len(fromFault),
		quantile(fromFault, 0.5), quantile(fromFault, 1), quantile(fromPacket, 0.5), quantile(fromPacket, 0.99), quantile(fromPacket, 1))
}

// down0 forgets a Down of before.
func (c *capture) down0() {
	c.mu.Lock()
	c.downAt = time.Time{}
	c.mu.Unlock()
}

// Carrier loss of a single-hop session is known as soon as it is told by whoever
// watches the links: by its diagnostic, before the silence is noticed after 3 s. How
// long it takes is shown, but is the machine's affair.
func TestCarrierLossIsNoticedAtOnce(t *testing.T) {
	a, b := pair(t)
	one := a.run(RunnerConfig{Priority: PriorityThread}, Peer{Key: paths[0].ours, Timers: every(1000*ms, 3)})
	b.run(RunnerConfig{}, Peer{Key: paths[0].theirs, Timers: every(1000*ms, 3)})
	var times []time.Duration
	for range setting("INOF_BENCH_TRIALS", 3) {
		one.want(ReportUp)
		if err := b.NL.LinkSetDown(b.Link("eth1")); err != nil {
			t.Fatal(err)
		}
		told := time.Now()
		one.LinkDown("eth1")
		e := one.want(ReportDown)
		times = append(times, time.Since(told))
		if e.Diag != DiagPathDown {
			t.Errorf("%+v", e)
		}
		b.SetUp("eth1", true)
		one.LinkUp("eth1")
	}
	slices.Sort(times)
	t.Logf("carrier loss told to Down: median %v, max %v", quantile(times, 0.5), quantile(times, 1))
}

// many gives n pairs of multihop addresses, on the loopbacks of two namespaces with
// a cable between them.
func many(t testing.TB, n int) (a, b *space, ours []Key) {
	t.Helper()
	a, b = pair(t)
	add := func(s *space, net byte, via string) {
		lo := s.Link("lo")
		for i := range n {
			addr := &netlink.Addr{IPNet: netlink.NewIPNet([]byte{10, net, byte(i >> 8), byte(i)})}
			if err := s.NL.AddrAdd(lo, addr); err != nil {
				t.Fatal(err)
			}
		}
		s.mustRun("ip", "route", "add", fmt.Sprintf("10.%d.0.0/16", 41-net), "via", via)
	}
	add(a, 20, "10.9.0.2")
	add(b, 21, "10.9.0.1")
	for i := range n {
		ours = append(ours, Key{Local: netip.AddrFrom4([4]byte{10, 20, byte(i >> 8), byte(i)}), Peer: netip.AddrFrom4([4]byte{10, 21, byte(i >> 8), byte(i)}), Multihop: true})
	}
	return a, b, ours
}

func peersOf(keys []Key, turned bool, t Timers) []Peer {
	out := make([]Peer, len(keys))
	for i, k := range keys {
		if turned {
			k.Local, k.Peer = k.Peer, k.Local
		}
		out[i] = Peer{Key: k, Timers: t}
	}
	return out
}

// cpu gives the processor time of this process.
func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestManySessionsHold has both ends of many sessions on this machine.
func TestManySessionsHold(t *testing.T) {
	n, hold, timers := 64, 2*time.Second, every(50*ms, 3)
	if os.Getenv("INOF_BENCH_BFD") == "1" {
		n, hold = setting("INOF_BENCH_SESSIONS", 1024), time.Duration(setting("INOF_BENCH_SECONDS", 20))*time.Second
	}
	if iv := setting("INOF_BENCH_INTERVAL_MS", 0); iv > 0 {
		timers = every(time.Duration(iv)*ms, 3)
	}
	a, b, keys := many(t, n)
	cfg := RunnerConfig{Priority: PriorityProcess, Sink: func([]Event) {}}
	one, two := a.run(cfg, peersOf(keys, false, timers)...), b.run(cfg, peersOf(keys, true, timers)...)
	up := func() int {
		st, _ := one.Status()
		return len(slices.DeleteFunc(st, func(s Status) bool { return s.State != StateUp || s.Polling }))
	}
	start := time.Now()
	if !eventually(func() bool { return up() == n }) {
		t.Fatalf("%d of %d sessions are up", up(), n)
	}
	t.Logf("%d sessions up after %v; %s", n, time.Since(start).Round(ms), one.Granted())
	c0, _, _ := one.Counters()
	d0, _, _ := two.Counters()
	was, at := cpu(), time.Now()
	<-time.After(hold)
	used, took := cpu()-was, time.Since(at)
	c, tc, _ := one.Counters()
	d, _, _ := two.Counters()
	packets := c.PacketsOut - c0.PacketsOut + d.PacketsOut - d0.PacketsOut
	t.Logf("%d sessions at %v x 3, both ends here, %v: %d flaps, %.1f %% of a core, %.0f packets/s, %.2f ms of CPU per 1,000 packets sent and received; late %d (max %v), pauses %d (max %v), overflow %d, wakeups %.0f/s",
		n, timers.MinTx, took.Round(time.Second), c.Flaps+d.Flaps, 100*used.Seconds()/took.Seconds(), float64(packets)/took.Seconds(),
		1e6*used.Seconds()/float64(packets), c.TxLate+d.TxLate, max(c.TxLateMax, d.TxLateMax), c.Pauses+d.Pauses, max(c.PauseMax, d.PauseMax), tc.RxOverflow,
		float64(tc.Wakeups)/took.Seconds())
	// A machine that does not run us for a detection time makes the peer right.
	if pause := max(c.PauseMax, d.PauseMax); c.Flaps+d.Flaps > 0 && pause < 2*timers.MinTx {
		t.Errorf("%d and %d flaps, though the longest pause was %v", c.Flaps, d.Flaps, pause)
	}
}

// TestBenchSessionsFRR is the same with bfdd on both ends.
func TestBenchSessionsFRR(t *testing.T) {
	benchmarking(t)
	n, hold := setting("INOF_BENCH_SESSIONS", 256), time.Duration(setting("INOF_BENCH_SECONDS", 20))*time.Second
	a, b, keys := many(t, n)
	var ends [2]*frr
	for i, s := range []*space{a, b} {
		var lines []string
		for _, p := range peersOf(keys, i == 1, Timers{}) {
			lines = append(lines, " "+(&frr{key: p.Key}).line(), "  transmit-interval 50", "  receive-interval 50", " exit")
		}
		ends[i] = startFRR(t, s, lines...)
	}
	count := func() (up, downs int) {
		out, _ := ends[0].vtysh("show bfd peers json")
		up = strings.Count(out, `"status":"up"`)
		out, _ = ends[0].vtysh("show bfd peers counters")
		for line := range strings.Lines(out) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Session down events: "); ok {
				k, _ := strconv.Atoi(v)
				downs += k
			}
		}
		return up, downs
	}
	eventually(func() bool { up, _ := count(); return up == n })
	up, downs0 := count()
	was, at := ends[0].cpu()+ends[1].cpu(), time.Now()
	<-time.After(hold)
	used, took := ends[0].cpu()+ends[1].cpu()-was, time.Since(at)
	_, downs := count()
	t.Logf("bfdd: %d of %d sessions up at 50ms x 3, both ends here, %v: %d flaps, %.1f %% of a core", up, n, took.Round(time.Second), downs-downs0, 100*used.Seconds()/took.Seconds())
}

// cpu gives the processor time of bfdd, in ticks of 10 ms.
func (f *frr) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.bfdd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	u, _ := strconv.Atoi(fields[11])
	s, _ := strconv.Atoi(fields[12])
	return time.Duration(u+s) * 10 * ms
}
