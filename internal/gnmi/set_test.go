package gnmi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/snsd"
)

func js(p, value string) *pb.Update {
	return &pb.Update{Path: path(p), Val: &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(value)}}}
}

func commit(c *gnmi_ext.Commit) []*gnmi_ext.Extension {
	return []*gnmi_ext.Extension{{Ext: &gnmi_ext.Extension_Commit{Commit: c}}}
}

// A Set is one change of the zones, in the order delete, replace, update, or none at all.
func TestSetChangesTheZones(t *testing.T) {
	run(t, func(b *bench) {
		set := func(r *pb.SetRequest) error { _, err := b.Set(b.ctx, r); return err }
		r, err := b.Set(b.ctx, &pb.SetRequest{Update: []*pb.Update{
			js("/inof/zones/zone[name=blue]/config", `{"name":"blue","member":["192.0.2.1","alias:disks"]}`),
			{Path: path("/inof/aliases/alias[name=disks]/config/member"), Val: &pb.TypedValue{Value: &pb.TypedValue_LeaflistVal{LeaflistVal: &pb.ScalarArray{
				Element: []*pb.TypedValue{{Value: &pb.TypedValue_StringVal{StringVal: "192.0.2.2"}}}}}}},
		}})
		if err != nil || len(r.Response) != 2 || r.Response[0].Op != pb.UpdateResult_UPDATE {
			t.Fatal(r, err)
		}
		if z := b.src.book.Plan().Expand("blue"); len(z.Members) != 2 {
			t.Errorf("%+v", z)
		}
		b.code(set(&pb.SetRequest{Delete: []*pb.Path{path("/inof/aliases/alias[name=disks]")}}), codes.InvalidArgument, `no alias "disks"`)
		b.code(set(&pb.SetRequest{Update: []*pb.Update{js("/inof/zones/zone[name=red]/config", `{"name":"red","member":["nonsense!"]}`)}}), codes.InvalidArgument, "")
		b.code(set(&pb.SetRequest{Update: []*pb.Update{js("/inof/state/name", `"x"`)}}), codes.InvalidArgument, "")
		b.code(set(&pb.SetRequest{Update: []*pb.Update{js("/nowhere", `"x"`)}}), codes.Unimplemented, "/nowhere")
		b.code(set(&pb.SetRequest{Delete: []*pb.Path{path("/inof/zones/zone[name=*]")}}), codes.InvalidArgument, "wildcards")
		b.code(set(&pb.SetRequest{UnionReplace: []*pb.Update{js("/inof", "{}")}}), codes.Unimplemented, "union_replace")
		b.code(set(&pb.SetRequest{Update: []*pb.Update{js("/inof/zones", `{`)}}), codes.InvalidArgument, "JSON")
		if n := b.src.book.Last().Number; n != 2 {
			t.Errorf("version %d is in force: what was refused has changed something", n)
		}
		b.code(set(&pb.SetRequest{Delete: []*pb.Path{path("/inof/zones")}}), codes.OK, "")
		if n := len(b.src.book.Plan().Zones); n != 0 {
			t.Errorf("%d zones are left", n)
		}
		if d := b.src.deeds; len(d) != 9 || d[0].Result != "done" || !strings.Contains(d[0].By, "operator (token") || !strings.Contains(d[0].Body, "update /inof/zones/zone[name=blue]/config") || d[1].Result == "done" {
			t.Errorf("%+v", d)
		}
	})
}

