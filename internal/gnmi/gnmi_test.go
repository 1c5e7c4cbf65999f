package gnmi

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// device is a Source.
type device struct {
	*api.EventLog
	mu    sync.Mutex
	s     telemetry.Snapshot
	reads int // snapshots
	quick int // of which only what has a Reader
	paces map[*telemetry.Pace]bool
	book  *change.Book
	deeds []api.Deed
	api.ZoningSource
}

func (d *device) Snapshot(_ context.Context, _ telemetry.Need, _ time.Time) (*telemetry.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	s := d.s
	s.At = time.Now()
	s.Zoning = &telemetry.Zoning{Plan: d.book.Plan()}
	return &s, nil
}

func (d *device) Quick(ctx context.Context) (*telemetry.Snapshot, error) {
	d.mu.Lock()
	d.quick++
	d.mu.Unlock()
	return d.Snapshot(ctx, 0, time.Time{})
}

func (d *device) Hasten(p telemetry.Pace) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paces == nil {
		d.paces = map[*telemetry.Pace]bool{}
	}
	d.paces[&p] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.paces, &p)
	}
}

// pace is the one that is asked for.
func (d *device) pace() (p telemetry.Pace) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for one := range d.paces {
		p.Add(*one)
	}
	return p
}

// change is a change of what is known.
func (d *device) change(f func(s *telemetry.Snapshot)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.s)
}

func (d *device) Zoning(context.Context) (api.Zoning, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := api.ZoneVersion{Number: d.book.Last().Number, Base: d.book.Base(), Comment: d.book.Last().Comment}
	if p := d.book.Pending(); p != nil {
		v.Confirm = &p.Deadline
	}
	return api.Zoning{Version: v, Plan: d.book.Plan()}, nil
}

func (d *device) CommitZones(_ context.Context, c api.ZoneCandidate) (api.ZoneCommitted, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := change.Order{Delta: change.Diff(d.book.Plan(), c.Plan), Base: c.Base, Meta: change.Meta{Comment: c.Comment}, Extends: c.Extends}
	if err := c.Plan.Check(zone.Rules{}); err != nil {
		return api.ZoneCommitted{}, errors.Join(api.ErrInvalid, err)
	}
	if c.Confirm > 0 {
		o.Deadline = time.Now().Add(time.Duration(c.Confirm))
	}
	next := d.book.Clone() // who reads the plan of before goes on
	_, made, err := next.Commit(o)
	d.book = next
	return api.ZoneCommitted{Changed: made}, err
}

func (d *device) SettleZones(_ context.Context, number uint64, stay bool) (api.ZoneVersion, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	next := d.book.Clone()
	if stay {
		_, err = next.Confirm(number)
	} else {
		_, err = next.Abort(number, change.Meta{})
	}
	d.book = next
	return api.ZoneVersion{}, err
}

func (d *device) Audit(_ context.Context, x api.Deed) { d.deeds = append(d.deeds, x) }

// port is one that exists.
func port(name string, in uint64) api.Port {
	return api.Port{Name: name, Index: 3, MTU: 9000, AdminUp: true, Carrier: true, State: api.PortUp, Counters: &fabric.Counters{RxBytes: in}}
}

// bench is a server with a client.
type bench struct {
	*testing.T
	src    *device
	server *Server
	pb.GNMIClient
	ctx context.Context
}

func run(t *testing.T, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		log := api.NewEventLog(100, time.Now())
		src := &device{EventLog: log, book: change.NewBook(&change.Plan{}, change.Meta{})}
		src.s.Status.Name, src.s.Inconsistent = "tor-1", -1
		src.s.Ports = []api.Port{port("eth1", 100), port("eth2", 200)}
		src.s.Health = []telemetry.Health{{Port: "eth1", Health: fabric.Health{At: time.Now(), Valid: fabric.FieldRxPower, RxPower: -2500}}}
		src.s.CountersAt = time.Now()
		var tokens []api.Token
		for name, role := range map[string]api.Role{"viewer": api.Viewer, "operator": api.Operator} {
			list, err := api.ParseTokens([]byte(name + " " + role.String() + " " + sumOf(name+"-token")))
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, list...)
		}
		s := New(src, &api.Door{Gate: &api.Gate{Tokens: func() ([]api.Token, error) { return tokens, nil }}}, time.Now) // one of each role
		l := bufconn.Listen(1 << 16)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l, nil) }()
		conn, err := grpc.NewClient("passthrough:x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t, src, s, pb.NewGNMIClient(conn), as(t.Context(), "operator-token")}
		f(b)
		conn.Close()
		stop()
		<-done
		time.Sleep(time.Minute)
	})
}

