package netconf

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/pem"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// overSSH serves a device on a port of the machine; key is the file of a key of anna's, whose
// password is secret; robot is a viewer by the token token.
func overSSH(t *testing.T, d *fakeDevice) (s *Server, port, key string) {
	t.Helper()
	dir := t.TempDir()
	host, err := HostKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key = filepath.Join(dir, "key")
	if err := os.WriteFile(key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	hers, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	gate := &api.Gate{
		Users: func() ([]api.User, error) {
			return []api.User{{Name: "anna", Role: api.Operator, Hashes: [][]byte{hash}, Keys: []api.SSHKey{{Type: hers.Type(), Blob: hers.Marshal()}}}}, nil
		},
		Tokens: func() ([]api.Token, error) {
			return []api.Token{{Name: "robot", Role: api.Viewer, Sum: sha256.Sum256([]byte("token"))}}, nil
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = New(d, Config{HostKey: host, Door: &api.Door{Gate: gate}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-ended })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return s, port, key
}

// sampleTree is what a reflector knows, as package telemetry reads it.
func sampleTree(string) telemetry.Tree {
	a, now := netip.MustParseAddr, time.Now()
	plan := &change.Plan{Zones: map[string]change.Zone{"blue": {Members: []zone.Member{{Kind: zone.MemberAddr, First: a("192.0.2.1")}}}}, Sets: map[string][]string{"day": {"blue"}}, Active: "day"}
	plan.PutAlias("array", []zone.Member{{Kind: zone.MemberAddr, First: a("192.0.2.2")}})
	h := telemetry.Health{Port: "Ethernet2"}
	h.At, h.Valid, h.RxPower, h.RxCRC = now, fabric.AllFields, -2345, 7
	h.RxPause[3], h.RxPauseTime[3], h.Deadlocks[3] = 10, 1500*time.Millisecond, 2
	return telemetry.Read(&telemetry.Snapshot{
		At: now, CountersAt: now, Inconsistent: 1, Status: api.Status{Device: a("192.0.2.100"), Name: "<r&1>", Roles: []string{"reflector", "client"}, Version: "v1", Started: now, Synced: true, Warnings: api.Warnings{{Rule: "x"}}},
		Peers:  []api.Peer{{Device: a("192.0.2.11"), Address: "192.0.2.11:19516", Role: "client", State: api.PeerEstablished, MessagesIn: 5, Since: now}},
		Ports:  []api.Port{{Name: "Ethernet2", State: api.PortUp, Carrier: true, Counters: &fabric.Counters{RxBytes: 64000}}, {Name: "Ethernet10/1", State: api.PortDown}},
		Faults: []api.ErrorDown{{Port: "Ethernet10/1", Cause: "link-down"}}, Paths: api.BFD{Sessions: []api.BFDSession{{Device: a("192.0.2.12"), Report: "up"}}},
		Latency: api.Latency{Bounds: []float64{0.001}, Stages: []api.Stage{{Scope: api.ScopeTold, Name: "acked", Reason: "link-down", Sum: 0.5, Total: api.Quantiles{Count: 3, P50: 640}, Buckets: []uint64{1, 3}}},
			Clocks: []api.Clock{{Reflector: a("192.0.2.250"), Ahead: -1500, Measured: now}}},
		Counters: []api.Counter{{Room: "hostnotify", Name: "acked", Value: 4}, {Room: "lldp", Name: "frames", Value: 9}},
		Zoning:   &telemetry.Zoning{Version: api.ZoneVersion{Number: 7, Confirm: &now}, Plan: plan, AutoJoin: true},
		Hosts:    telemetry.Part[api.Host]{Rows: []api.Host{{Addr: a("192.0.2.1"), Device: a("192.0.2.11"), Port: "Ethernet2", State: snsd.Active, Zones: []string{"blue"}, Hard: api.HardOff, Since: now}}},
		Zones:    telemetry.Part[api.Zone]{Rows: []api.Zone{{Name: "blue", Members: []string{"192.0.2.1"}, Hosts: []netip.Addr{a("192.0.2.1")}, LearnedFrom: "local"}, {Name: "default"}}},
		Latest:   &api.Event{ID: 9, Time: now, Kind: "port", Text: "a \"text\"", Fields: map[string]string{"b": "1"}}, Events: map[string]uint64{"port": 3},
		Health: []telemetry.Health{h}, Machine: telemetry.Machine{At: now, Busy: 0.25, Memory: 1 << 30, Available: 1 << 29},
	})
}

// telling has a device say something every moment, so that subscribers have something to hear.
func telling(t *testing.T, d *fakeDevice) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			d.Append(api.Event{Time: time.Now(), Kind: "port", Port: "eth1", Text: "something", Fields: map[string]string{"n": "1"}})
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// ncclient does what its documentation shows: lock, edit, validate, confirmed commit, persist,
// notifications, schemas, errors with their tag and path.
func TestNcclientChangesZones(t *testing.T) {
	netnstest.Python(t, "ncclient")
	d := newDevice(t)
	d.tree = sampleTree
	telling(t, d)
	s, port, key := overSSH(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/bin/python3", "-B", "testdata/change_zones.py", port, key).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Fatalf("%v\n%s", err, out)
	}
	want(t, d, zoneA, zoneB, zoneC, "p: 192.0.2.9")
	if n := s.Counters(); n.NotAllowed != 1 || n.BadHello+n.BadFraming+n.Malformed > 0 {
		t.Errorf("%+v", n)
	}
}

// yangcli, another client, reads the schemas of the device and changes zones by them.
func TestYangcliChangesZones(t *testing.T) {
	netnstest.Programs(t, "yangcli")
	d := newDevice(t)
	d.tree = sampleTree
	s, port, _ := overSSH(t, d)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	lines := []string{
		"lock target=candidate",
		"create /inof/zones/zone[name='c']/config/member value=192.0.2.9",
		"validate source=candidate", "commit", "unlock target=candidate",
		"sget-config source=running /inof/zones", "get-schema identifier=openinof-inof version=2026-11-22 format=yang", "close-session", "quit", ""}
	if err := os.WriteFile(script, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "yangcli", "server=127.0.0.1", "ncport="+port, "user=anna", "password=secret", "run-script="+script, "batch-mode", "autoload=true", "time-rpcs=false")
	cmd.Env = append(os.Environ(), "HOME="+dir, "YUMA_HOME=")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	// The sixth, of close-session, yangcli prints only if it reads it before it finds the session
	// ended.
	if n := strings.Count(string(out), "RPC OK Reply"); err != nil || n < 5 || n > 6 || !strings.Contains(string(out), "member 192.0.2.9") || !strings.Contains(string(out), "data 'module openinof-inof {") || strings.Contains(string(out), "Error:") {
		t.Fatalf("%v\n%s", err, out)
	}
	want(t, d, zoneA, zoneB, zoneC)
	if n := s.Counters(); n.Errors+n.Dropped+n.Malformed > 0 {
		t.Errorf("%+v", n)
	}
}
