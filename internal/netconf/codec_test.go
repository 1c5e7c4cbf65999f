package netconf

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Golden bytes of both framings (RFC 6242 sections 4.2 and 4.3), in parts of any size.
func TestFraming(t *testing.T) {
	e := el(nsBase, "rpc-reply", el(nsBase, "ok"))
	const body = `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><ok/></rpc-reply>`
	for _, c := range []struct {
		chunked bool
		want    string
	}{
		{false, `<?xml version="1.0" encoding="UTF-8"?>` + body + `]]>]]>`},
		{true, "\n#76\n" + body + "\n##\n"},
	} {
		var b bytes.Buffer
		s := sender{w: &b, chunked: c.chunked}
		if err := s.send(e); err != nil || b.String() != c.want {
			t.Errorf("%q, %v", b.String(), err)
		}
		for _, r := range []io.Reader{strings.NewReader(c.want + c.want), iotest.OneByteReader(strings.NewReader(c.want + c.want))} {
			m := newMessages(r)
			m.chunked = c.chunked
			for range 2 {
				got, err := m.next()
				if err != nil || !strings.HasSuffix(string(got), body) {
					t.Errorf("%q, %v", got, err)
				}
			}
			if _, err := m.next(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		}
	}
	// The example of RFC 6242 section 4.2.
	m := newMessages(strings.NewReader("\n#4\n<rpc\n#18\n message-id=\"102\"\n\n#79\n" +
		"     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <close-session/>\n</rpc>\n##\n"))
	m.chunked = true
	got, err := m.next()
	if err != nil {
		t.Fatal(err)
	}
	if e, err := decode(got); err != nil || e.name != "rpc" || e.child(nsBase, "close-session") == nil {
		t.Errorf("%q: %v, %v", got, e, err)
	}
}

// What is no framing ends the session, and nothing is taken at its word.
func TestFramingThatIsNone(t *testing.T) {
	for _, c := range []struct {
		chunked bool
		text    string
		err     error
	}{
		{true, "\n#0\n", errFraming},
		{true, "\n#04\nabcd\n##\n", errFraming},
		{true, "\n#x\n", errFraming},
		{true, "#4\nabcd\n##\n", errFraming},
		{true, "\n##\n", errFraming},
		{true, "\n#4294967296\n", errFraming},
		{true, "\n#99999999999999999999\n", errFraming},
		{true, "\n#4\nabcd\n#-\n", errFraming},
		{true, "\n#4\nabcd##\n", errFraming},
		{true, "\n#4294967295\nabc", io.ErrUnexpectedEOF},
		{true, "\n#4", io.ErrUnexpectedEOF},
		{true, "\n#4194304\n" + strings.Repeat("a", MaxMessage) + "\n#1\n", errTooBig},
		{true, "\n#4294967295\n" + strings.Repeat("a", MaxMessage), errTooBig},
		{false, strings.Repeat("a", MaxMessage+10000), errTooBig},
		{false, "<rpc/>]]>]]", io.EOF},
	} {
		m := newMessages(strings.NewReader(c.text))
		m.chunked = c.chunked
		got, err := m.next()
		if !errors.Is(err, c.err) {
			t.Errorf("%.40q: error %v, want %v", c.text, err, c.err)
		}
		if len(got) > MaxMessage {
			t.Errorf("%.40q: %d bytes are read", c.text, len(got))
		}
	}
}

// XML that is hostile is an error of ours, at once.
func TestXMLThatIsNotTaken(t *testing.T) {
	bomb := `<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">]><rpc>&lol2;</rpc>`
	for text, want := range map[string]error{
		bomb: errDTD,
		`<!DOCTYPE rpc SYSTEM "file:///etc/passwd"><rpc/>`:       errDTD,
		`<?xml-stylesheet href="a"?><rpc/>`:                      errDTD,
		`<rpc><?php ?></rpc>`:                                    errDTD,
		strings.Repeat("<a>", 65):                                errTooDeep,
		`<rpc>` + strings.Repeat("<a/>", maxElements) + `</rpc>`: errTooMany,
		`<rpc/><rpc/>`:                                           errTrailing,
		`<rpc/>more`:                                             errTrailing,
		``:                                                       errNothing,
		`<rpc>`:                                                  nil,
		`<rpc></rcp>`:                                            nil,
		`<rpc>&lol;</rpc>`:                                       nil,
		`<rpc a=1/>`:                                             nil,
		"<rpc>\x00</rpc>":                                        nil,
		"<rpc>\xff</rpc>":                                        nil,
		`<?xml version="1.0" encoding="UTF-16"?><rpc/>`: nil,
	} {
		_, err := decode([]byte(text))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.60q: error %v, want %v", text, err, want)
		}
	}
	if e, err := decode([]byte("<?xml version='1.0'?>\n<!-- a --><rpc>\n<!-- b --><a>x<!-- c -->y</a></rpc>\n")); err != nil || e.kids[0].text != "xy" || e.text != "" {
		t.Errorf("%+v, %v", e, err)
	}
	deep := strings.Repeat("<a>", maxDepth) + strings.Repeat("</a>", maxDepth)
	if _, err := decode([]byte(deep)); err != nil {
		t.Errorf("as deep as allowed: %v", err)
	}
}

