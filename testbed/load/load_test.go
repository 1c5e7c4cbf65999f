package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone"
)

// processEnv makes the test binary one of the benchmark's processes.
const processEnv = "INOF_LOAD_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		if err := Main(context.Background(), os.Args[len(os.Args)-2], os.Args[len(os.Args)-1], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testProcess(t *testing.T) Process {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Process{Command: []string{self}, Env: []string{processEnv + "=1"}}
}

func testOptions(t *testing.T, auth string) Options {
	return Options{Auth: auth, Process: testProcess(t), Devices: DefaultDevices, Hosts: DefaultHosts, Progress: func(s string) { t.Log(s) }}
}

// slow is a clock by which everything lasts; what is told of it comes to the function it gives.
func slow(t *testing.T, opt Options) (Options, func(units ...string)) {
	var mu sync.Mutex
	var at time.Time
	told := map[string]bool{}
	opt.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Minute)
		return at
	}
	opt.Progress = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		if m := regexp.MustCompile(`^\d+ of \d+ (.*), [^,]+ a second, about \S+ left$`).FindStringSubmatch(s); m != nil {
			told[m[1]] = true
		}
	}
	return opt, func(units ...string) {
		for _, u := range units {
			if !told[u] {
				t.Errorf("nothing is told of %s: %v", u, told)
			}
		}
	}
}

func TestFanoutCountsEveryDelivery(t *testing.T) {
	for _, auth := range []string{"none", "hmac-sha256", "tls"} {
		t.Run(auth, func(t *testing.T) {
			opt, told := slow(t, testOptions(t, auth))
			res, err := Fanout(t.Context(), FanoutOptions{Options: opt, Clients: 20, ZoneSize: 8, Count: 3, Rate: 1000, Burst: 100, Origins: 3})
			if err != nil {
				t.Fatal(err)
			}
			told("sessions", "faults of each kind", "bursts")
			for name, c := range map[string]Compared{"zone": res.Zone, "all": res.All} {
				if c.Ours.Trials != 3 || c.Bound.Trials != 3 || c.Ours.Min <= 0 || c.Bound.Min <= 0 || c.Ours.Max < c.Ours.Median {
					t.Errorf("%s: %+v", name, c)
				}
				if inTLS := c.TLS != nil; inTLS != (auth == "tls") || inTLS && (c.TLS.Trials != 3 || c.TLS.Min <= 0 || c.TLS.MedianRatio <= 0) {
					t.Errorf("%s: bound in TLS: %+v", name, c.TLS)
				}
			}
			for name, b := range map[string]*Burst{"hosts": res.HostBurst, "faults": res.FaultBurst} {
				if b.Deliveries != 2000 || b.Messages < 20 || b.Messages > 2000 || b.PerSecond <= 0 || b.BoundPerSecond <= 0 || b.CPU <= 0 || (b.TLSBoundPerSecond > 0) != (auth == "tls") {
					t.Errorf("%s: %+v", name, b)
				}
			}
			if res.Auth != auth || res.Memory == nil || res.Memory.Sessions != 23 || res.Memory.Heap <= 0 || res.Bytes == 0 {
				t.Errorf("%+v, memory %+v", res, res.Memory)
			}
		})
	}
}

// apiZones is what the command does with the management API.
type apiZones struct{ *api.Client }

func (z apiZones) Hosts(ctx context.Context, prefix string) (n int, err error) {
	zones, err := api.Ask[[]api.Zone](ctx, z.Client, "zones", nil)
	for _, z := range zones {
		if strings.HasPrefix(z.Name, prefix) {
			n += len(z.Hosts)
		}
	}
	return n, err
}

