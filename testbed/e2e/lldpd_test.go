package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// plainHost is the address of the host that speaks nothing but ordinary LLDP.
const plainHost = "192.0.2.50"

// lldpd is the LLDP daemon that most Linux hosts run, on eth1 of a node.
type lldpd struct {
	*proc
	f    *fab
	node string
	sock string
}

func startLLDPD(f *fab, node string) *lldpd {
	f.t.Helper()
	dir, err := os.MkdirTemp("", "inof-lldpd")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the daemon drops its privileges
		f.t.Fatal(err)
	}
	d := &lldpd{f: f, node: node, sock: filepath.Join(dir, "socket")}
	d.proc = f.launchIn(node, nil, "lldpd", "-d", "-u", d.sock, "-I", "eth1", "-C", "eth1", "-m", plainHost, "-S", "a plain host")
	return d
}

// ctl runs lldpcli; it retries as long as the daemon does not answer yet.
func (d *lldpd) ctl(args ...string) string {
	d.f.t.Helper()
	var out []byte
	labtest.Eventually(d.f.t, "lldpcli "+strings.Join(args, " "), func() (err error) {
		out, err = d.f.lab.Exec(within(d.f.t, labtest.Patience), d.node, append([]string{"lldpcli", "-u", d.sock}, args...)...)
		return err
	})
	return string(out)
}

// neighbour is what lldpcli shows of one neighbour.
type neighbour struct {
	RID string `json:"rid"`
	// The json0 format makes a list of everything.
	Chassis []struct {
		ID         []idText   `json:"id"`
		Name       []valueOf  `json:"name"`
		Descr      []valueOf  `json:"descr"`
		MgmtIP     []valueOf  `json:"mgmt-ip"`
		Capability []struct { // of the chassis
			Type    string `json:"type"`
			Enabled bool   `json:"enabled"`
		} `json:"capability"`
	} `json:"chassis"`
	Port []struct {
		ID  []idText  `json:"id"`
		TTL []valueOf `json:"ttl"`
	} `json:"port"`
}

type idText struct{ Type, Value string }

type valueOf struct{ Value string }