// top is the data of RFC 6241 section 6.4.
const top = `<data><top xmlns="http://example.com/schema/1.2/config"><users>
<user><name>root</name><type>superuser</type><full-name>Charlie Root</full-name><company-info><dept>1</dept><id>1</id></company-info></user>
<user><name>fred</name><type>admin</type><full-name>Fred Flintstone</full-name><company-info><dept>2</dept><id>2</id></company-info></user>
<user><name>barney</name><type>admin</type><full-name>Barney Rubble</full-name><company-info><dept>2</dept><id>3</id></company-info></user>
</users></top></data>`

// The examples of RFC 6241 section 6.4, and what they leave open.
func TestSubtreeFilters(t *testing.T) {
	data, err := decode([]byte(top))
	if err != nil {
		t.Fatal(err)
	}
	const ns = ` xmlns="http://example.com/schema/1.2/config"`
	user := func(name string) string {
		_, rest, _ := strings.Cut(top, "<user><name>"+name)
		rest, _, _ = strings.Cut(rest, "</user>")
		return "<user><name>" + name + rest + "</user>"
	}
	whole := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(top, "<data>"), "</data>"), "\n", "")
	inTop := func(users string) string { return `<top` + ns + `><users>` + users + `</users></top>` }
	for _, c := range []struct{ name, filter, want string }{
		{"6.4.1 no filter", "", whole},
		{"6.4.2 empty filter", `<filter/>`, ""},
		{"6.4.3 select the entire users subtree", `<filter><top` + ns + `><users/></top></filter>`, whole},
		{"6.4.3 the top alone", `<filter><top` + ns + `/></filter>`, whole},
		{"6.4.4 select all name elements", `<filter><top` + ns + `><users><user><name/></user></users></top></filter>`,
			inTop("<user><name>root</name></user><user><name>fred</name></user><user><name>barney</name></user>")},
		{"6.4.5 one specific user entry", `<filter><top` + ns + `><users><user><name>fred</name></user></users></top></filter>`, inTop(user("fred"))},
		{"6.4.6 specific elements from a user entry", `<filter><top` + ns + `><users><user><name>fred</name><type/><full-name/></user></users></top></filter>`,
			inTop("<user><name>fred</name><type>admin</type><full-name>Fred Flintstone</full-name></user>")},
		{"6.4.7 multiple subtrees", `<filter><top` + ns + `><users>
<user><name>root</name><company-info/></user>
<user><name>fred</name><company-info><id/></company-info></user>
<user><name>barney</name><type>superuser</type><company-info><dept/></company-info></user>
</users></top></filter>`, inTop("<user><name>root</name><company-info><dept>1</dept><id>1</id></company-info></user><user><name>fred</name><company-info><id>2</id></company-info></user>")},
		{"another namespace", `<filter><top xmlns="http://example.com/other"/></filter>`, ""},
		{"no namespace", `<filter xmlns="` + nsBase + `"><top xmlns=""><users/></top></filter>`, whole},
		{"the namespace of NETCONF", `<filter xmlns="` + nsBase + `"><top><users/></top></filter>`, whole},
		{"an attribute that data do not have", `<filter><top` + ns + `><users a="1"/></top></filter>`, ""},
		{"nobody of that name", `<filter><top` + ns + `><users><user><name>wilma</name></user></users></top></filter>`, ""},
		{"two of that kind", `<filter><top` + ns + `><users><user><type>admin</type><name/></user></users></top></filter>`,
			inTop("<user><name>fred</name><type>admin</type></user><user><name>barney</name><type>admin</type></user>")},
		{"one way that fits beside one that does not", `<filter><top` + ns + `><users><user><name>root</name><type/></user><user><type>superuser</type><full-name/></user></users></top></filter>`,
			inTop("<user><name>root</name><type>superuser</type><full-name>Charlie Root</full-name></user>")},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f *element
			if c.filter != "" {
				if f, err = decode([]byte(c.filter)); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			for _, e := range selected(data.kids, f) {
				got += text(e)
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Keys are there with what is selected of an entry.
func TestKeysAreSelectedWithTheirEntry(t *testing.T) {
	e := &element{name: "host", keys: 2, kids: []*element{leafOf("", "address", "1"), leafOf("", "port", "2"), el("", "state", leafOf("", "role", "target"), leafOf("", "mac", "x"))}}
	list := el("", "hosts", e)
	f := el("", "filter", el("", "hosts", el("", "host", el("", "state", el("", "role")))))
	if got := text(selected([]*element{list}, f)[0]); got != "<hosts><host><address>1</address><port>2</port><state><role>target</role></state></host></hosts>" {
		t.Error(got)
	}
	f = el("", "filter", el("", "hosts", el("", "host", el("", "nothing"))))
	if got := selected([]*element{list}, f); len(got) != 0 {
		t.Errorf("%s", text(got[0]))
	}
}

// Messages that are none are answered with the protocol's own error (RFC 6241 section 4.3 and
// appendix A), the session goes on, and only ten in a row end it.
func TestMessagesThatAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		answer := func(want ...string) {
			t.Helper()
			got := text(c.receive())
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("%s lacks %s", got, w)
				}
			}
		}
		c.raw(`<rpc xmlns="` + nsBase + `"><get-config><source><running/></source></get-config></rpc>`) // the example of section 4.3
		answer("<error-type>rpc</error-type><error-tag>missing-attribute</error-tag><error-severity>error</error-severity>",
			"<error-info><bad-attribute>message-id</bad-attribute><bad-element>rpc</bad-element></error-info>")
		c.raw(`<rpc xmlns="` + nsBase + `" message-id="7">`)
		answer("<error-tag>malformed-message</error-tag>", `message-id="7"`)
		c.raw(`<!DOCTYPE a [<!ENTITY b "c">]><rpc xmlns="` + nsBase + `" message-id="8"/>`)
		answer("<error-tag>malformed-message</error-tag>", "document type")
		c.raw(`<rpc message-id="9"><commit/></rpc>`)
		answer("<error-tag>malformed-message</error-tag>", `message-id="9"`)
		c.raw(`<hello xmlns="` + nsBase + `"/>`)
		answer("<error-tag>malformed-message</error-tag>")
		c.raw(`<rpc xmlns="` + nsBase + `" message-id="10"><commit/><commit/></rpc>`)
		answer("malformed-message", "2 operations")
		// The attributes of an rpc are those of its reply (section 4.1).
		c.raw(`<rpc message-id="101" xmlns="` + nsBase + `" xmlns:ex="http://example.net/content/1.0" ex:user-id="fred"><lock><target><candidate/></target></lock></rpc>`)
		got, err := c.in.next()
		if err != nil || !strings.Contains(string(got), `xmlns:ex="http://example.net/content/1.0"`) || !strings.Contains(string(got), `ex:user-id="fred"`) {
			t.Errorf("%s, %v", got, err)
		}
		if n := s.Counters(); n.Malformed != 4 || n.Errors != 2 {
			t.Errorf("%+v", n)
		}
		for range maxMalformed {
			c.raw(`<`)
			answer("malformed-message")
		}
		c.raw(`<`)
		<-c.ended
		want(t, d, zoneA, zoneB)
	})
}

