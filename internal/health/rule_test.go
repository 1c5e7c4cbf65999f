package health

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

var update = flag.Bool("update", false, "write docs/warnings.md anew")

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// good is a device of which there is nothing to say.
func good() Facts {
	return Facts{Now: now, Synced: true, Peers: []api.Peer{{Address: "192.0.2.250:19516", Role: "reflector", State: api.PeerEstablished}},
		Paths: &Paths{BFD: api.BFD{Enabled: true, Process: api.BFDProcess{Needed: true, Connected: true, Started: &now},
			Sessions: []api.BFDSession{{Device: addr("192.0.2.12"), Report: "up", Since: &now}}}}}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func refusal(code wire.Code, text string) api.Peer {
	at := now.Add(-90 * time.Second)
	return api.Peer{Address: "198.51.100.7:40000", Role: "client", Refused: true, LastError: text, LastErrorAt: &at, LastCode: code.String()}
}

func TestAGoodDeviceHasNoWarnings(t *testing.T) {
	f := good()
	if got := Warnings(&f, &Incidents{}); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
	empty := Facts{Now: now, Synced: true}
	if got := Warnings(&empty, &Incidents{}); len(got) != 0 {
		t.Errorf("a standalone device: %+v", got)
	}
}

// Each rule with a condition is raised by what it is for, alone, and says what and where.
func TestEachRuleIsRaised(t *testing.T) {
	long := now.Add(-time.Minute)
	soon, past := now.Add(48*time.Hour+time.Minute), now.Add(-time.Hour)
	session := func(f *Facts) *api.BFDSession { return &f.Paths.Sessions[0] }
	cases := []struct {
		rule string
		make func(*Facts)
		text string
	}{
		{"not-synchronized", func(f *Facts) { f.Synced = false }, "not synchronized"},
		{"observing", func(f *Facts) { f.Mode = api.Mode{Observes: true, Configured: true} }, "observe: mode: observe in the configuration"},
		{"hosts-silent", func(f *Facts) {
			f.Silent = []Silent{{addr("192.0.2.101"), "Ethernet2", 7, now.Add(-5 * time.Second)}}
		}, "host 192.0.2.101 on port Ethernet2 leaves 7 notice(s) unacked, for 5s now"},
		{"port-removed", func(f *Facts) { f.Removed = []RemovedPort{{"Ethernet2", 3, now}} }, "port Ethernet2 was removed from the configuration: its 3 host address(es) count as gone at 2026-05-04T12:00:00Z"},
		{"secret-exposed", func(f *Facts) { f.Exposed = []string{"session.password-file: everybody may read /p"} }, "everybody may read /p"},
		{"port-unconfirmed", func(f *Facts) {
			f.Doubts = []fabric.Doubt{{Port: "Ethernet0", Since: now.Add(-4 * time.Second), Err: errors.New("redis is gone")}}
		}, "port Ethernet0 was to be shut 4s ago, and the switch does not confirm it: redis is gone"},
		{"switch-not-programmed", func(f *Facts) {
			f.Doubts = []fabric.Doubt{{Program: "orchagent", Without: "nothing is programmed"}}
		}, "orchagent does not run: nothing is programmed"},
		{"cause-blind", func(f *Facts) {
			f.Blind = map[string][]string{"crc": {"a", "b", "c", "d", "e", "f", "g", "h", "i"}}
		}, "crc is on and cannot see anything on port a, b, c, d, e, f, g, h and 1 more"},
		{"port-drained", func(f *Facts) { f.Drained = []DrainedPort{{"Ethernet4", now, true}} }, "port Ethernet4 is drained and shut, since 2026-05-04T12:00:00Z"},
		{"port-unknown", func(f *Facts) { f.IdleNames = []string{"Ethrnet*", "Ethernet5"} }, "ports.access: Ethrnet*, Ethernet5: no such port here"},
		{"reload-failed", func(f *Facts) { f.Reload = "line 3" }, "line 3"},
		{"zones-not-in-force", func(f *Facts) { f.Zones = "line 4" }, "line 4"},
		{"cluster-apart", func(f *Facts) { f.Cluster = "no majority" }, "no majority"},
		{"state-not-saved", func(f *Facts) { f.State = []string{"disk full"} }, "disk full"},
		{"port-not-guarded", func(f *Facts) { f.PortGuard = []string{"port p1 cannot be guarded: tcx"} }, "port p1 cannot be guarded"},
		{"hard-zoning-abnormal", func(f *Facts) { f.HardZoning = []string{"this dataplane cannot filter"} }, "cannot filter"},
		{"fence-abnormal", func(f *Facts) { f.Fence = "the table is full" }, "table is full"},
		{"hard-zoning-suspended", func(f *Facts) { f.HardSuspended = true }, "suspended"},
		{"own-certificate", func(f *Facts) { f.Certificates = []string{"expires"} }, "expires"},
		{"events-not-logged", func(f *Facts) { f.EventsNotLogged = 4 }, "4 event(s)"},
		{"syslog-unreachable", func(f *Facts) { f.Syslog = []string{"syslog to tls://192.0.2.9:6514: refused"} }, "tls://192.0.2.9:6514: refused"},
		{"descriptors-short", func(f *Facts) { f.NoDescriptors = 7 }, "7 connection(s) were closed"},
		{"listener-failed", func(f *Facts) { f.Listeners = []string{"management.netconf: address already in use"} }, "management.netconf: address already in use"},
		{"no-session", func(f *Facts) {
			f.Peers[0].State, f.Peers[0].LastError = api.PeerConnect, "connection refused"
		}, "no session with reflector 192.0.2.250:19516: connection refused"},
		{"client-password", func(f *Facts) {
			f.Peers = append(f.Peers, refusal(wire.CodeAuthFailed, "wrong tag"))
		}, "a connection from 198.51.100.7:40000 was refused 1m30s ago: wrong tag"},
		{"client-password", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeAuthMode, "tls")) }, "refused"},
		{"client-certificate", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeTLS, "no")) }, "refused"},
		{"client-unknown", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeDevice, "no")) }, "refused"},
		{"own-id", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeOwnID, "no")) }, "refused"},
		{"duplicate-id", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeDuplicate, "no")) }, "refused"},
		{"client-refused", func(f *Facts) { f.Peers = append(f.Peers, refusal(wire.CodeVersion, "no")) }, "refused"},
		{"client-refused", func(f *Facts) { f.Peers = append(f.Peers, refusal(0, "broken")) }, "broken"},
		{"device-awaited", func(f *Facts) {
			f.Awaited = []Awaited{{addr("192.0.2.12"), now.Add(30 * time.Second), 3}}
		}, "device 192.0.2.12 has no session: its 3 host(s) are kept until 12:00:30 (30s left)"},
		{"peer-certificate", func(f *Facts) { f.Peers[0].CertificateExpires = &soon }, "expires in 2 day(s)"},
		{"peer-certificate", func(f *Facts) { f.Peers[0].CertificateExpires = &past }, "has expired"},
		{"device-floods", func(f *Facts) { f.Peers[0].SlowedSince = &long }, "more records than it may"},
		{"host-outside", func(f *Facts) {
			f.Refused = []Refused{{Device: addr("192.0.2.12"), Outside: 2, Named: []netip.Addr{addr("192.0.2.101")}}}
		}, "2 host(s) of device 192.0.2.12 are outside of its binding and refused: 192.0.2.101 and 1 more"},
		{"host-outside", func(f *Facts) {
			f.Refused = []Refused{{Device: addr("192.0.2.250"), Own: true, Outside: 1, Named: []netip.Addr{addr("192.0.2.101")}}}
		}, "reflector 192.0.2.250 refuses 1 host(s) of this device, which it binds to others: 192.0.2.101"},
		{"hosts-refused", func(f *Facts) { f.Refused = []Refused{{Device: addr("192.0.2.12"), Hosts: 3, Limit: 7}} }, "3 host(s) of device 192.0.2.12 are refused, limit 7"},
		{"hosts-refused", func(f *Facts) { f.Refused = []Refused{{Device: addr("192.0.2.250"), Own: true, Hosts: 3, Limit: 7}} }, "reflector 192.0.2.250 refuses 3 host(s) of this device"},
		{"messages-wait", func(f *Facts) { f.Waits, f.WaitsOf = 2*time.Second, addr("192.0.2.12") }, "device 192.0.2.12 has waited for 2s"},
		{"messages-rest", func(f *Facts) { f.Rests, f.RestsOf = 6*time.Second, addr("192.0.2.12") }, "device 192.0.2.12 has waited for 6s, for it has said more than it may"},
		{"address-conflict", func(f *Facts) { f.Counts.Conflicts = 2 }, "2 address(es)"},
		{"declared-misplaced", func(f *Facts) {
			f.Declared = []Declared{{Host: addr("192.0.2.51"), Ports: "eth1,eth2", Stray: "eth7"}}
		}, "declared host 192.0.2.51 answers on port eth7, and may be on eth1,eth2 only"},
		{"declared-twice", func(f *Facts) {
			f.Declared = []Declared{{Host: addr("192.0.2.51"), Ports: "eth1,eth2", First: "eth1", Second: "eth2"}}
		}, "declared host 192.0.2.51 answers on ports eth1 and eth2: it is on eth1"},
		{"path-down", func(f *Facts) { session(f).Fault = true }, "the path to device 192.0.2.12 fails"},
		{"path-never-up", func(f *Facts) { session(f).Report, session(f).Since = "unknown", &long }, "never been seen to work"},
		{"path-keyless", func(f *Facts) { session(f).Keyless, session(f).Since = true, &long }, "no reflector has handed out a key"},
		{"path-held-down", func(f *Facts) { session(f).Report = "admin-down" }, "holds the session down"},
		{"bfd-off", func(f *Facts) { f.Paths.Off = true }, "bfd.enabled"},
		{"bfd-process", func(f *Facts) { f.Paths.Process = api.BFDProcess{Needed: true, Since: long, LastError: "no socket"} }, "no socket"},
		{"bfd-process", func(f *Facts) { f.Paths.Lost, f.Paths.LastLost = 3, long }, "lost 3 time(s)"},
		{"bfd-port-contested", func(f *Facts) {
			f.Paths.Device, f.Paths.Process.Holders = addr("192.0.2.11"), []api.BFDHolder{{Address: addr("192.0.2.11"), Owner: "bird (pid 7)"}}
		}, "bird (pid 7) has bound UDP port 4784 of the device id 192.0.2.11 too"},
		{"bfd-port-contested", func(f *Facts) {
			f.Paths.Device, f.Paths.Process.Holders = addr("192.0.2.11"), []api.BFDHolder{{Address: addr("0.0.0.0"), Owner: "bfdd (pid 7)"}}
			f.Paths.Process.Stray = &api.BFDStray{From: addr("192.0.2.12"), Since: long, Last: now}
		}, "packets of BFD from 192.0.2.12 to the device id 192.0.2.11 are for no session of this device, since 2026-05-04 11:59:00: bfdd (pid 7) has a multihop session"},
	}
	raised := map[string]bool{}
	for _, c := range cases {
		f := good()
		c.make(&f)
		got := Warnings(&f, &Incidents{})
		if len(got) != 1 || got[0].Rule != c.rule || !strings.Contains(got[0].Text, c.text) || got[0].Do == "" {
			t.Errorf("%s: %+v", c.rule, got)
		}
		raised[c.rule] = true
	}
	for _, r := range Rules() {
		if r.Find != nil && !raised[r.Name] {
			t.Errorf("no case raises %s", r.Name)
		}
	}
}

