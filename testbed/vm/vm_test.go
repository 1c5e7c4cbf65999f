package vm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/vm"
)

var suite = labtest.New("vm")

func TestMain(m *testing.M) {
	os.Setenv("CGO_ENABLED", "0") // the machine has no C library
	vm.UseImage("../../out/vm")
	os.Exit(suite.Main(m))
}

// lab is a switch that is alone, with a host that is a namespace, t1, and one that is a
// machine, i1; p is at the machine's second card.
const lab = `
name: vm
topology:
  nodes:
    sw: {kind: inof-switch, startup-config: sw.yaml}
    t1: {kind: inof-host, labels: {inof.address: 192.0.2.21, inof.role: target, inof.interval: 1s, inof.ttl: 4}}
    i1:
      kind: vm
      exec:
        - ip addr add 192.0.2.11/24 dev eth1
        - ip addr add 198.51.100.11/24 dev eth2
        - sh -c '/lab/bin/snsd --interface eth1 --address 192.0.2.11 --role initiator --interval 1s --ttl 4 --output json >>/lab/node/snsd.out 2>&1 &'
    p: {kind: linux, exec: [ip addr add 198.51.100.50/24 dev eth1]}
  links:
    - endpoints: ["sw:eth1", "t1:eth1"]
    - endpoints: ["sw:eth2", "i1:eth1"]
    - endpoints: ["i1:eth2", "p:eth1"]
`

const switchConfig = `
device: {id: 10.0.0.1, name: sw}
ports: {access: ["eth*"]}
state-directory: ${INOF_NODE_STATE}
management: {socket: "${INOF_NODE_RUN}/inofd.sock"}
`

var initiator = netip.MustParseAddr("192.0.2.11")

// fixture is the lab that is up.
type fixture struct {
	*testbed.Lab
	t   *testing.T
	api *api.Client
}

