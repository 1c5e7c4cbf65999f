package dissect

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/labtest"
)

// sniffer is tcpdump at one interface of a node.
type sniffer struct {
	cmd  *testbed.Cmd
	over chan struct{}
	file string
	log  *bytes.Buffer
}

func sniff(t *testing.T, l *testbed.Lab, node, ifname, file string) *sniffer {
	t.Helper()
	s := &sniffer{cmd: l.Command(node, "tcpdump", "-i", ifname, "-U", "-w", file), over: make(chan struct{}), file: file, log: new(bytes.Buffer)}
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.over) }()
	t.Cleanup(s.stop)
	eventually(t, "tcpdump to listen", func() bool { st, err := os.Stat(file); return err == nil && st.Size() > 0 })
	return s
}

func (s *sniffer) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	<-s.over
}

// finds reports whether a filter matches something captured so far. The file may end
// within a packet, of which tshark complains.
func (s *sniffer) finds(filter string) bool {
	c := exec.Command("tshark", "-n", "-X", "lua_script:"+plugin, "-r", s.file, "-Y", filter)
	c.Env = append(os.Environ(), "HOME="+filepath.Dir(s.file))
	out, _ := c.Output()
	return len(out) > 0
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestLiveCapture sniffs on the demo's fabric from its first frame to a pulled cable:
// all that the daemons really say is understood, and nothing is found fault with.
func TestLiveCapture(t *testing.T) {
	requireTshark(t)
	netnstest.Programs(t, "tcpdump")
	labtest.RequireNetns(t)
	topo, err := testbed.LoadFS(labs.FS, labs.Demo)
	if err != nil {
		t.Fatal(err)
	}
	topo.Name = "inof-dissect"
	dir, err := os.MkdirTemp("", "inof-lab") // short: unix sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	l, err := testbed.Up(ctx, topo, testbed.Options{Root: dir, BinDir: suite.Programs(t), NoDaemons: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil { // tcpdump drops its privileges
		t.Fatal(err)
	}
	trace := t.TempDir()
	fabric := sniff(t, l, "tor1", "eth49", filepath.Join(trace, "fabric.pcap"))
	host := sniff(t, l, "i1", "eth1", filepath.Join(trace, "host.pcap"))
	for _, n := range l.Nodes() {
		if err := l.Start(ctx, n, ""); err != nil {
			t.Fatal(err)
		}
	}
	waitFor := func(s *sniffer, filters ...string) {
		t.Helper()
		for _, f := range filters {
			eventually(t, f, func() bool { return s.finds(f) })
		}
	}
	waitFor(host, "snsd.address.ipv4 == 192.0.2.11 && snsd.role == 2", "nts.kind == 3", "nts.kind == 1 && nts.state == 1", "nts.kind == 2 && nts.ack_of")
	waitFor(fabric, "inof.type == 1 && inof.roles.client == 1 && inof.device.ipv4 == 10.0.0.11", "inof.type == 1 && inof.roles.reflector == 1",
		"inof.type == 2 && inof.tag", "inof.type == 4 && ip.src == 10.0.0.1", "inof.zone.name == oltp", "inof.host.op == 1 && inof.host.address.ipv4 == 198.51.100.11")
	if _, err := l.Exec(ctx, "t1", "ip", "link", "set", "eth1", "down"); err != nil {
		t.Fatal(err)
	}
	waitFor(fabric, "inof.down.reason == 1 && inof.down.address.ipv4 == 192.0.2.21 && inof.latency.sent < 1")
	waitFor(host, "nts.subject.ipv4 == 192.0.2.21 && nts.state == 0 && nts.reason == 1")
	fabric.stop()
	host.stop()
	for _, s := range []*sniffer{fabric, host} {
		packets := dissect(t, s.file, "-2")
		messages := 0
		for i := range packets {
			for _, name := range []string{"inof", "nts", "snsd"} {
				for _, n := range packets[i].protos(name) {
					messages++
					if e := append(n.experts(severityError), n.experts(severityWarn)...); len(e) > 0 {
						t.Errorf("%s, packet %d: %s", filepath.Base(s.file), i+1, strings.Join(e, "; "))
					}
				}
			}
		}
		t.Logf("%s: %d packets, %d messages", filepath.Base(s.file), len(packets), messages)
	}
}
