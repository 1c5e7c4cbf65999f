// Package apitest has a Source of fixed values for tests of the management API
// and of the tools that use it.
package apitest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/snsd"
)

// Now is the time the values of Sample are seen at.
var Now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Source gives what its fields hold, and Err for everything once it is set.
// Changes are recorded, not done.
type Source struct {
	*api.EventLog
	StatusValue   api.Status
	HostValues    []api.Host
	ZoneValues    []api.Zone
	PeerValues    []api.Peer
	PortValues    []api.Port
	Rows          map[string]any // of queries, by name
	NoticeValues  []api.Notice
	LatencyValue  api.Latency
	ClusterValue  api.Cluster
	BFDValue      api.BFD
	WhyValue      api.Why
	ReloadedValue api.Reloaded
	ConfigValue   api.ConfigReview
	DrainedValue  api.Drained

	ZoneChangedValue api.ZoneChanged
	ZonesValue       *Zones
	AuditValue       api.AuditList

	TestNoticeValues []api.TestNotice
	HardValue        api.HardZoning
	ModeValue        api.Mode
	ClearedValues    []api.HostCleared

	mu      sync.Mutex
	err     error
	changes []string
}

var _ api.Source = (*Source)(nil)

// SetErr makes all further calls fail (nil: succeed).
func (s *Source) SetErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Changes lists the changes that were asked for.
func (s *Source) Changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

func (s *Source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Source) change(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.changes = append(s.changes, fmt.Sprintf(format, args...))
	}
	return s.err
}

// Queries implements api.Source.
func (s *Source) Queries() []api.Served {
	return query.Served(func(ctx context.Context, q *query.Query, f query.Asked) (any, error) {
		switch q.Path {
		case "counters":
			list, _ := query.Counters(s.StatusValue.Counters)
			return list, s.failure()
		case "events":
			list, _ := api.ListEvents(ctx, s, query.EventQuery(f))
			return list, s.failure()
		}
		rows := map[string]any{"status": s.StatusValue, "hosts": slices.Clone(s.HostValues), "zones": slices.Clone(s.ZoneValues), "peers": s.PeerValues, "ports": s.PortValues,
			"notices": s.NoticeValues, "latency": s.LatencyValue, "bfd": s.BFDValue, "cluster": s.ClusterValue}
		if v, ok := rows[q.Path]; ok {
			return v, s.failure()
		}
		return s.Rows[q.Path], s.failure()
	})
}

// HostsAt implements api.EventSource.
func (s *Source) HostsAt(_ context.Context, addr netip.Addr) (list []api.Host, err error) {
	for _, h := range s.HostValues {
		if h.Addr == addr {
			list = append(list, h)
		}
	}
	return list, s.failure()
}

// Why implements api.Source; the addresses are those asked for.
func (s *Source) Why(_ context.Context, a, b netip.Addr) (api.Why, error) {
	w := s.WhyValue
	w.Hosts[0].Addr, w.Hosts[1].Addr = a, b
	return w, s.failure()
}

// ChangeZone implements api.Source.
func (s *Source) ChangeZone(_ context.Context, o api.ZoneOrder) (api.ZoneChanged, error) {
	text := strings.ReplaceAll(string(o.Do), "-", " ") + " "
	if o.Do == api.ZoneAdd || o.Do == api.ZoneRemove {
		text += "zone "
	}
	if text += o.Name; o.Do != api.ZoneRemove {
		text += fmt.Sprint(" ", o.Members)
	}
	if o.DryRun {
		text += " as a dry run"
	}
	c := s.ZoneChangedValue
	switch c.Zone = o.Name; {
	case o.Do == api.MembersRemove:
		c.Removed = o.Members
	case c.Added == nil && c.Present == nil:
		c.Added = o.Members
	}
	c.DryRun = o.DryRun
	return c, s.change("%s", text)
}

// RecoverPort implements api.Source.
func (s *Source) RecoverPort(_ context.Context, port string) error {
	return s.change("recover %s", port)
}

// ShutPort implements api.Source.
func (s *Source) ShutPort(_ context.Context, port string) error {
	return s.change("shut %s", port)
}

// Drain implements api.Source.
func (s *Source) Drain(_ context.Context, o api.DrainOrder) (api.Drained, error) {
	wait := "default"
	if o.Wait != nil {
		wait = time.Duration(*o.Wait).String()
	}
	return s.DrainedValue, s.change("drain {Port:%s Undo:%t Wait:%s}", o.Port, o.Undo, wait)
}

