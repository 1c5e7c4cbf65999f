package tree

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/zone/change"
)

// before is what all edits of these tests begin with.
func before(t *testing.T) Config {
	t.Helper()
	doc := change.Document{
		Aliases: []change.Named{{Name: "array", Members: []string{"192.0.2.20"}}},
		Zones:   []change.Named{{Name: "a", Members: []string{"192.0.2.1", "192.0.2.2", "alias:array"}}, {Name: "b", Members: []string{"nqn.2026-01.org.example:b"}}},
		Sets:    []change.NamedSet{{Name: "day", Zones: []string{"a", "b"}}},
		Active:  "day",
	}
	p, err := doc.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Plan: p}
}

// at is a path as it is written, for tests: names, with a key after "=".
func at(text string) (p Path) {
	for s := range strings.SplitSeq(strings.Trim(text, "/"), "/") {
		if s == "" {
			continue
		}
		name, key, keyed := strings.Cut(s, "=")
		p = append(p, Step{Name: name, Key: key, Keyed: keyed})
	}
	return p
}

// said is a Config in one line a thing.
func said(c Config) (out []string) {
	doc := c.Plan.Document()
	for _, a := range doc.Aliases {
		out = append(out, "alias "+a.Name+": "+strings.Join(a.Members, " "))
	}
	for _, z := range doc.Zones {
		out = append(out, "zone "+z.Name+": "+strings.Join(z.Members, " "))
	}
	for _, s := range doc.Sets {
		out = append(out, "set "+s.Name+": "+strings.Join(s.Zones, " "))
	}
	return append(out, "active "+doc.Active)
}