// Operations and edits that cannot be.
func TestWhatCannotBeIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		c := dial(t, s, anna)
		inof := func(space, inner string) string {
			return `<edit-config>` + onto + `<config><inof xmlns="` + space + `" xmlns:nc="` + nsBase + `">` + inner + `</inof></config></edit-config>`
		}
		zone := func(attr, inner string) string { return `<zones><zone ` + attr + `>` + inner + `</zone></zones>` }
		for _, x := range []struct{ name, op, tag, path string }{
			{"an unknown operation", `<reboot xmlns="urn:example"/>`, "operation-not-supported", ""},
			{"delete-config", `<delete-config><target><running/></target></delete-config>`, "operation-not-supported", ""},
			{"a change of running", `<edit-config><target><running/></target><config/></edit-config>`, "operation-not-supported", ""},
			{"no target", `<edit-config><config/></edit-config>`, "missing-element", ""},
			{"no configuration", `<edit-config>` + onto + `</edit-config>`, "missing-element", ""},
			{"no such default", `<edit-config>` + onto + `<default-operation>keep</default-operation><config/></edit-config>`, "invalid-value", ""},
			{"edits in part", `<edit-config>` + onto + `<error-option>continue-on-error</error-option><config/></edit-config>`, "operation-not-supported", ""},
			{"another namespace", inof("urn:example", ""), "unknown-namespace", ""},
			{"an unknown node", inof("urn:openinof:yang:inof", "<zone/>"), "unknown-element", "/inof:inof"},
			{"state", inof("urn:openinof:yang:inof", "<state/>"), "unknown-element", "/inof:inof"},
			{"a list without its key", inof("urn:openinof:yang:inof", zone("", "<config/>")), "missing-element", "/inof:inof/inof:zones/inof:zone"},
			{"no operation", inof("urn:openinof:yang:inof", zone(`nc:operation="move"`, "<name>a</name>")), "bad-attribute", "/inof:inof/inof:zones/inof:zone"},
			{"an unknown attribute", inof("urn:openinof:yang:inof", zone(`color="red"`, "<name>a</name>")), "unknown-attribute", "/inof:inof/inof:zones/inof:zone"},
			{"it is there", inof("urn:openinof:yang:inof", zone(`nc:operation="create"`, "<name>a</name>")), "data-exists", "/inof:inof/inof:zones/inof:zone[inof:name='a']"},
			{"it is not there", inof("urn:openinof:yang:inof", zone(`nc:operation="delete"`, "<name>x</name>")), "data-missing", "/inof:inof/inof:zones/inof:zone[inof:name='x']"},
			{"no member", inof("urn:openinof:yang:inof", zone("", "<name>a</name><config><member>here</member></config>")), "invalid-value", "/inof:inof/inof:zones/inof:zone[inof:name='a']/inof:config/inof:member"},
			{"a filter of another type", `<get><filter type="xpath" select="/inof"/></get>`, "bad-attribute", ""},
			{"a filter that is too large", `<get><filter>` + strings.Repeat("<a/>", maxFilter+1) + `</filter></get>`, "too-big", ""},
			{"no datastore", `<get-config><source><startup/></source></get-config>`, "operation-not-supported", ""},
			{"a url", `<get-config><source><url>http://example.net</url></source></get-config>`, "operation-not-supported", ""},
			{"a copy onto itself", `<copy-config>` + onto + `<source><candidate/></source></copy-config>`, "invalid-value", ""},
		} {
			if path, _ := c.fails(x.op, x.tag); path != x.path {
				t.Errorf("%s: path %s, want %s", x.name, path, x.path)
			}
		}
		// An edit of which one part is wrong does nothing.
		c.fails(inof("urn:openinof:yang:inof", `<zones><zone><name>c</name></zone><zone nc:operation="delete"><name>x</name></zone></zones>`), "data-missing")
		c.ok(`<commit/>`)
		want(t, d, zoneA, zoneB)
		// One that is only tested neither.
		c.ok(strings.Replace(addZone("c"), "<config>", "<test-option>test-only</test-option><config>", 1))
		c.ok(`<commit/>`)
		want(t, d, zoneA, zoneB)
		c.ok(`<copy-config>` + onto + `<source><config><inof xmlns="urn:openinof:yang:inof"><zones><zone><name>z</name></zone></zones></inof></config></source></copy-config>`)
		c.ok(`<commit/>`)
		want(t, d, "z: ")
	})
}

