package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The solo lab is one standalone switch with two hosts, t and i, whose daemon the
// test itself starts and ends. The two are in the default zone.
const soloLab = `
name: e2e-NAME
topology:
  kinds:
    inof-host:
      labels: {inof.ttl: 20, inof.interval: 1s}
  nodes:
    sw: {kind: linux}
    t: {kind: inof-host, labels: {inof.address: 192.0.2.21, inof.role: target}}
    i: {kind: inof-host, labels: {inof.address: 192.0.2.11, inof.role: initiator}}
  links:
    - endpoints: ["sw:eth1", "t:eth1"]
    - endpoints: ["sw:eth2", "i:eth1"]
`

// solo is the fabric of one switch.
type solo struct {
	*fab
	state string // state directory
	conf  string // configuration file
}

func newSolo(t *testing.T, name string) *solo {
	t.Helper()
	f := noFabric(t)
	f.up(strings.ReplaceAll(soloLab, "NAME", name))
	s := &solo{fab: f, state: filepath.Join(f.lab.NodeDir("sw"), "state"), conf: f.path("sw.yaml")}
	s.configure(s.conf, s.state, s.socket("sw"))
	return s
}

// configure writes a configuration of the switch.
func (s *solo) configure(file, state, socket string) {
	s.t.Helper()
	s.write(filepath.Base(file), fmt.Sprintf(`device: {id: 10.0.0.1, name: solo}
ports: {access: ["eth[1-9]"]}
lldp: {interval: 1s, ttl: 4s}
state-directory: %s
management: {socket: %s}
`, state, socket))
}

// daemon starts inofd behind a shell command, such as one that mounts something
// where only the daemon sees it; an empty one is none.
func (s *solo) daemon(before string, env ...string) *proc {
	s.t.Helper()
	if before != "" {
		before += " && "
	}
	script := fmt.Sprintf("%sexec %s run -c %s", before, suite.Program(s.t, "inofd"), s.conf)
	return s.launchIn("sw", env, "unshare", "--mount", "sh", "-c", script)
}

// running waits until the daemon answers and both hosts are told of each other.
func (s *solo) running() {
	s.t.Helper()
	s.awaitState("i", init1, target, "active", "none")
	s.awaitState("t", target, init1, "active", "none")
}

// stillTells pulls and plugs the target's cable.
func (s *solo) stillTells() {
	s.t.Helper()
	since := s.mark("i")
	s.fault("sw", "eth1", false)
	s.awaitNotice("i", since, flap(init1)[0])
	s.fault("sw", "eth1", true)
	s.awaitNotice("i", since, flap(init1)[1])
}
