package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// manager is a service manager's end of sd_notify(3).
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	sock string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "inof-sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &manager{t: t, sock: filepath.Join(dir, "notify")}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.sock, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.conn.Close() })
	return m
}

// next gives the next message, those of the watchdog left out.
func (m *manager) next() map[string]string {
	m.t.Helper()
	for {
		if fields := m.any(); fields["WATCHDOG"] == "" {
			return fields
		}
	}
}

func (m *manager) any() map[string]string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(labtest.Patience)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatalf("waiting for a message to the service manager: %v", err)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(buf[:n])) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[k] = v
	}
	return fields
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano() / 1000
}

// The service manager is told when the daemon is ready, reloads, stops, and lives.
func TestTheServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	s, m := newSolo(t, "sdnotify"), newManager(t)
	d := s.daemon("", "NOTIFY_SOCKET="+m.sock, "WATCHDOG_USEC=100000")
	if got := m.next(); got["READY"] != "1" {
		t.Errorf("first message %v, want READY=1", got)
	}
	if _, err := s.tryStatus("sw"); err != nil {
		t.Errorf("ready, but: %v", err)
	}
	if ps, err := ask(s.fab, "sw", portsOf); err != nil || len(ps) != 2 {
		t.Errorf("ready, but the ports are %+v, %v", ps, err)
	}
	for _, conf := range []string{"", "surprise: true\n"} { // a reload that fails is over as well
		if conf != "" {
			s.write("sw.yaml", conf)
		}
		before := monotonic(t)
		d.signal(unix.SIGHUP)
		got := m.next()
		at, err := strconv.ParseInt(got["MONOTONIC_USEC"], 10, 64)
		if got["RELOADING"] != "1" || err != nil || at < before || at > monotonic(t) {
			t.Errorf("message %v, want RELOADING=1 and MONOTONIC_USEC from %d on", got, before)
		}
		if got := m.next(); got["READY"] != "1" {
			t.Errorf("message %v, want READY=1", got)
		}
	}
	for m.any()["WATCHDOG"] != "1" {
	}
	d.signal(unix.SIGTERM)
	if got := m.next(); got["STOPPING"] != "1" {
		t.Errorf("message %v, want STOPPING=1", got)
	}
	if code := d.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// lldpdu decodes an LLDPDU with somebody else's decoder.
func lldpdu(t *testing.T, payload []byte) *layers.LinkLayerDiscovery {
	t.Helper()
	p := gopacket.NewPacket(payload, layers.LayerTypeLinkLayerDiscovery, gopacket.Default)
	l, ok := p.Layer(layers.LayerTypeLinkLayerDiscovery).(*layers.LinkLayerDiscovery)
	if !ok {
		t.Fatalf("% x is no LLDPDU: %v", payload, p.ErrorLayer())
	}
	return l
}

// A daemon that is asked to stop says goodbye on every port and ends with 0.
func TestAGracefulStop(t *testing.T) {
	t.Parallel()
	s := newSolo(t, "stop")
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT} {
		d := s.daemon("")
		wires := map[string]*tap{"eth1": s.wire("t", "eth1"), "eth2": s.wire("i", "eth1")}
		said := map[string]*layers.LinkLayerDiscovery{}
		for port, w := range wires {
			said[port] = lldpdu(t, w.next(fabric.EtherTypeLLDP))
			if said[port].TTL != 4 || string(said[port].PortID.ID) != port {
				t.Errorf("on %s the daemon said %+v", port, said[port])
			}
		}
		s.running()
		d.signal(sig)
		if code := d.exit(); code != 0 {
			t.Errorf("%v: exit code %d", sig, code)
		}
		for port, w := range wires {
			bye := lldpdu(t, w.next(fabric.EtherTypeLLDP))
			for bye.TTL != 0 {
				bye = lldpdu(t, w.next(fabric.EtherTypeLLDP))
			}
			if !bytes.Equal(bye.ChassisID.ID, said[port].ChassisID.ID) || !bytes.Equal(bye.PortID.ID, said[port].PortID.ID) || len(bye.Values) != 0 {
				t.Errorf("on %s the goodbye is %+v, want the chassis and port of %+v and nothing else", port, bye, said[port])
			}
			if n := w.waiting(); n != 0 {
				t.Errorf("%d frames came out of %s after the goodbye", n, port)
			}
			w.s.Close()
		}
		if !hasLine(d.stderr(), []string{"stopping"}) {
			t.Errorf("%v: the log has no word of it:\n%s", sig, d.stderr())
		}
	}
	// Its hosts were told nothing: a switch whose daemon stops is no fault.
	s.quiet("i", 0, flap(init1)[1])
	s.quiet("t", 0, notice{target, init1, "active", "none"})
}

