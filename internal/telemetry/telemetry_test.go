package telemetry

import (
	"flag"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// sample is a switch with something of everything.
func sample() *Snapshot {
	a := netip.MustParseAddr
	h := Health{Port: "Ethernet2"}
	h.At, h.Valid, h.RxPower, h.RxCRC = now.Add(-time.Second), fabric.AllFields&^(fabric.FieldTxFrames|fabric.FieldCounters), -2345, 7
	h.RxPause[3], h.RxPauseTime[3], h.Deadlocks[3] = 10, 1500*time.Millisecond, 2
	h.Marking[3] = fabric.Marking{Mode: fabric.MarkingBBR, Low: 20_000, High: 80_000, Probability: 0.2}
	silent := Health{Port: "Ethernet10"}
	silent.At = now
	return &Snapshot{
		At: now, CountersAt: now.Add(-time.Millisecond), Inconsistent: -1,
		Status: api.Status{Device: a("192.0.2.11"), Name: "tor-1", Version: "v1", Started: now.Add(-time.Hour), Synced: true,
			Warnings: api.Warnings{{Rule: "x"}}, Counts: api.Counts{HostsLocal: 2, HostsRemote: 3}},
		Peers: []api.Peer{{Device: a("192.0.2.250"), Address: "192.0.2.250:19516", Role: "reflector", State: api.PeerEstablished, MessagesIn: 5},
			{Device: a("192.0.2.250"), Address: "192.0.2.250:4711", Role: "reflector", State: api.PeerConnect}, // the device twice
			{Device: a("192.0.2.250"), Address: "192.0.2.250:4711", Role: "client", State: api.PeerEstablished}},
		Ports:  []api.Port{{Name: "Ethernet2", State: api.PortUp, Carrier: true, Counters: &fabric.Counters{RxBytes: 64000}}, {Name: "Ethernet10", State: api.PortDown}},
		Faults: []api.ErrorDown{{Port: "Ethernet10", Cause: "link-down"}},
		Paths:  api.BFD{Sessions: []api.BFDSession{{Device: a("192.0.2.12"), Report: "up"}, {Device: a("192.0.2.13"), Report: "unknown"}}},
		Latency: api.Latency{Bounds: []float64{0.001, 0.01}, Stages: []api.Stage{{Scope: api.ScopeTold, Name: "acked", Reason: "link-down", Sum: 0.5,
			Total: api.Quantiles{Count: 3, P50: 640}, Buckets: []uint64{1, 2, 3}}},
			Clocks: []api.Clock{{Reflector: a("192.0.2.250"), Ahead: -1500, Measured: now.Add(-time.Minute)}}},
		Counters: []api.Counter{{Room: "hostnotify", Name: "acked", Value: 4}, {Room: "hostnotify", Name: "waiting", Value: 1}, {Room: "lldp", Name: "frames", Value: 9}},
		Zoning:   &Zoning{Version: api.ZoneVersion{Number: 7}, Plan: plan(), AutoJoin: true},
		Hosts: Part[api.Host]{now, []api.Host{{Addr: a("192.0.2.1"), Device: a("192.0.2.11"), Port: "Ethernet2", Role: snsd.RoleBoth, Protocol: snsd.ProtocolISCSI, State: snsd.Active, Zones: []string{"blue"}, Hard: api.HardOff, Since: now},
			{Addr: a("192.0.2.1"), Device: a("192.0.2.11"), Port: "Ethernet2", Conflict: true}}},
		Zones:      Part[api.Zone]{now, []api.Zone{{Name: "blue", Members: []string{"192.0.2.1"}, Hosts: []netip.Addr{a("192.0.2.1")}, LearnedFrom: "local"}, {Name: "default"}}},
		Neighbours: Part[api.Neighbour]{now, []api.Neighbour{{Port: "Ethernet2", ChassisID: "02:00:00:00:00:01", PortID: "SNSD", TTL: 120}}},
		Latest:     &api.Event{ID: 9, Time: now, Kind: "port", Text: "a \"text\"", Fields: map[string]string{"b": "1", "a": "2"}},
		Events:     map[string]uint64{"port": 3}, Health: []Health{h, silent}, Machine: Machine{At: now, Busy: 0.25, Memory: 1 << 30, Available: 1 << 29},
	}
}

// plan has one of everything that operators write.
func plan() *change.Plan {
	member, err := zone.ParseMember("192.0.2.1")
	if err != nil {
		panic(err)
	}
	p := &change.Plan{}
	p.PutAlias("disks", []zone.Member{member})
	p.PutZone("blue", change.Zone{Aliases: []string{"disks"}})
	p.PutSet("day", []string{"blue"})
	p.Active = "day"
	return p
}

func find(t Tree, path string) *Value {
	for i := range t {
		if t[i].Path() == path {
			return &t[i]
		}
	}
	return nil
}

// A value has the time when it was read, and what a platform does not tell is absent.
func TestValuesAreOfTheirTimeOrAbsent(t *testing.T) {
	tree := Read(sample())
	for path, want := range map[string]struct {
		v  any
		at time.Time
	}{
		"/interfaces/interface[name=Ethernet2]/state/counters/in-octets":                                    {uint64(64000), now.Add(-time.Millisecond)},
		"/inof/interfaces/interface[name=Ethernet2]/state/optic-input-power":                                {-2.345, now.Add(-time.Second)},
		"/inof/interfaces/interface[name=Ethernet2]/priorities/priority[id=3]/state/in-pause-time":          {1500 * time.Millisecond, now.Add(-time.Second)},
		"/inof/clocks/clock[reflector=192.0.2.250]/state/offset":                                            {-1500 * time.Microsecond, now.Add(-time.Minute)},
		"/inof/peers/peer[role=reflector][device=192.0.2.250][address=192.0.2.250:19516]/state/messages-in": {uint64(5), now},
		"/inof/zones/zone[name=blue]/state/learned-from":                                                    {"local", now},
		"/inof/zone-sets/zone-set[name=day]/state/active":                                                   {true, now},
		"/inof/hosts/host[address=192.0.2.1][device=192.0.2.11][port=Ethernet2]/state/conflict":             {false, now},
		"/inof/events/latest/state/id":                                                                      {uint64(9), now},
		"/inof/notices/stage[scope=told][name=acked][reason=link-down]/state/p50":                           {640 * time.Microsecond, now},
	} {
		if v := find(tree, path); v == nil || v.V != want.v || !v.At.Equal(want.at) {
			t.Errorf("%s: %+v, want %v at %v", path, v, want.v, want.at)
		}
	}
	for _, path := range []string{
		"/interfaces/interface[name=Ethernet10]/state/counters/in-octets", "/inof/interfaces/interface[name=Ethernet10]/state/optic-input-power",
		"/qos/interfaces/interface[interface-id=Ethernet2]/output/queues/queue[name=3]/state/transmit-pkts", // the driver does not tell
		"/inof/interfaces/interface[name=Ethernet2]/priorities/priority[id=4]/state/in-pfc-frames",
		"/inof/state/counts/zones-inconsistent", "/inof/cluster/state/leader", "/inof/paths/path[device=192.0.2.13]/state/up",
	} {
		if v := find(tree, path); v != nil {
			t.Errorf("%s is %v", path, v.V)
		}
	}
}

func TestPathsAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Leaves() {
		if seen[l.Path] || l.Doc == "" || l.Type == "" || l.Source == "" || l.Class == "" {
			t.Errorf("%+v: not declared as a whole, or twice", l)
		}
		seen[l.Path] = true
	}
	tree := Read(sample())
	paths := map[string]bool{}
	for i := range tree {
		if p := tree[i].Path(); paths[p] {
			t.Errorf("%s is there twice", p)
		} else {
			paths[p] = true
		}
	}
}

