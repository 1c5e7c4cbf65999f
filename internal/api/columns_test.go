package api_test

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

// Hosts in columns are the same hosts, value by value, whatever hosts say of themselves.
func TestHostsInColumnsAreTheSameHosts(t *testing.T) {
	src := apitest.Sample()
	src.HostValues[0].NQN, src.HostValues[0].Port = "a\"\\<&>\x01é\xff", "ü\n"
	src.HostValues[1].Refused, src.HostValues[1].Doubt = []string{"one", "two \"x\""}, true
	ask := func(accept string) []byte {
		r := httptest.NewRequest("GET", "/v1/hosts", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		if api.Handler(src).ServeHTTP(w, r); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	type column struct {
		Words []any `json:"words"`
		Of    []int `json:"of"`
	}
	var rows []map[string]any
	var cols struct {
		Count int                 `json:"count"`
		Texts map[string][]string `json:"texts"`
		Since []int64             `json:"since_us"`
		Words map[string]column   `json:"words"`
		Lists map[string]column   `json:"lists"`
	}
	if err := json.Unmarshal(ask("application/json"), &rows); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(ask(api.HostColumns+", application/json"), &cols); err != nil {
		t.Fatal(err)
	}
	if cols.Count != len(rows) || len(cols.Since) != len(rows) || len(rows) != 4 {
		t.Fatalf("%d of %d hosts", cols.Count, len(rows))
	}
	text := func(v any) string {
		switch v := v.(type) {
		case nil:
			return ""
		case string:
			return v
		}
		b, _ := json.Marshal(v)
		return string(b)
	}
	for i, row := range rows {
		for name, list := range cols.Texts {
			if list[i] != text(row[name]) {
				t.Errorf("host %d, %s: %q, in rows %q", i, name, list[i], row[name])
			}
		}
		for name, c := range cols.Words {
			if got, want := c.Words[c.Of[i]], text(row[name]); got != want && !(name == "doubt" && want == "" && got == "false") {
				t.Errorf("host %d, %s: %q, in rows %q", i, name, got, want)
			}
		}
		for name, c := range cols.Lists {
			want, _ := row[name].([]any)
			if got := c.Words[c.Of[i]].([]any); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("host %d, %s: %q, in rows %q", i, name, got, want)
			}
		}
		if at, err := time.Parse(time.RFC3339Nano, text(row["since"])); err != nil || at.UnixMicro() != cols.Since[i] {
			t.Errorf("host %d: since %d, in rows %v", i, cols.Since[i], row["since"])
		}
	}
}