// inofctl watch goes on over a restart of the daemon and misses none of its events.
func TestWatchGoesOnOverARestart(t *testing.T) {
	t.Parallel()
	s := newSolo(t, "watch")
	runHere(t, nil, suite.Program(t, "inofctl"), "--socket", s.socket("sw"), "watch").failed(t, "watch without a daemon", "inofd is not running", s.socket("sw"))
	d := s.daemon("")
	s.running()
	w := launchHere(t, suite.Program(t, "inofctl"), "--socket", s.socket("sw"), "watch", "-o", "json")
	text := launchHere(t, suite.Program(t, "inofctl"), "--socket", s.socket("sw"), "watch", "--kind", "fault")
	awaitWatchers(s, d, 2)
	s.stillTells()
	w.says(`"kind":"fault"`, "link-down on port eth1", "has cleared")
	for round, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		s.keptBy("sw", 2)
		d.signal(sig)
		d.exit()
		w.says("inofd went away, waiting for it")
		d = s.daemon("")
		labtest.Eventually(t, "the events of the new daemon", func() error {
			if n := strings.Count(w.stdout(), "is running"); n != round+1 {
				return fmt.Errorf("%d starts are told in\n%s", n, w.stdout())
			}
			return nil
		})
		awaitWatchers(s, d, 2) // the other one, too, is to be there before the next daemon ends
		s.stillTells()
	}
	labtest.Eventually(t, "all faults in the output", func() error {
		if n, m := strings.Count(w.stdout(), "has cleared"), strings.Count(text.stdout(), "has cleared"); n != 3 || m != 3 {
			return fmt.Errorf("%d and %d of 3", n, m)
		}
		return nil
	})
	last := uint64(0)
	for line := range strings.Lines(w.stdout()) {
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID <= last || e.Text == "" {
			t.Errorf("after event %d: %q, %v", last, line, err)
		}
		last = e.ID
	}
	for line := range strings.Lines(text.stdout()) {
		if !strings.Contains(line, "fault") || strings.HasPrefix(line, "{") {
			t.Errorf("--kind fault shows %q", line)
		}
	}
	for _, p := range []*proc{w, text} {
		p.signal(unix.SIGINT)
		if code := p.exit(); code != 0 {
			t.Errorf("watch ended with %d after ^C", code)
		}
	}
	d.terminate()
}

// awaitWatchers waits until n readers have a connection to the daemon's socket.
func awaitWatchers(s *solo, d *proc, n int) {
	s.t.Helper()
	// Whether a connection is in the daemon's namespace or in ours is the kernel's choice.
	tables := []string{"/proc/net/unix", fmt.Sprintf("/proc/%d/net/unix", d.cmd.Process.Pid)}
	labtest.Eventually(s.t, "watch to be connected", func() error {
		got := -1 // the listener
		for _, table := range tables {
			got += strings.Count(readText(table), s.socket("sw"))
		}
		if got < n {
			return fmt.Errorf("%d connections", got)
		}
		return nil
	})
}

// Every show command prints a table, and valid JSON with -o json, on every kind of device.
func TestEveryShowCommandHasATableAndJSON(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "show"})
	s := newSolo(t, "showsolo")
	s.daemon("")
	s.running()
	for _, c := range []struct {
		f    *fab
		node string
		down string // port whose cable is pulled, so that there is something to show
		full []string
	}{
		{f, "spine", "", []string{"status", "host", "zone", "peer", "event"}},
		{f, "tor1", "eth1", []string{"status", "host", "zone", "peer", "event", "port", "lldp", "error-down", "notice"}},
		{s.fab, "sw", "eth1", []string{"status", "host", "zone", "event", "port", "lldp", "error-down", "notice"}},
	} {
		if c.down != "" {
			after := c.f.lastEvent(c.node)
			c.f.fault(c.node, c.down, false)
			c.f.awaitEvent(c.node, after, "fault", "link-down", c.down)
		}
		for _, what := range []string{"host", "zone", "peer", "port", "lldp", "error-down", "notice", "event", "status"} {
			o := c.f.ctl(c.node, "show", what)
			if o.code != 0 || o.stdout == "" || o.stderr != "" {
				t.Errorf("%s: show %s: %+v", c.node, what, o)
			}
			o = c.f.ctl(c.node, "show", what, "-o", "json")
			var v any
			if err := json.Unmarshal([]byte(o.stdout), &v); err != nil || o.code != 0 || o.stderr != "" {
				t.Errorf("%s: show %s -o json: %v: %+v", c.node, what, err, o)
			}
			rows, isList := v.([]any)
			if isList != (what != "status") || v == nil {
				t.Errorf("%s: show %s -o json is %T", c.node, what, v)
			}
			for _, must := range c.full {
				if must == what && isList && len(rows) == 0 {
					t.Errorf("%s: show %s -o json is empty", c.node, what)
				}
			}
		}
	}
}