func FuzzFraming(f *testing.F) {
	f.Add(false, []byte("<rpc/>]]>]]><a/>]]>]]>"))
	f.Add(true, []byte("\n#4\n<rpc\n#2\n/>\n##\n"))
	f.Fuzz(func(t *testing.T, chunked bool, text []byte) {
		m := newMessages(bytes.NewReader(text))
		m.chunked = chunked
		for total := 0; ; {
			b, err := m.next()
			if total += len(b); total > len(text) {
				t.Fatalf("%d bytes of %d", total, len(text))
			}
			if err != nil {
				return
			}
		}
	})
}

func FuzzXML(f *testing.F) {
	f.Add([]byte(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1"><get/></rpc>`))
	f.Add([]byte(top))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`))
	f.Add([]byte(`<a:b xmlns:a="c" a:d="e">&lt;&#10;</a:b>`))
	f.Fuzz(func(t *testing.T, message []byte) {
		e, err := decode(message)
		if err != nil {
			return
		}
		reply := (&session{}).reply(e, e.kids...)
		var b strings.Builder
		if err := (&sender{w: &b}).send(reply); err != nil {
			t.Fatal(err)
		}
		for _, k := range e.kids {
			if n, err := nodeOf(k, nil); err == nil && n.Name != k.name {
				t.Fatalf("%+v", n)
			}
		}
		if strings.Contains(strings.TrimSuffix(b.String(), endOfMessage), endOfMessage) {
			t.Fatalf("the end of a message within it: %s", b.String())
		}
	})
}

// Whatever the filter: what is selected is a part of the data, and no more than once.
func FuzzFilter(f *testing.F) {
	f.Add([]byte(`<filter><top xmlns="http://example.com/schema/1.2/config"><users><user><name>fred</name><type/></user></users></top></filter>`))
	f.Add([]byte(`<filter><top><users><user/></users><users><user><name>root</name></user></users></top></filter>`))
	data, err := decode([]byte(top))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		filter, err := decode(message)
		if err != nil || filter.size() > maxFilter {
			return
		}
		size := 0
		for _, e := range selected(data.kids, filter) {
			size += 1 + e.size()
			if e.name != "top" || !wants(filter, e.space, "top") {
				t.Fatalf("%s is selected, and not wanted", text(e))
			}
		}
		if size > data.size() {
			t.Fatalf("%d nodes of %d", size, data.size())
		}
	})
}