// A commit is taken back unless it is confirmed by its own name; another one has to wait.
func TestACommitIsConfirmedByItsName(t *testing.T) {
	run(t, func(b *bench) {
		set := func(r *pb.SetRequest) error { _, err := b.Set(b.ctx, r); return err }
		zone := []*pb.Update{js("/inof/zones/zone[name=blue]/config", `{"name":"blue","member":["192.0.2.1"]}`)}
		begin := func(d time.Duration) *gnmi_ext.Commit {
			c := &gnmi_ext.CommitRequest{}
			if d > 0 {
				c.RollbackDuration = durationpb.New(d)
			}
			return &gnmi_ext.Commit{Id: "7", Action: &gnmi_ext.Commit_Commit{Commit: c}}
		}
		confirm := func(id string) *gnmi_ext.Commit {
			return &gnmi_ext.Commit{Id: id, Action: &gnmi_ext.Commit_Confirm{Confirm: &gnmi_ext.CommitConfirm{}}}
		}
		b.code(set(&pb.SetRequest{Update: zone, Extension: commit(begin(time.Millisecond))}), codes.InvalidArgument, "rollback_duration")
		b.code(set(&pb.SetRequest{Update: zone, Extension: commit(&gnmi_ext.Commit{Id: "7"})}), codes.InvalidArgument, "action")
		b.code(set(&pb.SetRequest{Extension: commit(confirm("7"))}), codes.FailedPrecondition, "no commit waits")
		b.code(set(&pb.SetRequest{Update: zone, Extension: commit(begin(0))}), codes.OK, "")
		if p := b.src.book.Pending(); p == nil || time.Until(p.Deadline) != rollback {
			t.Fatalf("%+v", p)
		}
		more := func(id string, d time.Duration) *gnmi_ext.Commit {
			return &gnmi_ext.Commit{Id: id, Action: &gnmi_ext.Commit_SetRollbackDuration{SetRollbackDuration: &gnmi_ext.CommitSetRollbackDuration{RollbackDuration: durationpb.New(d)}}}
		}
		b.code(set(&pb.SetRequest{Extension: commit(more("8", time.Hour))}), codes.FailedPrecondition, "not as commit")
		b.code(set(&pb.SetRequest{Extension: commit(more("7", time.Second))}), codes.InvalidArgument, "rollback_duration")
		b.code(set(&pb.SetRequest{Extension: commit(more("7", time.Hour))}), codes.OK, "")
		if p := b.src.book.Pending(); p == nil || time.Until(p.Deadline) != time.Hour {
			t.Fatalf("%+v waits", p)
		}
		b.code(set(&pb.SetRequest{Update: zone}), codes.FailedPrecondition, "waits for its confirmation")
		b.code(set(&pb.SetRequest{Extension: commit(confirm("8"))}), codes.FailedPrecondition, `not as commit "8"`)
		b.code(set(&pb.SetRequest{Update: zone, Extension: commit(confirm("7"))}), codes.InvalidArgument, "nothing else")
		b.code(set(&pb.SetRequest{Extension: commit(confirm("7"))}), codes.OK, "")
		if b.src.book.Pending() != nil || len(b.src.book.Plan().Zones) != 1 {
			t.Error("it was not confirmed")
		}
		red := []*pb.Update{js("/inof/zones/zone[name=red]/config", `{"name":"red","member":["192.0.2.3"]}`)}
		b.code(set(&pb.SetRequest{Update: red, Extension: commit(begin(time.Hour))}), codes.OK, "")
		cancel := &gnmi_ext.Commit{Id: "7", Action: &gnmi_ext.Commit_Cancel{Cancel: &gnmi_ext.CommitCancel{}}}
		b.code(set(&pb.SetRequest{Extension: commit(cancel)}), codes.OK, "")
		if len(b.src.book.Plan().Zones) != 1 {
			t.Error("it was not taken back")
		}
	})
}

// Any path is answered, matched or refused; what is matched has keys for each of its filters.
func FuzzPath(f *testing.F) {
	f.Add("/interfaces/interface[name=eth1]/state/*", "", false)
	f.Add("/.../state/.../name", "openconfig", true)
	f.Add("openinof-inof:inof/hosts/host[address=192.0.2.1][device=*]", "openinof-inof", true)
	f.Fuzz(func(t *testing.T, text, origin string, prefix bool) {
		p := path(text)
		p.Origin = origin
		var in *pb.Path
		if prefix && len(p.Elem) > 1 {
			in, p = &pb.Path{Elem: p.Elem[:1]}, &pb.Path{Origin: origin, Elem: p.Elem[1:]}
		}
		q, err := parse(in, p)
		if err != nil {
			return
		}
		for _, a := range theSchema.find(q) {
			if len(a.ways) == 0 || len(a.ways) > maxWays {
				t.Fatalf("%s: %d ways", q, len(a.ways))
			}
			for _, w := range a.ways {
				if len(w.filter) != a.keys || w.depth > len(a.elems) {
					t.Fatalf("%s at %s: %d filters, depth %d", q, a.Path, len(w.filter), w.depth)
				}
				keys := make([]string, a.keys)
				for i, k := range w.filter {
					if k != nil {
						keys[i] = *k
					}
				}
				if _, ok := a.covers(keys); !ok {
					t.Fatalf("%s does not cover %q", q, keys)
				}
			}
		}
	})
}

