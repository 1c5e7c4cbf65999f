package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

var cmpNetip = cmpopts.EquateComparable(netip.Addr{})

func client(t *testing.T) (*api.Client, *apitest.Source) {
	t.Helper()
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	c := api.NewClient(socket)
	t.Cleanup(c.Close)
	return c, src
}

// What the Source gives must come out of the client unchanged but for the order.
func TestValuesPassUnchanged(t *testing.T) {
	c, src := client(t)
	ctx := t.Context()
	status, err := api.Ask[api.Status](ctx, c, "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	status.Counters, src.StatusValue.Counters = nil, nil
	if d := cmp.Diff(src.StatusValue, status, cmpNetip); d != "" {
		t.Error(d)
	}
	same := func(what string, want, got any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if d := cmp.Diff(want, got, cmpNetip, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	h := src.HostValues
	hosts, err := api.Ask[[]api.Host](ctx, c, "hosts", nil)
	same("hosts", []api.Host{h[3], h[2], h[1], h[0]}, hosts, err)
	z := src.ZoneValues
	zones, err := api.Ask[[]api.Zone](ctx, c, "zones", nil)
	same("zones", []api.Zone{z[1], z[2], z[0]}, zones, err)
	peers, err := api.Ask[[]api.Peer](ctx, c, "peers", nil)
	same("peers", []api.Peer{src.PeerValues[1], src.PeerValues[0]}, peers, err)
	ports, err := api.Ask[[]api.Port](ctx, c, "ports", nil)
	same("ports", []api.Port{src.PortValues[1], src.PortValues[0]}, ports, err)
	lldp, err := api.Ask[[]api.Neighbour](ctx, c, "lldp", nil)
	same("lldp", reversed(src.Rows["lldp"].([]api.Neighbour)), lldp, err)
	faults, err := api.Ask[[]api.ErrorDown](ctx, c, "error-down", nil)
	same("error-down", reversed(src.Rows["error-down"].([]api.ErrorDown)), faults, err)
	notices, err := api.Ask[[]api.Notice](ctx, c, "notices", nil)
	same("notices", src.NoticeValues, notices, err)
	lat, err := api.Ask[api.Latency](ctx, c, "latency", nil)
	same("latency", src.LatencyValue, lat, err)
	events, err := api.Ask[[]api.Event](ctx, c, "events", nil)
	same("events", src.Events(0).Events, events, err)
	why, err := api.Ask[api.Why](ctx, c, "why", api.Where("a", src.WhyValue.Hosts[0].Addr.String(), "b", src.WhyValue.Hosts[1].Addr.String()))
	same("why", src.WhyValue, why, err)
}

// The faults and paths behind a host do not name it; who asks for its events gets them, in
// a list and in a stream, and none of another port or device.
func TestTheEventsOfAHostHaveTheFaultsAtItsPlace(t *testing.T) {
	c, src := client(t)
	src.Append(api.Event{Kind: "fault", Text: "mine", Device: "192.0.2.12", Port: "Ethernet1"})
	src.Append(api.Event{Kind: "path", Text: "mine", Device: "192.0.2.12"})
	src.Append(api.Event{Kind: "fault", Text: "another port", Device: "192.0.2.12", Port: "Ethernet2"})
	src.Append(api.Event{Kind: "fault", Text: "another device", Port: "Ethernet1"})
	src.Append(api.Event{Kind: "path", Text: "another device", Device: "192.0.2.13"})
	src.Append(api.Event{Kind: "host", Text: "mine", Device: "192.0.2.13", Port: "Ethernet9", Addr: "192.0.2.9"})
	src.Append(api.Event{Kind: "fault", Text: "mine", Device: "192.0.2.13", Port: "Ethernet9"})
	q := api.EventQuery{Addr: "192.0.2.9"}
	list, err := api.Ask[[]api.Event](t.Context(), c, "events", api.Where("addr", q.Addr, "kind", q.Kind))
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, list []api.Event, want int) {
		t.Helper()
		for _, e := range list {
			if e.Text != "mine" && !(e.Kind == "path" && e.Device == "192.0.2.13") { // it was there for a while
				t.Errorf("%s: %+v", what, e)
			}
		}
		if len(list) != want {
			t.Errorf("%s: %d events, want %d", what, len(list), want)
		}
	}
	check("list", list, 5)
	if list, err = api.Ask[[]api.Event](t.Context(), c, "events", api.Where("addr", "::ffff:"+q.Addr)); err != nil {
		t.Fatal(err)
	}
	check("list, by another form of the address", list, 5)
	q.Kind = "fault"
	if list, err = api.Ask[[]api.Event](t.Context(), c, "events", api.Where("addr", q.Addr, "kind", q.Kind)); err != nil {
		t.Fatal(err)
	}
	check("faults only", list, 2)
	q = api.EventQuery{Addr: "192.0.2.9", After: 1}
	ctx, stop := context.WithCancel(t.Context())
	var followed []api.Event
	_ = c.Follow(ctx, q, time.Minute, func(e api.Event) {
		if followed = append(followed, e); e.Device == "192.0.2.13" && e.Kind == "fault" {
			stop()
		}
	}, nil)
	check("stream", followed, 4) // the path was before it was known to be there
}

func TestQueriesFilter(t *testing.T) {
	c, _ := client(t)
	ctx := t.Context()
	count := func(path string, want int, filters ...string) {
		t.Helper()
		if got, err := api.Ask[[]json.RawMessage](ctx, c, path, api.Where(filters...)); err != nil || len(got) != want {
			t.Errorf("%s %v: %d, want %d (%v)", path, filters, len(got), want, err)
		}
	}
	count("hosts", 4)
	count("hosts", 2, "zone", "blue")
	count("hosts", 0, "zone", "nobody")
	count("hosts", 1, "port", "Ethernet1")
	count("hosts", 2, "device", "192.0.2.12")
	count("hosts", 2, "type", "local")
	count("hosts", 1, "state", "inactive")
	count("hosts", 1, "addr", "2001:db8::1")
	count("hosts", 2, "addr", "192.0.2.101")
	count("hosts", 0, "addr", "192.0.2.200")
	count("zones", 1, "addr", "192.0.2.9")
	count("notices", 1, "status", "acked")
	count("events", 1, "kind", "fault")
	count("events", 1, "after", "1000")
	count("peers", 1, "device", "192.0.2.251")
	count("ports", 1, "name", "Ethernet2")
	count("counters", 2, "room", "lldp")
	if n, err := api.Ask[[]api.Notice](ctx, c, "notices", api.Where("limit", "1")); err != nil || len(n) != 1 || n[0].Seq != 8 {
		t.Error(n, err)
	}
}

func TestChangesReachTheSource(t *testing.T) {
	c, src := client(t)
	ctx := t.Context()
	for _, err := range []error{
		c.AddZone(ctx, "z/.. ?", []string{"192.0.2.1"}),
		c.AddZone(ctx, "empty", nil),
		c.AddMembers(ctx, "z", []string{"192.0.2.2", "192.0.2.3"}),
		c.RemoveMembers(ctx, "z", []string{"192.0.2.2"}),
		c.RemoveZone(ctx, ".."),
		api.RecoverPort.Do(ctx, c, api.PortName{Port: "Ethernet1/2"}),
		api.ShutPort.Do(ctx, c, api.PortName{Port: "Ethernet1/2"}),
		second(api.Reload.Ask(ctx, c, api.ReloadForce{Force: true})),
		second(api.DrainPorts.Ask(ctx, c, api.DrainOrder{Port: "Ethernet4", Wait: new(api.Duration(time.Second))})),
		second(api.SendTestNotice.Ask(ctx, c, api.HostAddr{Host: netip.MustParseAddr("192.0.2.9")})),
		second(api.ClearHost.Ask(ctx, c, api.HostAddr{Host: netip.MustParseAddr("192.0.2.8")})),
		api.OrderHardZoning.Do(ctx, c, api.HardOrder{Order: api.HardFlush}),
		second(api.HaltDevices.Ask(ctx, c, api.HaltOrder{Fabric: true, Reason: "test"})),
		second(api.ResumeDevices.Ask(ctx, c, api.HaltOrder{Force: true})),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"add zone z/.. ? [192.0.2.1]", "add zone empty []", "add members z [192.0.2.2 192.0.2.3]",
		"remove members z [192.0.2.2]", "remove zone ..", "recover Ethernet1/2", "shut Ethernet1/2", "reload force=true",
		"drain {Port:Ethernet4 Undo:false Wait:1s}", "test notice to 192.0.2.9", "clear host 192.0.2.8", "hard zoning: flush",
		"halt {Fabric:true OpenZoning:false Reason:test Force:false}", "resume {Fabric:false OpenZoning:false Reason: Force:true}"}
	if d := cmp.Diff(want, src.Changes()); d != "" {
		t.Error(d)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFailuresKeepTheirKind(t *testing.T) {
	c, src := client(t)
	for kind, status := range map[error]int{
		api.ErrInvalid: 400, api.ErrRefused: 403, api.ErrNotFound: 404, api.ErrExists: 409, api.ErrLimit: 422, api.ErrUnavailable: 503,
	} {
		src.SetErr(fmt.Errorf("zone %q: %w", "z", kind))
		err := c.AddZone(t.Context(), "z", nil)
		var e *api.Error
		if !errors.As(err, &e) || e.Status != status || !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), `zone "z": `) {
			t.Errorf("%v: got %#v", kind, err)
		}
	}
	src.SetErr(errors.New("disk on fire"))
	_, err := api.Ask[[]api.Host](t.Context(), c, "hosts", nil)
	var e *api.Error
	if !errors.As(err, &e) || e.Code != "internal" || e.Status != 500 || e.Message != "disk on fire" {
		t.Errorf("%#v", err)
	}
}

func TestBadRequestsAreAnsweredInJSON(t *testing.T) {
	h := api.Handler(apitest.Sample())
	for _, c := range []struct {
		method, path, body string
		status             int
		code, text         string
	}{
		{"GET", "/", "", 404, "not-found", `no such path "/"`},
		{"GET", "/v1/host", "", 404, "not-found", "no such path"},
		{"GET", "/v1/hosts?zoen=a", "", 400, "invalid", "allowed: the parameters addr, zone, device, port, type, state"},
		{"GET", "/v1/hosts?zone=a&zone=b", "", 400, "invalid", "one value"},
		{"GET", "/v1/hosts?type=here", "", 400, "invalid", "allowed: one of local, remote"},
		{"GET", "/v1/hosts?addr=1", "", 400, "invalid", `parameter addr: "1" is not an IP address`},
		{"GET", "/v1/notices?limit=-1", "", 400, "invalid", "a whole number"},
		{"GET", "/v1/latency?since=1h", "", 400, "invalid", "since"},
		{"GET", "/v1/events?follow=1&limit=5", "", 400, "invalid", "no limit with follow"},
		{"GET", "/v1/events?follow=maybe", "", 400, "invalid", "allowed: 1, true"},
		{"GET", "/v1/status?x=1", "", 400, "invalid", "the parameters none here"},
		{"PUT", "/v1/zones", "", 405, "method-not-allowed", "PUT /v1/zones, allowed: DELETE, GET, POST"},
		{"POST", "/v1/events?follow=1", "", 405, "method-not-allowed", "allowed: GET"},
		{"POST", "/v1/zones", "", 400, "invalid", "body: EOF"},
		{"POST", "/v1/zones", "{", 400, "invalid", "body: unexpected EOF"},
		{"POST", "/v1/zones", "{} {}", 400, "invalid", "something follows"},
		{"POST", "/v1/zones", "{}", 400, "invalid", "name is missing"},
		{"POST", "/v1/zones", `{"nmae": "a"}`, 400, "invalid", `unknown field "nmae"`},
		{"POST", "/v1/zones", `{"name": 5}`, 400, "invalid", "cannot unmarshal number"},
		{"POST", "/v1/zones/members", `{"name": "a"}`, 400, "invalid", "members are missing"},
		{"POST", "/v1/zones", `{"name": "` + strings.Repeat("x", api.MaxBody) + `"}`, 413, "too-large", "more than 4194304 bytes"},
		{"DELETE", "/v1/zones", "", 400, "invalid", "parameter name is missing"},
		{"POST", "/v1/ports/recover", "{}", 400, "invalid", "port is missing"},
		{"POST", "/v1/ports/shut", "{}", 400, "invalid", "port is missing"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		var e api.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Errorf("%s %s: %v: %q", c.method, c.path, err, w.Body)
			continue
		}
		if w.Code != c.status || e.Code != c.code || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s %s: %d %+v, want %d %s %q", c.method, c.path, w.Code, e, c.status, c.code, c.text)
		}
	}
}

func TestEmptyListsAreArrays(t *testing.T) {
	h := api.Handler(&apitest.Source{EventLog: api.NewEventLog(1, time.Time{})})
	for _, path := range []string{"hosts", "zones", "peers", "ports", "lldp", "error-down", "notices", "events"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/"+path, nil))
		if got := w.Body.String(); got != "[]\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestFollowGivesEachEventOnceAndTellsOfMissedOnes(t *testing.T) {
	c, src := client(t)
	ctx, cancel := context.WithCancel(t.Context())
	events, missed, done := make(chan api.Event), make(chan uint64), make(chan error, 1)
	go func() {
		done <- c.Follow(ctx, api.EventQuery{After: 1000}, time.Minute, func(e api.Event) { events <- e }, func(n uint64) { missed <- n })
	}()
	if e := <-events; e.ID != 1001 || e.Fields["reason"] != "link-down" {
		t.Errorf("%+v", e)
	}
	// While the reader holds one event, more happen than the log and the socket hold.
	pad := strings.Repeat("x", 10_000)
	for range 300 {
		src.Append(api.Event{Kind: "test", Text: pad})
	}
	last, lost := uint64(1001), uint64(0)
	for last < 1301 {
		select {
		case e := <-events:
			if e.ID != last+1 {
				t.Fatalf("event %d after %d", e.ID, last)
			}
			last = e.ID
		case n := <-missed:
			last += n
			lost += n
		}
	}
	if lost == 0 {
		t.Error("nothing was missed: the test is too small")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFollowBeginsNowAndEndsWithTheDaemon(t *testing.T) {
	src := apitest.Sample()
	socket, stop := apitest.Serve(t, src)
	c := api.NewClient(socket)
	defer c.Close()
	got, done := make(chan api.Event, 10), make(chan error, 1)
	go func() {
		done <- c.Follow(t.Context(), api.EventQuery{Kind: "x"}, time.Minute, func(e api.Event) { got <- e }, nil)
	}()
	// The stream may begin after any of these; the first it gives is one of them.
	deadline := time.After(40 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for first := true; first; {
		src.Append(api.Event{Kind: "y"})
		src.Append(api.Event{Kind: "x"})
		select {
		case e := <-got:
			if e.Kind != "x" || e.ID < 1002 {
				t.Errorf("%+v", e)
			}
			first = false
		case <-tick.C:
		case <-deadline:
			t.Fatal("no event came")
		}
	}
	stop()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestClientSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	_, err := api.Ask[api.Status](ctx, api.NewClient(filepath.Join(dir, "none.sock")), "status", nil)
	if !errors.Is(err, api.ErrNotRunning) || !strings.Contains(err.Error(), "systemctl start inofd") {
		t.Error(err)
	}
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := api.Ask[api.Status](ctx, api.NewClient(dead), "status", nil); !errors.Is(err, api.ErrNotRunning) {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		locked, err := api.Listen(filepath.Join(dir, "locked.sock"), 0, "")
		if err != nil {
			t.Fatal(err)
		}
		defer locked.Close()
		if _, err := api.Ask[api.Status](ctx, api.NewClient(filepath.Join(dir, "locked.sock")), "status", nil); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "management.mode") {
			t.Error(err)
		}
	}
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Listener.Close()
	path := filepath.Join(dir, "other.sock")
	if other.Listener, err = net.Listen("unix", path); err != nil {
		t.Fatal(err)
	}
	other.Start()
	defer other.Close()
	if _, err := api.Ask[api.Status](ctx, api.NewClient(path), "status", nil); err == nil || !strings.Contains(err.Error(), "is not inofd: it answered 404") {
		t.Error(err)
	}
}

func TestListenReplacesADeadSocketOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "x.sock")
	l, err := api.Listen(path, 0o640, "")
	if err != nil {
		t.Fatal(err)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", st.Mode())
	}
	if _, err := api.Listen(path, 0o640, ""); !errors.Is(err, api.ErrInUse) {
		t.Errorf("a second daemon: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	l, err = api.Listen(path, 0o640, "")
	if err != nil {
		t.Fatalf("a dead daemon's socket: %v", err)
	}
	l.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(path, 0o640, ""); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Error(err)
	}
	if b, _ := os.ReadFile(path); !bytes.Equal(b, []byte("precious")) {
		t.Error("a file was removed")
	}
}

func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
