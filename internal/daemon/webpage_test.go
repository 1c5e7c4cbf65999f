package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// The page is for everybody, what it shows for who has logged in, and only under a name of the
// device.
func TestThePageIsServedAndItsDataTakesALogIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	sum := sha256.Sum256([]byte("secret"))
	if err := os.WriteFile(file, []byte("me viewer "+hex.EncodeToString(sum[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{env: Env{Now: time.Now}, log: api.NewEventLog(10, time.Now())}
	d.openAudit(t.TempDir())
	c := &config.Config{}
	c.Management.HTTP.TokenFile = file
	c.Device.Name = "tor1"
	d.cfg.Store(c)
	d.known = newKnown(d)
	h := d.newWeb(c.Management.HTTP).handler(func(name string) bool { return name == "tor1.example" })
	ask := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "tor1.example:19518"
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
			if headers[i] == "Host" {
				r.Host = headers[i+1]
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg", "/licenses.txt"} {
		if w := ask("GET", path, ""); w.Code != 200 || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || w.Header().Get("Connection") != "close" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if w := ask("GET", "/targets", ""); w.Code != 401 {
		t.Error("without a log-in:", w.Code)
	}
	login := ask("POST", "/login", `{"token": "secret"}`)
	cookie, _, _ := strings.Cut(login.Header().Get("Set-Cookie"), ";")
	if login.Code != 200 || !strings.HasPrefix(cookie, "__Host-inof=") {
		t.Fatal(login.Code, login.Body)
	}
	if w := ask("GET", "/targets", "", "Cookie", cookie); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `[{"name":"tor1","kind":"daemon","base":""}]` {
		t.Error(w.Code, w.Body)
	}
	if w := ask("GET", "/v1/nothing", "", "Cookie", cookie); w.Code != 404 {
		t.Error("the API with a cookie:", w.Code)
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"the page under another name":           ask("GET", "/", "", "Host", "evil.example"),
		"a cookie under another name":           ask("GET", "/v1/nothing", "", "Host", "evil.example", "Cookie", cookie),
		"a log-in under another name":           ask("POST", "/login", `{"token": "secret"}`, "Host", "evil.example"),
		"a change that another page asks for":   ask("POST", "/v1/zones", "{}", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"),
		"a change that a viewer may not make":   ask("POST", "/v1/zones", "{}", "Cookie", cookie),
		"a log-in that another page asks for":   ask("POST", "/login", `{"token": "secret"}`, "Origin", "https://evil.example"),
		"a page that is not there, by a viewer": ask("GET", "/app.go", "", "Cookie", cookie),
	} {
		if w.Code/100 != 4 {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	// A program with a token is asked for no name: nobody can make it send one.
	if w := ask("GET", "/v1/nothing", "", "Host", "elsewhere", "Authorization", "Bearer secret"); w.Code != 404 {
		t.Error(w.Code)
	}
}
