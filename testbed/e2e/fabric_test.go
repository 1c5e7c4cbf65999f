package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/labtest"
)

// The fabric that most tests begin with:
//
//	              spine (reflector, 10.0.0.1)
//	         eth1 /                  \ eth2
//	        eth49/                    \eth49
//	  tor1 (client, 10.0.0.11)     tor2 (client, 10.0.0.12)
//	   eth1         eth2             eth1
//	    |            |                |
//	   t1           i1               i2
//	192.0.2.21   192.0.2.11       192.0.2.12
//
// t1 is a target, i1 and i2 are initiators, all in zone "oltp". Access ports are
// eth1..eth9 of each switch; everything else belongs to somebody else.
const (
	spineID  = "10.0.0.1"
	secondID = "10.0.0.2"
	tor1ID   = "10.0.0.11"
	tor2ID   = "10.0.0.12"
	target   = "192.0.2.21"
	init1    = "192.0.2.11"
	init2    = "192.0.2.12"
)

const (
	goodPassword = "one password for all"
	oltpZone     = "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21]}\n"
)

// spec says what a test adds to the fabric or changes in it.
type spec struct {
	name  string                         // of the lab
	zones string                         // zone file of spine; empty: oltpZone
	nodes string                         // further nodes, YAML, indented by four
	links string                         // further links, YAML, indented by four
	edit  map[string]func(string) string // changes of a node's configuration
	// second says that the clients have two reflectors: the other one is a node of the test's own,
	// r2, at secondID.
	second bool
}

// fab is the fabric of one test.
type fab struct {
	t   testing.TB
	lab *testbed.Lab
	dir string // configurations and passwords

	sessions int // of a client
}

const fabricNodes = `
    spine:
      kind: inof-switch
      startup-config: spine.yaml
      labels: {inof.zones: zones.yaml}
      exec:
        - ip addr add 10.0.0.1/32 dev lo
        - ip addr add 10.1.1.0/31 dev eth1
        - ip addr add 10.1.2.0/31 dev eth2
        - ip route add 10.0.0.11/32 via 10.1.1.1 src 10.0.0.1
        - ip route add 10.0.0.12/32 via 10.1.2.1 src 10.0.0.1
    tor1:
      kind: inof-switch
      startup-config: tor1.yaml
      exec:
        - ip addr add 10.0.0.11/32 dev lo
        - ip addr add 10.1.1.1/31 dev eth49
        - ip route add 10.0.0.1/32 via 10.1.1.0 src 10.0.0.11
    tor2:
      kind: inof-switch
      startup-config: tor2.yaml
      exec:
        - ip addr add 10.0.0.12/32 dev lo
        - ip addr add 10.1.2.1/31 dev eth49
        - ip route add 10.0.0.1/32 via 10.1.2.0 src 10.0.0.12
    t1: {kind: inof-host, labels: {inof.address: 192.0.2.21, inof.role: target, inof.nqn: "nqn.2026-11.org.example:t1"}}
    i1: {kind: inof-host, labels: {inof.address: 192.0.2.11, inof.role: initiator}}
    i2: {kind: inof-host, labels: {inof.address: 192.0.2.12, inof.role: initiator}}
`

const fabricLinks = `
    - endpoints: ["spine:eth1", "tor1:eth49"]
    - endpoints: ["spine:eth2", "tor2:eth49"]
    - endpoints: ["tor1:eth1", "t1:eth1"]
    - endpoints: ["tor1:eth2", "i1:eth1"]
    - endpoints: ["tor2:eth1", "i2:eth1"]
`

const kinds = `
  kinds:
    inof-host:
      labels: {inof.ttl: 20, inof.interval: 1s}
`

// newFabric builds the fabric and waits until every host was told of every other.
func newFabric(t testing.TB, s spec) *fab {
	t.Helper()
	f := noFabric(t)
	if s.second {
		f.sessions = 2
		f.write("r2.yaml", f.commonConfig("r2", secondID, "reflector"))
		f.write("r2.password", goodPassword+"\n")
	}
	if s.zones == "" {
		s.zones = oltpZone
	}
	f.write("zones.yaml", s.zones)
	for _, n := range []string{"spine", "tor1", "tor2"} {
		cfg := f.switchConfig(n)
		if edit := s.edit[n]; edit != nil {
			cfg = edit(cfg)
		}
		f.write(n+".yaml", cfg)
		f.write(n+".password", goodPassword+"\n")
	}
	f.up("name: e2e-" + s.name + "\ntopology:" + kinds + "  nodes:" + fabricNodes + s.nodes + "\n  links:" + fabricLinks + s.links)
	if s.second {
		for i, tor := range []string{"tor1", "tor2"} {
			f.run(tor, "ip", "addr", "add", fmt.Sprintf("10.2.%d.1/31", i+1), "dev", "eth50")
			f.run(tor, "ip", "route", "add", secondID, "via", fmt.Sprintf("10.2.%d.0", i+1), "src", []string{tor1ID, tor2ID}[i])
		}
	}
	f.settled()
	return f
}

// switchConfig is the configuration of one of the three switches.
func (f *fab) switchConfig(node string) string {
	switch node {
	case "tor1":
		return f.clientConfig(node, tor1ID, spineID)
	case "tor2":
		return f.clientConfig(node, tor2ID, spineID)
	}
	return f.commonConfig(node, spineID, "reflector")
}

