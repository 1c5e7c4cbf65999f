package api

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
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
func (d *Door) Login() http.Handler {
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

func (d *Door) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	b, err := body[TokenBody](r)
	if err != nil {
		fail(w, err)
		return
	}
	from := remote(r)
	t, err := d.enter(from, b.Token, Viewer, r)
	if err != nil {
		d.refuse(w, from, err)
		return
	}
	key := rand.Text()
	d.mu.Lock()
	d.remember(key, login{t.Sum, time.Now()})
	d.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: LoginCookie, Value: key, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(loginTime / time.Second)})
	answer(w, LoggedIn{t.Name, t.Role.String()})
}

// remember keeps a log-in; the caller has the lock.
func (d *Door) remember(key string, l login) {
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

func (d *Door) whoami(r *http.Request) (any, error) {
	t, err := d.byCookie(r)
	if errors.Is(err, errNoToken) {
		return LoggedIn{}, nil
	}
	if err != nil {
		return nil, err
	}
	return LoggedIn{t.Name, t.Role.String()}, nil
}

func (d *Door) logout(r *http.Request) (any, error) {
	if c, err := r.Cookie(LoginCookie); err == nil {
		d.mu.Lock()
		delete(d.logins, c.Value)
		d.mu.Unlock()
	}
	return nil, nil
}

// byCookie finds whose cookie a request has.
func (d *Door) byCookie(r *http.Request) (Token, error) {
	c, err := r.Cookie(LoginCookie)
	if err != nil {
		return Token{}, errNoToken
	}
	list, err := d.Tokens()
	if err != nil {
		return Token{}, fmt.Errorf("%w: management.token-file: %w", ErrUnavailable, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.logins[c.Value]
	if ok && time.Since(l.since) > loginTime {
		delete(d.logins, c.Value)
		ok = false
	}
	for _, t := range list {
		if ok && t.Sum == l.sum {
			return t, nil
		}
	}
	return Token{}, errNoToken
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
