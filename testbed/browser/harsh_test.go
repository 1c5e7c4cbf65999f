package browser

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openinof/inof/dashboard"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone/change"
)

// A daemon that goes away is said to be away, what was known stays, and when it is back the page
// goes on by itself, with the events that it missed.
func TestThePageOutlivesTheDaemon(t *testing.T) {
	src := reflector(t)
	socket := filepath.Join(t.TempDir(), "s")
	stop := apitest.ServeAt(t, src, socket)
	b := open(t, proxied(t, dashboard.Target{Name: "tor-1", Kind: dashboard.Daemon, Handler: dashboard.NewUpstream(socket, nil, "", &http.Transport{})}))
	b.view("hosts")
	b.until("document.querySelectorAll('#hosts .tbody .tr').length === 4")
	b.networkFails()
	stop()
	b.says("tor-1 does not answer")
	if n := eval[int](b, "document.querySelectorAll('#hosts .tbody .tr').length"); n != 4 {
		t.Errorf("%d hosts are left of what was known", n)
	}
	src.Append(api.Event{Time: time.Now(), Kind: "host", Text: "while nobody could look"})
	src.HostValues = src.HostValues[:2]
	apitest.ServeAt(t, src, socket)
	b.until("!document.body.innerText.includes('does not answer')")
	b.until("document.querySelectorAll('#hosts .tbody .tr').length === 2")
	b.view("events")
	b.says("while nobody could look")
}

// Answers that no daemon gives do not end the page: it says what is wrong, and the other device
// is shown.
func TestThePageOutlivesAnswersThatAreNone(t *testing.T) {
	good := reflector(t)
	var kind atomic.Value
	kind.Store("html")
	bad := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind.Load() {
		case "html":
			_, _ = io.WriteString(w, "<html><body>"+hostile)
		case "cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"device": "`)
		case "wrong":
			dashboard.Refuse(w, 401, "no token, or one that is not known "+hostile, "no-token")
		case "large":
			w.Header().Set("Content-Type", "application/json")
			part := []byte(`"` + strings.Repeat("x", 1<<20) + `",`)
			_, _ = io.WriteString(w, "[")
			for range 400 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
	})
	b := open(t, proxied(t, device("good", good), dashboard.Target{Name: "bad", Kind: dashboard.Daemon, Handler: bad}))
	b.networkFails()
	b.until("[...document.querySelectorAll('.tile')].length > 0") // the good one
	for k, want := range map[string]string{"html": "the answer is no JSON", "cut": "broke off", "wrong": "no token, or one that is not known <img", "large": "the answer has more than 256 MB"} {
		kind.Store(k)
		b.says(want)
	}
	b.view("hosts")
	b.until("document.querySelectorAll('#hosts .tbody .tr').length === 4")
	if eval[bool](b, "!!window.pwned") {
		t.Error("an answer has become markup")
	}
}

// The page that a device serves takes a token first, says when that is wrong, and shows the
// device afterwards.
func TestADeviceServesThePageAfterALogIn(t *testing.T) {
	src := reflector(t)
	door := &api.Web{Door: &api.Door{Gate: &api.Gate{Tokens: func() ([]api.Token, error) {
		return []api.Token{{Name: "me", Role: api.Viewer, Sum: sha256.Sum256([]byte("right"))}}, nil
	}}}}
	mux := http.NewServeMux()
	mux.Handle("/", dashboard.Page())
	mux.Handle(api.LoginPath, door.Login())
	mux.Handle("/v1/", door.Guard(api.Handler(src)))
	mux.Handle("/targets", door.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"name": "tor-1", "kind": "daemon", "base": ""}]`)
	})))
	s := httptest.NewServer(http.NewCrossOriginProtection().Handler(mux))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	b := open(t, s.URL+"/")
	b.until("document.querySelector('#token')")
	b.networkFails() // a wrong token is a request that fails
	enter := func(token string) {
		eval[int](b, fmt.Sprintf("document.querySelector('#token').value = %q; document.querySelector('form button').click(); 0", token))
	}
	enter("wrong")
	b.says("This token is not known here.")
	enter("right")
	b.says("me (viewer)")
	b.until("document.querySelectorAll('.tile').length > 0")
	if c := eval[string](b, "document.cookie"); c != "" {
		t.Errorf("scripts can read the cookie: %s", c)
	}
}

// many is a device with n hosts of 200 switches in 2,000 zones.
func many(n int) *apitest.Source {
	src := apitest.Sample()
	src.StatusValue.Roles, src.StatusValue.Warnings = []string{"reflector"}, nil
	src.StatusValue.Counts = api.Counts{HostsRemote: n}
	src.HostValues, src.ZoneValues = make([]api.Host, n), nil
	src.UseZones(&change.Plan{})
	since := time.Now()
	for i := range src.HostValues {
		role := snsd.RoleInitiator
		if i%4 == 0 {
			role = snsd.RoleTarget
		}
		src.HostValues[i] = api.Host{Addr: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), Type: api.Remote, Role: role, Protocol: snsd.ProtocolTCP, ServicePort: 4420,
			NQN: fmt.Sprintf("nqn.2026-01.org.example:host-%d", i), Device: netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 400)}), Port: fmt.Sprintf("Ethernet%d", i%400/8),
			State: snsd.Active, Zones: []string{fmt.Sprintf("zone-%d", i/40)}, Hard: api.HardOff, LearnedFrom: "192.0.2.250", Since: since}
	}
	return src
}

