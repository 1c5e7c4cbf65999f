package e2e

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/labtest"
)

// A cable that is pulled and plugged as fast as it goes leaves nobody with a wrong
// idea of how it ended.
func TestACableThatFlapsEndsInTheTruth(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "flap"})
	for _, end := range []bool{true, false, true} {
		since := f.marks("i1", "i2")
		for range 60 {
			f.fault("tor1", "eth1", !end)
			f.fault("tor1", "eth1", end)
		}
		state, reason := "active", "none"
		if !end {
			state, reason = "inactive", "link-down"
		}
		f.awaitState("i1", init1, target, state, reason)
		f.awaitState("i2", init2, target, state, reason)
		for node, addr := range map[string]string{"i1": init1, "i2": init2} {
			var last notice
			for _, n := range f.notices(node, since[node]) {
				if n.Subject != target {
					t.Errorf("%s was told %v", node, n)
				}
				if n == last {
					t.Errorf("%s was told %v twice in a row", node, n)
				}
				last = n
			}
			if want := (notice{addr, target, state, reason}); !last.is(want) && last != (notice{}) {
				t.Errorf("%s was last told %v, want %v", node, last, want)
			}
		}
	}
	f.atRest("tor1", "eth1")
	var rows []api.ErrorDown
	rows, err := ask(f, "tor1", errorDownOf)
	if err != nil || len(rows) == 0 || rows[0].Port != "eth1" || rows[0].Flaps < 2 || rows[0].LastFlap == nil {
		t.Errorf("error-down shows %+v, %v, want the flaps of eth1", rows, err)
	}
	f.stillTells()
}

// atRest waits until a switch has taken in all changes of a port that may still be on
// their way: it counts no more flaps for a while, and its hosts can be reached.
func (f *fab) atRest(node, port string) {
	f.t.Helper()
	var flaps uint64
	same := 0
	labtest.Eventually(f.t, fmt.Sprintf("port %s of %s to be quiet", port, node), func() error {
		rows, err := ask(f, node, errorDownOf)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Port != port {
				continue
			}
			if same++; r.Flaps != flaps {
				flaps, same = r.Flaps, 0
			}
		}
		h := f.host(node, target)
		if same < 100 || len(h) != 1 || h[0].State != snsd.Active {
			return fmt.Errorf("%d flaps, for %d looks; the host is %+v", flaps, same, h)
		}
		return nil
	})
}

// A host that never acks is told again and again, and delays nobody; one that loses
// acks, or speaks the older version, is served like any other.
func TestASilentHostDelaysNobody(t *testing.T) {
	t.Parallel()
	const silent, old = "192.0.2.41", "192.0.2.42"
	f := newFabric(t, spec{
		name:  "silent",
		zones: "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21, " + silent + ", " + old + "]}\n",
		nodes: "    silent: {kind: linux}\n    old: {kind: linux}\n",
		links: "    - endpoints: [\"tor1:eth3\", \"silent:eth1\"]\n    - endpoints: [\"tor1:eth4\", \"old:eth1\"]\n",
	})
	mute := f.agent("silent", silent, "--no-ack")
	older := f.agent("old", old, "--legacy", "--lose-acks", "0.5")
	for _, p := range []*proc{mute, older} {
		labtest.Eventually(t, "the host to be told of its peers", func() error {
			if told := p.told(f); len(told) < 4 {
				return fmt.Errorf("it was told %v", told)
			}
			return nil
		})
	}
	for range 3 {
		f.stillTells()
	}
	labtest.Eventually(t, "the older host to have acked what it was told last", func() error {
		ns := f.noticesTo("tor1", old)
		for _, n := range ns {
			if n.Status != api.NoticeAcked && n.Status != api.NoticeSuperseded {
				return fmt.Errorf("a notice is %s: %+v", n.Status, n)
			}
		}
		return nil
	})
	labtest.Eventually(t, "the silent host to be told again", func() error {
		ns := f.noticesTo("tor1", silent)
		if !slices.ContainsFunc(ns, func(n api.Notice) bool { return n.Status == api.NoticeSent && n.Retries >= 5 }) {
			return fmt.Errorf("%+v", ns)
		}
		return nil
	})
	for _, n := range f.noticesTo("tor1", init1) {
		if n.Retries > 0 && n.Status == api.NoticeAcked && time.Duration(*n.SentToAcked)*time.Microsecond > 10*time.Second { // the silent host's are never acked
			t.Errorf("a notice to an honest host took long: %+v", n)
		}
	}
	mute.signal(unix.SIGTERM)
	mute.exit()
	labtest.Eventually(t, "the notices to the host that left to be given up", func() error {
		if n := f.counter("tor1", "hostnotify.in_flight"); n != 0 {
			return fmt.Errorf("%d are in flight", n)
		}
		return nil
	})
	f.stillTells()
}