// The operations of RFC 6241 section 7.2 and their errors, on each kind of node.
func TestAnEditDoesWhatItsOperationSays(t *testing.T) {
	for _, c := range []struct {
		name, path string
		op         Op
		value      string
		less, more []string // lines that go and come
		tag        Tag
		where      string // the path of the error
	}{
		{name: "merge adds a member", path: "inof/zones/zone=a/config/member", op: Merge, value: `["192.0.2.9"]`,
			less: []string{"zone a: 192.0.2.1 192.0.2.2 alias:array"}, more: []string{"zone a: 192.0.2.1 192.0.2.2 192.0.2.9 alias:array"}},
		{name: "replace of a leaf-list has these alone", path: "inof/zones/zone=a/config/member", op: Replace, value: `["192.0.2.9"]`,
			less: []string{"zone a: 192.0.2.1 192.0.2.2 alias:array"}, more: []string{"zone a: 192.0.2.9"}},
		{name: "another spelling of a member is the same member", path: "inof/zones/zone=a/config/member=::ffff:192.0.2.1", op: Delete,
			less: []string{"zone a: 192.0.2.1 192.0.2.2 alias:array"}, more: []string{"zone a: 192.0.2.2 alias:array"}},
		{name: "create makes a zone", path: "inof/zones/zone=c", op: Create, value: `{"name":"c","config":{"name":"c","member":["192.0.2.3"]}}`, more: []string{"zone c: 192.0.2.3"}},
		{name: "a key alone makes a zone", path: "inof/zones/zone=c", op: Merge, value: `{}`, more: []string{"zone c: "}},
		{name: "create of what is there", path: "inof/zones/zone=a", op: Create, value: `{}`, tag: TagDataExists, where: "/inof/zones/zone[name=a]"},
		{name: "create of a member that is there", path: "inof/zones/zone=a/config/member", op: Create, value: `["192.0.2.2"]`, tag: TagDataExists, where: "/inof/zones/zone[name=a]/config/member[.=192.0.2.2]"},
		{name: "create of a leaf that is there", path: "inof/config/active-zone-set", op: Create, value: `"day"`, tag: TagDataExists, where: "/inof/config/active-zone-set"},
		{name: "replace of a zone has what it says alone", path: "inof/zones/zone=a", op: Replace, value: `{"config":{"member":["192.0.2.3"]}}`,
			less: []string{"zone a: 192.0.2.1 192.0.2.2 alias:array"}, more: []string{"zone a: 192.0.2.3"}},
		{name: "replace of a container", path: "inof/zones", op: Replace, value: `{"zone":[{"name":"z","config":{"name":"z"}}]}`,
			less: []string{"zone a: 192.0.2.1 192.0.2.2 alias:array", "zone b: nqn.2026-01.org.example:b"}, more: []string{"zone z: "}},
		{name: "replace of all", path: "", op: Replace, value: `{"openinof-inof:inof":{"zones":{"zone":[{"name":"z"}]}}}`,
			less: []string{"alias array: 192.0.2.20", "zone a: 192.0.2.1 192.0.2.2 alias:array", "zone b: nqn.2026-01.org.example:b", "set day: a b", "active day"}, more: []string{"zone z: ", "active "}},
		{name: "delete of a zone", path: "inof/zones/zone=b", op: Delete, less: []string{"zone b: nqn.2026-01.org.example:b"}},
		{name: "delete of what is not there", path: "inof/zones/zone=x", op: Delete, tag: TagDataMissing, where: "/inof/zones/zone[name=x]"},
		{name: "delete of a member that is not there", path: "inof/zones/zone=a/config/member=192.0.2.77", op: Delete, tag: TagDataMissing, where: "/inof/zones/zone[name=a]/config/member[.=192.0.2.77]"},
		{name: "delete below what is not there", path: "inof/zones/zone=x/config/member=192.0.2.77", op: Delete, tag: TagDataMissing, where: "/inof/zones/zone[name=x]/config/member[.=192.0.2.77]"},
		{name: "remove of what is not there", path: "inof/zones/zone=x", op: Remove},
		{name: "delete of a leaf", path: "inof/config/active-zone-set", op: Delete, less: []string{"active day"}, more: []string{"active "}},
		{name: "delete of a leaf twice", path: "inof/config/active-zone-set=x", op: Delete, less: []string{"active day"}, more: []string{"active "}},
		{name: "remove of a whole list", path: "inof/zone-sets/zone-set", op: Remove, less: []string{"set day: a b"}},
		{name: "remove of all", path: "", op: Remove, less: []string{"alias array: 192.0.2.20", "zone a: 192.0.2.1 192.0.2.2 alias:array", "zone b: nqn.2026-01.org.example:b", "set day: a b", "active day"}, more: []string{"active "}},
		{name: "a leaf is another one", path: "inof/config/active-zone-set", op: Merge, value: `"night"`, less: []string{"active day"}, more: []string{"active night"}},

		{name: "no such node", path: "inof/zone", op: Merge, value: `{}`, tag: TagUnknownElement, where: "/inof"},
		{name: "no such node in a value", path: "inof/zones/zone=a", op: Merge, value: `{"members":[]}`, tag: TagUnknownElement, where: "/inof/zones/zone[name=a]"},
		{name: "state cannot be set", path: "inof/zones/zone=a", op: Merge, value: `{"state":{}}`, tag: TagUnknownElement, where: "/inof/zones/zone[name=a]"},
		{name: "a zone without its key", path: "inof/zones/zone", op: Merge, value: `[{"config":{"member":[]}}]`, tag: TagMissingElement, where: "/inof/zones/zone"},
		{name: "a path without a key", path: "inof/zones/zone/config", op: Merge, value: `{}`, tag: TagMissingElement, where: "/inof/zones/zone"},
		{name: "a name that is not the key", path: "inof/zones/zone=a", op: Merge, value: `{"config":{"name":"b"}}`, tag: TagInvalidValue, where: "/inof/zones/zone[name=a]/config/name"},
		{name: "no member", path: "inof/zones/zone=a/config/member", op: Merge, value: `["192.0.2.300"]`, tag: TagInvalidValue, where: "/inof/zones/zone[name=a]/config/member"},
		{name: "an alias of an alias", path: "inof/aliases/alias=array/config/member", op: Merge, value: `["alias:x"]`, tag: TagInvalidValue, where: "/inof/aliases/alias[name=array]/config/member"},
		{name: "no text", path: "inof/config/active-zone-set", op: Merge, value: `true`, tag: TagInvalidValue, where: "/inof/config/active-zone-set"},
		{name: "a setting of the file", path: "inof/config/hard-zoning", op: Merge, value: `true`, tag: TagUnknownElement, where: "/inof/config"},
		{name: "no array", path: "inof/zones/zone=a/config/member", op: Merge, value: `"192.0.2.3"`, tag: TagInvalidValue, where: "/inof/zones/zone[name=a]/config/member"},
		{name: "no JSON", path: "inof/zones/zone=a", op: Merge, value: `{`, tag: TagInvalidValue, where: "/inof/zones/zone[name=a]"},
		{name: "two values", path: "inof/zones/zone=a", op: Merge, value: `{} {}`, tag: TagInvalidValue, where: "/inof/zones/zone[name=a]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := before(t)
			was := said(old)
			n, err := EditJSON(at(c.path), c.op, []byte(c.value))
			got := old
			if err == nil {
				got, err = old.Apply(n, Merge)
			}
			var e *Error
			switch {
			case c.tag == "" && err != nil:
				t.Fatal(err)
			case c.tag != "" && !errors.As(err, &e):
				t.Fatalf("error %v, want %s", err, c.tag)
			case c.tag != "" && (e.Tag != c.tag || e.Path.String() != c.where):
				t.Fatalf("error %s at %s (%v), want %s at %s", e.Tag, e.Path, e, c.tag, c.where)
			}
			want := map[string]int{}
			for _, l := range was {
				want[l]++
			}
			for _, l := range c.less {
				want[l]--
			}
			for _, l := range c.more {
				want[l]++
			}
			for _, l := range said(got) {
				want[l]--
			}
			for l, n := range want {
				if n != 0 {
					t.Errorf("%+d %s", -n, l)
				}
			}
			if d := cmp.Diff(was, said(old)); d != "" {
				t.Errorf("what was before has changed: %s", d)
			}
		})
	}
}

