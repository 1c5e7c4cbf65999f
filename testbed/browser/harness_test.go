package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/openinof/inof/dashboard"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
)

// patience is how long something may take to appear on a busy machine.
const patience = 30 * time.Second

// tab is a tab of a browser that looks at the dashboard.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu      sync.Mutex
	console []string
	foreign []string
	quiet   bool // the console may have errors from now on: the network fails
}

// open opens an address in a new browser. What it writes to the console, or loads from elsewhere,
// fails the test.
func open(t *testing.T, at string) *tab {
	t.Helper()
	netnstest.Programs(t, "chromium")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{t: t, origin: u.Scheme + "://" + u.Host}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	ctx, end := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	b.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.event); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			b.mu.Lock()
			if bad := m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleException; bad && !b.quiet {
				b.console = append(b.console, fmt.Sprintf("%s: %s (%s)", m.Type, m.Text, m.URL))
			}
			b.mu.Unlock()
		}
	}()
	b.do(chromedp.Navigate(at), chromedp.WaitReady("#app"))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, m := range b.console {
			t.Errorf("console: %s", m)
		}
		for _, m := range b.foreign {
			t.Errorf("loaded from elsewhere: %s", m)
		}
	})
	return b
}

func (b *tab) event(ev any) {
	if e, ok := ev.(*network.EventRequestWillBeSent); ok {
		at := e.Request.URL
		if !strings.HasPrefix(at, b.origin+"/") && !strings.HasPrefix(at, "blob:"+b.origin) {
			b.mu.Lock()
			b.foreign = append(b.foreign, at)
			b.mu.Unlock()
		}
	}
}

// networkFails lets the console have errors: a browser writes one for each request that fails.
func (b *tab) networkFails() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = true
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval gives the value of an expression in the page.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits for an expression to be true.
func (b *tab) until(js string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if eval[bool](b, "!!("+js+")") {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("never: %s\nthe page says: %.1500s", js, eval[string](b, "document.body.innerText"))
		}
	}
}

// says waits until the page has a text.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// view shows one of the views, and waits until it is there.
func (b *tab) view(name string) {
	b.t.Helper()
	eval[int](b, fmt.Sprintf("location.hash = '#/%s'; 0", name))
	b.until(fmt.Sprintf("document.querySelector('nav a[aria-current]')?.getAttribute('href') === '#/%s'", strings.Split(name, "?")[0]))
}

func (b *tab) keys(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

// scheme has the browser prefer dark or light.
func (b *tab) scheme(s string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s}}}); err != nil {
		b.t.Fatal(err)
	}
}

// proxied serves targets as `inofctl dashboard` does, and gives the address that works once.
func proxied(t *testing.T, targets ...dashboard.Target) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := dashboard.NewProxy(netip.MustParseAddrPort(l.Addr().String()), targets, api.Changes)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(p.Handler())
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return p.Enter()
}

// device is a target that answers by an API.
func device(name string, src api.Source) dashboard.Target {
	return dashboard.Target{Name: name, Kind: dashboard.Daemon, Handler: api.Handler(src)}
}

// views are all of them.
var views = []string{"overview", "topology", "hosts", "zones", "events", "notices", "queues"}

// serveJSON answers one path with a value.
func serveJSON(path string, v any) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // an error is the reader's
	})
	return mux
}