// TestNotice implements api.Source.
func (s *Source) TestNotice(_ context.Context, host netip.Addr) ([]api.TestNotice, error) {
	return s.TestNoticeValues, s.change("test notice to %s", host)
}

// ClearHost implements api.Source.
func (s *Source) ClearHost(_ context.Context, host netip.Addr) ([]api.HostCleared, error) {
	return s.ClearedValues, s.change("clear host %s", host)
}

// HardZoning implements api.Source.
func (s *Source) HardZoning(context.Context) (api.HardZoning, error) {
	return s.HardValue, s.change("")
}

// OrderHardZoning implements api.Source.
func (s *Source) OrderHardZoning(_ context.Context, order string) error {
	return s.change("hard zoning: %s", order)
}

// Halt implements api.Source.
func (s *Source) Halt(_ context.Context, o api.HaltOrder) (api.Mode, error) {
	return s.ModeValue, s.change("halt %+v", o)
}

// Resume implements api.Source.
func (s *Source) Resume(_ context.Context, o api.HaltOrder) (api.Mode, error) {
	return s.ModeValue, s.change("resume %+v", o)
}

// ReloadConfig implements api.Source.
func (s *Source) ReloadConfig(_ context.Context, force bool) (api.Reloaded, error) {
	return s.ReloadedValue, s.change("reload force=%t", force)
}

// Serve puts a Source on a unix socket until stop is called or the test ends.
func Serve(t *testing.T, s api.Source) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "inofd.sock")
	return socket, ServeAt(t, s, socket)
}

// ServeAt is Serve with a socket of the caller's choice.
func ServeAt(t *testing.T, s api.Source, socket string) (stop func()) {
	t.Helper()
	l, err := api.Listen(socket, 0o600, "")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, s)
}

func serve(t *testing.T, l net.Listener, s api.Source) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, l, api.Handler(s)) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving the API: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// ptr makes the optional fields of the samples.
func ptr[T any](v T) *T { return &v }

