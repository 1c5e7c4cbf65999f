package netconf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
)

const (
	inofHead = `<inof xmlns="urn:openinof:yang:inof" xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">`
	onto     = `<target><candidate/></target>`
)

// edit is an edit of the candidate.
func edit(inner string) string {
	return `<edit-config>` + onto + `<config>` + inofHead + inner + `</inof></config></edit-config>`
}

// addZone is an edit that adds a zone.
func addZone(name string) string {
	return edit(`<zones><zone><name>` + name + `</name><config><name>` + name + `</name><member>192.0.2.9</member></config></zone></zones>`)
}

func want(t *testing.T, d *fakeDevice, zones ...string) {
	t.Helper()
	if got := d.zones(); !slices.Equal(got, zones) {
		t.Fatalf("zones %q, want %q", got, zones)
	}
}

// in a bubble, with a device and a server.
func bubble(t *testing.T, do func(t *testing.T, d *fakeDevice, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		do(t, d, New(d, Config{Door: &api.Door{Gate: &api.Gate{}, Denied: func(v api.Visitor, what string, err error) {
			d.Audit(t.Context(), api.Deed{By: v.String(), What: what, Result: "refused", Error: err.Error()})
		}}}))
	})
}

const zoneA, zoneB, zoneC = "a: 192.0.2.1 192.0.2.2", "b: 192.0.2.3", "c: 192.0.2.9"

// The way of RFC 6241 section 8.3: lock, edit, validate, commit; nothing is in force before, and
// it is kept who did it.
func TestACandidateIsInForceOnceItIsCommitted(t *testing.T) {
	for _, base := range []string{capBase10, capBase11} {
		bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
			c := dial(t, s, anna, base)
			c.ok(`<lock>` + onto + `</lock>`)
			c.ok(addZone("c"))
			c.ok(edit(`<zones><zone><name>a</name><config><member nc:operation="delete">192.0.2.2</member></config></zone></zones>`))
			want(t, d, zoneA, zoneB)
			c.ok(`<validate><source><candidate/></source></validate>`)
			r := c.rpc(`<check xmlns="` + nsOperations + `"/>`)
			if got := text(r); !strings.Contains(got, ">+ zone c with 1 member(s)</change>") || !strings.Contains(got, ">1</pairs-lost>") {
				t.Errorf("check says %s", got)
			}
			c.ok(`<commit/>`)
			want(t, d, "a: 192.0.2.1", zoneB, zoneC)
			c.ok(`<unlock>` + onto + `</unlock>`)
			r = c.rpc(`<get-config><source><running/></source><filter><inof xmlns="urn:openinof:yang:inof"><zones><zone><name>c</name></zone></zones></inof></filter></get-config>`)
			if got := text(r.child(nsBase, "data")); got != `<data xmlns="`+nsBase+`"><inof xmlns="urn:openinof:yang:inof"><zones><zone><name>c</name><config><name>c</name><member>192.0.2.9</member></config></zone></zones></inof></data>` {
				t.Errorf("zone c is %s", got)
			}
			if len(d.deeds) != 1 || d.deeds[0].By != "anna (password, from 192.0.2.77)" || d.deeds[0].What != "commit" || d.deeds[0].Result != "done" || d.deeds[0].From != "NETCONF session 1" {
				t.Errorf("kept is %+v", d.deeds)
			}
			c.ok(`<close-session/>`)
			<-c.ended
			if n := s.Counters(); n.Sessions != 1 || n.Open != 0 || n.Dropped != 0 || n.Errors != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// Whatever is wrong with a commit: the candidate, which others have edited too, stays as it is.
func TestACommitThatFailsLeavesTheCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		stays := func(has string) {
			t.Helper()
			want(t, d, zoneA, zoneB)
			if b := c.rpc(`<get-config><source><candidate/></source></get-config>`); !strings.Contains(text(b), has) {
				t.Errorf("the candidate is %s", text(b))
			}
			c.ok(`<discard-changes/>`)
		}
		c.ok(edit(`<zones><zone><name>a</name><config><member>alias:nobody</member></config></zone></zones>`))
		path, _ := c.fails(`<commit/>`, "data-missing")
		if path != "/inof:inof/inof:zones/inof:zone[inof:name='a']/inof:config/inof:member[.='alias:nobody']" {
			t.Errorf("path %s", path)
		}
		stays("alias:nobody")
		c.ok(edit(`<zones><zone><name>a</name><config><member>127.0.0.1</member></config></zone></zones>`))
		c.fails(`<validate><source><candidate/></source></validate>`, "invalid-value")
		c.fails(`<commit/>`, "invalid-value")
		stays("127.0.0.1")
		d.loss = "it takes 9 of 10 pairs apart"
		c.ok(addZone("c"))
		if _, message := c.fails(`<commit/>`, "operation-failed"); !strings.Contains(message, d.loss) {
			t.Errorf("%s", message)
		}
		want(t, d, zoneA, zoneB)
		c.ok(`<commit><force xmlns="` + nsCommitOptions + `"/></commit>`)
		want(t, d, zoneA, zoneB, zoneC)
	})
}

