package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// logIn shows a token as a browser does, and gives its cookie.
func logIn(d *Web, token, from string) (*httptest.ResponseRecorder, *http.Cookie) {
	r := httptest.NewRequest("POST", LoginPath, strings.NewReader(`{"token": "`+token+`"}`))
	r.RemoteAddr = from + ":1234"
	w := httptest.NewRecorder()
	d.Login().ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		return w, c
	}
	return w, nil
}

func withCookie(h http.Handler, method, path string, c *http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = "192.0.2.7:1234"
	if c != nil {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestABrowserShowsItsTokenOnce(t *testing.T) {
	d, h := door(t)
	w, c := logIn(d, "work", "192.0.2.7")
	if w.Code != 200 || c == nil || c.Name != LoginCookie || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || strings.Contains(c.Value, "work") {
		t.Fatal(w.Code, w.Body, c)
	}
	if w := withCookie(h, "POST", "/v1/zones", c); w.Code != 200 || w.Body.String() != "work (token, from 192.0.2.7)" {
		t.Error("an operator's request:", w.Code, w.Body)
	}
	if w := withCookie(h, "POST", "/v1/reload", c); w.Code != 403 {
		t.Error("what takes an admin:", w.Code)
	}
	if w := withCookie(d.Login(), "GET", LoginPath, c); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"name":"work","role":"operator"}` {
		t.Error("who it is:", w.Code, w.Body)
	}
	if w := withCookie(d.Login(), "GET", LoginPath, nil); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"name":"","role":""}` {
		t.Error("who has not logged in:", w.Code, w.Body)
	}
	// A viewer may have zones checked, which changes nothing.
	if w := knock(h, "POST", "/v1/zoning/check", "see", "192.0.2.1"); w.Code != 200 {
		t.Error("a check by a viewer:", w.Code)
	}
	if w := withCookie(d.Login(), "DELETE", LoginPath, c); w.Code != 204 {
		t.Error("logging out:", w.Code)
	}
	if w := withCookie(h, "GET", "/v1/status", c); w.Code != 401 {
		t.Error("after logging out:", w.Code)
	}
}

func TestALogInEndsWithItsTokenAndWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := door(t)
		_, c := logIn(d, "see", "192.0.2.7")
		time.Sleep(loginTime - time.Second)
		if w := withCookie(h, "GET", "/v1/status", c); w.Code != 200 {
			t.Error("before its time is over:", w.Code)
		}
		time.Sleep(2 * time.Second)
		if w := withCookie(h, "GET", "/v1/status", c); w.Code != 401 {
			t.Error("after 12 hours:", w.Code)
		}
		_, c = logIn(d, "see", "192.0.2.7")
		all, _ := d.Tokens()
		d.Tokens = func() ([]Token, error) { return all[1:], nil } // the viewer's is taken out
		if w := withCookie(h, "GET", "/v1/status", c); w.Code != 401 {
			t.Error("after its token was taken out:", w.Code)
		}
	})
}

func TestALogInThatHasRunOutIsNoGuess(t *testing.T) {
	d, h := door(t)
	for range 50 { // a page that asks again and again
		if w := withCookie(h, "GET", "/v1/status", &http.Cookie{Name: LoginCookie, Value: "gone"}); w.Code != 401 {
			t.Fatal(w.Code)
		}
	}
	if w, _ := logIn(d, "see", "192.0.2.7"); w.Code != 200 {
		t.Error("and then it logs in:", w.Code)
	}
	for range 5 {
		logIn(d, "guess", "192.0.2.8")
	}
	if w, _ := logIn(d, "see", "192.0.2.8"); w.Code != 429 {
		t.Error("after five guesses:", w.Code)
	}
	for _, body := range []string{"", "{", `{"token": 1}`, `{"x": 1}`, `{"token": "` + strings.Repeat("x", 10_000) + `"}`} {
		r := httptest.NewRequest("POST", LoginPath, strings.NewReader(body))
		w := httptest.NewRecorder()
		if d.Login().ServeHTTP(w, r); w.Code != 400 && w.Code != 413 {
			t.Errorf("%.20q: %d", body, w.Code)
		}
	}
}

func TestLogInsAreBounded(t *testing.T) {
	d, h := door(t)
	_, first := logIn(d, "see", "192.0.2.7")
	for range maxLogins {
		logIn(d, "see", "192.0.2.7")
	}
	if len(d.logins) != maxLogins {
		t.Error(len(d.logins))
	}
	if w := withCookie(h, "GET", "/v1/status", first); w.Code != 401 {
		t.Error("the oldest one of too many:", w.Code)
	}
}

func TestAPageOfAnotherNameIsRefused(t *testing.T) {
	h := NamedHere(func(name string) bool { return name == "tor1.example" }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"192.0.2.1:19518": 200, "192.0.2.1": 200, "[2001:db8::1]:19518": 200, "localhost:19518": 200, "tor1.example:19518": 200, "evil.example:19518": 421, "": 421} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
}