// Sample is a small access switch with one value of each kind or more, not sorted.
func Sample() *Source {
	a := netip.MustParseAddr
	ago := func(d time.Duration) time.Time { return Now.Add(-d) }
	mac := fabric.MAC{2, 0, 0, 0, 0, 1}
	target := api.Host{Addr: a("192.0.2.101"), Type: api.Local, Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, ServicePort: 4420,
		NQN: "nqn.2026-01.org.example:array-1", Device: a("192.0.2.11"), Port: "Ethernet2", MAC: mac, Subscribes: true,
		State: snsd.Active, Zones: []string{"blue", "green"}, Hard: api.HardOff, LearnedFrom: api.LearnedLocal,
		Since: ago(26 * time.Hour), Expires: ptr(Now.Add(95 * time.Second))}
	claim := target
	claim.Port, claim.Conflict, claim.MAC, claim.Since = "Ethernet10", true, fabric.MAC{2, 0, 0, 0, 0, 9}, ago(3*time.Second)
	remote := api.Host{Addr: a("192.0.2.9"), Type: api.Remote, Role: snsd.RoleInitiator, Protocol: snsd.ProtocolTCP,
		Device: a("192.0.2.12"), Port: "Ethernet1", State: snsd.Inactive, Reason: snsd.ReasonLinkDown,
		Zones: []string{"a", "b", "c", "d", "e"}, Hard: api.HardOff, LearnedFrom: "192.0.2.250", Since: ago(90 * time.Minute)}
	six := api.Host{Addr: a("2001:db8::1"), Type: api.Remote, Device: a("192.0.2.12"), Port: "Ethernet3", State: snsd.Active,
		Hard: api.HardOff, LearnedFrom: "192.0.2.250", Since: ago(450 * time.Millisecond)}
	log := api.NewEventLog(100, time.UnixMicro(1000))
	log.Append(api.Event{Time: ago(25 * time.Hour), Kind: "port", Text: "port Ethernet2: carrier up", Port: "Ethernet2"})
	log.Append(api.Event{Time: ago(time.Second), Kind: "fault", Text: "port Ethernet2: link-down\x1b[2J", Port: "Ethernet2", Addr: "192.0.2.101", Fields: map[string]string{"reason": "link-down"}})
	return &Source{
		ClusterValue: sampleCluster(),
		EventLog:     log,
		StatusValue: api.Status{Device: a("192.0.2.11"), Name: "tor-1", Roles: []string{"client"}, Version: "v1.2.3", PID: 42,
			Carrier: &api.CarrierSource{Source: "netlink", Why: "fentry: operation not permitted\nkprobe: operation not permitted"},
			Started: ago(49 * time.Hour), Uptime: api.Duration(49 * time.Hour), Synced: true,
			Counts: api.Counts{HostsLocal: 2, HostsRemote: 2, Conflicts: 1, Zones: 2, Peers: 2, Established: 1, Ports: 2, PortsUp: 1, Neighbours: 2, Faults: 1, Paths: api.PathCounts{Watched: 3, Failed: 1}},
			Warnings: api.Warnings{
				{Rule: "address-conflict", Text: "1 address(es) are claimed by two hosts", Do: "give one of them another address: inofctl show host says where both are"},
				{Rule: "frames-dropped", Text: "port Ethernet2: the kernel dropped 7 control frame(s)", Do: "look for a host that floods the port", Count: 3, Last: ptr(ago(4 * time.Minute))},
			},
			Counters: map[string]any{"lldp": map[string]any{"frames": 12345678, "bad": 0}, "inof": struct {
				Messages uint64 `json:"messages"`
			}{7}}},
		HostValues: []api.Host{six, claim, target, remote},
		ZoneValues: []api.Zone{
			{Name: "green", Members: []string{"192.0.2.101", "192.0.2.102", "192.0.2.103", "192.0.2.104", "2001:db8::/64"}, Hosts: []netip.Addr{a("192.0.2.101")}, LearnedFrom: "192.0.2.250"},
			{Name: "blue", Members: []string{"192.0.2.101"}, Hosts: []netip.Addr{a("192.0.2.101"), a("192.0.2.9")}, LearnedFrom: "192.0.2.250"},
			{Name: "default", LearnedFrom: "192.0.2.250"},
		},
		PeerValues: []api.Peer{
			{Device: a("192.0.2.250"), Address: "192.0.2.250:19516", Role: "reflector", State: api.PeerEstablished, Since: ago(2 * time.Hour),
				MessagesIn: 120, MessagesOut: 130, BytesIn: 4000, BytesOut: 5000, Reconnects: 1, Auth: "hmac-sha256",
				Keepalive: api.Duration(3 * time.Second), Hold: api.Duration(9 * time.Second)},
			{Address: "192.0.2.251:19516", Role: "reflector", State: api.PeerConnect, Since: ago(5 * time.Second), Reconnects: 17,
				LastError: "connection refused", LastErrorAt: ptr(ago(time.Second)), Auth: "hmac-sha256",
				Keepalive: api.Duration(3 * time.Second), Hold: api.Duration(9 * time.Second)},
		},
		PortValues: []api.Port{
			{Name: "Ethernet10", Index: 4, MTU: 9100, AdminUp: true, State: api.PortDown, Flaps: 3, LastFlap: ptr(ago(12 * time.Second))},
			{Name: "Ethernet2", Index: 3, MAC: mac, MTU: 9100, AdminUp: true, Carrier: true, State: api.PortUp, Neighbours: 2, Hosts: 2,
				Counters: &fabric.Counters{RxFrames: 1000, TxFrames: 900, RxBytes: 64000, TxBytes: 57600, RxCRC: 2, RxErrors: 2, CarrierChanges: 1}},
		},
		Rows: map[string]any{"telemetry": []api.Leaf{
			{Path: "/inof/interfaces/interface[name=Ethernet2]/state/optic-input-power", Value: -2.5, Unit: "dBm", Class: "gauge", Time: ago(time.Second)},
			{Path: "/inof/interfaces/interface[name=Ethernet2]/state/state", Value: "up\x1b[2J", Class: "event", Time: Now},
		}, "lldp": []api.Neighbour{
			{Port: "Ethernet10", ChassisID: "02:00:00:00:00:09", PortID: "eth0", TTL: 120, Age: api.Duration(100 * time.Second), ExpiresIn: api.Duration(20 * time.Second)},
			{Port: "Ethernet2", ChassisID: "02:00:00:00:00:01", PortID: "snsd_192.0.2.101", MAC: mac, SysName: "array-1", SysDesc: "Example Array\n16.2 of a family whose name has no end in sight", TTL: 120,
				Age: api.Duration(1250 * time.Millisecond), ExpiresIn: api.Duration(118750 * time.Millisecond),
				Addresses: []netip.Addr{a("192.0.2.101"), a("2001:db8::101"), a("192.0.2.102")}, Role: snsd.RoleTarget, Confirmed: true},
		}, "error-down": []api.ErrorDown{
			{Port: "Ethernet10", Cause: "link-down", Reason: snsd.ReasonLinkDown, Since: ptr(ago(12 * time.Second)), FlapsInWindow: 1, Flaps: 3, LastFlap: ptr(ago(12 * time.Second))},
			{Port: "Ethernet2", Cause: "link-flap", Reason: snsd.ReasonPacketError, Since: ptr(ago(4 * time.Minute)), Recovery: api.Duration(5 * time.Minute), TimeLeft: api.Duration(time.Minute), FlapsInWindow: 6, Flaps: 40, LastFlap: ptr(ago(4 * time.Minute))},
		}},
		LatencyValue: sampleLatency(),
		BFDValue:     sampleBFD(),
		WhyValue:     sampleWhy(),
		NoticeValues: []api.Notice{
			{Seq: 7, Host: a("192.0.2.101"), Subject: a("192.0.2.9"), State: snsd.Active, Port: "Ethernet2", Queued: ptr(ago(26 * time.Hour)), Sent: ptr(ago(26 * time.Hour)),
				Acked: ptr(ago(26 * time.Hour)), Status: api.NoticeAcked, SentToAcked: ptr(int64(1530))},
			{Seq: 8, Host: a("192.0.2.101"), Subject: a("192.0.2.9"), State: snsd.Inactive, Reason: snsd.ReasonLinkDown, Port: "Ethernet2", FaultAt: ptr(ago(time.Second)),
				Queued: ptr(ago(999 * time.Millisecond)), Sent: ptr(ago(999 * time.Millisecond)), Retries: 4, Status: api.NoticeSent, FaultToSent: ptr(int64(640)),
				Origin: a("192.0.2.20"), DecidedAt: ptr(ago(time.Second - 50*time.Microsecond)), SentAt: ptr(ago(time.Second - 80*time.Microsecond)),
				ReflectorAt: ptr(ago(time.Second - 230*time.Microsecond)), ReflectedAt: ptr(ago(time.Second - 300*time.Microsecond)),
				ReceivedAt: ptr(ago(time.Second - 290*time.Microsecond))},
		},
	}
}

