package testbed

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/snsd"
)

// standaloneLab is one switch that serves its own hosts, without a reflector.
const standaloneLab = `
name: alone
topology:
  nodes:
    sw: {kind: inof-switch, startup-config: sw.yaml}
    h1: {kind: inof-host, labels: {inof.address: 192.0.2.11, inof.role: target, inof.ttl: 5, inof.interval: 1s}}
    peer: {kind: linux, exec: [ip addr add 192.0.2.50/24 dev eth1]}
  links:
    - endpoints: ["sw:eth1", "h1:eth1"]
    - endpoints: ["sw:eth2", "peer:eth1"]
`

const standaloneConfig = `
device: {id: 10.0.0.1, name: switch-alone}
ports: {access: ["eth*"]}
state-directory: ${INOF_NODE_STATE}
management: {socket: "${INOF_NODE_RUN}/inofd.sock"}
`

func standalone(t *testing.T) (*Lab, *api.Client) {
	t.Helper()
	requireNetns(t)
	dir := testRoot(t)
	if err := os.WriteFile(filepath.Join(dir, "sw.yaml"), []byte(standaloneConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	l := mustUp(t, mustParse(t, standaloneLab, dir), Options{Root: testRoot(t), BinDir: programs(t)})
	c := api.NewClient(filepath.Join(l.NodeDir("sw"), "run", "inofd.sock"))
	t.Cleanup(c.Close)
	return l, c
}

// lldpd is the LLDP daemon that most Linux hosts run: a host that speaks nothing
// but ordinary LLDP is learned by its management address, and it learns the switch.
func TestLLDPDAndTheSwitchLearnEachOther(t *testing.T) {
	netnstest.Programs(t, "lldpd", "lldpcli")
	l, c := standalone(t)
	ctx := context.Background()
	if err := os.Chmod(filepath.Dir(l.Dir), 0o755); err != nil { // lldpd drops its privileges
		t.Fatal(err)
	}
	sock := filepath.Join(l.NodeDir("peer"), "run", "lldpd.sock")
	d := l.Command("peer", "lldpd", "-d", "-u", sock, "-I", "eth1", "-C", "eth1", "-m", "192.0.2.50", "-S", "a plain host")
	log, err := os.Create(filepath.Join(l.NodeDir("peer"), "log", "lldpd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.Stdout, d.Stderr = log, log
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { _ = d.Wait(); close(over) }()
	t.Cleanup(func() { _ = d.Process.Kill(); <-over })
	defer func() {
		if t.Failed() {
			t.Logf("lldpd says: %s", tail(log.Name()))
		}
	}()

	want := netip.MustParseAddr("192.0.2.50")
	eventually(t, "the plain host to be known", func() bool {
		hs, err := api.Ask[[]api.Host](ctx, c, "hosts", api.Where("addr", want.String()))
		return err == nil && len(hs) == 1 && hs[0].Role == snsd.RoleUnknown && hs[0].Port == "eth2" && hs[0].State == snsd.Active
	})
	ns, err := api.Ask[[]api.Neighbour](ctx, c, "lldp", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, n := range ns {
		found = found || n.Port == "eth2" && n.SysDesc == "a plain host" && n.SysName != ""
	}
	if !found {
		t.Errorf("neighbours %+v lack the plain host", ns)
	}
	eventually(t, "lldpd to know the switch", func() bool {
		out, err := l.Exec(ctx, "peer", "lldpcli", "-u", sock, "-f", "json", "show", "neighbors")
		var v any
		return err == nil && json.Unmarshal(out, &v) == nil && strings.Contains(string(out), `"switch-alone"`) && strings.Contains(string(out), `"10.0.0.1"`)
	})
}

// A standalone switch tells its own hosts of each other without any session.
func TestAStandaloneSwitchServesItsHosts(t *testing.T) {
	_, c := standalone(t)
	eventually(t, "the host to be known", func() bool {
		hs, err := api.Ask[[]api.Host](context.Background(), c, "hosts", api.Where("addr", netip.MustParseAddr("192.0.2.11").String()))
		return err == nil && len(hs) == 1 && hs[0].Role == snsd.RoleTarget && hs[0].Type == api.Local
	})
}