// What Diff says leads from one tree to the other.
func TestADifferenceLeadsToTheNewTree(t *testing.T) {
	leaves := Leaves()[:6]
	rapid.Check(t, func(t *rapid.T) {
		tree := func(name string) (out Tree) {
			seen := map[id]bool{}
			for range rapid.IntRange(0, 12).Draw(t, name) {
				v := Value{Leaf: rapid.SampledFrom(leaves).Draw(t, "leaf"), Keys: []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")},
					V: rapid.SampledFrom([]any{uint64(1), "x", now, Histogram{Count: 1, Buckets: []uint64{1}}}).Draw(t, "value"), At: now}
				if !seen[v.id()] {
					seen[v.id()] = true
					out = append(out, v)
				}
			}
			return out
		}
		a, b := tree("before"), tree("now")
		got := map[id]any{}
		for i := range a {
			got[a[i].id()] = a[i].V
		}
		changed, gone := Diff(a, b)
		for i := range changed {
			if was, ok := got[changed[i].id()]; ok && Equal(was, changed[i].V) {
				t.Errorf("%s is no change", changed[i].Path())
			}
			got[changed[i].id()] = changed[i].V
		}
		for i := range gone {
			delete(got, gone[i].id())
		}
		if len(got) != len(b) {
			t.Errorf("%d values, want %d", len(got), len(b))
		}
		for i := range b {
			if !Equal(got[b[i].id()], b[i].V) {
				t.Errorf("%s is %v, want %v", b[i].Path(), got[b[i].id()], b[i].V)
			}
		}
	})
}

