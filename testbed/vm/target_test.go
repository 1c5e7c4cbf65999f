package vm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/agentlog"
	"github.com/openinof/inof/testbed/labtest"
)

// targetLab has a machine that is an array, and a host, h1, that is told of it.
const targetLab = `
name: target
topology:
  nodes:
    sw: {kind: inof-switch, startup-config: sw.yaml}
    h1: {kind: inof-host, labels: {inof.address: 192.0.2.31, inof.role: initiator, inof.interval: 1s, inof.ttl: 4}}
    i1: {kind: vm, exec: [ip addr add 192.0.2.11/24 dev eth1]}
  links:
    - endpoints: ["sw:eth1", "h1:eth1"]
    - endpoints: ["sw:eth2", "i1:eth1"]
`

// The lives of the registration are long: what is withdrawn within a test was not left to age.
const targetConfig = "target: {nvmet: true, interfaces: [eth1]}\nconnect: {enabled: false}\nsocket: /run/snsd/snsd.sock\n"

// arrayTools make subsystems of the kernel's own target, and its port.
const arrayTools = `C=/sys/kernel/config/nvmet
subsystem() { mkdir $C/subsystems/$1; echo 1 >$C/subsystems/$1/attr_allow_any_host; }
port() { mkdir $C/ports/1; echo tcp >$C/ports/1/addr_trtype; echo ipv4 >$C/ports/1/addr_adrfam; echo 192.0.2.11 >$C/ports/1/addr_traddr; echo 4420 >$C/ports/1/addr_trsvcid; }
serve() { ln -s $C/subsystems/$1 $C/ports/1/subsystems/; }
end() { rm $C/ports/1/subsystems/$1; }
`

// What the kernel's own target serves is registered, as it comes, changes and goes; and a host has
// left when an array that is shut down in order ends its agent, before it ends its service.
func TestWhatTheKernelServesIsRegistered(t *testing.T) {
	f := up(t, targetLab)
	if err := os.WriteFile(filepath.Join(f.NodeDir("i1"), "share", "snsd.yaml"), []byte(targetConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(script string) { t.Helper(); f.in("set -e; . /run/tools; " + script) }
	f.in("modprobe -a nvmet-tcp nvme-tcp; mkdir -p /etc/nvme; cat >/run/tools <<'END'\n" + arrayTools + "END\n. /run/tools; subsystem nqn.a; subsystem nqn.b; port\n" +
		"/lab/bin/snsd run -c /lab/node/snsd.yaml --existing '' >/lab/node/snsd.out 2>&1 </dev/null & echo $! >/run/pid")
	registered := func(nqn string) {
		t.Helper()
		labtest.Eventually(t, fmt.Sprintf("a target with the subsystem %q", nqn), func() error {
			hs, err := api.Ask[[]api.Host](context.Background(), f.api, "hosts", api.Where("addr", initiator.String()))
			if err != nil || len(hs) != 1 || hs[0].State != snsd.Active || hs[0].Role != snsd.RoleTarget || hs[0].Protocol != snsd.ProtocolTCP || hs[0].ServicePort != 4420 || hs[0].NQN != nqn {
				return fmt.Errorf("%+v, %w", hs, err)
			}
			return nil
		})
	}
	gone := func() {
		t.Helper()
		began := time.Now()
		f.knownAt(snsd.Active)
		if took := time.Since(began); took > snsd.DefaultRegisterTTL*time.Second/2 {
			t.Errorf("it took %v: the registration aged out", took)
		}
	}
	gone() // a port without subsystems does not listen
	do("serve nqn.a")
	registered("nqn.a")
	do("serve nqn.b") // which of the two is for discovery to say
	registered("")
	do("end nqn.a")
	registered("nqn.b")
	do("end nqn.b")
	gone()
	do("serve nqn.a")
	registered("nqn.a")

	var log agentlog.Follower
	defer log.Close()
	h1, err := f.Process("h1", "snsd-eth1")
	if err != nil {
		t.Fatal(err)
	}
	log.Add("h1", h1.Output)
	var last agentlog.Line
	read := func() error {
		return log.Read(func(_ string, l agentlog.Line) {
			if l.Event == "notice" && l.Subject == initiator {
				last = l
			}
		})
	}
	labtest.Eventually(t, "the host to be told of the array", func() error {
		if err := read(); err != nil || last.State != "active" {
			return errors.Join(err, fmt.Errorf("%+v", last))
		}
		return nil
	})
	f.in("kill $(cat /run/pid); while kill -0 $(cat /run/pid) 2>/dev/null; do sleep 0.1; done")
	ended := time.Now()
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if last.State != "inactive" || last.Reason != "aged-out" {
		t.Fatalf("the agent has ended, and the host was last told %+v", last)
	}
	if before := ended.Sub(last.Time); before < time.Second {
		t.Errorf("the host was told %v before the agent ended, want a second at least to leave", before)
	}
}