// 80,000 hosts are shown, scrolled, filtered and laid out with no more elements than the screen has
// room for, whatever is done: that keeps each of it below a second. How long it takes, and the
// longest time for which the page did not answer, are printed: they are figures of a machine.
func TestEightyThousandHosts(t *testing.T) {
	const n = 80_000
	b := open(t, proxied(t, device("spine-1", many(n))))
	b.until("document.documentElement.dataset.ready === 'yes'")
	eval[int](b, `window.longest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({type: 'longtask', buffered: true}); 0`)
	first := eval[float64](b, "performance.getEntriesByType('paint').find((x) => x.name === 'first-contentful-paint')?.startTime ?? -1")
	// From the key that asks for the view to its rows, with the answer of the device on the way.
	const most = 3000 // elements: hosts are 80,000
	took := func(what, begin, done string) {
		t.Helper()
		eval[int](b, fmt.Sprintf(`window.longest = 0; window.began = performance.now(); window.took = 0;
			window.watch = () => { if (%s) window.took = performance.now() - window.began; else requestAnimationFrame(window.watch); };
			%s; requestAnimationFrame(window.watch); 0`, done, begin))
		b.until("window.took > 0")
		t.Logf("%-60s %4.0f ms, held up for %4.0f ms at most", what, eval[float64](b, "window.took"), eval[float64](b, "window.longest"))
		if n := eval[int](b, "document.querySelectorAll('*').length"); n > most {
			t.Errorf("%s: the page has %d elements, want at most %d", what, n, most)
		}
	}
	t.Logf("%-60s %.0f ms", "first paint of the page", first)
	took("80,000 hosts: asked for, read, in the table", "location.hash = '#/hosts'", "document.querySelector('#hosts [role=status]')?.textContent.startsWith('80,000')")
	if rows := eval[int](b, "document.querySelectorAll('#hosts .tbody .tr').length"); rows > 100 {
		t.Errorf("%d rows are drawn", rows)
	}
	took("filter by a host's NQN", "{ const i = document.querySelector('[data-id=nqn]'); i.value = 'host-79999'; i.dispatchEvent(new Event('input', {bubbles: true})); }", "document.querySelector('#hosts .tbody .tr')?.innerText.includes('10.1.56.127')")
	took("filter taken away", "{ const i = document.querySelector('[data-id=nqn]'); i.value = ''; i.dispatchEvent(new Event('input', {bubbles: true})); }", "document.querySelector('#hosts [role=status]')?.textContent.startsWith('80,000 rows')")
	took("sort by port", "[...document.querySelectorAll('#hosts .sort')].find((x) => x.textContent.startsWith('Port')).click()", "document.querySelector('#hosts [aria-sort=ascending]')")
	took("scroll to the end", "document.querySelector('#hosts .grid').scrollTop = 1e9", "document.querySelector('#hosts [aria-rowindex=\"80001\"]')")
	took("zone matrix of 60,000 by 20,000, grouped", "location.hash = '#/zones'", "document.querySelector('inof-matrix canvas')?.width > 0 && document.querySelector('.matrix-live')?.textContent")
	took("topology", "location.hash = '#/topology'", "document.querySelector('.plate.field, .topo')")
}

// A run that was recorded is replayed in the same views.
func TestARecordedRunIsReplayed(t *testing.T) {
	f, err := scenario.Parse("film", []byte(`name: film
duration: 4ms
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 4, link: {rate: 25G, delay: 1us}, uplink: {rate: 25G, delay: 1us}}
reroute: 100us
traffic:
  - {name: in, kind: incast, from: h0..h3, to: h4}
record: {every: 20us}
faults:
  - {at: 2ms, kind: link-down, link: leaf0-spine0}
`))
	if err != nil {
		t.Fatal(err)
	}
	f.Film = true
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, proxied(t, dashboard.Target{Name: "film.json", Kind: dashboard.Record, Handler: serveJSON("/v1/record", r.Film)}))
	b.says("4.000 ms of 4.000")
	move := func(ms float64) {
		eval[int](b, fmt.Sprintf("{ const i = document.querySelector('input[type=range]'); i.value = %g; i.dispatchEvent(new Event('input')); } 0", ms))
	}
	b.view("topology")
	b.until("document.querySelectorAll('.link.bad').length === 1 && document.querySelectorAll('.node').length === 12")
	move(1)
	b.until("document.querySelectorAll('.link.bad').length === 0")
	b.view("events")
	b.until("document.querySelectorAll('#events .tbody .tr').length === 0")
	move(3)
	b.until("document.querySelectorAll('#events .tbody .tr').length === 1")
	b.view("queues")
	b.says(fmt.Sprintf("%d ports", len(r.Film.Ports)))
	b.view("overview")
	sum := uint64(0)
	for _, fr := range r.Film.Frames {
		if fr.Ms <= 3 {
			sum = 0
			for _, q := range fr.Queues {
				sum += q.PFC
			}
		}
	}
	b.until(fmt.Sprintf("[...document.querySelectorAll('.tile')].find((x) => x.innerText.includes('PFC frames until now'))?.querySelector('.tile-value').innerText.replaceAll(',', '') === '%d'", sum))
	eval[int](b, "document.querySelector('.transport button').click(); 0")
	b.until("parseFloat(document.querySelector('.moment').innerText) > 3.1")
}
