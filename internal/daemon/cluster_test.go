package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/pki"
)

// clusterFabric is three reflectors in a cluster and two switches; each switch has
// sessions to all members.
type clusterFabric struct {
	*testFabric
	ca *pki.CA
}

func newCA(t *testing.T) *pki.CA {
	t.Helper()
	ca, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

var memberNames = []string{"m1", "m2", "m3"}

func memberID(name string) string { return "10.0.0.10" + name[1:] }

func newClusterFabric(t *testing.T, seed string) *clusterFabric {
	f := &clusterFabric{testFabric: newTestFabric(t), ca: newCA(t)}
	for _, name := range memberNames {
		f.member(name, seed)
	}
	settle(20 * time.Second)
	for i, tor := range []string{"tor1", "tor2"} {
		f.device(tor, fmt.Sprintf("device: {id: 10.0.0.%d, name: %s, roles: [client]}\nsession: {auth: tls, certificate-file: DIR/cert.pem, key-file: DIR/key.pem, ca-file: DIR/ca.pem}\nports: {access: [eth*]}\n"+
			"client: {reflectors: [{address: 10.0.0.101}, {address: 10.0.0.102}, {address: 10.0.0.103}]}\n", i+1, tor), "", "eth1", "eth2")
	}
	settle(20 * time.Second)
	return f
}

func (f *clusterFabric) member(name, seed string) *node {
	list := ""
	for _, m := range memberNames {
		list += fmt.Sprintf("      - {device: %s}\n", memberID(m))
	}
	return f.device(name, fmt.Sprintf("device: {id: %s, name: %s, roles: [reflector]}\nsession: {auth: tls, certificate-file: DIR/cert.pem, key-file: DIR/key.pem, ca-file: DIR/ca.pem}\nreflector:\n  cluster:\n    members:\n%s", memberID(name), name, list), seed)
}

// device makes a device of a document; seed is its zone file.
func (f *clusterFabric) device(name, doc, seed string, ports ...string) *node {
	f.t.Helper()
	dir := f.t.TempDir()
	if seed != "" {
		if err := os.WriteFile(filepath.Join(dir, "zones.yaml"), []byte(seed), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	cfg, err := config.Parse(name, []byte(strings.ReplaceAll(doc, "DIR", dir)+"notify: {peers: all}\nstate-directory: "+dir+"\n"), nil)
	if err == nil {
		err = f.ca.Write(dir, cfg.Device.ID)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	list := make([]fabric.Port, len(ports))
	for i, p := range ports {
		list[i] = fabric.Port{Name: p, AdminUp: true}
	}
	n := &node{t: f.t, f: f.testFabric, cfg: cfg, fake: fabric.NewFake(fabric.FakeConfig{Name: name}, list...)}
	n.tune = func(e *Env) { e.Dial = f.net.From(cfg.Device.ID) }
	f.nodes[name] = n
	n.start()
	return n
}

// isolate cuts a member off from the other members; its clients still reach it.
func (f *clusterFabric) isolate(names ...string) {
	f.net.Join()
	for i, a := range memberNames {
		for _, b := range memberNames[:i] {
			f.net.Part(netip.MustParseAddr(memberID(a)), netip.MustParseAddr(memberID(b)), slices.Contains(names, a) || slices.Contains(names, b))
		}
	}
	f.net.Cut()
	settle(20 * time.Second)
}

func (f *clusterFabric) leader() string {
	f.t.Helper()
	for _, name := range memberNames {
		if f.nodes[name].stop == nil {
			continue
		}
		if c, err := f.nodes[name].d.Cluster(context.Background()); err == nil && c.Leader.IsValid() && c.Accepts {
			return "m" + c.Leader.String()[9:]
		}
	}
	f.t.Fatal("no member knows a leader")
	return ""
}

func (f *clusterFabric) follower() string {
	for _, name := range memberNames {
		if f.nodes[name].stop != nil && name != f.leader() {
			return name
		}
	}
	return ""
}

func (f *clusterFabric) hosts2() {
	f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
	f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
	settle(2 * time.Second)
}

func warned(d *Daemon) string {
	s, err := d.Status(context.Background())
	if err != nil {
		return err.Error()
	}
	return s.Warnings.String()
}

const noMajority = "reaches no majority of its cluster: no zone change is accepted here; host and fault reflection goes on"

func TestAClusterChangesZonesAtAnyMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "zones:\n  - {name: seed, members: [192.0.2.99]}\n")
		f.hosts2()
		f.expectAnything()
		for _, name := range memberNames {
			if zones, _ := ask[[]api.Zone](context.Background(), f.nodes[name].d, "zones", "name", "seed"); len(zones) != 1 {
				t.Errorf("%s does not have the zone of the seed", name)
			}
		}
		// Hosts of no zone share the default zone; in the new one they go on seeing each other.
		f.zones(f.follower(), map[string][]string{"a": {i1, t1}})
		settle(2 * time.Second)
		f.expect("both in one zone", nil)
		if err := f.nodes[f.follower()].d.RemoveMembers(context.Background(), "a", []string{i1}); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expect("one has left", map[string][]string{"i1": {t1 + unzoned}, "t1": {i1 + unzoned}})

		first := f.leader()
		f.nodes[first].halt()
		settle(20 * time.Second)
		f.expect("the leader has gone", nil)
		f.zones(f.follower(), map[string][]string{"b": {i1, t1}})
		settle(2 * time.Second)
		f.expect("a change after that", map[string][]string{"i1": {t1 + active}, "t1": {i1 + active}})
		f.nodes[first].start()
		settle(30 * time.Second)
		f.expect("it is back and has caught up", nil)
		err := f.nodes[first].d.AddZone(context.Background(), "b", nil)
		if !errors.Is(err, api.ErrExists) {
			t.Errorf("the zone is not there: %v", err)
		}
		for _, tor := range []string{"tor1", "tor2"} {
			_ = f.nodes[tor].d.Device().Do(context.Background(), func(c *device.Core, _ time.Time) {
				if got := c.Differing(); len(got) > 0 {
					t.Errorf("%s says that the members differ: %v", tor, got)
				}
			})
		}
	})
}