// sampleBFD has a path that works, one that fails and one that never worked.
func sampleBFD() api.BFD {
	a := netip.MustParseAddr
	ago := func(d time.Duration) *time.Time { return ptr(Now.Add(-d)) }
	ms := func(n int) api.Duration { return api.Duration(time.Duration(n) * time.Millisecond) }
	t := api.BFDTimers{MinTx: ms(100), MinRx: ms(100), DetectMult: 3}
	session := func(dev string) api.BFDSession {
		return api.BFDSession{Device: a(dev), Local: a("192.0.2.11"), Multihop: true, State: "Up", RemoteState: "Up", Report: "up",
			Diag: "none", RemoteDiag: "none", Configured: t, Remote: ptr(t), TxInterval: ms(100), DetectTime: ms(300), Auth: "none",
			Since: ago(2 * time.Hour), LastHeard: ago(40 * time.Millisecond), HoldUp: ms(1000), LocalDiscr: 11, RemoteDiscr: 12, PacketsIn: 82000, PacketsOut: 82001}
	}
	down, never := session("192.0.2.13"), session("192.0.2.14")
	down.State, down.RemoteState, down.Report, down.Fault, down.Diag, down.RemoteDiag = "Down", "Down", "down", true, "neighbor signaled session down", "detection time expired"
	down.Flaps, down.LastDown, down.Since, down.HoldUp, down.TxInterval, down.DetectTime = 2, ago(8*time.Second), ago(8*time.Second), ms(2000), ms(1000), ms(3000)
	never.State, never.RemoteState, never.Report, never.Remote, never.DetectTime, never.LastHeard, never.PacketsIn = "Down", "Down", "unknown", nil, 0, nil, 0
	return api.BFD{Enabled: true, Sessions: []api.BFDSession{session("192.0.2.12"), down, never},
		Process: api.BFDProcess{Needed: true, Connected: true, PID: 43, Build: "v1.2.3 abc", Started: ago(49 * time.Hour), Since: *ago(2 * time.Hour), Priority: "SCHED_FIFO 10, memory locked"}}
}