func (f *fab) clientConfig(node, id, reflector string) string {
	return f.commonConfig(node, id, "client") + fmt.Sprintf(`
ports: {access: ["eth[1-9]"]}
notify: {peers: all} # initiators too, so that fewer hosts do
fence: {hold: 5s} # a port that is plugged again opens sooner
client:
  reflectors: [{address: %s}]
  source: %s
`, reflector, id)
}

func (f *fab) commonConfig(node, id, role string) string {
	return fmt.Sprintf(`device: {id: %s, name: %s, roles: [%s]}
lldp: {interval: 1s, ttl: 4s}
session:
  password-file: %s
  keepalive: 500ms
  hold: 3s
  connect-timeout: 1s
state-directory: ${INOF_NODE_STATE}
management: {socket: "${INOF_NODE_RUN}/inofd.sock"}
log: {level: debug}
`, id, node, role, f.path(node+".password"))
}

// noFabric is for a topology of the test's own: f.write makes the files it names,
// f.up builds it.
func noFabric(t testing.TB) *fab {
	t.Helper()
	labtest.RequireNetns(t)
	return &fab{t: t, dir: t.TempDir()}
}

func (f *fab) up(topology string) {
	f.t.Helper()
	f.write("lab.clab.yml", topology)
	topo, err := testbed.Load(f.path("lab.clab.yml"))
	if err != nil {
		f.t.Fatal(err)
	}
	programs := filepath.Dir(suite.Program(f.t, "inofd")) // building them is not the lab's time
	ctx, cancel := context.WithTimeout(context.Background(), 2*labtest.Patience)
	defer cancel()
	f.lab, err = testbed.Up(ctx, topo, testbed.Options{Root: suite.Root(), BinDir: programs})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(f.down)
}

// down takes the lab away, and shows the daemons' logs of a test that failed.
func (f *fab) down() {
	if f.t.Failed() {
		for _, n := range f.lab.Nodes() {
			if b, err := os.ReadFile(f.logFile(n)); err == nil {
				f.t.Logf("last lines of inofd on %s:\n%s", n, b[max(0, len(b)-4000):])
			}
		}
	}
	f.noRaces()
	if err := f.lab.Down(); err != nil {
		f.t.Error(err)
	}
}

// noRaces looks for reports of the race detector and for panics in everything that
// ran in the lab.
func (f *fab) noRaces() {
	for _, n := range f.lab.Nodes() {
		logs, _ := filepath.Glob(filepath.Join(f.lab.NodeDir(n), "log", "*"))
		for _, name := range logs {
			noRace(f.t, name)
		}
	}
}

func noRace(t testing.TB, file string) {
	text := readText(file)
	for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
		if i := strings.Index(text, bad); i >= 0 {
			t.Errorf("%s: %s", filepath.Base(file), text[i:min(len(text), i+6000)])
		}
	}
}

func (f *fab) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fab) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// overwrite changes a file that a node has in its own directory.
func (f *fab) overwrite(node, name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.lab.NodeDir(node), name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fab) socket(node string) string {
	return filepath.Join(f.lab.NodeDir(node), "run", "inofd.sock")
}

func (f *fab) logFile(node string) string {
	return filepath.Join(f.lab.NodeDir(node), "log", "inofd.log")
}

// settled waits until the sessions are there and every host was told of its peers.
func (f *fab) settled() {
	f.t.Helper()
	for _, n := range []string{"tor1", "tor2"} {
		f.established(n)
	}
	addrs := map[string]string{"i1": init1, "i2": init2, "t1": target}
	for node, host := range addrs {
		for _, subject := range addrs {
			if subject != host {
				f.awaitState(node, host, subject, "active", "")
			}
		}
	}
}

// established waits until a client has its session and knows all its reflector does.
func (f *fab) established(node string) {
	f.t.Helper()
	labtest.Eventually(f.t, node+" to be synchronized", func() error {
		s, err := f.tryStatus(node)
		if err == nil && (!s.Synced || s.Counts.Established != max(1, f.sessions)) {
			err = fmt.Errorf("synced %v, %d sessions, warnings %q", s.Synced, s.Counts.Established, s.Warnings)
		}
		return err
	})
}

// stillTells is the proof that the fabric does its job: t1's cable is pulled and
// plugged back, and both initiators are told, each at its own switch.
func (f *fab) stillTells() {
	f.t.Helper()
	for _, up := range []bool{false, true} {
		since := f.marks("i1", "i2")
		if _, err := f.lab.Fault("tor1", "eth1", up); err != nil {
			f.t.Fatal(err)
		}
		state, reason := "inactive", "link-down"
		if up {
			state, reason = "active", "none"
		}
		for _, h := range []struct{ node, addr string }{{"i1", init1}, {"i2", init2}} {
			f.awaitNotice(h.node, since[h.node], notice{h.addr, target, state, reason})
		}
	}
}

// start starts a node's daemon again; it returns when that is ready.
func (f *fab) start(node string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience)
	defer cancel()
	if err := f.lab.Start(ctx, node, ""); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fab) kill(node string) {
	f.t.Helper()
	if _, err := f.lab.Kill(node, "inofd"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fab) fault(node, port string, up bool) {
	f.t.Helper()
	if _, err := f.lab.Fault(node, port, up); err != nil {
		f.t.Fatal(err)
	}
}

// run runs a program inside a node.
func (f *fab) run(node string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience)
	defer cancel()
	out, err := f.lab.Exec(ctx, node, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(out)
}

// within is the context of one operation.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
