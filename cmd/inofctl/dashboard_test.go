package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api/apitest"
)

// The page, a device, and a recorded run come to the one browser that follows the address which
// is printed; nothing that changes anything goes through.
func TestTheDashboardServesDevicesAndRecords(t *testing.T) {
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	record := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(record, []byte(`{"name": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"dashboard", "-o", "json", "--targets", socket, "--record", record}, w, io.Discard)
		w.Close()
	}()
	var out struct{ URL string }
	if err := json.NewDecoder(r).Decode(&out); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	client := &http.Client{Timeout: 20 * time.Second}
	entered, err := client.Get(out.URL)
	if err != nil {
		t.Fatal(err)
	}
	entered.Body.Close()
	cookies := entered.Cookies()
	if entered.StatusCode != 200 || len(cookies) != 1 {
		t.Fatal(entered.Status, cookies)
	}
	base, _, _ := strings.Cut(out.URL, "/enter")
	ask := func(method, path string) (int, string) {
		req, err := http.NewRequest(method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value})
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	for _, c := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/", 200, "app.js"},
		{"GET", "/targets", 200, `"name":"run.json","kind":"record","base":"/t/1"`},
		{"GET", "/t/0/v1/status", 200, `"name":"tor-1"`},
		{"GET", "/t/1/v1/record", 200, `{"name": "x"}`},
		{"POST", "/t/0/v1/drain", 403, "only looks"},
	} {
		if status, body := ask(c.method, c.path); status != c.status || !strings.Contains(body, c.has) {
			t.Errorf("%s %s: %d %.300s", c.method, c.path, status, body)
		}
	}
	if n := src.Changes(); len(n) > 0 {
		t.Errorf("something was changed: %v", n)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ends with %d", code)
	}
}

func TestTheDashboardRefusesWhatIsNoTarget(t *testing.T) {
	for _, args := range [][]string{
		{"--targets", "ftp://x"}, {"--targets", "http://192.0.2.1:1"}, {"--targets", "https://192.0.2.1:1"}, // without a token
		{"--listen", "0.0.0.0:0"}, {"--listen", "x"}, {"--record", "/nonexistent"}, {"--token-file", "/nonexistent"}, {"extra"},
	} {
		if code := run(t.Context(), append([]string{"dashboard"}, args...), io.Discard, io.Discard); code == 0 {
			t.Errorf("%v is taken", args)
		}
	}
}
