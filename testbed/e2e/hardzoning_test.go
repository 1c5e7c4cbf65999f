package e2e

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/fabric/linux/zonefilter"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// The apart lab is one switch with a bridge or routes between two initiators and two targets.
const apartLab = `
name: e2e-NAME
topology:
  kinds:
    inof-host:
      labels: {inof.ttl: 4, inof.interval: 1s}
  nodes:
    sw:
      kind: linux
      sysctls: {net.ipv4.ip_forward: "1"}
      exec: [SWITCH]
    i1: {kind: inof-host, labels: {inof.address: IP1, inof.role: initiator}, exec: [HOST1]}
    i2: {kind: inof-host, labels: {inof.address: IP2, inof.role: initiator}, exec: [HOST2]}
    t1: {kind: inof-host, labels: {inof.address: IP3, inof.role: target}, exec: [HOST3]}
    t2: {kind: inof-host, labels: {inof.address: IP4, inof.role: target}, exec: [HOST4]}
  links:
    - endpoints: ["sw:eth1", "i1:eth1"]
    - endpoints: ["sw:eth2", "i2:eth1"]
    - endpoints: ["sw:eth3", "t1:eth1"]
    - endpoints: ["sw:eth4", "t2:eth1"]
`

// apart is a lab in which zones are enforced.
type apart struct {
	*fab
	hosts []string
	addr  map[string]netip.Addr
	pins  string
	conf  string
	proc  *proc

	mu     sync.Mutex
	sent   map[way]uint64
	got    map[way]uint64
	may    map[way]bool
	closed map[way]time.Time // since when none may pass
	leaks  []string
	stop   chan struct{}
	done   sync.WaitGroup
}

// way is from one host to another.
type way struct{ from, to string }

const storagePort = 4420

func newApart(t *testing.T, name string, routed bool) *apart {
	f := noFabric(t)
	a := &apart{fab: f, hosts: []string{"i1", "i2", "t1", "t2"}, addr: map[string]netip.Addr{}, sent: map[way]uint64{}, got: map[way]uint64{},
		may: map[way]bool{}, closed: map[way]time.Time{}, stop: make(chan struct{})}
	if probe, err := zonefilter.Open(hardzone.Config{MaxPairs: 1024}); err != nil {
		netnstest.Require(t, "eBPF", err)
	} else {
		probe.Close()
	}
	text := strings.ReplaceAll(apartLab, "NAME", name)
	sw := []string{"ip link add br0 type bridge", "ip link set br0 up"}
	if routed {
		sw = nil
	}
	for i, h := range a.hosts {
		n := i + 1
		addr, host := fmt.Sprintf("192.0.2.%d", n), fmt.Sprintf("ip addr add 192.0.2.%d/24 dev eth1", n)
		port := []string{fmt.Sprintf("ip link set eth%d master br0", n)}
		if routed {
			addr = fmt.Sprintf("192.0.%d.1", n)
			host = fmt.Sprintf("ip addr add %s/24 dev eth1, ip route add 192.0.0.0/16 via 192.0.%d.254", addr, n)
			port = []string{fmt.Sprintf("ip addr add 192.0.%d.254/24 dev eth%d", n, n)}
		}
		sw = append(sw, port...)
		a.addr[h] = netip.MustParseAddr(addr)
		text = strings.ReplaceAll(text, fmt.Sprintf("IP%d", n), addr)
		text = strings.ReplaceAll(text, fmt.Sprintf("HOST%d", n), host)
	}
	f.up(strings.ReplaceAll(text, "SWITCH", strings.Join(sw, ", ")))
	a.pins = filepath.Join(f.dir, "bpf") // a daemon in a lab has mounts of its own
	if err := errors.Join(os.Mkdir(a.pins, 0o700), unix.Mount("bpf", a.pins, "bpf", 0, "")); err != nil {
		netnstest.Require(t, "a bpf file system", err)
	}
	state := filepath.Join(f.lab.NodeDir("sw"), "state")
	f.write("zones.yaml", fmt.Sprintf("zones: [{name: a, members: [%s, %s]}, {name: b, members: [%s, %s]}]\n", a.addr["i1"], a.addr["t1"], a.addr["i2"], a.addr["t2"]))
	f.write("sw.yaml", fmt.Sprintf(`device: {id: 10.0.0.1, name: sw}
ports: {access: ["eth[1-9]"]}
lldp: {interval: 1s, ttl: 4s}
zones: {file: %s, hard-zoning: true, default-zone-auto-join: false}
hard-zoning: {pins: %s, close-after: 500ms}
state-directory: %s
management: {socket: %s}
`, f.path("zones.yaml"), a.pins, state, f.socket("sw")))
	a.conf = f.path("sw.yaml")
	t.Cleanup(func() { _ = bpfpins.Remove(a.pins); _ = unix.Unmount(a.pins, unix.MNT_DETACH) })
	for _, x := range a.hosts {
		for _, y := range a.hosts {
			a.may[way{x, y}] = x == y || x[1] == y[1]
		}
	}
	return a
}