func gather(t *testing.T, s *Snapshot, most int) (text string) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	c := &Collector{Read: func() *Snapshot { return s }, MaxSeries: most}
	reg.MustRegister(c)
	if len(s.Peers) < 100 { // promlint takes the square of the number of series
		problems, err := testutil.GatherAndLint(reg)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// A pedantic registry takes them, promlint finds nothing, and units are base units.
func TestMetricsAreWhatPrometheusWants(t *testing.T) {
	text := gather(t, sample(), 20_000)
	for _, name := range []string{"inof_port_bytes_total", "inof_port_pause_seconds_total", "inof_optic_rx_power_dbm", "inof_peer_up", "inof_notice_stage_seconds", "inof_port_error_down"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
	if !strings.Contains(text, "} 1.5\n") || !strings.Contains(text, "} -2.345\n") {
		t.Error("units")
	}
	for _, word := range []string{"nqn", "zone", "addr", "address"} {
		if strings.Contains(text, word+`="`) {
			t.Errorf("a label %s has no bound", word)
		}
	}
}

// Over the limit details go first: priorities, then those of peers; whether peers are there stays.
func TestSeriesAreBounded(t *testing.T) {
	s := sample()
	for i := range 4096 {
		dev := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.Peers = append(s.Peers, api.Peer{Device: dev, Address: dev.String() + ":1", Role: "client", State: api.PeerEstablished})
	}
	text := gather(t, s, 5000)
	if n := strings.Count(text, "\"10.0."); n != 4096 {
		t.Errorf("%d series of peers, want peer_up of each", n)
	}
	if strings.Contains(text, "\ninof_port_pfc_frames_total") || strings.Contains(text, "\ninof_peer_messages_total") || !strings.Contains(text, "inof_port_up") {
		t.Error("what is left out is not what there is most of")
	}
	small := gather(t, sample(), 10)
	if n := strings.Count(small, "\ninof_"); n > 15 {
		t.Errorf("%d metrics with a limit of 10", n)
	}
}

var update = flag.Bool("update", false, "write docs/telemetry.md")

// docs/telemetry.md has every leaf: run with -update after a change.
func TestTheDocumentIsTheTable(t *testing.T) {
	const doc = "../../docs/telemetry.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| --- |") }) + 1
	last := first
	for last < len(lines) && strings.HasPrefix(lines[last], "| `/") {
		last++
	}
	if *update {
		lines = slices.Concat(lines[:first], Rows(), lines[last:])
		if err := os.WriteFile(doc, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !slices.Equal(lines[first:last], Rows()) {
		t.Error("docs/telemetry.md is not what the table says: go test ./internal/telemetry -update")
	}
}

func (v *Value) id() id { return id{v.Leaf, strings.Join(v.Keys, "\x00")} }