// What default-operation says where nothing else is said (RFC 6241 section 7.2).
func TestTheDefaultOperation(t *testing.T) {
	zone := func(op Op, name string, members ...string) *Node {
		config := &Node{Name: "config"}
		for _, m := range members {
			config.Kids = append(config.Kids, &Node{Name: "member", Value: m, Op: op})
		}
		return &Node{Kids: []*Node{{Name: "inof", Kids: []*Node{{Name: "zones", Kids: []*Node{{Name: "zone", Kids: []*Node{{Name: "name", Value: name}, config}}}}}}}}
	}
	for _, c := range []struct {
		name string
		def  Op
		n    *Node
		want string // of zones
		tag  Tag
	}{
		{"merge", Merge, zone(Inherit, "a", "192.0.2.9"), "zone a: 192.0.2.1 192.0.2.2 192.0.2.9 alias:array|zone b: nqn.2026-01.org.example:b", ""},
		{"replace", Replace, zone(Inherit, "a", "192.0.2.9"), "zone a: 192.0.2.9", ""},
		{"none changes nothing", None, zone(Inherit, "a", "192.0.2.1"), "zone a: 192.0.2.1 192.0.2.2 alias:array|zone b: nqn.2026-01.org.example:b", ""},
		{"none leads to what is changed", None, zone(Delete, "a", "192.0.2.1"), "zone a: 192.0.2.2 alias:array|zone b: nqn.2026-01.org.example:b", ""},
		{"none makes no way", None, zone(Create, "c", "192.0.2.1"), "", TagDataMissing},
		{"none makes nothing", None, zone(Inherit, "a", "192.0.2.9"), "", TagDataMissing},
		{"no operation", Merge, zone("move", "a", "192.0.2.9"), "", TagInvalidValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := before(t).Apply(c.n, c.def)
			var e *Error
			if c.tag != "" {
				if !errors.As(err, &e) || e.Tag != c.tag {
					t.Fatalf("error %v, want %s", err, c.tag)
				}
				return
			}
			var zones []string
			for _, l := range said(got) {
				if strings.HasPrefix(l, "zone ") {
					zones = append(zones, l)
				}
			}
			if err != nil || strings.Join(zones, "|") != c.want {
				t.Errorf("%s, %v; want %s", strings.Join(zones, "|"), err, c.want)
			}
		})
	}
}