func (a *apart) daemon() {
	a.proc = a.launchIn("sw", nil, suite.Program(a.t, "inofd"), "run", "-c", a.conf)
}

// show asks how the switch enforces zones.
func (a *apart) show() (h api.HardZoning, err error) {
	o := a.ctl("sw", "hard-zoning", "show", "-o", "json")
	if o.code != 0 {
		return h, fmt.Errorf("inofctl: %s", o.stderr)
	}
	return h, json.Unmarshal([]byte(o.stdout), &h)
}

func (a *apart) normal() {
	a.t.Helper()
	labtest.Eventually(a.t, "hard zoning to be normal with four filters", func() error {
		h, err := a.show()
		if err != nil {
			return err
		}
		n := 0
		for _, p := range h.Ports {
			if p.Attach == "native" {
				n++
			}
		}
		if h.State != api.HardNormal || n != 4 || h.Local != 4 {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
}

// talk has every host send to every other one, and counts what arrives where.
func (a *apart) talk() {
	for _, to := range a.hosts {
		a.done.Go(func() { a.capture(to) })
	}
	for _, from := range a.hosts {
		var c *net.UDPConn
		a.in(from, func() (err error) {
			c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: storagePort})
			return err
		})
		a.done.Go(func() { <-a.stop; c.Close() })
		a.done.Go(func() {
			tick := time.NewTicker(4 * time.Millisecond)
			defer tick.Stop()
			for n := uint64(0); ; n++ {
				select {
				case <-a.stop:
					return
				case <-tick.C:
				}
				for _, to := range a.hosts {
					if from == to {
						continue
					}
					b := binary.BigEndian.AppendUint64(nil, n)
					if _, err := c.WriteToUDPAddrPort(b, netip.AddrPortFrom(a.addr[to], storagePort)); err == nil {
						a.mu.Lock()
						a.sent[way{from, to}]++
						a.mu.Unlock()
					}
				}
			}
		})
	}
}

func (a *apart) in(node string, fn func() error) {
	a.t.Helper()
	if err := a.lab.Do(node, fn); err != nil {
		a.t.Fatal(err)
	}
}

// capture reads every IP frame that the switch forwards to a host, addressed to it or not.
func (a *apart) capture(at string) {
	var c *packet.Conn
	if err := a.lab.Do(at, func() error {
		ifi, err := net.InterfaceByName("eth1")
		if err == nil {
			c, err = packet.Listen(ifi, packet.Raw, unix.ETH_P_IP, nil)
		}
		return err
	}); err != nil {
		a.t.Error(err)
		return
	}
	a.done.Go(func() { <-a.stop; c.Close() })
	names := map[netip.Addr]string{}
	for h, addr := range a.addr {
		names[addr] = h
	}
	b := make([]byte, 2048)
	for {
		n, _, err := c.ReadFrom(b)
		if errors.Is(err, unix.ENETDOWN) { // said once when the link goes
			continue
		}
		if err != nil {
			return
		}
		if n < 34 {
			continue
		}
		src, dst := netip.AddrFrom4([4]byte(b[26:30])), netip.AddrFrom4([4]byte(b[30:34]))
		w := way{names[src], names[dst]}
		if w.from == "" || w.to == "" {
			continue
		}
		now := time.Now()
		a.mu.Lock()
		if w.to == at && b[23] == unix.IPPROTO_UDP {
			a.got[w]++
		}
		if since := a.closed[w]; !since.IsZero() && now.After(since) && len(a.leaks) < 10 {
			a.leaks = append(a.leaks, fmt.Sprintf("%s got a frame from %s to %s, %s after that was closed", at, w.from, w.to, now.Sub(since)))
		}
		a.mu.Unlock()
	}
}

// judge waits until everybody reaches those whom he may reach, and sees that nobody reaches others.
func (a *apart) judge(what string) {
	a.t.Helper()
	a.mu.Lock()
	start := map[way]uint64{}
	for w, may := range a.may {
		start[w] = a.got[w]
		if !may && a.closed[w].IsZero() {
			a.closed[w] = time.Now()
		}
	}
	a.mu.Unlock()
	labtest.Eventually(a.t, what+": frames to pass between those who may talk", func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		for w, may := range a.may {
			if w.from != w.to && may && a.got[w] < start[w]+20 {
				return fmt.Errorf("%v: %d frames", w, a.got[w]-start[w])
			}
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.leaks {
		a.t.Errorf("%s: %s", what, l)
	}
	a.leaks = nil
}

// allow changes who may reach whom, in both directions; what is closed counts as closed from
// the moment on at which the switch says so.
func (a *apart) allow(x, y string, may bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range []way{{x, y}, {y, x}} {
		a.may[w] = may
		delete(a.closed, w)
	}
}

// kernel waits until the kernel passes frames between two hosts, or drops them.
func (a *apart) kernel(x, y string, open bool) {
	a.t.Helper()
	want := api.HardKernelDrops
	if open {
		want = api.HardKernelPasses
	}
	labtest.Eventually(a.t, fmt.Sprintf("the kernel to say %s of %s and %s", want, x, y), func() error {
		o := a.ctl("sw", "why", a.addr[x].String(), a.addr[y].String(), "-o", "json")
		var w api.Why
		if err := json.Unmarshal([]byte(o.stdout), &w); err != nil {
			return fmt.Errorf("%w: %s", err, o.stderr)
		}
		if w.Hard == nil || w.Hard.Kernel != want || !w.Hard.Agrees {
			return fmt.Errorf("%+v", w.Hard)
		}
		return nil
	})
}

func (a *apart) zone(args ...string) {
	a.t.Helper()
	if o := a.ctl("sw", append([]string{"zone", "member"}, args...)...); o.code != 0 {
		a.t.Fatal(o.stderr)
	}
}

// tcp reports whether a connection between two hosts comes about within a moment.
func (a *apart) tcp(from, to string) (ok bool) {
	a.in(to, func() error {
		l, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", a.addr[to], storagePort))
		if err != nil {
			return err
		}
		defer l.Close()
		return a.lab.Do(from, func() error {
			c, err := net.DialTimeout("tcp4", l.Addr().String(), 300*time.Millisecond)
			if ok = err == nil; ok {
				c.Close()
			}
			return nil
		})
	})
	return ok
}

// ping reports whether a host answers another one.
func (a *apart) ping(from, to string) (ok bool) {
	a.in(from, func() error {
		c, err := net.ListenPacket("ip4:icmp", a.addr[from].String())
		if err != nil {
			return err
		}
		defer c.Close()
		b := []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1} // echo request 1 of 1, with its checksum
		if _, err := c.WriteTo(b, &net.IPAddr{IP: a.addr[to].AsSlice()}); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		b = make([]byte, 128)
		for {
			n, who, err := c.ReadFrom(b)
			if err != nil {
				return nil
			}
			if ok = n > 0 && b[0] == 0 && who.String() == a.addr[to].String(); ok {
				return nil
			}
		}
	})
	return ok
}

func TestHostsOfDifferentZonesAreKeptApart(t *testing.T) {
	for name, routed := range map[string]bool{"bridge": false, "routed": true} {
		t.Run(name, func(t *testing.T) {
			a := newApart(t, "hard"+name, routed)
			a.daemon()
			a.normal()
			a.talk()
			steady := way{"i1", "t1"} // permitted throughout
			a.judge("at the start")
			a.mu.Lock()
			lost := a.sent[steady] - a.got[steady]
			a.mu.Unlock()
			for _, x := range a.hosts {
				for _, y := range a.hosts {
					if x == y || x > y && x[0] == y[0] {
						continue
					}
					if got := a.tcp(x, y); got != a.may[way{x, y}] {
						t.Errorf("a TCP connection from %s to %s: %t", x, y, got)
					}
				}
			}
			if !a.ping("i1", "t1") || a.ping("i1", "t2") {
				t.Error("ping says something else")
			}
			if o := a.ctl("sw", "show", "event", "-o", "json"); !strings.Contains(o.stdout, `"denied"`) {
				t.Error("no event tells of dropped frames")
			}

			a.allow("i2", "t1", true)
			a.zone("add", "a", a.addr["i2"].String())
			a.kernel("i2", "t1", true)
			a.judge("i2 has joined zone a")
			a.allow("i2", "t1", false)
			a.zone("remove", "a", a.addr["i2"].String())
			a.kernel("i2", "t1", false)
			a.judge("i2 has left zone a")

			a.proc.signal(unix.SIGKILL)
			a.proc.exit()
			a.judge("without a daemon")
			a.daemon()
			a.normal()
			a.judge("with a new daemon")
			a.proc.signal(unix.SIGTERM)
			a.proc.exit()
			a.judge("after a stop")
			a.daemon()
			a.normal()
			a.judge("with a third daemon")

			// Frames of the steady pair may be under way.
			labtest.Eventually(t, "every frame of a pair that is permitted throughout to arrive", func() error {
				a.mu.Lock()
				defer a.mu.Unlock()
				if n := a.sent[steady] - a.got[steady]; n > lost {
					return fmt.Errorf("%d of %d were lost", n-lost, a.sent[steady])
				}
				return nil
			})

			a.fault("sw", "eth3", false)
			time.Sleep(50 * time.Millisecond)
			a.fault("sw", "eth3", true)
			if routed { // went with the link
				a.run("t1", "ip", "route", "replace", "192.0.0.0/16", "via", "192.0.3.254")
			}
			a.judge("a cable was pulled and plugged")

			for _, order := range []string{"off", "on"} {
				if o := a.ctl("sw", "hard-zoning", order); o.code != 0 {
					t.Fatal(o.stderr)
				}
				if got := a.tcp("i1", "t2"); got != (order == "off") {
					t.Errorf("hard-zoning %s: i1 reaches t2: %t", order, got)
				}
				a.mu.Lock()
				a.leaks, a.closed = nil, map[way]time.Time{}
				a.mu.Unlock()
			}
			a.judge("at the end")
			close(a.stop)
			a.done.Wait()
		})
	}
}
