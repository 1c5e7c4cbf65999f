package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

const size = 3

// fleet is three inofd processes.
type fleet struct {
	t       testing.TB
	dir     string
	bin     string
	beat    time.Duration
	ca      *labtest.Authority
	session string // settings of the sessions
	running [size]*exec.Cmd
	done    [size]chan struct{}
}

var suite = labtest.New("cluster")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// newFleet starts members that show each other certificates, which a CA issues.
func newFleet(t testing.TB, heartbeat time.Duration) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), beat: heartbeat, bin: suite.Programs(t), ca: labtest.NewAuthority(t, "CA of the cluster"), session: certificates}
	for i := range size {
		if err := os.MkdirAll(f.path(i, ""), 0o700); err != nil {
			t.Fatal(err)
		}
		f.ca.Issue(f.path(i, ""), device(i))
	}
	f.run()
	return f
}

// certificates are the settings of sessions and of the connections between members; %[1]s is the
// directory of a member.
const certificates = "auth: tls, certificate-file: %[1]s/device.pem, key-file: %[1]s/device.key, ca-file: %[1]s/ca.pem"

// run starts all; what they log is shown if the test fails.
func (f *fleet) run() {
	for i := range size {
		f.configure(i)
		f.start(i)
	}
	f.t.Cleanup(func() {
		for i := range size {
			f.end(i, syscall.SIGTERM)
		}
		if f.t.Failed() {
			for i := range size {
				log, _ := os.ReadFile(f.path(i, "log"))
				f.t.Logf("member %d:\n%s", i, log[max(0, len(log)-3000):])
			}
		}
	})
}

// device is the loopback address of a member; the process id keeps runs apart.
func device(i int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>8&63, pid&255, i+1)
}

func (f *fleet) path(i int, name string) string {
	return filepath.Join(f.dir, fmt.Sprintf("m%d", i), name)
}