// That FRR's bfdd is bound to all addresses is no fault, nor are stray packets without one.
func TestAPortThatIsSharedIsNoWarning(t *testing.T) {
	f := good()
	f.Paths.Device = addr("192.0.2.11")
	f.Paths.Process.Holders = []api.BFDHolder{{Address: addr("0.0.0.0"), Owner: "bfdd"}, {Address: addr("::"), Owner: "bfdd"}}
	if got := Warnings(&f, &Incidents{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	f.Paths.Process.Holders, f.Paths.Process.Stray = f.Paths.Process.Holders[1:], &api.BFDStray{From: addr("192.0.2.12"), Since: now.Add(-time.Minute), Last: now}
	if got := Warnings(&f, &Incidents{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A flood of one kind does not fill the screen.
func TestManyOfOneKindAreCounted(t *testing.T) {
	f := good()
	for range 50 {
		f.Peers = append(f.Peers, refusal(wire.CodeAuthFailed, "x"))
		f.Silent = append(f.Silent, Silent{Host: addr("192.0.2.1"), Since: now})
		f.Awaited = append(f.Awaited, Awaited{Device: addr("192.0.2.1"), Until: now})
	}
	if got := Warnings(&f, &Incidents{}); len(got) != 3*(mostNamed+1) || !strings.Contains(got.String(), "42 more") {
		t.Errorf("%d warnings: %s", len(got), got)
	}
}

// What happened stands for a time after it happened last, once for each place.
func TestAnIncidentStandsForItsTime(t *testing.T) {
	var x Incidents
	note := func(port string, at time.Duration, text string) {
		x.Note(&api.Event{Time: now.Add(at), Port: port, Text: text, Warning: FramesDropped})
	}
	x.Note(&api.Event{Time: now, Text: "no warning"})
	note("eth1", 0, "first")
	note("eth1", time.Minute, "second")
	note("eth2", 2*time.Minute, "other")
	at := func(d time.Duration) (texts []string) {
		f := good()
		f.Now = now.Add(d)
		for _, w := range Warnings(&f, &x) {
			texts = append(texts, fmt.Sprintf("%s %d", w.Text, w.Count))
		}
		return texts
	}
	for d, want := range map[time.Duration][]string{3 * time.Minute: {"other 1", "second 2"}} {
		if diff := cmp.Diff(want, at(d)); diff != "" {
			t.Errorf("after %v: %s", d, diff)
		}
	}
	if diff := cmp.Diff([]string{"other 1"}, at(11*time.Minute+time.Second)); diff != "" {
		t.Error(diff)
	}
	if got := at(time.Hour); got != nil || len(x.m) != 0 {
		t.Errorf("after an hour: %v, %d kept", got, len(x.m))
	}
}

func TestIncidentsAreBounded(t *testing.T) {
	var x Incidents
	for i := range 2 * MaxIncidents {
		x.Note(&api.Event{Time: now.Add(time.Duration(i) * time.Millisecond), Addr: fmt.Sprint(i), Warning: FramesDropped})
	}
	if len(x.m) != MaxIncidents {
		t.Errorf("%d are kept", len(x.m))
	}
	if _, newest := x.m[incidentKey{rule: FramesDropped, addr: fmt.Sprint(2*MaxIncidents - 1)}]; !newest {
		t.Error("the newest is not among them")
	}
}

// Every rule is declared in full, and the documentation has it.
func TestRulesAreDocumented(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("# Warnings\n\n" +
		"What `inofctl show status` warns of, and what to do. `show status --check` exits with 3 while there\n" +
		"is one; `-o json` has the name, the text and what to do of each. Warnings of what happened, as\n" +
		"opposed to what stands, are shown for the time given after it happened last.\n\n" +
		"A reflector has the warnings of its clients too, each with the devices that report it (every 10 s),\n" +
		"as long as their sessions last: its status is that of the fabric.\n\n" +
		"| warning | raised when | what to do | stands |\n| --- | --- | --- | --- |\n")
	seen := map[string]bool{}
	for _, r := range Rules() {
		stands := "while it is so"
		if r.Find == nil {
			stands = strings.TrimSuffix(r.Memory.String(), "0s") + " after the last"
		}
		if r.Name == "" || r.When == "" || r.Do == "" || seen[r.Name] || (r.Find == nil) != (r.Memory > 0) {
			t.Errorf("rule %q is not declared in full, or twice", r.Name)
		}
		seen[r.Name] = true
		fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", r.Name, r.When, r.Do, stands)
	}
	const path = "../../docs/warnings.md"
	if *update {
		if err := os.WriteFile(path, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(doc.String(), string(got)); diff != "" {
		t.Errorf("docs/warnings.md (-update writes it anew): %s", diff)
	}
}
