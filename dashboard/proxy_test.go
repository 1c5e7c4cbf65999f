package dashboard

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// proxied starts a proxy to targets, and gives it with its address.
func proxied(t *testing.T, targets ...Target) (*Proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProxy(netip.MustParseAddrPort(l.Addr().String()), targets, func(r *http.Request) bool { return r.Method != http.MethodGet && r.URL.Path != "/v1/zoning/check" })
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(p.Handler())
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return p, s.URL
}

// browser keeps cookies, those that are Secure too: as browsers do for the loopback.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: secure{jar}}
}

type secure struct{ http.CookieJar }

func (s secure) SetCookies(u *url.URL, c []*http.Cookie) { s.CookieJar.SetCookies(asHTTPS(u), c) }
func (s secure) Cookies(u *url.URL) []*http.Cookie       { return s.CookieJar.Cookies(asHTTPS(u)) }

func asHTTPS(u *url.URL) *url.URL {
	v := *u
	v.Scheme = "https"
	return &v
}

func get(t *testing.T, c *http.Client, method, at string, edit func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(r)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" auth="+r.Header.Get("Authorization")+" cookie="+r.Header.Get("Cookie"))
})

func TestTheAddressWorksOnceForOneBrowser(t *testing.T) {
	p, at := proxied(t, Target{Name: "tor1", Kind: Daemon, Handler: echo})
	enter := p.Enter()
	first, second := browser(t), browser(t)
	if code, body, _ := get(t, first, "GET", at+"/", nil); code != 403 {
		t.Errorf("before it has come in: %d %s", code, body)
	}
	if code, _, _ := get(t, first, "GET", at+"/enter?token=wrong", nil); code != 403 {
		t.Errorf("with a wrong token: %d", code)
	}
	if code, _, h := get(t, first, "GET", enter, nil); code != 200 || h.Get("Refresh") == "" || !strings.Contains(h.Get("Set-Cookie"), "HttpOnly; Secure; SameSite=Strict") || !strings.HasPrefix(h.Get("Set-Cookie"), "__Host-") {
		t.Errorf("with the token: %d %v", code, h)
	}
	if code, _, _ := get(t, second, "GET", enter, nil); code != 403 {
		t.Errorf("another browser with the same token: %d", code)
	}
	if code, _, _ := get(t, first, "GET", enter, nil); code != 200 {
		t.Errorf("the same browser again: %d", code)
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/targets", "/t/0/v1/status"} {
		if code, _, _ := get(t, first, "GET", at+path, nil); code != 200 {
			t.Errorf("%s for the browser that was let in: %d", path, code)
		}
		if code, _, _ := get(t, second, "GET", at+path, nil); code != 403 {
			t.Errorf("%s for another one: %d", path, code)
		}
	}
	_, body, _ := get(t, first, "GET", at+"/targets", nil)
	var list []Shown
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 1 || list[0] != (Shown{"tor1", Daemon, "/t/0"}) {
		t.Errorf("targets %s, %v", body, err)
	}
}

func TestTheProxyChangesNothingAndServesNoOtherPage(t *testing.T) {
	p, at := proxied(t, Target{Name: "tor1", Kind: Daemon, Handler: echo})
	c := browser(t)
	get(t, c, "GET", p.Enter(), nil)
	for _, x := range []struct {
		what, method, path string
		edit               func(*http.Request)
		want               int
	}{
		{"reading", "GET", "/t/0/v1/hosts", nil, 200},
		{"a check of zones", "POST", "/t/0/v1/zoning/check", nil, 200},
		{"a commit of zones", "POST", "/t/0/v1/zoning/commit", nil, 403},
		{"shutting a port", "POST", "/t/0/v1/ports/shut", nil, 403},
		{"removing a zone", "DELETE", "/t/0/v1/zones", nil, 403},
		{"a path that climbs", "POST", "/t/0/v1/zoning/check/../commit", nil, 307}, // to the clean path, which is refused
		{"no target of it", "GET", "/t/1/v1/hosts", nil, 404},
		{"beside the API", "GET", "/t/0/metrics", nil, 404},
		{"another name (DNS rebinding)", "GET", "/", func(r *http.Request) { r.Host = "evil.example:" + r.URL.Port() }, 421},
		{"another port", "GET", "/", func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
		{"a check from another page", "POST", "/t/0/v1/zoning/check", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a check from another origin", "POST", "/t/0/v1/zoning/check", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
	} {
		c := &http.Client{Jar: c.Jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if code, body, _ := get(t, c, x.method, at+x.path, x.edit); code != x.want {
			t.Errorf("%s: %d, want %d: %s", x.what, code, x.want, body)
		}
	}
}

func TestThePageMayLoadNothingFromElsewhere(t *testing.T) {
	for path := range files {
		w := httptest.NewRecorder()
		Page().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || w.Body.Len() == 0 || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %d bytes, %v", path, w.Code, w.Body.Len(), w.Header())
		}
		again := httptest.NewRequest("GET", path, nil)
		again.Header.Set("If-None-Match", w.Header().Get("ETag"))
		w = httptest.NewRecorder()
		if Page().ServeHTTP(w, again); w.Code != 304 {
			t.Errorf("%s again: %d", path, w.Code)
		}
		w = httptest.NewRecorder()
		if Page().ServeHTTP(w, httptest.NewRequest("POST", path, nil)); w.Code != 405 {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
	if Has("/app.go") || !Has("/") {
		t.Error("Has")
	}
}

func TestADeviceIsAskedWithItsTokenAndWithoutTheBrowsersCookie(t *testing.T) {
	device := httptest.NewTLSServer(echo)
	defer device.Close()
	at, _ := url.Parse(device.URL)
	up := NewUpstream("", at, "secret", device.Client().Transport.(*http.Transport).Clone())
	p, page := proxied(t, Target{Name: "tor1", Kind: Daemon, Handler: up}, Target{Name: "gone", Kind: Daemon, Handler: NewUpstream(filepath.Join(t.TempDir(), "none.sock"), nil, "", &http.Transport{})})
	c := browser(t)
	get(t, c, "GET", p.Enter(), nil)
	if code, body, _ := get(t, c, "GET", page+"/t/0/v1/status", nil); code != 200 || body != "GET /v1/status auth=Bearer secret cookie=" {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := get(t, c, "GET", page+"/t/1/v1/status", nil); code != 502 || !strings.Contains(body, `"code":"unreachable"`) {
		t.Errorf("a device that is not there: %d %s", code, body)
	}
}

func TestTargetsAreReadStrictly(t *testing.T) {
	for text, good := range map[string]bool{
		"/run/inof/inofd.sock": true, "x.sock": true, "https://192.0.2.1:19518": true, "https://tor1.example/": true, "http://127.0.0.1:19518": true, "http://localhost:1": true,
		"": false, "http://192.0.2.1:19518": false, "ftp://x": false, "https://": false, "https://a/b": false, "https://u:p@a": false, "https://a?b=c": false, "https://[": false,
	} {
		if _, _, err := ParseTarget(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewProxy(netip.MustParseAddrPort("192.0.2.1:80"), nil, nil); err == nil {
		t.Error("a proxy that others can reach")
	}
}
