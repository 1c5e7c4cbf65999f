package netconf

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/dist/yang"
	"github.com/openinof/inof/zone/tree"
)

// This file says what this server can: its hello, ietf-netconf-monitoring (RFC 6022) and
// ietf-yang-library (RFC 8525).

// The base capabilities.
const (
	capBase10 = "urn:ietf:params:netconf:base:1.0"
	capBase11 = "urn:ietf:params:netconf:base:1.1"
)

// module is one that the server implements, or imports only.
type module struct {
	yang.Module
	features  []string
	imported  bool
	version11 bool // YANG 1.1: the hello does not name it (RFC 7950 section 5.6.4)
}

// modules are all there are, sorted by name.
func modules() (out []module) {
	for _, m := range yang.Modules() {
		out = append(out, module{Module: m})
	}
	for _, m := range yang.Netconf() {
		x := module{Module: m}
		switch m.Name {
		case "ietf-netconf":
			x.features = []string{"candidate", "confirmed-commit", "rollback-on-error", "validate"}
		case "ietf-inet-types", "ietf-yang-types":
			x.imported = true
		case "ietf-yang-library", "ietf-datastores":
			x.version11 = true
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b module) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// contentID names the modules as a whole.
func contentID() string {
	h := sha256.New()
	for _, m := range modules() {
		fmt.Fprintln(h, m.Name, m.Revision, m.features, m.imported)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// capabilities are those of this server.
func capabilities() []string {
	out := []string{capBase10, capBase11}
	for _, name := range []string{"candidate:1.0", "validate:1.1", "confirmed-commit:1.1", "rollback-on-error:1.0", "notification:1.0", "interleave:1.0",
		"yang-library:1.1?revision=2019-01-04&content-id=" + contentID()} {
		out = append(out, "urn:ietf:params:netconf:capability:"+name)
	}
	for _, m := range modules() {
		if m.imported || m.version11 {
			continue
		}
		uri := m.Namespace + "?module=" + m.Name + "&revision=" + m.Revision
		for i, f := range m.features {
			sep := ","
			if i == 0 {
				sep = "&features="
			}
			uri += sep + f
		}
		out = append(out, uri)
	}
	return out
}

// hello is the first message of the server (RFC 6241 section 8.1).
func (s *Server) hello(id uint32) *element {
	list := el(nsBase, "capabilities")
	for _, c := range capabilities() {
		list.kids = append(list.kids, leafOf(nsBase, "capability", c))
	}
	return el(nsBase, "hello", list, leafOf(nsBase, "session-id", strconv.FormatUint(uint64(id), 10)))
}

// library is what the server has of modules.
func library() *element {
	leaf := func(name, text string) *element { return leafOf(nsLibrary, name, text) }
	set := &element{space: nsLibrary, name: "module-set", keys: 1, kids: []*element{leaf("name", "all")}}
	for _, imported := range []bool{false, true} {
		for _, m := range modules() {
			if m.imported != imported {
				continue
			}
			e := &element{space: nsLibrary, name: "module", keys: 1}
			if imported {
				e.name, e.keys = "import-only-module", 2
			}
			e.kids = []*element{leaf("name", m.Name), leaf("revision", m.Revision), leaf("namespace", m.Namespace)}
			for _, f := range m.features {
				e.kids = append(e.kids, leaf("feature", f))
			}
			set.kids = append(set.kids, e)
		}
	}
	out := el(nsLibrary, "yang-library", set, &element{space: nsLibrary, name: "schema", keys: 1, kids: []*element{leaf("name", "all"), leaf("module-set", "all")}})
	for _, d := range []string{running, candidate} {
		name := leaf("name", "ds:"+d)
		name.attrs = []xml.Attr{{Name: xml.Name{Space: "xmlns", Local: "ds"}, Value: nsDatastores}}
		out.kids = append(out.kids, &element{space: nsLibrary, name: "datastore", keys: 1, kids: []*element{name, leaf("schema", "all")}})
	}
	out.kids = append(out.kids, leaf("content-id", contentID()))
	return out
}

// oldLibrary is the same for who knows RFC 7895 only.
func oldLibrary() *element {
	leaf := func(name, text string) *element { return leafOf(nsLibrary, name, text) }
	out := el(nsLibrary, "modules-state", leaf("module-set-id", contentID()))
	for _, m := range modules() {
		e := &element{space: nsLibrary, name: "module", keys: 2, kids: []*element{leaf("name", m.Name), leaf("revision", m.Revision), leaf("namespace", m.Namespace)}}
		for _, f := range m.features {
			e.kids = append(e.kids, leaf("feature", f))
		}
		typ := "implement"
		if m.imported {
			typ = "import"
		}
		e.kids = append(e.kids, leaf("conformance-type", typ))
		out.kids = append(out.kids, e)
	}
	return out
}

// monitoring is the state of the server.
func (s *Server) monitoring() *element {
	leaf := func(name, text string) *element { return leafOf(nsMonitoring, name, text) }
	number := func(name string, n uint64) *element { return leaf(name, strconv.FormatUint(n&0xffffffff, 10)) }
	caps := el(nsMonitoring, "capabilities")
	for _, c := range capabilities() {
		caps.kids = append(caps.kids, leaf("capability", c))
	}
	stores := el(nsMonitoring, "datastores")
	s.store.mu.Lock()
	for _, name := range []string{running, candidate} {
		e := &element{space: nsMonitoring, name: "datastore", keys: 1, kids: []*element{leaf("name", name)}}
		if l, locked := s.store.locks[name]; locked {
			e.kids = append(e.kids, el(nsMonitoring, "locks", el(nsMonitoring, "global-lock",
				leaf("locked-by-session", strconv.FormatUint(uint64(l.session), 10)), leaf("locked-time", l.since.UTC().Format(time.RFC3339)))))
		}
		stores.kids = append(stores.kids, e)
	}
	s.store.mu.Unlock()
	schemas := el(nsMonitoring, "schemas")
	for _, m := range modules() {
		schemas.kids = append(schemas.kids, &element{space: nsMonitoring, name: "schema", keys: 3, kids: []*element{
			leaf("identifier", m.Name), leaf("version", m.Revision), leaf("format", "yang"), leaf("namespace", m.Namespace), leaf("location", "NETCONF")}})
	}
	list := el(nsMonitoring, "sessions")
	for _, o := range s.list() {
		o.counts.Lock()
		e := &element{space: nsMonitoring, name: "session", keys: 1, kids: []*element{leaf("session-id", o.idText()), leaf("transport", "netconf-ssh"),
			leaf("username", o.who.Name), leaf("source-host", o.who.From), leaf("login-time", o.since.UTC().Format(time.RFC3339)),
			number("in-rpcs", o.counts.rpcs), number("in-bad-rpcs", o.counts.bad), number("out-rpc-errors", o.counts.errors), number("out-notifications", o.counts.notifications)}}
		o.counts.Unlock()
		if net.ParseIP(o.who.From) == nil {
			e.kids = slices.Delete(e.kids, 3, 4)
		}
		list.kids = append(list.kids, e)
	}
	c := s.Counters()
	stats := el(nsMonitoring, "statistics", leaf("netconf-start-time", s.started.UTC().Format(time.RFC3339)), number("in-bad-hellos", c.BadHello),
		number("in-sessions", c.Sessions), number("dropped-sessions", c.Dropped), number("in-rpcs", c.RPCs), number("in-bad-rpcs", c.Malformed),
		number("out-rpc-errors", c.Errors), number("out-notifications", c.Notifications))
	return el(nsMonitoring, "netconf-state", caps, stores, schemas, list, stats)
}

// getSchema gives the text of a module (RFC 6022 section 3.1).
func (c *call) getSchema(context.Context) ([]*element, error) {
	id, err := c.needs("identifier")
	if err != nil {
		return nil, err
	}
	if f := c.param("format"); f != nil {
		if text := f.value(); text != "yang" && !strings.HasSuffix(text, ":yang") {
			return nil, refusef(string(tree.TagInvalidValue), "format %.40q: modules are there as yang", text).about("format")
		}
	}
	text, err := yang.Text(id.value())
	revision := c.param("version")
	if err == nil && revision != nil && revision.value() != "" {
		known := false
		for _, m := range modules() {
			known = known || m.Name == id.value() && m.Revision == revision.value()
		}
		if !known {
			err = fmt.Errorf("there is no revision %.40q of module %.100q", revision.value(), id.value())
		}
	}
	if err != nil { // section 3.1: invalid-value, and never more than one here
		return nil, refusef(string(tree.TagInvalidValue), "%v", err).about("identifier")
	}
	return []*element{leafOf(nsMonitoring, "data", text)}, nil
}
