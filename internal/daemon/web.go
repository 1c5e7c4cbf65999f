package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openinof/inof/dashboard"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/telemetry"
)

const (
	// scrapeTime bounds a scrape, and its reader.
	scrapeTime = 10 * time.Second
	// maxScrapes is how many scrapes are served at once.
	maxScrapes = 4
	// listenRetry is how long to wait after a listener that failed: telemetry must not end what
	// hosts rely on.
	listenRetry = 5 * time.Second
)

// handler is the API with /metrics beside it.
func (d *Daemon) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api.Handler(d))
	mux.Handle("/metrics", d.metrics())
	return mux
}

func (d *Daemon) metrics() http.Handler {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(&telemetry.Collector{MaxSeries: d.cfg.Load().Metrics.MaxSeries, Read: func() *telemetry.Snapshot {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
		defer cancel()
		s, err := d.known.Snapshot(ctx, 0, time.Time{})
		if err != nil {
			return nil // the daemon stops, or its owner is stuck: absent
		}
		return s
	}})
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * scrapeTime)) // a recorder in a test has none
		h.ServeHTTP(w, r)
	})
}

// web serves the API, the metrics and the dashboard over a network.
type web struct {
	d    *Daemon
	cfg  config.HTTP
	door *api.Web
}

func (d *Daemon) newWeb(cfg config.HTTP) *web {
	return &web{d, cfg, &api.Web{Door: d.door("management.http")}}
}

func (w *web) String() string { return "management over a network" }

// Run listens until ctx ends; a listener that fails is made again.
func (w *web) Run(ctx context.Context) error {
	return w.d.again(ctx, "management.http", w.serve)
}

func (w *web) serve(ctx context.Context) error {
	l, err := w.d.visitors(ctx, w.cfg.Listen)
	if err != nil {
		return err
	}
	l = w.door.Watch(l, 0) // silence ends by the bounds of api.Serve
	cert, err := shown(w.cfg)
	if err != nil {
		l.Close()
		return err
	}
	named := func(string) bool { return false }
	if cert != nil {
		l = tls.NewListener(l, tlsWith(cert, w.cfg, "http/1.1"))
		named = func(name string) bool {
			c, err := cert.get()
			return err == nil && c.Leaf != nil && c.Leaf.VerifyHostname(name) == nil
		}
	}
	return api.Serve(ctx, l, w.handler(named))
}

// handler is the page and its log-in, for everybody; the API and the metrics for who has a
// token or another proof. What a browser shows by itself (its cookie, a certificate) is taken only
// where the name that it was led to is one of this device.
func (w *web) handler(named func(string) bool) http.Handler {
	guarded, here := w.door.Guard(w.d.handler()), http.NewServeMux()
	here.Handle(api.LoginPath, w.door.Login())
	here.Handle("/targets", w.door.Guard(http.HandlerFunc(w.targets)))
	here.Handle("/", dashboard.Page())
	browsers, cookies := api.NamedHere(named, here), api.NamedHere(named, guarded)
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case dashboard.Has(p):
			rw.Header().Set("Connection", "close") // strangers do not keep the places there are
			_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(2 * scrapeTime))
			browsers.ServeHTTP(rw, r)
		case p == api.LoginPath, p == "/targets":
			browsers.ServeHTTP(rw, r)
		case r.Header.Get("Cookie") != "", r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
			cookies.ServeHTTP(rw, r)
		default:
			guarded.ServeHTTP(rw, r)
		}
	}))
}

// targets says what the page shows: this device.
func (w *web) targets(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	name := w.d.cfg.Load().Device.Name
	_ = json.NewEncoder(rw).Encode([]dashboard.Shown{{Name: name, Kind: dashboard.Daemon}}) // an error is the reader's
}

// fresh is what a file says, read again when the file has changed. What it said before stays in
// force while a new one cannot be read.
type fresh[T any] struct {
	path string
	read func() (T, error)

	mu    sync.Mutex
	value T
	good  bool
	of    os.FileInfo
}

func (f *fresh[T]) get() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.path)
	if err == nil && f.of != nil && st.ModTime().Equal(f.of.ModTime()) && st.Size() == f.of.Size() && os.SameFile(st, f.of) {
		return f.value, nil
	}
	if err == nil {
		var v T
		if v, err = f.read(); err == nil {
			f.value, f.of, f.good = v, st, true
		}
	}
	if f.good {
		return f.value, nil
	}
	return f.value, err
}
