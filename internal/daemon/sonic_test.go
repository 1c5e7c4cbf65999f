package daemon

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/fabric/sonic"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/wires"
)

// sonicDaemon is a daemon on a switch with the real orchagent; see netnstest.SONiC.
type sonicDaemon struct {
	*netnstest.Switch
	t    *testing.T
	dir  string
	d    *Daemon
	stop func()
}

func newSonicDaemon(t *testing.T) *sonicDaemon {
	s := &sonicDaemon{Switch: netnstest.SONiC(t), t: t, dir: t.TempDir()}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

const sonicConfig = `
ports: {access: ["Ethernet*"], sonic-redis: "REDIS"}
zones: {hard-zoning: true}
error-down:
  pfc-storm: {action: notify}
  crc: {action: error-down}
`

func (s *sonicDaemon) start() {
	s.t.Helper()
	doc := "device: {id: 10.0.0.1, name: tor1}\nstate-directory: " + s.dir + "\n" + strings.ReplaceAll(sonicConfig, "REDIS", s.Redis())
	cfg, err := config.Parse("tor1", []byte(doc), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	dp, err := linux.New(linux.Config{Access: cfg.Ports.Access, NetNS: s.NetNS(), Carrier: fabric.CarrierNetlink})
	if err != nil {
		s.t.Fatal(err)
	}
	wire := &wires.Net{}
	env := Env{Dataplane: sonic.New(dp, s.Redis(), nil), Listen: wire.Listen, Dial: wire.Dial, OtherLLDP: func() bool { return false },
		HardZoning:    func(cfg hardzone.Config) (hardzone.Dataplane, error) { return sonic.OpenACL(cfg, s.Redis()) },
		EndHardZoning: func(hardzone.Config) error { return sonic.RemoveACL(s.Redis()) },
		Manage: func(config.Management) (net.Listener, error) {
			return wire.Listen(context.Background(), netip.AddrPort{})
		}}
	if s.d, err = New(cfg, env); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func(d *Daemon) { ended <- d.Run(ctx) }(s.d)
	s.stop = func() {
		if cancel != nil {
			cancel()
			cancel = nil
			if err := <-ended; err != nil {
				s.t.Error(err)
			}
		}
	}
	s.within(20*time.Second, "all ports are up", func() bool {
		return s.port("Ethernet0").State == api.PortUp && s.port("Ethernet28").State == api.PortUp
	})
}

func (s *sonicDaemon) within(most time.Duration, what string, is func() bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > most {
			s.t.Fatalf("not within %s: %s", most, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

func (s *sonicDaemon) port(name string) api.Port {
	s.t.Helper()
	ports, err := s.d.Ports(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range ports {
		if p.Name == name {
			return p
		}
	}
	return api.Port{}
}

func (s *sonicDaemon) asicAdmin(port string) string {
	return s.DB(s.t, 1, "hget", "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+s.DB(s.t, 2, "hget", "COUNTERS_PORT_NAME_MAP", port), "SAI_PORT_ATTR_ADMIN_STATE")
}

func (s *sonicDaemon) warned(rule string) string {
	s.t.Helper()
	st, err := s.d.Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, w := range st.Warnings {
		if w.Rule == rule {
			return w.Text
		}
	}
	return ""
}

func (s *sonicDaemon) do(fn func(c *device.Core, now time.Time) error) {
	s.t.Helper()
	var err error
	if e := s.d.Do(s.t.Context(), func(c *device.Core, now time.Time) { err = fn(c, now) }); e != nil || err != nil {
		s.t.Fatal(e, err)
	}
}

func (s *sonicDaemon) shut(port string) {
	s.do(func(c *device.Core, now time.Time) error { return c.ShutPort(port, now) })
	s.within(20*time.Second, "the port is shut", func() bool { return s.port(port).State == api.PortErrorDown })
	if got := s.asicAdmin(port); got != "false" {
		s.t.Errorf("error-down, and the ASIC's port is %q", got)
	}
}

func (s *sonicDaemon) recover(port string) {
	s.do(func(c *device.Core, now time.Time) error { return c.RecoverPort(port, now) })
	s.within(20*time.Second, "the port is open again", func() bool { return s.port(port).State == api.PortUp })
	if got := s.asicAdmin(port); got != "true" {
		s.t.Errorf("recovered, and the ASIC's port is %q", got)
	}
}

func TestErrorDownReachesTheASICAndIsOursAfterARestart(t *testing.T) {
	s := newSonicDaemon(t)
	s.shut("Ethernet4")
	s.stop()
	s.start()
	s.within(20*time.Second, "it is ours after a restart", func() bool { return s.port("Ethernet4").State == api.PortErrorDown })
	s.recover("Ethernet4")
	// The state is lost, and the databases were saved and loaded: a recovery still opens it.
	s.shut("Ethernet4")
	s.stop()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.within(20*time.Second, "it is ours without our state", func() bool { return s.port("Ethernet4").State == api.PortErrorDown })
	s.recover("Ethernet4")
}

func TestAShutThatOrchagentDoesNotTakeIsWarnedOf(t *testing.T) {
	s := newSonicDaemon(t)
	t.Run("while it hangs", func(t *testing.T) {
		s.Stop(t, "orchagent")
		s.do(func(c *device.Core, now time.Time) error { return c.ShutPort("Ethernet8", now) })
		s.within(20*time.Second, "it is warned of", func() bool { return strings.Contains(s.warned("port-unconfirmed"), "Ethernet8") })
		if st := s.port("Ethernet8").State; st != api.PortShutting {
			t.Errorf("the port is shown as %s", st)
		}
	})
	s.within(20*time.Second, "it is shut", func() bool {
		return s.port("Ethernet8").State == api.PortErrorDown && s.warned("port-unconfirmed") == ""
	})
	s.recover("Ethernet8")
}

func TestAStormIsTheFaultAsSoonAsTheWatchdogSaysSo(t *testing.T) {
	s := newSonicDaemon(t)
	queue := "COUNTERS:" + s.DB(t, 2, "hget", "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
	status := func() string { return s.DB(t, 2, "hget", queue, "PFC_WD_STATUS") }
	faulty := func() bool {
		list := []api.ErrorDown{}
		s.do(func(c *device.Core, now time.Time) error { list = c.ErrorDown(now); return nil })
		for _, e := range list {
			if e.Port == "Ethernet0" && e.Cause == "pfc-storm" {
				return true
			}
		}
		return false
	}
	s.within(20*time.Second, "the watchdog looks", func() bool { return status() == "operational" })
	s.DB(t, 2, "hset", queue, "DEBUG_STORM", "enabled")
	defer s.DB(t, 2, "hdel", queue, "DEBUG_STORM")
	s.within(20*time.Second, "the watchdog's verdict", func() bool { return status() == "stormed" || faulty() })
	t.Logf("told %s after the verdict", s.within(20*time.Second, "the fault", faulty).Round(time.Millisecond))
	if s.port("Ethernet0").State != api.PortUp {
		t.Error("notify has shut the port")
	}
}

func TestDeletedRowsAreBackAndWarnedOf(t *testing.T) {
	s := newSonicDaemon(t)
	t.Cleanup(func() {
		s.stop()
		if err := sonic.RemoveACL(s.Redis()); err != nil {
			t.Error(err)
		}
	})
	bound := func() bool {
		return strings.Contains(s.DB(t, 4, "hget", "ACL_TABLE|INOF_ZONES4", "ports@"), "Ethernet0") && s.DB(t, 6, "hget", "ACL_TABLE_TABLE|INOF_ZONES4", "status") == "Active"
	}
	s.within(30*time.Second, "zones are enforced", bound)
	s.within(20*time.Second, "changes are heard", func() bool { return s.DB(t, 4, "pubsub", "numpat") != "0" && s.warned("hard-zoning-abnormal") == "" })
	s.DB(t, 4, "del", "ACL_TABLE|INOF_ZONES4", "ACL_TABLE|INOF_ZONES6")
	t.Logf("back after %s", s.within(20*time.Second, "the tables are back", bound).Round(time.Millisecond))
	s.within(5*time.Second, "it is warned of", func() bool { return s.warned("hard-zoning-undone") != "" })
}

// A cause that is on where nothing can be seen is named with its ports.
func TestACauseThatCannotSeeIsWarnedOf(t *testing.T) {
	s := newSonicDaemon(t)
	var text string
	s.within(40*time.Second, "it is warned of", func() bool { text = s.warned("cause-blind"); return text != "" })
	if !strings.Contains(text, "pfc-storm") || !strings.Contains(text, "Ethernet24") || strings.Contains(text, "Ethernet0,") {
		t.Error(text)
	}
}

// What show port, Prometheus and gNMI have of a port is one reading of the ASIC's counters.
func TestAllOutletsShowTheASICsCounters(t *testing.T) {
	s := newSonicDaemon(t)
	s.Stat(t, "port", "Ethernet20", "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "987654321")
	s.within(20*time.Second, "show port has the ASIC's counters", func() bool {
		c := s.port("Ethernet20").Counters
		return c != nil && c.RxFrames >= 987654321
	})
	snap, err := s.d.known.Snapshot(t.Context(), 0, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range snap.Ports {
		if p.Name == "Ethernet20" && p.Counters != nil {
			found = p.Counters.RxFrames >= 987654321
		}
	}
	if !found {
		t.Errorf("the first value of telemetry is not the ASIC's: %+v", snap.Ports)
	}
}

// With orchagent dead a fault of a port is known and warned of, and done once it runs again; so are
// zones, which the ASIC has lost meanwhile.
func TestADeadOrchagentIsWarnedOfAndWhatWasAskedForIsDoneAfterIt(t *testing.T) {
	s := newSonicDaemon(t)
	t.Cleanup(func() {
		s.stop()
		if err := sonic.RemoveACL(s.Redis()); err != nil {
			t.Error(err)
		}
	})
	enforced := func() bool {
		return s.DB(t, 6, "hget", "ACL_TABLE_TABLE|INOF_ZONES4", "status") == "Active" && s.warned("hard-zoning-abnormal") == ""
	}
	s.within(30*time.Second, "zones are enforced", enforced)
	s.Kill(t, "orchagent")
	at := s.within(20*time.Second, "it is warned of", func() bool { return strings.Contains(s.warned("switch-not-programmed"), "orchagent does not run") })
	t.Logf("warned of %s after it was killed", at.Round(time.Millisecond))
	s.do(func(c *device.Core, now time.Time) error { return c.ShutPort("Ethernet8", now) })
	s.within(20*time.Second, "the shut is in doubt", func() bool { return strings.Contains(s.warned("port-unconfirmed"), "Ethernet8") })
	if st := s.port("Ethernet8").State; st != api.PortShutting {
		t.Errorf("the port is shown as %s", st)
	}
	s.Restart(t)
	s.within(30*time.Second, "the port is shut", func() bool {
		return s.port("Ethernet8").State == api.PortErrorDown && s.asicAdmin("Ethernet8") == "false"
	})
	s.within(30*time.Second, "zones are enforced again", enforced)
	s.within(30*time.Second, "nothing is warned of", func() bool { return s.warned("switch-not-programmed")+s.warned("port-unconfirmed") == "" })
	s.recover("Ethernet8")
}