func up(t *testing.T, lab string) *fixture {
	t.Helper()
	labtest.RequireNetns(t)
	netnstest.Programs(t, "qemu-system-x86_64")
	_, err := vm.Image()
	netnstest.Require(t, "virtual machines", err)
	dir := t.TempDir()
	for name, text := range map[string]string{"vm.clab.yml": lab, "sw.yaml": switchConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	topo, err := testbed.Load(filepath.Join(dir, "vm.clab.yml"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	began := time.Now()
	l, err := testbed.Up(ctx, topo, testbed.Options{Root: suite.Root(), BinDir: suite.Programs(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %v", time.Since(began))
	f := &fixture{Lab: l, t: t, api: api.NewClient(l.Socket("sw"))}
	t.Cleanup(func() {
		f.api.Close()
		if t.Failed() {
			for _, file := range []string{"i1/log/vm.out", "i1/log/vm.log", "i1/share/snsd.out"} {
				b, _ := os.ReadFile(filepath.Join(l.Dir, "nodes", file))
				t.Logf("%s:\n%s", file, b)
			}
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// in runs a shell line in the machine.
func (f *fixture) in(line string) string {
	f.t.Helper()
	out, err := f.Exec(context.Background(), "i1", "sh", "-c", line)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// carrier waits until a card of the machine has carrier, or has none.
func (f *fixture) carrier(card, want string) {
	f.t.Helper()
	labtest.Eventually(f.t, "carrier "+want+" in the machine", func() error {
		if got := f.in("cat /sys/class/net/" + card + "/carrier"); got != want {
			return errors.New("carrier " + got)
		}
		return nil
	})
}

// known waits until the switch takes the machine for active, or not.
func (f *fixture) known(want snsd.State) { f.t.Helper(); f.knownAt(want, "eth2") }

// knownAt is known of one that is behind several ports.
func (f *fixture) knownAt(want snsd.State, ports ...string) {
	f.t.Helper()
	f.addressAt(initiator, want, ports...)
}

// addressAt is knownAt of any address.
func (f *fixture) addressAt(addr netip.Addr, want snsd.State, ports ...string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("the switch to know %v as %v at %v", addr, want, ports), func() error {
		hs, err := api.Ask[[]api.Host](context.Background(), f.api, "hosts", api.Where("addr", addr.String()))
		var at []string
		for _, h := range hs {
			if h.State == want {
				at = append(at, h.Port)
			}
		}
		slices.Sort(at)
		if err != nil || !slices.Equal(at, ports) {
			return fmt.Errorf("%+v, %w", hs, err)
		}
		return nil
	})
}

// told waits until the agent in the machine printed n lines with all words.
func (f *fixture) told(n int, words ...string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%d notices with %q", n, words), func() error {
		b, err := os.ReadFile(filepath.Join(f.NodeDir("i1"), "share", "snsd.out"))
		got := 0
		for line := range strings.Lines(string(b)) {
			has := 0
			for _, w := range words {
				if strings.Contains(line, w) {
					has++
				}
			}
			if has == len(words) {
				got++
			}
		}
		if got < n {
			return fmt.Errorf("%d, %w: %s", got, err, b)
		}
		return nil
	})
}

// A machine is a node like any other: it registers at the switch and is told what
// happens, its cables can be pulled, it is ended and started.
func TestAVirtualMachineIsANodeOfALab(t *testing.T) {
	f := up(t, lab)
	own, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if s := f.in("uname -r"); s == strings.TrimSpace(string(own)) || s == "" {
		t.Errorf("the machine's kernel is %q", s)
	}
	if s := f.in("hostname; modprobe -a nvme-tcp nvmet-tcp && ls -d /sys/module/nvme_tcp /dev/nvme-fabrics"); s != "i1\n/dev/nvme-fabrics\n/sys/module/nvme_tcp" {
		t.Errorf("it has %q", s)
	}
	if _, err := f.Exec(context.Background(), "i1", "sh", "-c", "echo it is false; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: it is false") {
		t.Errorf("a command that fails: %v", err)
	}

	// The fabric.
	f.known(snsd.Active)
	f.told(1, "192.0.2.21", `"active"`)
	if _, err := f.Fault("t1", "eth1", false); err != nil {
		t.Fatal(err)
	}
	f.told(1, "192.0.2.21", `"inactive"`)
	if _, err := f.Fault("t1", "eth1", true); err != nil {
		t.Fatal(err)
	}
	f.told(2, "192.0.2.21", `"active"`)

	// Its cable is pulled, or the switch shuts the port: both ends see it.
	f.carrier("eth1", "1")
	if _, err := f.Fault("sw", "eth2", false); err != nil {
		t.Fatal(err)
	}
	f.carrier("eth1", "0")
	f.carrier("eth2", "1")
	f.known(snsd.Inactive)
	if _, err := f.Fault("sw", "eth2", true); err != nil {
		t.Fatal(err)
	}
	f.carrier("eth1", "1")
	f.known(snsd.Active)
	if _, err := f.Exec(context.Background(), "sw", "ip", "link", "set", "eth2", "down"); err != nil {
		t.Fatal(err)
	}
	f.carrier("eth1", "0")
	if _, err := f.Exec(context.Background(), "sw", "ip", "link", "set", "eth2", "up"); err != nil {
		t.Fatal(err)
	}
	f.carrier("eth1", "1")

	f.echo()

	// Power fails, and comes back.
	if err := f.Stop("i1", "vm", 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if out, err := f.Exec(context.Background(), "i1", "true"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("a machine that is off: %q, %v", out, err)
	}
	labtest.Eventually(t, "the switch to forget the machine", func() error {
		hs, err := api.Ask[[]api.Host](context.Background(), f.api, "hosts", api.Where("addr", initiator.String()))
		if err == nil && len(hs) == 1 && hs[0].State == snsd.Active {
			return fmt.Errorf("%+v", hs)
		}
		return nil
	})
	if err := f.Start(context.Background(), "i1", ""); err != nil {
		t.Fatal(err)
	}
	f.known(snsd.Active)
}

// echo sends bytes by TCP to the machine and back, many segments each way, between two
// kernels that would both like their cards to do the checksums.
func (f *fixture) echo() {
	f.t.Helper()
	f.in("nc -l -p 7 -e cat >/dev/null 2>&1 &")
	sent := bytes.Repeat([]byte("there and back "), 40_000)
	err := f.Do("p", func() error {
		conn, err := net.DialTimeout("tcp", "198.51.100.11:7", labtest.Patience)
		for end := time.Now().Add(labtest.Patience); errors.Is(err, unix.ECONNREFUSED) && time.Now().Before(end); labtest.Tick() { // nc does not listen yet
			conn, err = net.DialTimeout("tcp", "198.51.100.11:7", labtest.Patience)
		}
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(labtest.Patience)); err != nil {
			return err
		}
		go func() { _, _ = conn.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil {
			return err
		}
		if !bytes.Equal(got, sent) {
			return errors.New("other bytes came back")
		}
		return nil
	})
	if err != nil {
		f.t.Errorf("TCP to the machine: %v", err)
	}
}
