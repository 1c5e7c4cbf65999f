package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux/portguard"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// One switch of ours without hard zoning, to which a bridge without inofd is joined.
const forgedLab = `
name: e2e-forged
topology:
  nodes:
    sw: {kind: linux, exec: [ip link add br0 type bridge, ip link set br0 up, ip link set eth1 master br0, ip link set eth2 master br0, ip link set up1 master br0]}
    old: {kind: linux, exec: [ip link add br0 type bridge, ip link set br0 up, ip link set eth1 master br0, ip link set up1 master br0]}
    evil: {kind: linux}
    far: {kind: linux}
    victim: {kind: linux}
  links:
    - endpoints: ["sw:eth1", "evil:eth1"]
    - endpoints: ["sw:eth2", "victim:eth1"]
    - endpoints: ["sw:up1", "old:up1"]
    - endpoints: ["old:eth1", "far:eth1"]
`

// A wireOfAll is all that passes an interface of a node.
type wireOfAll struct {
	*packet.Conn
	t   *testing.T
	mac net.HardwareAddr
}

func (f *fab) everything(node string) *wireOfAll {
	w := &wireOfAll{t: f.t.(*testing.T)}
	if err := f.lab.Do(node, func() error {
		ifi, err := net.InterfaceByName("eth1")
		if err == nil {
			w.mac = ifi.HardwareAddr
			w.Conn, err = packet.Listen(ifi, packet.Raw, unix.ETH_P_ALL, nil)
		}
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { w.Close() })
	return w
}

func (w *wireOfAll) put(frame []byte) {
	w.t.Helper()
	if _, err := w.WriteTo(frame, &packet.Addr{HardwareAddr: net.HardwareAddr(frame[:6])}); err != nil {
		w.t.Fatal(err)
	}
}

// forged counts the LLDP and SNSD frames from others that came in before a mark does.
func (w *wireOfAll) forged(mark string) (n int) {
	w.t.Helper()
	if err := w.SetReadDeadline(time.Now().Add(labtest.Patience)); err != nil {
		w.t.Fatal(err)
	}
	b := make([]byte, 2048)
	for {
		size, _, err := w.ReadFrom(b)
		if err != nil {
			w.t.Fatalf("waiting for the mark %q: %v", mark, err)
		}
		f := b[:size]
		at := 12
		for at+6 <= size && (binary.BigEndian.Uint16(f[at:]) == 0x8100 || binary.BigEndian.Uint16(f[at:]) == 0x88a8) {
			at += 4
		}
		switch et := binary.BigEndian.Uint16(f[at:]); {
		case strings.HasSuffix(string(f), mark):
			return n
		case (et == fabric.EtherTypeLLDP || et == fabric.EtherTypeNTS) && strings.Contains(string(f), "forged"):
			n++
		}
	}
}

// forge sends what no host may send to another one, then the mark.
func (w *wireOfAll) forge(victim net.HardwareAddr, mark string) (sent int) {
	w.t.Helper()
	for _, et := range []uint16{fabric.EtherTypeLLDP, fabric.EtherTypeNTS} {
		for _, dst := range []net.HardwareAddr{{0x01, 0x80, 0xc2, 0, 0, 0}, {0x01, 0x80, 0xc2, 0, 0, 0x0d}, {0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0x01, 0, 0x5e, 0, 0, 1}, victim, {255, 255, 255, 255, 255, 255}} {
			for _, tags := range []string{"", "\x81\x00\x00\x05", "\x88\xa8\x00\x07\x81\x00\x00\x05"} {
				for _, src := range []net.HardwareAddr{w.mac, {2, 0xde, 0xad, 0, 0, 1}} {
					f := append(append(append([]byte{}, dst...), src...), tags...)
					w.put(append(binary.BigEndian.AppendUint16(f, et), fmt.Sprintf("%-60s", "forged")...))
					sent++
				}
			}
		}
	}
	w.put(append(append(append(append([]byte{}, victim...), w.mac...), 0x88, 0xb5), fmt.Sprintf("%60s", mark)...))
	return sent
}

func TestNoForgedFrameReachesAHost(t *testing.T) {
	f := noFabric(t)
	if probe, err := portguard.Open(portguard.Config{}); err != nil {
		netnstest.Require(t, "eBPF", err)
	} else {
		probe.Close()
	}
	f.up(forgedLab)
	evil, far, victim := f.everything("evil"), f.everything("far"), f.everything("victim")
	for name, w := range map[string]*wireOfAll{"a port of the same switch": evil, "another switch": far} {
		sent := w.forge(victim.mac, "before, "+name)
		if n := victim.forged("before, " + name); n < 20 {
			t.Fatalf("%d of %d frames from %s reach the host without inofd: the test shows nothing", n, sent, name)
		}
	}
	pins := filepath.Join(f.dir, "bpf") // a daemon in a lab has mounts of its own
	if err := os.Mkdir(pins, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("bpf", pins, "bpf", 0, ""); err != nil {
		netnstest.Require(t, "a bpf file system", err)
	}
	t.Cleanup(func() { _ = portguard.RemovePins(pins); _ = unix.Unmount(pins, unix.MNT_DETACH) })
	f.write("zones.yaml", "zones: []\n")
	f.write("sw.yaml", fmt.Sprintf(`device: {id: 10.0.0.1, name: sw}
ports: {access: ["eth[1-9]"]}
zones: {file: %s}
hard-zoning: {pins: %s}
state-directory: %s
management: {socket: %s}
`, f.path("zones.yaml"), pins, filepath.Join(f.lab.NodeDir("sw"), "state"), f.socket("sw")))
	daemon := f.launchIn("sw", nil, suite.Program(t, "inofd"), "run", "-c", f.path("sw.yaml"))
	ports := func() map[string]api.Port {
		var list []api.Port
		o := f.ctl("sw", "show", "port", "-o", "json")
		if o.code != 0 || json.Unmarshal([]byte(o.stdout), &list) != nil {
			return nil
		}
		m := map[string]api.Port{}
		for _, p := range list {
			m[p.Name] = p
		}
		return m
	}
	labtest.Eventually(t, "both ports to be guarded", func() error {
		if p := ports(); p["eth1"].Guard == "" || p["eth2"].Guard == "" {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	try := func(when string) {
		for name, w := range map[string]*wireOfAll{"a port of the same switch": evil, "another switch": far} {
			w.forge(victim.mac, when+", "+name)
			if n := victim.forged(when + ", " + name); n > 0 {
				t.Errorf("%s: %d forged frames from %s reach the host", when, n, name)
			}
		}
	}
	try("while the daemon runs")
	f.awaitEvent("sw", 0, "denied", "port eth1", "LLDP or SNSD frames", "were dropped")
	f.awaitEvent("sw", 0, "denied", "port eth2", "LLDP or SNSD frames", "were dropped")
	labtest.Eventually(t, "the frames to be counted", func() error {
		p := ports()
		if a, b := p["eth1"].Forbidden, p["eth2"].Forbidden; a == nil || b == nil || a.In < 50 || b.Out < 20 {
			return fmt.Errorf("%+v and %+v", a, b)
		}
		return nil
	})
	if o := f.ctl("sw", "show", "port", "eth1"); !strings.Contains(o.stdout, "LLDP or SNSD frames from its host to others") {
		t.Errorf("show port says nothing of them:\n%s", o.stdout)
	}
	daemon.signal(unix.SIGKILL)
	daemon.exit()
	try("after the daemon was killed")
}