// A live reflector is left as it was found, also when the run was interrupted.
func TestLiveReflectorIsLeftAsItWas(t *testing.T) {
	own, err := startReflector(t.Context(), testProcess(t), "hmac-sha256", zoneSet("others", "192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	c := api.NewClient(filepath.Join(own.dir, "inofd.sock"))
	defer c.Close()
	for _, interrupted := range []bool{false, true} {
		opt := FanoutOptions{Options: testOptions(t, ""), Clients: 10, ZoneSize: 4, Count: 2, Rate: 1000, Burst: 50, Origins: 2}
		opt.Live, opt.LiveZones = &own.Target, apiZones{c}
		ctx, cancel := context.WithCancel(t.Context())
		if interrupted {
			opt.Progress = func(s string) {
				if strings.HasPrefix(s, "bursts") {
					cancel()
				}
			}
		}
		res, err := Fanout(ctx, opt)
		cancel()
		if interrupted != (err != nil) {
			t.Fatalf("interrupted %v: %v", interrupted, err)
		}
		if !interrupted && (res.Memory != nil || res.FaultBurst == nil || res.FaultBurst.CPU != 0 || res.Reflector != own.Addr.String()) {
			t.Errorf("%+v", res)
		}
		zones, err := api.Ask[[]api.Zone](t.Context(), c, "zones", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range zones {
			if strings.HasPrefix(z.Name, ZonePrefix) || len(z.Hosts) > 0 {
				t.Errorf("interrupted %v: left behind: %+v", interrupted, z)
			}
		}
		hosts, err := api.Ask[[]api.Host](t.Context(), c, "hosts", nil)
		if err != nil || len(hosts) != 0 {
			t.Errorf("interrupted %v: hosts left behind: %v, %v", interrupted, hosts, err)
		}
	}
	// A full sync touches nothing.
	res, err := Sync(t.Context(), SyncOptions{Options: Options{Live: &own.Target, Devices: Range{DefaultDevices.at(100), DefaultDevices.at(110)}, Hosts: DefaultHosts}, Count: 2})
	if err != nil || res.Zones != 1 || res.Sync.Ours.Trials != 2 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestARefusalIsTold(t *testing.T) {
	own, err := startReflector(t.Context(), testProcess(t), "hmac-sha256", zoneSet("others", "192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	wrong := own.Target
	wrong.Password = link.PasswordOfKey([32]byte{1})
	_, err = Sync(t.Context(), SyncOptions{Options: Options{Live: &wrong, Devices: DefaultDevices, Hosts: DefaultHosts}, Count: 1})
	if err == nil {
		t.Error("a session with the wrong password")
	}
	t.Log(err)
}

func TestSyncIsWhole(t *testing.T) {
	opt, told := slow(t, testOptions(t, "hmac-sha256"))
	res, err := Sync(t.Context(), SyncOptions{Options: opt, Zones: 200, Members: 4, HostsUp: 100, Feeders: 5, Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	told("full syncs")
	if res.Zones != 200 || res.Hosts < 100 || res.Hosts > 101 || res.Bytes < 1000 || res.Messages == 0 || res.Sync.Ours.Trials != 3 || res.Peak < res.Before/2 || res.Before <= 0 || res.Fault == nil {
		t.Errorf("%+v", res)
	}
}

func TestSessionsComeBack(t *testing.T) {
	res, err := Failover(t.Context(), FailoverOptions{Options: testOptions(t, "hmac-sha256"), Clients: 20, ZoneSize: 4, Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if res.Resumed != 20 || res.CutUp.Last < res.CutUp.First || res.KillSync.Last <= 0 || res.Restart <= 0 {
		t.Errorf("%+v", res)
	}
}

// Who waits for sessions to come back hears how many are, and how long they are left in peace.
func TestWhatIsLeftIsToldWhileSessionsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		f := &failover{FailoverOptions: FailoverOptions{Clients: 4}, sync: map[netip.Addr]time.Duration{}, lost: time.Now()}
		f.Progress = func(s string) { got = append(got, s) }
		go func() {
			for i := range f.Clients {
				f.mu.Lock()
				f.sync[DefaultDevices.at(i)] = 0
				f.mu.Unlock()
				time.Sleep(2100 * time.Millisecond)
			}
		}()
		if err := errors.Join(f.back(t.Context()), f.settle(t.Context(), 3500*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if len(got) < 2 || got[0] != "1 of 4 clients, 0.5 a second, about 6s left" || got[len(got)-1] != "2 of 3 seconds until sessions have settled, 1 a second, about 1s left" {
			t.Errorf("%q", got)
		}
	})
}

func TestAFloodIsMeasuredBesideQuietPhases(t *testing.T) {
	opt, told := slow(t, testOptions(t, "hmac-sha256"))
	res, err := Hostile(t.Context(), HostileOptions{Options: opt, Clients: 6, ZoneSize: 3, Count: 8, Rounds: 2, Rate: 100, Only: "losses"})
	if err != nil {
		t.Fatal(err)
	}
	told("rounds")
	if len(res.Floods) != 1 {
		t.Fatalf("%+v", res.Floods)
	}
	if f := res.Floods[0]; f.Quiet.Trials != 8 || f.Fault.Trials != 8 || f.Sent == 0 || f.QuietPeak < f.QuietLive || f.Peak < f.Live || f.Live <= 0 {
		t.Errorf("%+v", f)
	}
}

func TestRanges(t *testing.T) {
	r, err := ParseRange("192.0.2.250-192.0.3.5")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.at(7); got != netip.MustParseAddr("192.0.3.1") {
		t.Error(got)
	}
	if r.holds(12) != nil || r.holds(13) == nil {
		t.Errorf("12: %v, 13: %v", r.holds(12), r.holds(13))
	}
	six, err := ParseRange("2001:db8::/112")
	if err != nil || six.at(0x1ff) != netip.MustParseAddr("2001:db8::1ff") || six.holds(1<<16) != nil || six.holds(1<<16+1) == nil {
		t.Error(six, err)
	}
	for _, bad := range []string{"", "192.0.2.1", "x-y", "192.0.2.9-192.0.2.1"} {
		if r, err := ParseRange(bad); err == nil {
			t.Errorf("%q is %v", bad, r)
		}
	}
}

func zoneSet(name, member string) zone.Set {
	return zone.Set{Zones: []zone.Zone{{Name: name, Members: []zone.Member{{Kind: zone.MemberAddr, First: netip.MustParseAddr(member)}}}}}
}

// Threads of one real-time priority take turns as the package has it while a flood is measured, and
// as before afterwards.
func TestTurnsArePackagedOnes(t *testing.T) {
	b, err := os.ReadFile("../../dist/systemd/inofd.sysctl")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nkernel.sched_rr_timeslice_ms = " + packagedTimeslice + "\n"; !strings.Contains(string(b), want) {
		t.Errorf("the package does not set %q:\n%s", want, b)
	}
	was, err := os.ReadFile(timeslice)
	if err != nil {
		t.Fatal(err)
	}
	ms, restore, err := asPackaged()
	if err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(timeslice); err != nil || strings.TrimSpace(string(now)) != ms {
		t.Errorf("it is said to be %s, and is %q, %v", ms, now, err)
	}
	restore()
	if now, err := os.ReadFile(timeslice); err != nil || string(now) != string(was) {
		t.Errorf("afterwards it is %q, %v, want %q", now, err, was)
	}
}