// Each member has in its audit what was changed at any of them: by whom, at which member and what
// came of it.
func TestEachEntryOfAClusterIsInTheAuditOfAllMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "")
		at := f.follower()
		f.zones(at, map[string][]string{"a": {i1}})
		settle(2 * time.Second)
		_, err := f.nodes[f.leader()].d.ChangeZone(context.Background(), api.ZoneOrder{Do: api.ZoneAdd, Name: "a"})
		if !errors.Is(err, api.ErrExists) {
			t.Errorf("a zone that is there: %v", err)
		}
		settle(2 * time.Second)
		for _, name := range memberNames {
			l, err := f.nodes[name].d.AuditRecords(context.Background(), 100)
			if err != nil || !l.Whole {
				t.Fatalf("%s: %v, %+v", name, err, l)
			}
			var text []string
			for _, r := range l.Newest {
				if r.What == "entry of the cluster's log" {
					text = append(text, fmt.Sprintf("%s %s by %q at %s: %s %s", r.Detail["kind"], r.Detail["name"], r.By, r.Detail["member"], r.Result, r.Error))
				}
			}
			all := strings.Join(text, "\n")
			by := api.By(context.Background())
			for _, want := range []string{"genesis  by \"\" at 10.0.0.101: done", fmt.Sprintf("add-zone a by %q at %s: done", by, memberID(at)),
				fmt.Sprintf("add-zone a by %q at %s: refused zone \"a\": already exists", by, memberID(f.leader()))} {
				if !strings.Contains(all, want) {
					t.Errorf("%s: no record %q in\n%s", name, want, all)
				}
			}
		}
	})
}

func TestAMinorityRefusesZonesAndReflectsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "")
		f.hosts2()
		f.zones("m1", map[string][]string{"a": {i1, t1}})
		settle(2 * time.Second)
		f.expectAnything()
		lone := f.leader()
		f.isolate(lone)
		err := f.nodes[lone].d.AddZone(context.Background(), "b", []string{i1})
		if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), noMajority) {
			t.Errorf("the minority says %v", err)
		}
		if got := warned(f.nodes[lone].d); !strings.Contains(got, noMajority) {
			t.Errorf("its operators see %q", got)
		}
		st, err := f.nodes[lone].d.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range st.Warnings {
			if strings.Contains(w.Text, noMajority) && !strings.Contains(w.Do, "show cluster") {
				t.Errorf("they are advised %q", w.Do) // no file of theirs is wrong
			}
		}
		if err := f.nodes[f.leader()].d.RemoveMembers(context.Background(), "a", []string{t1}); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expect("the majority counts, though the minority says otherwise", map[string][]string{"i1": {t1 + unzoned}, "t1": {i1 + unzoned}})
		f.isolate()
		f.expect("whole again", nil)
		if got := warned(f.nodes[lone].d); strings.Contains(got, "cluster") {
			t.Errorf("%s: %q", lone, got)
		}

		// With the others gone nothing is decided any more, and faults are told still.
		if err := f.nodes[lone].d.AddMembers(context.Background(), "a", []string{t1}); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expectAnything()
		for _, name := range memberNames {
			if name != lone {
				f.nodes[name].halt()
			}
		}
		settle(30 * time.Second)
		f.expect("two members are gone", nil)
		if err := f.nodes[lone].d.AddZone(context.Background(), "c", nil); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("one of three accepts a change: %v", err)
		}
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("a cable is pulled", map[string][]string{"i1": {t1 + linkDown}})
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", true); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expect("and plugged", map[string][]string{"i1": {t1 + active}, "t1": {i1 + active}})
	})
}

func TestAClusterOutlivesTheRestartOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "")
		f.hosts2()
		f.zones("m2", map[string][]string{"a": {i1}, "b": {t1}})
		if err := f.nodes["m3"].d.SetClusterSetting(context.Background(), api.ClusterSetting{Name: "default-zone-auto-join", Value: "false"}); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expectAnything()
		before := f.nodes["m1"].d.cluster.node.String()
		for _, name := range memberNames {
			f.nodes[name].halt()
		}
		settle(10 * time.Second)
		// One alone has no majority, but what was in force it tells as before.
		f.nodes["m1"].start()
		settle(20 * time.Second)
		zones, err := ask[[]api.Zone](context.Background(), f.nodes["m1"].d, "zones")
		if err != nil || len(zones) != 2 {
			t.Errorf("%d zones before there is a majority, %v", len(zones), err)
		}
		if f.nodes["m1"].d.cluster.node.String() != before {
			t.Error("the member is another one")
		}
		f.nodes["m2"].start()
		f.nodes["m3"].start()
		settle(30 * time.Second)
		f.expect("all were restarted", nil)
		f.zones("m1", map[string][]string{"c": {i1, t1}})
		settle(2 * time.Second)
		f.expect("a change after that", map[string][]string{"i1": {t1 + active}, "t1": {i1 + active}})
		// A reload does not bring the zone file back.
		if err := f.nodes["m1"].d.Reload(context.Background(), f.nodes["m1"].cfg, false); err != nil {
			t.Error(err)
		}
		settle(2 * time.Second)
		f.expect("a reload", nil)
	})
}

// A switch that starts while a member is away does not wait for it: the others speak
// for it, also after they have restarted themselves.
func TestAMemberThatIsAwayHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "")
		f.zones("m1", map[string][]string{"a": {i1, t1}})
		for _, name := range append([]string{"tor1"}, memberNames...) {
			f.nodes[name].halt()
		}
		f.nodes["m1"].start()
		f.nodes["m2"].start()
		settle(30 * time.Second)
		f.nodes["tor1"].start()
		settle(4 * time.Second) // less than the time for which a reflector is waited
		if s, err := f.nodes["tor1"].d.Status(context.Background()); err != nil || !s.Synced {
			t.Errorf("the switch waits for the member that is away: %v", err)
		}
	})
}

// Three switches that are reflectors and clients at once, each with hosts of its own:
// before the cluster is formed nobody takes the silence for an answer, and a restart of
// all is told to nobody.
func TestAClusterOfSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &clusterFabric{testFabric: newTestFabric(t), ca: newCA(t)}
		box := func(name, seed string) {
			list, others := "", []string{}
			for _, m := range memberNames {
				list += fmt.Sprintf("      - {device: %s}\n", memberID(m))
				if m != name {
					others = append(others, fmt.Sprintf("{address: %s}", memberID(m)))
				}
			}
			f.device(name, fmt.Sprintf("device: {id: %s, name: %s, roles: [reflector, client]}\nsession: {auth: tls, certificate-file: DIR/cert.pem, key-file: DIR/key.pem, ca-file: DIR/ca.pem}\nports: {access: [eth*]}\nclient: {reflectors: [%s]}\nreflector:\n  cluster:\n    members:\n%s",
				memberID(name), name, strings.Join(others, ", "), list), seed, "eth1", "eth2")
		}
		box("m1", "zones:\n  - {name: a, members: [192.0.2.11, 192.0.2.51]}\n")
		box("m2", "")
		f.host("i1", "m1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "m2", "eth1", t1, snsd.RoleTarget)
		settle(30 * time.Second)
		f.expect("two of three", nil)
		box("m3", "")
		f.host("t2", "m3", "eth1", t2, snsd.RoleTarget)
		settle(40 * time.Second)
		f.expect("formed", map[string][]string{"i1": {t1 + active}, "t1": {i1 + active}})
		if err := f.nodes["m3"].d.AddMembers(context.Background(), "a", []string{t2}); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		f.expect("a change at one", map[string][]string{"i1": {t2 + active}, "t1": {t2 + active}, "t2": {i1 + active, t1 + active}})
		for _, name := range memberNames {
			f.nodes[name].halt()
		}
		settle(2 * time.Second)
		for _, name := range memberNames {
			f.nodes[name].start()
		}
		settle(40 * time.Second)
		f.expect("all were restarted", nil)
		if err := f.nodes["m1"].fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("a cable is pulled", map[string][]string{"t1": {i1 + linkDown}, "t2": {i1 + linkDown}})
	})
}