func (f *fleet) configure(i int) {
	f.t.Helper()
	members := ""
	for j := range size {
		members += fmt.Sprintf("      - {device: %s}\n", device(j))
	}
	text := fmt.Sprintf("device: {id: %s, name: m%d, roles: [reflector], allow-loopback: true}\nsession: {%s}\nstate-directory: %s\nmanagement: {socket: %s}\n"+
		"reflector:\n  cluster:\n    heartbeat: %v\n    election: %v\n    members:\n%s",
		device(i), i, strings.ReplaceAll(f.session, "%[1]s", f.path(i, "")), f.path(i, "state"), f.socket(i), f.beat, f.beat, members)
	if err := os.MkdirAll(f.path(i, "state"), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(i, "inofd.yaml"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) socket(i int) string { return filepath.Join(f.dir, fmt.Sprintf("%d.sock", i)) }

func (f *fleet) start(i int) {
	f.t.Helper()
	log, err := os.OpenFile(f.path(i, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(filepath.Join(f.bin, "inofd"), "run", "-c", f.path(i, "inofd.yaml"))
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = c.Wait(); close(done) }()
	f.running[i], f.done[i] = c, done
}

// end ends a process by a signal and waits for it.
func (f *fleet) end(i int, sig syscall.Signal) {
	if f.running[i] == nil {
		return
	}
	_ = f.running[i].Process.Signal(sig)
	<-f.done[i]
	f.running[i] = nil
}

func (f *fleet) inofctl(i int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(f.bin, "inofctl"), append(args, "--socket", f.socket(i))...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// await repeats until it is so.
func (f *fleet) await(what string, cond func() bool) {
	f.t.Helper()
	labtest.Eventually(f.t, what, func() error {
		if !cond() {
			return errors.New("it is not so yet")
		}
		return nil
	})
}

// view is what a member says of the cluster.
func (f *fleet) view(i int) (c api.Cluster, ok bool) {
	out, err := f.inofctl(i, "show", "cluster", "-o", "json")
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal([]byte(out), &c) == nil
}

// leader waits until all running members accept changes, and gives the leader.
func (f *fleet) leader() (leader int) {
	f.t.Helper()
	f.await("all that run accept zone changes", func() bool {
		for i := range size {
			if f.running[i] == nil {
				continue
			}
			c, ok := f.view(i)
			if !ok || !c.Accepts || c.ID == "" {
				return false
			}
			for j := range size {
				if c.Leader.String() == device(j) {
					leader = j
				}
			}
		}
		return f.running[leader] != nil
	})
	return leader
}

func (f *fleet) addZone(i int, name string) {
	f.t.Helper()
	if out, err := f.inofctl(i, "zone", "add", name, "192.0.2.1"); err != nil {
		f.t.Fatalf("zone %s at member %d: %v\n%s", name, i, err, out)
	}
}

func (f *fleet) hasZone(i int, name string) bool {
	out, err := f.inofctl(i, "show", "zone", name)
	return err == nil && strings.Contains(out, "192.0.2.1")
}

// Zones are changed at any member; the leader is killed and changes go on; a lone
// member refuses them; all are killed and everything is there again; a member that has
// lost its disk comes back through replace.
func TestClusterOfProcesses(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	first := f.leader()
	f.addZone((first+1)%size, "one")
	for i := range size {
		f.await("each member has the zone", func() bool { return f.hasZone(i, "one") })
	}

	f.end(first, syscall.SIGKILL)
	f.addZone((first+1)%size, "two") // waits for the next leader by itself
	second := f.leader()
	if second == first {
		t.Fatal("the leader is the one that was killed")
	}
	f.start(first)
	f.leader()
	f.await("the killed one has caught up", func() bool { return f.hasZone(first, "one") && f.hasZone(first, "two") })

	lone := f.leader()
	for i := range size {
		if i != lone {
			f.end(i, syscall.SIGKILL)
		}
	}
	f.await("the lone member knows that it is alone", func() bool {
		out, _ := f.inofctl(lone, "show", "status")
		return strings.Contains(out, "no majority")
	})
	if out, err := f.inofctl(lone, "zone", "add", "three"); err == nil || !strings.Contains(out, "no zone change is accepted here") {
		t.Errorf("a lone member: %v\n%s", err, out)
	}
	if !f.hasZone(lone, "two") {
		t.Error("a lone member has forgotten its zones")
	}

	f.end(lone, syscall.SIGKILL)
	for i := range size {
		f.start(i)
	}
	f.leader()
	for i := range size {
		if !f.hasZone(i, "one") || !f.hasZone(i, "two") || f.hasZone(i, "three") {
			t.Errorf("member %d has other zones after the restart of all", i)
		}
	}

	wiped := (f.leader() + 1) % size
	f.end(wiped, syscall.SIGKILL)
	if err := os.RemoveAll(f.path(wiped, "state")); err != nil {
		t.Fatal(err)
	}
	f.start(wiped)
	f.await("the wiped member says what to do", func() bool {
		out, _ := f.inofctl(wiped, "show", "status")
		return strings.Contains(out, "replace")
	})
	other := (wiped + 1) % size
	if out, err := f.inofctl(other, "cluster", "replace", device(wiped), device(wiped)+":19517"); err != nil {
		t.Fatalf("replace: %v\n%s", err, out)
	}
	f.await("it has caught up and votes", func() bool {
		c, ok := f.view(wiped)
		votes := 0
		for _, m := range c.Members {
			if m.Voter {
				votes++
			}
		}
		return ok && votes == size && f.hasZone(wiped, "two")
	})
	f.addZone(wiped, "four")
}

// With mutual TLS the members form a cluster, forward changes and elect again; one whose
// certificate is of another CA is heard by nobody, and is told so.
func TestClusterOverTLS(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	first := f.leader()
	f.addZone((first+1)%size, "one")
	for i := range size {
		f.await("each member has the zone", func() bool { return f.hasZone(i, "one") })
	}

	f.end(first, syscall.SIGKILL)
	labtest.NewAuthority(t, "CA of somebody else").Issue(f.path(first, ""), device(first))
	if err := os.WriteFile(f.path(first, "ca.pem"), f.ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	f.addZone((first+1)%size, "two")
	f.start(first)
	f.await("the stranger is refused, and knows that it is alone", func() bool {
		out, _ := f.inofctl(first, "show", "status")
		return strings.Contains(out, "no majority")
	})
	if f.hasZone(first, "two") {
		t.Error("a member with the certificate of another CA was told a change")
	}

	f.end(first, syscall.SIGTERM)
	f.ca.Issue(f.path(first, ""), device(first))
	f.start(first)
	f.await("with a good certificate it has caught up", func() bool { return f.hasZone(first, "two") })
}

// A password makes no cluster: check says so, with the commands that make certificates, and nothing
// starts. A peer that knows only the password of the sessions is hung up on at a member's port, is
// counted, and is named in an event.
func TestAPasswordMakesNoMember(t *testing.T) {
	f := newFleet(t, 300*time.Millisecond)
	f.addZone(f.leader(), "one")
	if err := os.WriteFile(filepath.Join(f.dir, "password"), []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(f.path(0, "inofd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(f.dir, "password.yaml")
	text := strings.Replace(string(good), strings.ReplaceAll(f.session, "%[1]s", f.path(0, "")), "password-file: "+filepath.Join(f.dir, "password"), 1)
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"check", "run"} {
		out, err := exec.Command(filepath.Join(f.bin, "inofd"), command, "-c", bad).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "makes no cluster") || !strings.Contains(string(out), "openssl x509 -req") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	nc, err := net.DialTimeout("tcp", device(0)+":19517", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	hello := append([]byte{0, 82}, "iNOFclus\x02\x02"...) // of the former protocol between members
	if _, err := nc.Write(append(hello, make([]byte, 72)...)); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(nc); bytes.Contains(b, []byte("iNOFclus")) {
		t.Errorf("it is answered: %q", b)
	}
	f.await("the stranger is counted and named", func() bool {
		out, err := f.inofctl(0, "show", "status", "-o", "json")
		_, counted, _ := strings.Cut(out, `"cluster_transport"`)
		counted, _, _ = strings.Cut(counted, "}")
		log, _ := os.ReadFile(f.path(0, "log"))
		return err == nil && strings.Contains(counted, `"handshakes_failed": 1`) &&
			strings.Contains(string(log), "a connection of "+nc.LocalAddr().String()+" to the cluster's port was refused: ")
	})
	for i := range size {
		f.await("each member has the entry in its audit, with who made it and where", func() bool {
			out, err := f.inofctl(i, "audit", "-o", "json")
			return err == nil && strings.Contains(out, "entry of the cluster's log") && strings.Contains(out, `"member": "127.`) && strings.Contains(out, `"name": "one"`)
		})
	}
}

// BenchmarkFailover is the time from the kill -9 of the leader to the next zone
// change that is accepted, at the production heartbeat of 1 s and shorter ones.
func BenchmarkFailover(b *testing.B) {
	for _, beat := range []time.Duration{time.Second, 300 * time.Millisecond} {
		b.Run(fmt.Sprintf("heartbeat=%v", beat), func(b *testing.B) {
			f := newFleet(b, beat)
			f.leader()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				leader := f.leader()
				b.StartTimer()
				began := time.Now()
				f.end(leader, syscall.SIGKILL)
				f.addZone((leader+1)%size, fmt.Sprintf("zone %d", n))
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/last")
				b.StopTimer()
				f.start(leader)
				b.StartTimer()
			}
		})
	}
}