// noticesTo is what a switch says it told a host.
func (f *fab) noticesTo(node, host string) []api.Notice {
	f.t.Helper()
	c := f.client(node)
	ns, err := api.Ask[[]api.Notice](within(f.t, labtest.Patience), c, "notices", api.Where("host", host))
	if err != nil {
		f.t.Fatal(err)
	}
	return ns
}

// Queries and acks may be padded and repeated.
func TestPaddedAndRepeatedQueriesAndAcks(t *testing.T) {
	t.Parallel()
	f, wires := evilFabric(t, "ntspad")
	const addr, peer = "198.51.100.8", "198.51.100.9"
	w := wires["eth3"]
	subscribe := func(r *snsd.Registration) { r.Subscribes = true }
	wires["eth4"].lldp(wires["eth4"].registration(peer, 1, 60))
	w.lldp(w.registration(addr, 1, 60, subscribe))
	told, err := snsd.ParsePacket(w.next(0x88a7))
	if err != nil || len(told.Notices) == 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	n := told.Notices[0]
	ack, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
	if err != nil {
		t.Fatal(err)
	}
	query, err := snsd.AppendQuery(nil, 1500-18, n.Host) // behind header 8, root 3 and address 7
	if err != nil {
		t.Fatal(err)
	}
	const repeated = 50
	for range repeated {
		w.nts(append(slices.Clone(ack), make([]byte, 1500-len(ack))...))
	}
	f.awaitCounter("tor1", "hostnotify.acks_repeated", repeated-1)
	for range repeated { // one is answered, the others together and later
		w.nts(query)
	}
	f.awaitCounter("tor1", "hostnotify.queries", repeated)
	if n := f.counter("tor1", "hostnotify.sent"); n > 30 {
		t.Errorf("%d notices were sent", n)
	}
	if n := f.counter("tor1", "core.nts_errors"); n != 0 {
		t.Errorf("%d errors are counted", n)
	}
	f.stillTells()
}

// Whoever speaks rubbish on the management socket is told so, and readers that never
// read hold nobody up.
func TestRubbishOnTheManagementSocket(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "rubbish"})
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", f.socket("tor1"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(labtest.Patience)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" }
	for _, c := range []struct {
		name, send string
		words      []string
	}{
		{"random bytes", "\x00\xa5\xff\r\n\r\n", []string{"400"}},
		{"an unknown path", get("/v2/nothing"), []string{"404", "/v2/nothing"}},
		{"an unknown parameter", get("/v1/hosts?adr=1"), []string{"400", "adr"}},
		{"no address", get("/v1/hosts?addr=192.0.2.999"), []string{"400", "192.0.2.999"}},
		{"a method that is not there", post("/v1/status", ""), []string{"405", "allowed: GET"}},
		{"no JSON", post("/v1/zones", "zone"), []string{"400", "body"}},
		{"an unknown field", post("/v1/zones", `{"name":"a","member":[]}`), []string{"400", "member"}},
		{"too much", post("/v1/zones", `{"name":"`+strings.Repeat("x", 5<<20)+`"}`), []string{"413", "4194304 bytes"}},
		{"a zone at a client", post("/v1/zones", `{"name":"a"}`), []string{"403", "is a client"}},
	} {
		conn := dial()
		_, _ = io.WriteString(conn, c.send)
		b, _ := io.ReadAll(conn)
		if !hasAll(string(b), c.words) {
			t.Errorf("%s: answer %.300q, want %q", c.name, b, c.words)
		}
	}
	for range 200 {
		_, _ = io.WriteString(dial(), get("/v1/events?follow=1&after=1"))
	}
	for range 5 {
		f.stillTells()
	}
	if o := f.ctl("tor1", "show", "status"); o.code != 0 {
		t.Errorf("show status: %+v", o)
	}
}