func TestReferencesToWhatIsNotThereAreNamed(t *testing.T) {
	c := before(t)
	for _, path := range []string{"inof/aliases", "inof/zones/zone=b", "inof/zone-sets"} {
		n, err := EditJSON(at(path), Remove, nil)
		if err == nil {
			c, err = c.Apply(n, Merge)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n, _ := EditJSON(at("inof/zone-sets/zone-set=x/config/zone"), Merge, []byte(`["it's"]`))
	c, err := c.Apply(n, Merge)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Check() {
		got = append(got, string(e.Tag)+" "+e.App+" "+e.Path.XPath("i"))
	}
	want := []string{
		"data-missing instance-required /i:inof/i:zones/i:zone[i:name='a']/i:config/i:member[.='alias:array']",
		`data-missing instance-required /i:inof/i:zone-sets/i:zone-set[i:name='x']/i:config/i:zone[.="it's"]`,
		"data-missing instance-required /i:inof/i:config/i:active-zone-set",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(before(t).Check()) != 0 {
		t.Error("a whole plan has errors")
	}
}

// What JSON gives, an edit reads back.
func TestJSONIsReadBack(t *testing.T) {
	c := before(t)
	all, err := c.JSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"openinof-inof:inof":{"aliases":{"alias":[{"config":{"member":["192.0.2.20"],"name":"array"},"name":"array"}]},` +
		`"config":{"active-zone-set":"day"},` +
		`"zone-sets":{"zone-set":[{"config":{"name":"day","zone":["a","b"]},"name":"day"}]},` +
		`"zones":{"zone":[{"config":{"member":["192.0.2.1","192.0.2.2","alias:array"],"name":"a"},"name":"a"},{"config":{"member":["nqn.2026-01.org.example:b"],"name":"b"},"name":"b"}]}}}`
	if string(all) != want {
		t.Errorf("%s, want %s", all, want)
	}
	n, err := EditJSON(nil, Replace, all)
	if err != nil {
		t.Fatal(err)
	}
	empty := Config{Plan: &change.Plan{}}
	got, err := empty.Apply(n, Merge)
	if err != nil || !got.Plan.Equal(c.Plan) {
		t.Errorf("%v, %v", said(got), err)
	}
	for path, want := range map[string]string{
		"openinof-inof:inof/zones/zone=b": `{"openinof-inof:config":{"member":["nqn.2026-01.org.example:b"],"name":"b"},"openinof-inof:name":"b"}`,
		"inof/config/active-zone-set":     `"day"`,
		"inof/zone-sets/zone-set":         `[{"openinof-inof:config":{"name":"day","zone":["a","b"]},"openinof-inof:name":"day"}]`,
		"inof/zones/zone=a/config/member": `["192.0.2.1","192.0.2.2","alias:array"]`,
	} {
		if b, err := c.JSON(at(path)); err != nil || string(b) != want {
			t.Errorf("%s: %s, %v", path, b, err)
		}
	}
	for path, tag := range map[string]Tag{"inof/zones/zone=x": TagDataMissing, "inof/nothing": TagUnknownElement, "inof/zones/zone/config": TagMissingElement} {
		var e *Error
		if _, err := c.JSON(at(path)); !errors.As(err, &e) || e.Tag != tag {
			t.Errorf("%s: %v, want %s", path, err, tag)
		}
	}
}

// Whatever JSON somebody sends: an error of ours, or a plan that is written and read back alike.
func FuzzEdits(f *testing.F) {
	f.Add("inof/zones/zone=a", "merge", `{"config":{"member":["192.0.2.9"]}}`)
	f.Add("inof/zones/zone=a/config/member", "replace", `["alias:array"]`)
	f.Add("", "replace", `{"openinof-inof:inof":{"config":{"active-zone-set":"x"}}}`)
	f.Add("inof/aliases", "delete", "")
	f.Fuzz(func(t *testing.T, path, op, value string) {
		n, err := EditJSON(at(path), Op(op), []byte(value))
		var e *Error
		if err == nil {
			var c Config
			if c, err = before(t).Apply(n, Merge); err == nil {
				b, err := c.JSON(nil)
				if err != nil || !json.Valid(b) {
					t.Fatalf("%s, %v", b, err)
				}
				again, err := EditJSON(nil, Replace, b)
				if err != nil {
					t.Fatal(err)
				}
				if back, err := (Config{}).Apply(again, Merge); err != nil || !back.Plan.Equal(c.Plan) {
					t.Fatalf("%v is read back as %v: %v", said(c), said(back), err)
				}
				return
			}
		}
		if !errors.As(err, &e) || e.Tag == "" || e.Message == "" {
			t.Fatalf("error %v", err)
		}
		_, _ = e.Path.XPath("i"), e.Error()
	})
}