func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// path reads a path as people write it.
func path(text string) *pb.Path {
	p := &pb.Path{}
	if origin, rest, ok := strings.Cut(text, "::"); ok {
		p.Origin, text = origin, rest
	}
	for part := range strings.SplitSeq(strings.Trim(text, "/"), "/") {
		if part == "" {
			continue
		}
		name, keys, _ := strings.Cut(part, "[")
		e := &pb.PathElem{Name: name}
		for key := range strings.SplitSeq(strings.TrimSuffix(keys, "]"), "][") {
			if k, v, ok := strings.Cut(key, "="); ok {
				if e.Key == nil {
					e.Key = map[string]string{}
				}
				e.Key[k] = v
			}
		}
		p.Elem = append(p.Elem, e)
	}
	return p
}

// written is a path as people write it.
func written(paths ...*pb.Path) string {
	var b strings.Builder
	for _, p := range paths {
		for _, e := range p.GetElem() {
			b.WriteString("/" + e.Name)
			for _, k := range sortedKeys(e.Key) {
				b.WriteString("[" + k + "=" + e.Key[k] + "]")
			}
		}
	}
	return b.String()
}

func valueText(v *pb.TypedValue) string {
	switch x := v.GetValue().(type) {
	case *pb.TypedValue_JsonVal:
		return string(x.JsonVal)
	case *pb.TypedValue_JsonIetfVal:
		return string(x.JsonIetfVal)
	}
	return strings.ReplaceAll(v.String(), "  ", " ")
}

func (b *bench) code(err error, want codes.Code, words string) {
	b.Helper()
	if st := status.Convert(err); st.Code() != want || !strings.Contains(st.Message(), words) {
		b.Errorf("%v, want %v %q", err, want, words)
	}
}

// A Get gives one notification for each path, in the encoding that was asked for.
func TestGetGivesWhatIsThere(t *testing.T) {
	run(t, func(b *bench) {
		for _, c := range []struct {
			path string
			enc  pb.Encoding
			typ  pb.GetRequest_DataType
			want string
		}{
			{"/interfaces/interface[name=eth1]/state/counters/in-octets", pb.Encoding_JSON_IETF, 0, `/interfaces/interface[name=eth1]/state/counters/in-octets "100"`},
			{"/interfaces/interface[name=eth1]/state/counters/in-octets", pb.Encoding_JSON, 0, `/interfaces/interface[name=eth1]/state/counters/in-octets 100`},
			{"/interfaces/interface[name=eth1]/state/counters/in-octets", pb.Encoding_PROTO, 0, `/interfaces/interface[name=eth1]/state/counters/in-octets uint_val:100`},
			{"/interfaces/interface/state/mtu", pb.Encoding_JSON_IETF, 0, `/interfaces/interface[name=eth1]/state/mtu 9000;/interfaces/interface[name=eth2]/state/mtu 9000`},
			{"/interfaces/interface[name=*]/name", pb.Encoding_JSON_IETF, 0, `/interfaces/interface[name=eth1]/state/name "eth1";/interfaces/interface[name=eth2]/state/name "eth2"`},
			{"openconfig-interfaces:interfaces/interface[name=eth2]/ethernet", pb.Encoding_JSON_IETF, 0, `/interfaces/interface[name=eth2]/ethernet {"openconfig-if-ethernet:state":{"mac-address":"00:00:00:00:00:00"}}`},
			{"/.../mac-address", pb.Encoding_JSON, 0, `/interfaces/interface[name=eth1]/ethernet/state/mac-address "00:00:00:00:00:00";/interfaces/interface[name=eth2]/ethernet/state/mac-address "00:00:00:00:00:00"`},
			{"/inof/interfaces/interface[name=eth1]/state/optic-input-power", pb.Encoding_JSON_IETF, 0, `/inof/interfaces/interface[name=eth1]/state/optic-input-power "-2.5"`},
			{"/inof/interfaces/interface[name=eth1]/state/optic-input-power", pb.Encoding_PROTO, 0, `/inof/interfaces/interface[name=eth1]/state/optic-input-power double_val:-2.5`},
			{"/inof/zones", pb.Encoding_JSON_IETF, pb.GetRequest_CONFIG, `/inof/zones {"openinof-inof:zone":[{"config":{"member":["192.0.2.1"],"name":"blue"},"name":"blue"}]}`},
			{"/inof/zones/zone[name=blue]", pb.Encoding_JSON_IETF, pb.GetRequest_CONFIG, `/inof/zones/zone[name=blue] {"openinof-inof:config":{"member":["192.0.2.1"],"name":"blue"},"openinof-inof:name":"blue"}`},
			{"/inof/zones/zone[name=blue]/config/member", pb.Encoding_PROTO, 0, `/inof/zones/zone[name=blue]/config/member leaflist_val:{element:{string_val:"192.0.2.1"}}`},
		} {
			p := &change.Plan{}
			m, _ := zone.ParseMember("192.0.2.1")
			p.PutZone("blue", change.Zone{Members: []zone.Member{m}})
			b.src.book = change.NewBook(p, change.Meta{})
			r, err := b.Get(b.ctx, &pb.GetRequest{Path: []*pb.Path{path(c.path)}, Encoding: c.enc, Type: c.typ})
			if err != nil || len(r.GetNotification()) != 1 {
				b.Errorf("%s: %v, %v", c.path, r, err)
				continue
			}
			var got []string
			for _, u := range r.Notification[0].Update {
				got = append(got, written(u.Path)+" "+valueText(u.Val))
			}
			if d := cmp.Diff(c.want, strings.Join(got, ";")); d != "" {
				b.Errorf("%s: %s", c.path, d)
			}
		}
		r, err := b.Get(b.ctx, &pb.GetRequest{Prefix: &pb.Path{Target: "x", Origin: "openconfig"}, Path: []*pb.Path{path("/interfaces")}})
		if p := r.GetNotification()[0].GetPrefix(); err != nil || p.Target != "x" || p.Origin != "openconfig" {
			b.Errorf("the prefix is %v, %v", p, err)
		}
		r, err = b.Get(b.ctx, &pb.GetRequest{Path: []*pb.Path{path("/interfaces/interface[name=eth1]/state")}, Extension: []*gnmi_ext.Extension{{Ext: &gnmi_ext.Extension_Depth{Depth: &gnmi_ext.Depth{Level: 1}}}}})
		if text := valueText(r.GetNotification()[0].Update[0].Val); err != nil || strings.Contains(text, "in-octets") || !strings.Contains(text, "mtu") {
			b.Errorf("with depth 1: %s, %v", text, err)
		}
	})
}

