package ygot

import (
	"slices"
	"strings"
	"testing"

	"github.com/openconfig/goyang/pkg/yang"

	modules "github.com/openinof/inof/dist/yang"
	"github.com/openinof/inof/internal/telemetry"
)

// goyang reads our modules, and finds in them every leaf of the table with its type, and no other
// but the keys of lists.
func TestTheModulesHaveWhatTheTableHas(t *testing.T) {
	ms := yang.NewModules()
	for _, m := range modules.Modules() {
		text, err := modules.Text(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := ms.Parse(text, m.Name); err != nil {
			t.Fatal(err)
		}
	}
	if errs := ms.Process(); len(errs) > 0 {
		t.Fatal(errs)
	}
	entry, errs := ms.GetModule(telemetry.Module)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	found := map[string]*yang.Entry{}
	walk(entry, "", found)
	for _, l := range telemetry.Leaves() {
		path := plain(l.Path)
		if !strings.HasPrefix(path, "/inof/") || !l.Model() {
			continue
		}
		e := found[path]
		if e == nil {
			t.Errorf("%s is not in the module", l.Path)
			continue
		}
		delete(found, path)
		if e.Type.Name != l.Type || e.IsLeafList() != l.Many || e.ReadOnly() == l.Set {
			t.Errorf("%s is %s (list %v, state %v), want %s", l.Path, e.Type.Name, e.IsLeafList(), e.ReadOnly(), l.Type)
		}
		if l.Type == telemetry.TypeEnum {
			names := e.Type.Enum.Names()
			want := slices.Clone(l.Values)
			slices.Sort(names)
			slices.Sort(want)
			if !slices.Equal(names, want) {
				t.Errorf("%s: %v, want %v", l.Path, names, want)
			}
		}
	}
	for path, e := range found {
		if !slices.Contains(strings.Fields(e.Parent.Key), e.Name) {
			t.Errorf("%s is not in the table", path)
		}
	}
}

func walk(e *yang.Entry, at string, found map[string]*yang.Entry) {
	for name, c := range e.Dir {
		if path := at + "/" + name; c.IsLeaf() || c.IsLeafList() {
			found[path] = c
		} else if c.RPC == nil && c.Kind != yang.NotificationEntry {
			walk(c, path, found)
		}
	}
}

// plain is a path without keys.
func plain(path string) string {
	var b strings.Builder
	for i, part := range strings.Split(path, "[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "]")
		}
		b.WriteString(part)
	}
	return b.String()
}