// Nothing is silently overwritten: who was second is shown the difference.
func TestTheSecondOfTwoWritersIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		c.ok(addZone("c"))
		d.byCLI(t, "d")
		if _, message := c.fails(`<commit/>`, "operation-failed"); !strings.Contains(message, "+ zone d") || !strings.Contains(message, "root") {
			t.Errorf("%s", message)
		}
		want(t, d, zoneA, zoneB, "d: ")
		c.ok(`<discard-changes/>`)
		c.ok(addZone("c"))
		c.ok(`<commit/>`)
		want(t, d, zoneA, zoneB, zoneC, "d: ")
	})
}

const waits = `<commit><confirmed/><confirm-timeout>60</confirm-timeout></commit>`

// RFC 6241 section 8.4: what is not confirmed goes back, by word, with its session, by the
// deadline.
func TestAConfirmedCommit(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		c.ok(addZone("c"))
		c.ok(waits)
		want(t, d, zoneA, zoneB, zoneC)
		if p := d.book.Pending(); p == nil || time.Until(p.Deadline) != time.Minute {
			t.Fatalf("%+v waits", p)
		}
		other := dial(t, s, anna)
		other.ok(addZone("d"))
		other.fails(`<commit/>`, "in-use")
		other.ok(`<discard-changes/>`)
		other.fails(`<cancel-commit/>`, "in-use")
		other.fails(`<lock><target><running/></target></lock>`, "lock-denied")
		c.ok(`<commit/>`)
		if d.book.Pending() != nil {
			t.Error("it waits after the confirmation")
		}
		other.ok(`<lock><target><running/></target></lock>`)
		c.fails(`<commit/>`, "in-use")
		other.ok(`<unlock><target><running/></target></unlock>`)

		c.ok(addZone("e"))
		c.ok(`<commit><confirmed/></commit>`)
		if p := d.book.Pending(); p == nil || time.Until(p.Deadline) != 10*time.Minute {
			t.Fatalf("%+v waits", p)
		}
		c.ok(`<cancel-commit/>`)
		want(t, d, zoneA, zoneB, zoneC)
		c.fails(`<cancel-commit/>`, "operation-failed")

		c.ok(addZone("f"))
		c.ok(waits)
		c.p.Close()
		<-c.ended
		want(t, d, zoneA, zoneB, zoneC)
		if last := d.deeds[len(d.deeds)-1]; last.What != "end of the session" || last.Result != "done" || !strings.HasPrefix(last.By, "anna") {
			t.Errorf("kept is %+v", last)
		}
		for _, bad := range []string{"4", "86401", "x", "-1", "4294967297"} {
			other.fails(`<commit><confirmed/><confirm-timeout>`+bad+`</confirm-timeout></commit>`, "invalid-value")
		}
		other.fails(`<commit><persist>x</persist></commit>`, "missing-element")
		other.fails(`<commit><confirmed/><persist/></commit>`, "invalid-value")
	})
}