// What cannot be answered is refused with the code of the specification, and counted.
func TestBadRequestsAreRefused(t *testing.T) {
	run(t, func(b *bench) {
		get := func(r *pb.GetRequest) error { _, err := b.Get(b.ctx, r); return err }
		long := &pb.Path{}
		for range 65 {
			long.Elem = append(long.Elem, &pb.PathElem{Name: "..."})
		}
		before := b.server.Counters().Bad
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/nowhere")}}), codes.Unimplemented, "/nowhere")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces/interface[nam=eth1]")}}), codes.Unimplemented, "nam")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces/interface[name=eth9]")}}), codes.NotFound, "eth9")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces")}, Encoding: pb.Encoding_ASCII}), codes.Unimplemented, "ASCII")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("elsewhere::/interfaces")}}), codes.Unimplemented, "elsewhere")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{{Target: "x"}}}), codes.InvalidArgument, "prefix")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{{Elem: []*pb.PathElem{{}}}}}), codes.InvalidArgument, "no name")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{long}}), codes.InvalidArgument, "65")
		b.code(get(&pb.GetRequest{}), codes.InvalidArgument, "without a path")
		b.code(get(&pb.GetRequest{Path: make([]*pb.Path, 129)}), codes.ResourceExhausted, "129")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces")}, UseModels: []*pb.ModelData{{Name: "nothing"}}}), codes.InvalidArgument, "nothing")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces")}, UseModels: []*pb.ModelData{{Name: "openinof-inof"}}}), codes.Unimplemented, "/interfaces")
		b.code(get(&pb.GetRequest{Path: []*pb.Path{path("/interfaces")}, Extension: []*gnmi_ext.Extension{{Ext: &gnmi_ext.Extension_History{}}}}), codes.Unimplemented, "history")
		if n := b.server.Counters().Bad - before; n != 13 {
			b.Errorf("%d counted", n)
		}
		_, err := b.Capabilities(b.ctx, &pb.CapabilityRequest{})
		b.code(err, codes.OK, "")
	})
}

// Who shows nothing, or something wrong, gets nothing; nor does one whose role may not.
func TestNobodyComesInWithoutALogIn(t *testing.T) {
	run(t, func(b *bench) {
		try := func(ctx context.Context) error {
			_, err := b.Capabilities(ctx, &pb.CapabilityRequest{})
			return err
		}
		with := func(kv ...string) context.Context { return metadata.AppendToOutgoingContext(b.Context(), kv...) }
		b.code(try(with("username", "viewer", "password", "viewer-token")), codes.OK, "")
		b.code(try(with("authorization", "Basic dmlld2VyOnZpZXdlci10b2tlbg==")), codes.OK, "") // viewer:viewer-token
		_, err := b.Set(as(b.Context(), "viewer-token"), &pb.SetRequest{})
		b.code(err, codes.PermissionDenied, "viewer is viewer")
		b.code(try(b.Context()), codes.Unauthenticated, "no token, password")
		b.code(try(with("username", "viewer", "password", "operator-token")), codes.Unauthenticated, "")
		b.code(try(with("authorization", "Basic !")), codes.Unauthenticated, "")
		b.code(try(as(b.Context(), "wrong")), codes.Unauthenticated, "")
		b.code(try(as(b.Context(), "wrong")), codes.Unauthenticated, "")
		b.code(try(b.ctx), codes.ResourceExhausted, "too many")
		if c := b.server.Counters(); c.NoLogin != 5 || c.NotAllowed != 1 || c.TooMany != 1 {
			b.Errorf("%+v", c)
		}
		time.Sleep(time.Minute)
		b.code(try(b.ctx), codes.OK, "")
	})
}
