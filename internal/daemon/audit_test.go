package daemon

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/openinof/inof/internal/api"
)

// What changes something is kept with its outcome, refusals too, and what is only asked is not; a
// restart goes on with the chain, and who changes a line is found out.
func TestWhatOperatorsDoAndAreRefusedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		ask := func(method, path, body string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			api.Handler(n.d).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
			return w
		}
		if w := ask("POST", "/v1/zones", `{"name":"new","members":["192.0.2.77"]}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"zone":"new"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := ask("POST", "/v1/zones", `{"name":"new","members":["192.0.2.77"]}`); w.Code != 409 || !strings.Contains(w.Body.String(), "already exists") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		ask("GET", "/v1/zones", "")
		z, _ := n.d.Zoning(t.Context())
		ask("POST", "/v1/zoning/check", `{"plan":{},"base":"`+z.Version.Base+`"}`)
		ask("POST", "/v1/zoning/commit", `{"plan":{},"base":"`+z.Version.Base+`","comment":"all gone","force":true}`)
		ask("POST", "/v1/nothing", strings.Repeat("x", 10000))
		n.halt()
		n.start()
		settle(1)
		if err := n.d.Reload(t.Context(), n.cfg, false); err != nil {
			t.Fatal(err)
		}
		l, err := n.d.AuditRecords(t.Context(), 100)
		if err != nil || !l.Whole || l.Records != 5 || len(l.Newest) != 5 {
			t.Fatalf("%+v, %v", l, err)
		}
		for i, want := range []struct{ what, result, text string }{
			{"POST /v1/zones", "done", ""}, {"POST /v1/zones", "exists", "already exists"}, {"POST /v1/zoning/commit", "done", ""}, {"POST /v1/nothing", "not-found", "no such path"}, {"reload", "done", ""},
		} {
			if r := l.Newest[i]; r.What != want.what || r.Result != want.result || !strings.Contains(r.Error, want.text) {
				t.Errorf("record %d: %+v, want %+v", i+1, r, want)
			}
		}
		if d := l.Newest[2].Detail; d["comment"] != "all gone" || !strings.Contains(d["changes"], "- zone new with 1 member(s)") || !strings.HasSuffix(d["pairs"], " lost") || d["version"] == "" {
			t.Errorf("the commit is kept as %q", d)
		}
		if len(l.Newest[3].Detail["body"]) > 4096 {
			t.Error("a whole body is kept")
		}
		path := filepath.Join(n.cfg.State, "audit.jsonl")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Replace(string(b), "all gone", "all good", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if l, err := n.d.AuditRecords(t.Context(), 1); err != nil || l.Whole || !strings.Contains(l.Trouble, "record 3 is not what was written") {
			t.Errorf("%+v, %v", l, err)
		}
	})
}