// RFC 6241 section 8.4.1: a second confirmed commit gives the first one more time; what it changes
// stays with it, or goes back with it.
func TestASecondConfirmedCommitExtendsTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c, other := dial(t, s, anna), dial(t, s, anna)
		begin := func() {
			t.Helper()
			c.ok(addZone("c"))
			c.ok(waits)
			time.Sleep(50 * time.Second)
			other.fails(waits, "in-use") // it is not theirs
			c.ok(waits)
			if p := d.book.Pending(); p == nil || time.Until(p.Deadline) != time.Minute {
				t.Fatalf("%+v waits", p)
			}
			c.ok(addZone("d"))
			c.ok(`<commit><confirmed/><confirm-timeout>120</confirm-timeout></commit>`)
			want(t, d, zoneA, zoneB, zoneC, "d: 192.0.2.9")
			if p := d.book.Pending(); p == nil || time.Until(p.Deadline) != 2*time.Minute {
				t.Fatalf("%+v waits", p)
			}
		}
		begin()
		c.ok(`<cancel-commit/>`)
		want(t, d, zoneA, zoneB)
		begin()
		c.p.Close()
		<-c.ended
		want(t, d, zoneA, zoneB)
		c = dial(t, s, anna)
		begin()
		c.ok(`<commit/>`)
		want(t, d, zoneA, zoneB, zoneC, "d: 192.0.2.9")

		c.ok(addZone("e"))
		c.ok(`<commit><confirmed/><persist>one</persist></commit>`)
		other.fails(`<commit><confirmed/></commit>`, "invalid-value")
		other.fails(`<commit><confirmed/><persist>two</persist><persist-id>one</persist-id></commit>`, "invalid-value")
		other.ok(`<commit><confirmed/><confirm-timeout>30</confirm-timeout><persist-id>one</persist-id></commit>`)
		if p := d.book.Pending(); p == nil || time.Until(p.Deadline) != 30*time.Second {
			t.Fatalf("%+v waits", p)
		}
		other.ok(addZone("f"))
		other.ok(`<commit><confirmed/><persist>two</persist><persist-id>one</persist-id></commit>`)
		c.fails(`<commit><persist-id>one</persist-id></commit>`, "invalid-value")
		c.ok(`<cancel-commit><persist-id>two</persist-id></cancel-commit>`)
		want(t, d, zoneA, zoneB, zoneC, "d: 192.0.2.9")
	})
}

// With persist another session confirms, also one of a server that has begun anew.
func TestAPersistentCommitOutlivesItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		c.ok(addZone("c"))
		c.ok(`<commit><confirmed/><persist>ticket 7</persist></commit>`)
		c.p.Close()
		<-c.ended
		want(t, d, zoneA, zoneB, zoneC)
		next := dial(t, New(d, Config{Door: &api.Door{Gate: &api.Gate{}}}), anna)
		next.fails(`<commit/>`, "invalid-value")
		next.fails(`<commit><persist-id>ticket 8</persist-id></commit>`, "invalid-value")
		next.fails(`<cancel-commit/>`, "invalid-value")
		next.ok(`<commit><persist-id>ticket 7</persist-id></commit>`)
		if d.book.Pending() != nil {
			t.Error("it waits after the confirmation")
		}
		next.fails(`<commit><persist-id>ticket 7</persist-id></commit>`, "invalid-value")
		next.ok(addZone("d"))
		next.ok(`<commit><confirmed/><persist>ticket 9</persist></commit>`)
		next.ok(`<cancel-commit><persist-id>ticket 9</persist-id></cancel-commit>`)
		want(t, d, zoneA, zoneB, zoneC)
	})
}