func (d *lldpd) neighbours() ([]neighbour, error) {
	text := d.ctl("-f", "json0", "show", "neighbors", "details")
	var v struct {
		LLDP []struct {
			Interface []neighbour `json:"interface"`
		} `json:"lldp"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.LLDP) == 0 {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return v.LLDP[0].Interface, nil
}

func newLLDPDFabric(t *testing.T, name string) (*fab, *lldpd) {
	labtest.RequireNetns(t)
	netnstest.Programs(t, "lldpd", "lldpcli")
	f := newFabric(t, spec{
		name:  name,
		nodes: "    plain: {kind: linux, exec: [ip addr add " + plainHost + "/24 dev eth1]}\n",
		links: "    - endpoints: [\"tor1:eth3\", \"plain:eth1\"]\n",
	})
	return f, startLLDPD(f, "plain")
}

// hasPlainHost waits until tor1 knows the plain host, and gives it.
func (f *fab) hasPlainHost() api.Host {
	f.t.Helper()
	var h api.Host
	labtest.Eventually(f.t, "the plain host to be known", func() error {
		hs := f.host("tor1", plainHost)
		if len(hs) != 1 {
			return fmt.Errorf("%d hosts", len(hs))
		}
		h = hs[0]
		return nil
	})
	return h
}

func (f *fab) lacksPlainHost() {
	f.t.Helper()
	for _, n := range []string{"tor1", "spine"} {
		labtest.Eventually(f.t, n+" to forget the plain host", func() error {
			if hs := f.host(n, plainHost); len(hs) != 0 {
				return fmt.Errorf("it is known: %+v", hs)
			}
			return nil
		})
	}
}

func TestAHostThatSpeaksOrdinaryLLDPIsLearned(t *testing.T) {
	t.Parallel()
	f, d := newLLDPDFabric(t, "lldpd")
	labtest.Eventually(t, "the plain host to be in its place", func() error {
		h := f.hasPlainHost()
		if h.Role.String() != "unknown" || h.Port != "eth3" || h.Subscribes || h.State.String() != "active" || !slices.Equal(h.Zones, []string{"default"}) {
			return fmt.Errorf("it is %+v", h)
		}
		return nil
	})
	labtest.Eventually(t, "the reflector to know the plain host", func() error {
		if len(f.host("spine", plainHost)) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	for _, args := range [][]string{{"show", "host", plainHost}, {"show", "lldp", "--port", "eth3"}} {
		if o := f.ctl("tor1", args...); o.code != 0 || !strings.Contains(o.stdout, plainHost) || !strings.Contains(o.stdout, "unknown") {
			t.Errorf("inofctl %s: %+v", strings.Join(args, " "), o)
		}
	}
	var ns []api.Neighbour
	if err := json.Unmarshal([]byte(f.ctl("tor1", "show", "lldp", "--port", "eth3", "-o", "json").stdout), &ns); err != nil || len(ns) != 1 {
		t.Fatalf("neighbours %+v, %v", ns, err)
	}
	if n := ns[0]; n.SysDesc != "a plain host" || n.SysName != "plain" || n.TTL != 120 || !n.Confirmed || fmt.Sprint(n.Addresses) != "["+plainHost+"]" {
		t.Errorf("neighbour %+v", n)
	}
	f.showsTheSwitch(d)
	f.stillTells()
	// SIGTERM: lldpd says goodbye, long before its 120 s are over.
	d.signal(unix.SIGTERM)
	f.lacksPlainHost()
	if n := f.counter("tor1", "lldp.shutdowns"); n == 0 {
		t.Error("no shutdown LLDPDU is counted")
	}
	if n := f.counter("tor1", "lldp.ageouts"); n != 0 {
		t.Errorf("%d neighbours aged out", n)
	}
	f.stillTells()
}

// showsTheSwitch checks what lldpd read from our LLDPDUs.
func (f *fab) showsTheSwitch(d *lldpd) {
	f.t.Helper()
	var n neighbour
	labtest.Eventually(f.t, "lldpd to know the switch", func() error {
		ns, err := d.neighbours()
		if err == nil && len(ns) != 1 {
			err = fmt.Errorf("%d neighbours", len(ns))
		}
		if err == nil {
			n = ns[0]
		}
		return err
	})
	if len(n.Chassis) != 1 || len(n.Port) != 1 || len(n.Chassis[0].MgmtIP) == 0 {
		f.t.Fatalf("lldpd shows %+v", n)
	}
	c, p := n.Chassis[0], n.Port[0]
	mac := strings.TrimSpace(f.run("tor1", "cat", "/sys/class/net/eth1/address"))
	if len(c.ID) != 1 || c.ID[0] != (idText{"mac", mac}) {
		f.t.Errorf("chassis %+v, want the MAC %s of the first port", c.ID, mac)
	}
	if len(p.ID) != 1 || p.ID[0] != (idText{"ifname", "eth3"}) || len(p.TTL) != 1 || p.TTL[0].Value != "4" {
		f.t.Errorf("port %+v, want eth3 with a time to live of 4 s", p)
	}
	if c.Name[0].Value != "tor1" || !strings.HasPrefix(c.Descr[0].Value, "inofd ") || c.MgmtIP[0].Value != tor1ID {
		f.t.Errorf("chassis %+v, want tor1, inofd, %s", c, tor1ID)
	}
	caps := map[string]bool{}
	for _, k := range c.Capability {
		caps[k.Type] = k.Enabled
	}
	if !caps["Bridge"] || !caps["Router"] {
		f.t.Errorf("capabilities %v, want bridge and router", caps)
	}
}

// A host that falls silent is forgotten when its time to live is over, and not before.
func TestAPlainHostThatFallsSilentAgesOut(t *testing.T) {
	t.Parallel()
	f, d := newLLDPDFabric(t, "lldpd-silent")
	// lldpd begins paused, and a change of its configuration writes back whether it
	// was: not before it has spoken.
	f.hasPlainHost()
	d.ctl("configure", "lldp", "tx-interval", "1")
	d.ctl("configure", "lldp", "tx-hold", "6") // on a busy machine it may be late by seconds
	labtest.Eventually(t, "the new time to live", func() error {
		ns := f.neighbours("tor1", "eth3")
		if len(ns) != 1 || ns[0].TTL != 6 {
			return fmt.Errorf("%+v", ns)
		}
		return nil
	})
	d.ctl("pause")
	after := f.lastEvent("tor1")
	gone := f.awaitEvent("tor1", after, "host", plainHost, "aged-out")
	f.lacksPlainHost()
	if n := f.counter("tor1", "lldp.ageouts"); n != 1 {
		t.Errorf("%d neighbours aged out, want 1", n)
	}
	f.stillTells()
	d.ctl("resume")
	if h := f.hasPlainHost(); !h.Since.After(gone.Time) {
		t.Errorf("the host is back since %v, but it left at %v", h.Since, gone.Time)
	}
	// The switch that stops says goodbye too: lldpd forgets it at once.
	if err := f.lab.Stop("tor1", "inofd", labtest.Patience); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, "lldpd to forget the switch", func() error {
		ns, err := d.neighbours()
		if err == nil && len(ns) != 0 {
			err = fmt.Errorf("it knows %+v", ns)
		}
		return err
	})
}

// neighbours are a node's LLDP neighbours on one port.
func (f *fab) neighbours(node, port string) []api.Neighbour {
	f.t.Helper()
	ns, err := ask(f, node, neighboursOf)
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(ns, func(n api.Neighbour) bool { return n.Port != port })
}
