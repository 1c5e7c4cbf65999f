package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func line(name, role, token string) string {
	sum := sha256.Sum256([]byte(token))
	return name + " " + role + " " + hex.EncodeToString(sum[:]) + "\n"
}

// door lets in three by their tokens, which are their names.
func door(t *testing.T) (*Web, http.Handler) {
	t.Helper()
	list, err := ParseTokens([]byte("# who\n\n" + line("see", "viewer", "see") + line("work", "operator", "work") + line("root", "admin", "root")))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	d := &Web{Door: &Door{Gate: &Gate{Tokens: func() ([]Token, error) { return list, nil }}}}
	return d, d.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(By(r.Context()))) }))
}

func knock(h http.Handler, method, path, token, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from + ":1234"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEachRoleMayDoWhatItIsFor(t *testing.T) {
	d, h := door(t)
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/metrics", "see", 200}, {"GET", "/v1/cluster", "see", 200}, {"POST", "/v1/zones", "see", 403},
		{"POST", "/v1/zones", "work", 200}, {"DELETE", "/v1/zones", "work", 200}, {"POST", "/v1/reload", "work", 403}, {"POST", "/v1/cluster/settings", "work", 403},
		{"POST", "/v1/reload", "root", 200}, {"POST", "/v1/cluster/members", "root", 200},
		{"POST", "/v1/config/commit", "work", 403}, {"POST", "/v1/config/confirm", "work", 403}, {"POST", "/v1/config/undo", "work", 403},
		{"POST", "/v1/config/commit", "root", 200}, {"DELETE", "/v1/cluster/members", "work", 403},
		{"POST", "/v1/config/check", "see", 200}, {"POST", "/v1/zoning/check", "see", 200}, {"POST", "/v1/zoning/commit", "see", 403}, {"POST", "/v1/zoning/commit", "work", 200},
		{"POST", "/v1/halt", "see", 403}, {"POST", "/v1/halt", "work", 200}, {"POST", "/v1/resume", "work", 200},
		{"POST", "/v1/what-comes-next/check", "work", 403},
	} {
		if w := knock(h, c.method, c.path, c.token, "192.0.2.1"); w.Code != c.status {
			t.Errorf("%s %s by %s: %d %s, want %d", c.method, c.path, c.token, w.Code, w.Body, c.status)
		}
	}
	if w := knock(h, "GET", "/v1/status", "see", "192.0.2.1"); w.Body.String() != "see (token, from 192.0.2.1)" {
		t.Errorf("the log says %s", w.Body)
	}
	if n := d.Counters(); n.LetIn != 13 || n.NotAllowed != 10 || n.NoLogin != 0 {
		t.Errorf("%+v", n)
	}
}

// What a request may do, who may send it, and whether it is in the audit come from one declaration:
// each request that is served has one, and only what is declared for a Viewer stays out of the audit.
func TestWhatChangesSomethingIsDeclaredAndAudited(t *testing.T) {
	var kept []string
	h := audited(auditor(func(d Deed) { kept = append(kept, d.What) }), http.NotFoundHandler())
	for request, role := range roles() {
		method, path, _ := strings.Cut(request, " ")
		kept = nil
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
		if audited := len(kept) > 0; audited != (role > Viewer) || role == Viewer && !strings.HasSuffix(path, "/check") {
			t.Errorf("%s, of role %v: in the audit %t", request, role, audited)
		}
	}
	if got := roles()["POST /v1/halt"]; got != Operator {
		t.Errorf("halt: %v", got)
	}
}

// auditing is a Source that keeps requests.
type auditing struct {
	Source
	keep func(Deed)
}

func auditor(keep func(Deed)) Source { return auditing{keep: keep} }

func (a auditing) Audit(_ context.Context, d Deed) { a.keep(d) }

// Five log-ins may fail a minute, of each address by itself; a right one must wait then too.
func TestGuessingATokenIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := door(t)
		for i := range 5 {
			if w := knock(h, "GET", "/v1/status", []string{"", "guess"}[i%2], "192.0.2.1"); w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || w.Header().Get("Connection") != "close" {
				t.Fatalf("%d: %d %s", i, w.Code, w.Body)
			}
		}
		if w := knock(h, "GET", "/v1/status", "see", "192.0.2.1"); w.Code != 429 || !strings.Contains(w.Body.String(), "wait a minute") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := knock(h, "GET", "/v1/status", "see", "192.0.2.2"); w.Code != 200 {
			t.Errorf("another address: %d %s", w.Code, w.Body)
		}
		for i := range 6 { // the addresses of one IPv6 network are one
			if w := knock(h, "GET", "/v1/status", "guess", fmt.Sprintf("[2001:db8::%d]", i)); (w.Code == 429) != (i == 5) {
				t.Errorf("IPv6, %d: %d", i, w.Code)
			}
		}
		time.Sleep(12 * time.Second)
		if w := knock(h, "GET", "/v1/status", "see", "192.0.2.1"); w.Code != 200 {
			t.Errorf("later: %d %s", w.Code, w.Body)
		}
		for i := range 3 * maxFailing { // a flood is forgotten, not kept
			knock(h, "GET", "/", "guess", netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
		}
		if n := len(d.attempts.failing); n > maxFailing {
			t.Errorf("%d addresses are remembered", n)
		}
		if n := d.Counters(); n.TooMany != 2 || n.NoLogin != 10+3*maxFailing {
			t.Errorf("%+v", n)
		}
	})
}

func TestAFileOfTokensIsReadStrictly(t *testing.T) {
	good := line("a", "viewer", "x")
	for text, want := range map[string]string{
		"a viewer\n": "line 1 has 2 words", "a boss " + strings.Fields(good)[2]: `line 1: role "boss"`, "a viewer 12ab": "no SHA-256", good + good: `line 2: "a" is there twice`,
		strings.Repeat("x", 1<<17): "token too long",
	} {
		if list, err := ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || list != nil {
			t.Errorf("%.40q: %v %v, want %s", text, list, err, want)
		}
	}
	d := &Web{Door: &Door{Gate: &Gate{Tokens: func() ([]Token, error) { return nil, errors.New("no such file") }}}}
	h := d.Guard(http.NotFoundHandler())
	if w := knock(h, "GET", "/", "see", "192.0.2.1"); w.Code != 503 || !strings.Contains(w.Body.String(), "management.token-file: no such file") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add([]byte(line("a", "admin", "x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseTokens(data)
		for _, k := range list {
			if err != nil || k.Role < Viewer || k.Role > Admin || k.Name == "" {
				t.Errorf("%+v, %v", k, err)
			}
		}
	})
}
