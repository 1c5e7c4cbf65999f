package api

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// LoginPath is where a browser shows a token once, and is told who it is by.
const LoginPath = "/login"

const (
	// LoginCookie is the name of what a browser shows afterwards; the prefix has browsers refuse
	// it without Secure, with a domain or for a part of the paths (RFC 6265bis section 4.1.3.2).
	LoginCookie = "__Host-inof"
	// loginTime is how long it is taken.
	loginTime = 12 * time.Hour
	// maxLogins is how many are remembered; the oldest goes first.
	maxLogins = 256
	// maxLoginBody bounds the body of a log-in, in bytes.
	maxLoginBody = 4 << 10
)

// Web is the door of HTTP: requests come in by what they show (Shown), or by the cookie that a
// browser got for a token.
type Web struct {
	*Door

	mu     sync.Mutex
	logins map[string]login // by the value of the cookie
}

// login is a browser that has shown a token.
type login struct {
	sum   [sha256.Size]byte // of the token: when that is taken no more, neither is this
	since time.Time
}

// TokenBody is the body of a log-in.
type TokenBody struct {
	Token string `json:"token"`
}

// LoggedIn says who a browser is; without a role: nobody, it has to log in.
type LoggedIn struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

// Login serves LoginPath: POST {"token": "..."} gives the cookie, GET says whose it is, DELETE ends
// it. A cookie that is not taken is no log-in that failed: it has run out.
func (d *Web) Login() http.Handler {
	other := route(map[string]endpoint{"GET": d.whoami, "DELETE": d.logout, "POST": nil})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Connection", "close")
		patience(w, answerTimeout)
		if r.Method == http.MethodPost {
			d.login(w, r)
			return
		}
		other(w, r)
	})
}

func (d *Web) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	b, err := body[TokenBody](r)
	if err != nil {
		fail(w, err)
		return
	}
	v, err := d.Enter(Shown{From: remote(r), Authorization: "Bearer " + b.Token}, Viewer, LoginPath)
	if err != nil {
		refuse(w, err)
		return
	}
	key := rand.Text()
	d.mu.Lock()
	d.remember(key, login{sha256.Sum256([]byte(strings.TrimSpace(b.Token))), time.Now()})
	d.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: LoginCookie, Value: key, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(loginTime / time.Second)})
	answer(w, LoggedIn{v.Name, v.Role.String()})
}

// remember keeps a log-in; the caller has the lock.
func (d *Web) remember(key string, l login) {
	if d.logins == nil {
		d.logins = map[string]login{}
	}
	for len(d.logins) >= maxLogins {
		oldest := ""
		for k, o := range d.logins {
			if oldest == "" || o.since.Before(d.logins[oldest].since) {
				oldest = k
			}
		}
		delete(d.logins, oldest)
	}
	d.logins[key] = l
}

// whoami says who a browser is: by its cookie, or by the certificate of its connection.
func (d *Web) whoami(r *http.Request) (any, error) {
	v, err := d.byCookie(r)
	if c := certificatesOf(r); errors.Is(err, ErrNobody) && len(c) > 0 {
		v, err = d.certificate(remote(r), c)
	}
	if errors.Is(err, ErrNobody) {
		return LoggedIn{}, nil
	}
	return LoggedIn{v.Name, v.Role.String()}, err
}

func (d *Web) logout(r *http.Request) (any, error) {
	if c, err := r.Cookie(LoginCookie); err == nil {
		d.mu.Lock()
		delete(d.logins, c.Value)
		d.mu.Unlock()
	}
	return nil, nil
}

// byCookie finds whose cookie a request has. The error is errRanOut, or says why nobody can be
// known.
func (d *Web) byCookie(r *http.Request) (Visitor, error) {
	c, err := r.Cookie(LoginCookie)
	if err != nil {
		return Visitor{}, errRanOut
	}
	tokens, _, err := d.known()
	if err != nil {
		return Visitor{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.logins[c.Value]
	if ok && time.Since(l.since) > loginTime {
		delete(d.logins, c.Value)
		ok = false
	}
	if t := tokenOf(tokens, l.sum); ok && t.Role != 0 {
		return t.visitor(remote(r)), nil
	}
	return Visitor{}, errRanOut
}

// errRanOut is of a cookie that is taken no more: nobody has guessed anything.
var errRanOut = fmt.Errorf("%w: the log-in has run out", ErrNobody)

// Guard lets through who may do what is asked for.
func (d *Web) Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := d.admit(r)
		if err != nil {
			refuse(w, err)
			return
		}
		if from, ok := r.Context().Value(remoteKey{}).(net.Addr); ok {
			LetIn(from)
		}
		h.ServeHTTP(w, r.WithContext(As(r.Context(), v)))
	})
}

// admit finds out whose request it is, and whether they may.
func (d *Web) admit(r *http.Request) (Visitor, error) {
	s := Shown{From: remote(r), Authorization: r.Header.Get("Authorization"), Certificates: certificatesOf(r)}
	what := r.Method + " " + r.URL.Path
	if _, none := r.Cookie(LoginCookie); none != nil || s.Authorization != "" {
		return d.Enter(s, needed(r), what)
	}
	v, err := d.byCookie(r)
	switch {
	case errors.Is(err, errRanOut):
		d.noLogin.Add(1) // and nobody is told: a page asks again and again
		return v, err
	case err != nil:
		return v, err
	}
	return v, d.Pass(v, needed(r), what)
}

// refuse says why somebody may not come in.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNobody) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="inofd"`)
	}
	w.Header().Set("Connection", "close") // so that strangers do not fill the places there are
	fail(w, err)
}

func remote(r *http.Request) netip.Addr {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}

func certificatesOf(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// NamedHere lets requests through whose Host header says an address, localhost or a name that
// good knows: a page of another name that was led to this address (DNS rebinding) is refused.
func NamedHere(good func(name string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		if _, err := netip.ParseAddr(name); err != nil && name != "localhost" && !good(name) {
			fail(w, fmt.Errorf("%w: %.80q is no name of this device: its certificate does not say it", errElsewhere, name))
			return
		}
		h.ServeHTTP(w, r)
	})
}