// Locks keep other sessions out, and end with theirs; so does what they have not committed.
func TestLocks(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		a, b := dial(t, s, anna), dial(t, s, anna)
		a.ok(`<lock>` + onto + `</lock>`)
		r := b.rpc(`<lock>` + onto + `</lock>`)
		if e := r.child(nsBase, "rpc-error"); e == nil || e.child(nsBase, "error-tag").value() != "lock-denied" || e.child(nsBase, "error-info").child(nsBase, "session-id").value() != "1" {
			t.Errorf("%s", text(r))
		}
		b.fails(addZone("c"), "in-use")
		b.fails(`<discard-changes/>`, "in-use")
		b.fails(`<commit/>`, "in-use")
		b.fails(`<unlock>`+onto+`</unlock>`, "operation-failed")
		a.ok(addZone("c"))
		a.p.Close()
		<-a.ended
		b.ok(`<commit/>`)
		want(t, d, zoneA, zoneB)
		b.ok(addZone("c"))
		b.fails(`<lock>`+onto+`</lock>`, "lock-denied")
		b.ok(`<discard-changes/>`)
		b.ok(`<lock>` + onto + `</lock>`)
		b.fails(`<lock><target><startup/></target></lock>`, "operation-not-supported")
	})
}

// A role that is too low reads, and changes nothing; a refusal of a change is kept.
func TestAViewerChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		viewer := anna
		viewer.Role = api.Viewer
		c := dial(t, s, viewer)
		c.rpc(`<get-config><source><running/></source></get-config>`)
		for _, op := range []string{addZone("c"), `<commit/>`, `<cancel-commit/>`, `<lock>` + onto + `</lock>`, `<discard-changes/>`, `<kill-session><session-id>2</session-id></kill-session>`,
			`<port xmlns="` + nsOperations + `"><name>eth1</name><action>shut</action></port>`, `<copy-config>` + onto + `<source><running/></source></copy-config>`} {
			if _, message := c.fails(op, "access-denied"); !strings.Contains(message, "anna is viewer") {
				t.Errorf("%s", message)
			}
		}
		want(t, d, zoneA, zoneB)
		if len(d.ports) > 0 || len(d.deeds) != 8 || d.deeds[0].Result != "refused" {
			t.Errorf("%v, kept is %+v", d.ports, d.deeds)
		}
		if n := s.Counters(); n.NotAllowed != 8 {
			t.Errorf("%+v", n)
		}
	})
}

func TestPorts(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		port := func(name, action string) string {
			return `<port xmlns="` + nsOperations + `"><name>` + name + `</name><action>` + action + `</action></port>`
		}
		for _, a := range []string{"shut", "recover", "drain", "undrain"} {
			c.ok(port("eth1", a))
		}
		if got := strings.Join(d.ports, ", "); got != "shut eth1, recover eth1, drain undo=false eth1, drain undo=true eth1" {
			t.Error(got)
		}
		c.fails(port("eth9", "shut"), "data-missing")
		c.fails(port("eth1", "burn"), "invalid-value")
		c.fails(`<port xmlns="`+nsOperations+`"><name>eth1</name></port>`, "missing-element")
		if d.deeds[0].Body != "name=eth1 action=shut " {
			t.Errorf("%+v", d.deeds[0])
		}
	})
}