// yanglint takes all that the device says of itself as data of our module.
func TestYanglintTakesTheData(t *testing.T) {
	netnstest.Programs(t, "yanglint")
	var text []byte
	run(t, func(b *bench) {
		b.code(func() error {
			_, err := b.Set(b.ctx, &pb.SetRequest{Update: []*pb.Update{js("/inof", `{"zones":{"zone":[{"name":"blue","config":{"name":"blue","member":["192.0.2.1"]}}]},"zone-sets":{"zone-set":[{"name":"day","config":{"name":"day","zone":["blue"]}}]},"config":{"active-zone-set":"day"}}`)}})
			return err
		}(), codes.OK, "")
		b.src.change(func(s *telemetry.Snapshot) {
			s.Status.Device, s.Status.Roles, s.Status.Started = addr("192.0.2.250"), []string{"reflector"}, time.Now()
			s.Hosts.Rows = []api.Host{{Addr: addr("192.0.2.1"), Device: addr("192.0.2.11"), Port: "eth1", Role: snsd.RoleBoth, Zones: []string{"blue"}, Hard: api.HardOff, State: snsd.Active, Since: time.Now()}}
			s.Hosts.At, s.Zones.At = time.Now(), time.Now()
			s.Zones.Rows = []api.Zone{{Name: "blue", Members: []string{"192.0.2.1"}, LearnedFrom: "local"}, {Name: "default"}}
			s.Peers = []api.Peer{{Device: addr("192.0.2.11"), Address: "192.0.2.11:4711", Role: "client", State: api.PeerEstablished, Since: time.Now()}}
			s.Faults = []api.ErrorDown{{Port: "eth1", Cause: "link-down"}}
			s.Paths = api.BFD{Sessions: []api.BFDSession{{Device: addr("192.0.2.12"), Report: "up"}}}
			s.Health[0].Valid = 1<<9 - 1
			s.Health[0].RxPause[3] = 5
			s.Counters = []api.Counter{{Room: "hostnotify", Name: "acked", Value: 4}, {Room: "bfd", Name: "x.y", Value: 0.5}}
			s.Latency = api.Latency{Bounds: []float64{1}, Stages: []api.Stage{{Scope: api.ScopeTold, Name: "acked", Buckets: []uint64{1, 1}, Total: api.Quantiles{Count: 1, P50: 2}}}}
			s.Latest = &api.Event{ID: 3, Time: time.Now(), Kind: "port", Text: "a \"text\"", Fields: map[string]string{"a": "b"}}
			s.Events = map[string]uint64{"port": 1}
			s.Cluster = &api.Cluster{}
		})
		r, err := b.Get(b.ctx, &pb.GetRequest{Path: []*pb.Path{path("/")}, Encoding: pb.Encoding_JSON_IETF, UseModels: []*pb.ModelData{{Name: telemetry.Module}}})
		if err != nil {
			t.Fatal(err)
		}
		text = r.Notification[0].Update[0].Val.GetJsonIetfVal()
	})
	file := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("yanglint", "-t", "data", "../../dist/yang/openinof-inof.yang", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
	for _, member := range []string{`"member":["192.0.2.1"]`, `"in-pfc-frames":"5"`, `"optic-input-power":"-2.5"`, `"address":"192.0.2.11:4711"`, `"active":true`} {
		if !strings.Contains(string(text), member) {
			t.Errorf("no %s in %s", member, text)
		}
	}
}
