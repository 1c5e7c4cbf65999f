package browser

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// reflector is a device that has hosts, zones, and something of all else.
func reflector(t *testing.T) *apitest.Source {
	t.Helper()
	src := apitest.Sample()
	src.StatusValue.Roles = []string{"reflector"}
	m := func(s string) zone.Member {
		m, err := zone.ParseMember(s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	src.UseZones(&change.Plan{Zones: map[string]change.Zone{"blue": {Members: []zone.Member{m("192.0.2.9"), m("192.0.2.101")}}}})
	src.HostValues[3].Zones = []string{"blue"} // an initiator beside the target of the sample
	src.Rows["telemetry"] = pfc(time.Now(), 1, 0.25)
	us := int64(1530)
	src.NoticeValues[0].FaultToAcked = &us
	return src
}

// pfc is what a port tells of two priorities.
func pfc(at time.Time, frames uint64, paused float64) []api.Leaf {
	base := "/inof/interfaces/interface[name=Ethernet2]/priorities/priority"
	var out []api.Leaf
	for _, id := range []string{"3", "4"} {
		out = append(out, api.Leaf{Path: base + "[id=" + id + "]/state/in-pfc-frames", Value: frames, Class: "counter", Time: at},
			api.Leaf{Path: base + "[id=" + id + "]/state/in-pause-time", Value: uint64(paused * 1e9), Unit: "nanoseconds", Class: "counter", Time: at},
			api.Leaf{Path: base + "[id=" + id + "]/state/deadlocks", Value: 2, Class: "counter", Time: at})
	}
	return out
}

// The page reads leaves that there are.
func TestThePageReadsTheLeavesOfTheTable(t *testing.T) {
	there := map[string]bool{}
	for _, l := range telemetry.Leaves() {
		there[l.Path] = true
	}
	keys := regexp.MustCompile(`=[^]]*`)
	for _, l := range pfc(time.Now(), 1, 1) {
		if path := keys.ReplaceAllString(l.Path, ""); !there[path] {
			t.Errorf("%s is no leaf of the table", path)
		}
	}
}

// What the page shows is what the API says, figure by figure.
func TestThePageShowsWhatTheAPISays(t *testing.T) {
	src := reflector(t)
	b := open(t, proxied(t, device("tor-1", src)))
	c := src.StatusValue.Counts
	tile := func(label string) string {
		return fmt.Sprintf("[...document.querySelectorAll('.tile')].find((x) => x.querySelector('.tile-label').textContent === %q)?.querySelector('.tile-value').innerText", label)
	}
	for label, want := range map[string]string{
		"Hosts":        fmt.Sprint(c.HostsLocal + c.HostsRemote),
		"Access ports": fmt.Sprintf("%d of %d", c.PortsUp, c.Ports),
		"Port faults":  fmt.Sprint(c.Faults),
		"Sessions":     fmt.Sprintf("%d of %d", c.Established, c.Peers),
		"Paths":        fmt.Sprintf("%d of %d", c.Paths.Watched-c.Paths.Failed, c.Paths.Watched),
	} {
		b.until(tile(label) + fmt.Sprintf(" === %q", want))
	}
	for _, w := range src.StatusValue.Warnings {
		b.says(w.Text)
		b.says(w.Do)
	}
	b.view("hosts")
	b.until(fmt.Sprintf("document.querySelectorAll('#hosts .tbody .tr').length === %d", len(src.HostValues)))
	rows := eval[[][]string](b, "[...document.querySelectorAll('#hosts .tbody .tr')].map((r) => [...r.children].map((c) => c.innerText.trim()))")
	for _, h := range src.HostValues {
		state := h.State.String()
		if h.Conflict {
			state = "conflict"
		}
		found := false
		for _, r := range rows {
			found = found || r[0] == h.Addr.String() && r[1] == state && r[3] == h.Role.String() && r[4] == h.Device.String() && r[5] == h.Port && r[6] == strings.Join(h.Zones, ", ") && r[7] == h.NQN
		}
		if !found {
			t.Errorf("host %s at %s is not there as the API has it: %q", h.Addr, h.Port, rows)
		}
	}
	b.view("events")
	src.Append(api.Event{Time: time.Now(), Kind: "host", Text: "a host has come while one looks on", Port: "Ethernet9"})
	b.says("a host has come while one looks on")
	b.view("notices")
	b.until("document.querySelectorAll('#notices .tbody .tr').length === 2")
	if got := eval[string](b, "[...document.querySelectorAll('#notices .tbody .tr')].map((r) => r.innerText).join('|')"); !strings.Contains(got, "1.530") {
		t.Errorf("the time to the ack of 1,530 us: %q", got)
	}
	b.view("queues")
	b.until("document.querySelector('.matrix-box')")
	src.Rows["telemetry"] = pfc(time.Now().Add(2*time.Second), 101, 0.75)
	eval[int](b, "document.querySelector('.matrix-box').focus(); 0")
	for range 4 {
		b.keys(kb.ArrowRight)
	}
	b.until("/Ethernet2, priority 3: paused [\\d.]+ %, pfc frames \\d+(\\.\\d)?\\/s/.test(document.querySelector('.matrix-live').textContent)")
}

// The hostile text of the tests: markup that would run if a browser took it for that.
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`

// Names and NQNs are what hosts say of themselves: they stay text, in every view.
func TestTextsOfHostsNeverBecomeMarkup(t *testing.T) {
	src := reflector(t)
	src.StatusValue.Name = hostile
	src.StatusValue.Warnings = api.Warnings{{Rule: "x", Text: hostile, Do: hostile}}
	for i := range src.HostValues {
		h := &src.HostValues[i]
		h.NQN, h.Port, h.Zones, h.LearnedFrom, h.Refused = "nqn.2026-01.org:"+hostile, hostile, []string{hostile}, hostile, nil
	}
	src.HostValues[0].Refused = []string{hostile}
	for i := range src.PortValues {
		src.PortValues[i].Name += hostile
	}
	for i := range src.ZoneValues {
		src.ZoneValues[i].Name, src.ZoneValues[i].Inconsistent = hostile, true
	}
	src.PeerValues[1].LastError = hostile
	src.NoticeValues[0].Port = hostile
	src.Rows["telemetry"] = []api.Leaf{{Path: "/inof/interfaces/interface[name=" + hostile + "]/priorities/priority[id=3]/state/deadlocks", Value: hostile, Time: time.Now()}}
	src.WhyValue.Verdict = hostile
	src.Append(api.Event{Time: time.Now(), Kind: hostile, Text: hostile, Port: hostile, Addr: hostile, Fields: map[string]string{hostile: hostile}})
	b := open(t, proxied(t, device(hostile, src), device(hostile, src)))
	b.until("document.documentElement.dataset.ready === 'yes'")
	for _, v := range views {
		b.view(v)
		time.Sleep(600 * time.Millisecond) // for an image that must not be there nothing can be waited for
		if eval[bool](b, "!!window.pwned || document.querySelectorAll('img[src=\"x\"], main script').length > 0") {
			t.Fatalf("in %s what a host says has become markup", v)
		}
	}
	b.view("events")
	b.says("onerror=")
	b.until("document.querySelector('#events .tbody .tr')")
	eval[int](b, "document.querySelector('#events .tbody .tr').click(); 0")
	b.until("document.querySelector('.drawer')?.innerText.includes('onerror=')")
	b.view("hosts")
	b.until("document.querySelector('#hosts .tbody .tr')")
	eval[int](b, "document.querySelector('#hosts .tbody .tr').click(); 0")
	b.until("document.querySelector('.drawer')?.innerText.includes('nqn.2026-01.org:<img')")
	if eval[bool](b, "!!window.pwned || document.querySelectorAll('img[src=\"x\"]').length > 0") {
		t.Error("in the details what a host says has become markup")
	}
}

// All of it can be done without a mouse.
func TestThePageIsUsableByKeyboard(t *testing.T) {
	b := open(t, proxied(t, device("tor-1", reflector(t))))
	b.until("document.documentElement.dataset.ready === 'yes'")
	for i, v := range views {
		b.keys(fmt.Sprint(i + 1))
		b.until(fmt.Sprintf("location.hash === '#/%s'", v))
	}
	b.keys("3")
	b.until("document.querySelectorAll('#hosts .tbody .tr').length === 4")
	// By hand: a key that is sent types its character although the page has taken the key.
	eval[int](b, "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true, cancelable: true})); 0")
	b.until("document.activeElement.getAttribute('aria-label') === 'Filter Address'")
	b.keys("192.0.2.9")
	b.until("document.activeElement.value === '192.0.2.9'")
	b.until("document.querySelectorAll('#hosts .tbody .tr').length === 1")
	b.keys(kb.ArrowDown)
	b.until("document.activeElement.getAttribute('role') === 'grid'")
	b.keys(kb.ArrowDown + kb.Enter)
	b.until("document.querySelector('.drawer h2')?.innerText === '192.0.2.9'")
	b.keys(kb.Escape)
	b.until("!document.querySelector('.drawer') && document.activeElement.getAttribute('role') === 'grid'")
	b.keys("?")
	b.says("Filters take words")
	b.keys(kb.Escape)
	b.keys("2")
	b.until("document.querySelector('.node[tabindex=\"0\"]')")
	eval[int](b, "document.querySelector('.node[tabindex=\"0\"]').focus(); 0")
	b.keys(kb.ArrowDown)
	b.until("document.activeElement.matches('.node') && document.activeElement.dataset.i !== '0'")
	b.keys(kb.Enter)
	b.until("document.querySelector('.drawer')")
	b.keys(kb.Escape + "t")
	b.until("document.documentElement.dataset.theme === 'light'")
	b.keys("t")
	b.until("document.documentElement.dataset.theme === 'dark'")
	b.keys("p")
	b.says("paused")
	// From the top of the page Tab reaches the views and then what is shown, and never sticks.
	eval[int](b, "document.body.focus(); document.activeElement.blur(); 0")
	seen := map[string]bool{}
	for range 25 {
		b.keys(kb.Tab)
		seen[eval[string](b, "document.activeElement.tagName + ' ' + (document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText ?? '').slice(0, 30)")] = true
	}
	if len(seen) < 12 {
		t.Errorf("Tab reaches only %v", seen)
	}
}

// Dark or light is what the system says, until the operator chooses.
func TestThePageIsDarkAndLight(t *testing.T) {
	b := open(t, proxied(t, device("tor-1", reflector(t))))
	b.until("document.documentElement.dataset.ready === 'yes' && document.styleSheets.length > 0")
	ground := func() string { return eval[string](b, "getComputedStyle(document.body).backgroundColor") }
	b.scheme("light")
	light := ground()
	b.scheme("dark")
	dark := ground()
	if light == dark {
		t.Fatalf("both are %s", light)
	}
	for choice, want := range map[string]string{"light": light, "dark": dark} {
		eval[int](b, fmt.Sprintf("document.documentElement.dataset.theme = %q; 0", choice))
		for _, system := range []string{"light", "dark"} {
			if b.scheme(system); ground() != want {
				t.Errorf("chosen %s on a system that is %s: %s", choice, system, ground())
			}
		}
	}
}

// violation is what axe-core finds.
type violation struct {
	ID, Impact, Help string
	Nodes            []string
}

// Everybody can use it, as far as a program can judge: axe-core finds nothing in any view, dark or
// light.
func TestAxeFindsNothing(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	src := reflector(t)
	b := open(t, proxied(t, device("tor-1", src), device("tor-2", src)))
	b.until("document.documentElement.dataset.ready === 'yes'")
	eval[int](b, string(axe)+";0")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, v := range views {
			b.view(v)
			time.Sleep(500 * time.Millisecond) // transitions of colours
			ctx, end := context.WithTimeout(b.ctx, patience)
			found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](`axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' ' + (n.failureSummary ?? ''))})))`, chromedp.EvalAwaitPromise))
			end()
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range found {
				t.Errorf("%s, %s: %s (%s): %s\n  %s", v, scheme, x.ID, x.Impact, x.Help, strings.Join(x.Nodes, "\n  "))
			}
		}
	}
}

// A candidate is laid over the matrix: who is gained and lost.
func TestACandidateIsLaidOverTheMatrix(t *testing.T) {
	src := reflector(t)
	src.ZonesValue.Review.Impact = &zone.Impact{PairsBefore: 1, PairsLost: 1, LostActive: 1, IO: zone.IOUnknown,
		Lost: []zone.PathPair{{Host: netip.MustParseAddr("192.0.2.9"), Target: netip.MustParseAddr("192.0.2.101"), Active: true}}}
	src.HostValues[3].State = snsd.Active
	b := open(t, proxied(t, device("spine-1", src)))
	b.view("zones")
	b.says("1 pairs of")
	b.until("[...document.querySelectorAll('button')].some((x) => x.textContent === 'Write a candidate')")
	eval[int](b, "[...document.querySelectorAll('button')].find((x) => x.textContent === 'Write a candidate').click(); 0")
	b.until("document.querySelector('textarea')?.value.includes('192.0.2.101')")
	eval[int](b, `{ const t = document.querySelector('textarea'); t.value = '{"zones": ['; t.dispatchEvent(new Event('input')); } [...document.querySelectorAll('button')].find((x) => x.textContent === 'Check').click(); 0`)
	b.says("This is no JSON")
	eval[int](b, `{ const t = document.querySelector('textarea'); t.value = '{"zones": []}'; t.dispatchEvent(new Event('input')); } [...document.querySelectorAll('button')].find((x) => x.textContent === 'Check').click(); 0`)
	b.until("[...document.querySelectorAll('.figures div')].some((x) => x.innerText.includes('pairs lost') && x.innerText.includes('1'))")
	eval[int](b, "document.querySelector('.matrix-box').focus(); 0")
	found := false
	for range 12 {
		b.keys(kb.ArrowRight)
		found = found || strings.Contains(eval[string](b, "document.querySelector('.matrix-live').textContent"), "1 lost")
	}
	b.keys(kb.ArrowDown)
	if found = found || strings.Contains(eval[string](b, "document.querySelector('.matrix-live').textContent"), "1 lost"); !found {
		t.Error("no cell says that a pair is lost")
	}
	if n := src.Changes(); len(n) > 0 {
		t.Errorf("the page has changed something: %v", n)
	}
}