// Events come in between replies, those of before first where they are asked for.
func TestEventsAreNotified(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		begin := time.Now()
		d.Append(api.Event{Time: begin, Kind: "port", Port: "eth1", Text: "old"})
		time.Sleep(time.Second)
		c := dial(t, s, anna)
		c.ok(`<create-subscription xmlns="` + nsNotification + `"/>`)
		c.fails(`<create-subscription xmlns="`+nsNotification+`"/>`, "in-use")
		d.Append(api.Event{Time: time.Now(), Kind: "zone", Text: `a <new> "one"`, Addr: "192.0.2.1", Fields: map[string]string{"b": "2", "a": "1"}})
		n := c.receive()
		e := n.child(nsOperations, "event")
		if n.space != nsNotification || n.name != "notification" || e == nil {
			t.Fatalf("%s", text(n))
		}
		if at, err := time.Parse(time.RFC3339, n.child(nsNotification, "eventTime").value()); err != nil || !at.Equal(time.Now()) {
			t.Errorf("%v, %v", at, err)
		}
		if got := text(e); !strings.HasSuffix(got, fmt.Sprintf(`<time>%d</time><kind>zone</kind><text>a &lt;new&gt; &#34;one&#34;</text><address>192.0.2.1</address><field>a=1</field><field>b=2</field></event>`, time.Now().UnixNano())) {
			t.Error(got)
		}
		c.ok(addZone("c")) // interleave

		r := dial(t, s, anna)
		r.ok(`<create-subscription xmlns="` + nsNotification + `"><filter><event xmlns="` + nsOperations + `"><kind>port</kind></event></filter><startTime>` +
			begin.UTC().Format(time.RFC3339Nano) + `</startTime><stopTime>` + time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano) + `</stopTime></create-subscription>`)
		if got := text(r.receive()); !strings.Contains(got, "<text>old</text>") {
			t.Error(got)
		}
		if got := r.receive(); got.child(nsManagement, "replayComplete") == nil {
			t.Error(text(got))
		}
		d.Append(api.Event{Time: time.Now(), Kind: "host", Text: "not asked for"})
		d.Append(api.Event{Time: time.Now(), Kind: "port", Text: "new"})
		if got := text(r.receive()); !strings.Contains(got, "<text>new</text>") {
			t.Error(got)
		}
		if got := r.receive(); got.child(nsManagement, "notificationComplete") == nil {
			t.Error(text(got))
		}
		r.ok(`<create-subscription xmlns="` + nsNotification + `"/>`)
		for op, tag := range map[string]string{
			`<stream>SNMP</stream>`:                                                                "invalid-value",
			`<startTime>yesterday</startTime>`:                                                     "invalid-value",
			`<startTime>2126-01-02T15:04:05Z</startTime>`:                                          "bad-element",
			`<stopTime>2126-01-02T15:04:05Z</stopTime>`:                                            "missing-element",
			`<filter type="xpath" select="/event"/>`:                                               "bad-attribute",
			`<startTime>1999-01-02T15:04:05Z</startTime><stopTime>1999-01-02T15:04:05Z</stopTime>`: "bad-element",
		} {
			dial(t, s, anna).fails(`<create-subscription xmlns="`+nsNotification+`">`+op+`</create-subscription>`, tag)
		}
	})
}

func TestASessionIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		a, b := dial(t, s, anna), dial(t, s, anna)
		a.ok(`<lock>` + onto + `</lock>`)
		b.fails(`<kill-session><session-id>2</session-id></kill-session>`, "invalid-value")
		b.fails(`<kill-session><session-id>9</session-id></kill-session>`, "invalid-value")
		b.ok(`<kill-session><session-id>1</session-id></kill-session>`)
		<-a.ended
		b.ok(`<lock>` + onto + `</lock>`)
		if n := s.Counters(); n.Dropped != 1 || n.Open != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// What is said of the server itself.
func TestTheServerTellsOfItself(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		c.ok(`<lock>` + onto + `</lock>`)
		got := text(c.rpc(`<get><filter><netconf-state xmlns="` + nsMonitoring + `"/><yang-library xmlns="` + nsLibrary + `"/><netconf xmlns="` + nsManagement + `"/></filter></get>`))
		for _, part := range []string{"<locked-by-session>1</locked-by-session>", "<username>anna</username>", "<name>openinof-inof</name>", `<name xmlns:ds="` + nsDatastores + `">ds:candidate</name>`,
			"<replaySupport>true</replaySupport>", "<in-sessions>1</in-sessions>"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s is missing in %s", part, got)
			}
		}
		for _, m := range modules() {
			r := c.rpc(`<get-schema xmlns="` + nsMonitoring + `"><identifier>` + m.Name + `</identifier><version>` + m.Revision + `</version><format>yang</format></get-schema>`)
			if data := r.child(nsMonitoring, "data"); data == nil || !strings.Contains(data.text, "module "+m.Name+" {") || m.Namespace == "" || !strings.Contains(data.text, m.Namespace) {
				t.Errorf("%s: %.200s", m.Name, text(r))
			}
		}
		c.fails(`<get-schema xmlns="`+nsMonitoring+`"><identifier>nothing</identifier></get-schema>`, "invalid-value")
		c.fails(`<get-schema xmlns="`+nsMonitoring+`"><identifier>openinof-inof</identifier><version>1999-01-01</version></get-schema>`, "invalid-value")
		c.fails(`<get-schema xmlns="`+nsMonitoring+`"/>`, "missing-element")
	})
}
