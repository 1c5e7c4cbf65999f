package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Kind is what stands behind a Target.
type Kind string

// The kinds of targets.
const (
	Daemon Kind = "daemon" // the API of a device
	Fabric Kind = "fabric" // a model that runs, at /v1/fabric
	Record Kind = "record" // a run of a model that was recorded, at /v1/record
)

// Target is something that the page shows.
type Target struct {
	Name    string
	Kind    Kind
	Handler http.Handler // serves /v1/...
}

// Shown is a Target as the page hears of it, and the prefix of its paths.
type Shown struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	Base string `json:"base"`
}

// Proxy brings the page and its targets to one browser on this machine. Who comes first with the
// token of Enter is that browser; everybody else is refused. It passes nothing on that changes
// anything.
type Proxy struct {
	at      netip.AddrPort
	targets []Target
	shown   []Shown
	cookie  string // its name, with the port: cookies are not told apart by ports
	value   string
	page    http.Handler
	changes func(*http.Request) bool

	mu    sync.Mutex
	token string // empty: it was used
}

// NewProxy makes a proxy for a listener at an address of the loopback. A request for which changes
// reports true is refused.
func NewProxy(at netip.AddrPort, targets []Target, changes func(*http.Request) bool) (*Proxy, error) {
	if !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address: whoever reached it could look at the devices", at)
	}
	p := &Proxy{at: at, targets: targets, cookie: "__Host-inof-" + strconv.Itoa(int(at.Port())), value: rand.Text(), token: rand.Text(), page: Page(), changes: changes}
	for i, t := range targets {
		p.shown = append(p.shown, Shown{Name: t.Name, Kind: t.Kind, Base: "/t/" + strconv.Itoa(i)})
	}
	return p, nil
}

// Enter is the address that works once.
func (p *Proxy) Enter() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("http://%s/enter?token=%s", p.at, p.token)
}

// Handler is what the listener serves.
func (p *Proxy) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /enter", p.enter)
	mux.Handle("GET /targets", p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.shown) // an error is the reader's
	})))
	mux.Handle("GET /login", p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name": "", "role": "viewer"}`)) // nobody has to log in
	})))
	for i, t := range p.targets {
		base := "/t/" + strconv.Itoa(i)
		mux.Handle(base+"/v1/", p.known(http.StripPrefix(base, p.readOnly(t.Handler))))
	}
	mux.Handle("/", p.known(p.page))
	strangers := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.here(r.Host) {
			Refuse(w, http.StatusMisdirectedRequest, "not for this host", "host")
			return
		}
		strangers.ServeHTTP(w, r)
	})
}

// here reports whether a Host header names this listener: a page of another name that was led to
// this address (DNS rebinding) does not.
func (p *Proxy) here(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil || port != strconv.Itoa(int(p.at.Port())) {
		return false
	}
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a == p.at.Addr()
}

// enter takes the token once, and gives the browser its cookie for it.
func (p *Proxy) enter(w http.ResponseWriter, r *http.Request) {
	Harden(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if !p.has(r) {
		p.mu.Lock()
		good := p.token != "" && same(p.token, r.URL.Query().Get("token"))
		if good {
			p.token = ""
		}
		p.mu.Unlock()
		if !good {
			http.Error(w, "This address is not known, or was used already: it works once, in one browser.\nEnd inofctl dashboard, and start it again.", http.StatusForbidden)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	// Not a redirection: a cookie that is SameSite=Strict would not be sent when a link elsewhere
	// led here.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Refresh", "0; url=/")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>iNOF</title><link rel="icon" href="/icon.svg" type="image/svg+xml"><p>Opening the dashboard: <a href="/">go on</a>.</p></html>`)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (p *Proxy) has(r *http.Request) bool {
	c, err := r.Cookie(p.cookie)
	return err == nil && same(c.Value, p.value)
}

// known lets the one browser in.
func (p *Proxy) known(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.has(r) {
			h.ServeHTTP(w, r)
			return
		}
		Refuse(w, http.StatusForbidden, "this browser is not the one that was let in: end inofctl dashboard, start it again and follow its address", "refused")
	})
}

func (p *Proxy) readOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.changes(r) {
			Refuse(w, http.StatusForbidden, "the dashboard only looks: "+r.Method+" "+r.URL.Path+" would change something", "refused")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Refuse answers as the API does when something fails.
func Refuse(w http.ResponseWriter, status int, text, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text, "code": code})
}

// ParseTarget tells where a device is from what an operator wrote: the path of its management
// socket, or https://HOST:PORT (http only to this machine).
func ParseTarget(text string) (socket string, at *url.URL, err error) {
	if !strings.Contains(text, "://") {
		if text == "" {
			return "", nil, fmt.Errorf("a target is empty: want the path of a socket, or https://HOST:PORT")
		}
		return text, nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", nil, fmt.Errorf("target: %w", err)
	}
	a, notAddr := netip.ParseAddr(u.Hostname())
	loop := u.Hostname() == "localhost" || notAddr == nil && a.IsLoopback()
	switch {
	case u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return "", nil, fmt.Errorf("target %q: want https://HOST:PORT and nothing behind it", u.Redacted())
	case u.Scheme != "https" && !(u.Scheme == "http" && loop):
		return "", nil, fmt.Errorf("target %q: want https (http only to this machine: the token would be read on the way)", u.Redacted())
	}
	return "", u, nil
}
