package daemon

import (
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

func whyOf(t *testing.T, n *node, a, b string) api.Why {
	t.Helper()
	w, err := n.d.Why(t.Context(), netip.MustParseAddr(a), netip.MustParseAddr(b))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Between two hosts that are well there is nothing; between them and a fault there is the
// fault, with its way from the port to the ack, as seen from the device of the one, of the
// other, and from the reflector.
func TestWhyNamesTheFaultAndItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		for _, name := range []string{"tor1", "tor3", "spine"} {
			if w := whyOf(t, f.nodes[name], i1, t3); !w.Good || len(w.Shared) == 0 {
				t.Errorf("%s, both well: %+v", name, w)
			}
		}
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		w := whyOf(t, f.nodes["tor1"], i1, t3)
		if w.Good || !strings.Contains(w.Verdict, t3+" cannot be reached: link-down on device 10.0.0.3 port eth2") || !strings.Contains(w.Verdict, i1+" was told that "+t3+" is inactive (link-down), and has acked") {
			t.Errorf("%s", w.Verdict)
		}
		var steps []string
		for _, s := range w.Chain {
			steps = append(steps, s.Device.String()+" "+s.What)
			if s.After != nil && *s.After < 0 {
				t.Errorf("negative: %+v", s)
			}
		}
		want := []string{"10.0.0.3 fault seen: device 10.0.0.3 port eth2: link-down, 1 host address(es) unreachable", "10.0.0.3 taken up", "10.0.0.3 sent to the reflectors",
			"invalid IP read", "invalid IP passed on", "10.0.0.1 read", "10.0.0.1 decided: " + i1 + " is to be told inactive (link-down)",
			"10.0.0.1 notice sent on port eth1", "10.0.0.1 acked by " + i1}
		if !slices.Equal(steps, want) {
			t.Errorf("the way:\n%s\nwant:\n%s", strings.Join(steps, "\n"), strings.Join(want, "\n"))
		}
		if n := w.Notices; len(n) == 0 || n[len(n)-1].Status != api.NoticeAcked || n[len(n)-1].State != snsd.Inactive {
			t.Errorf("%+v", n)
		}
		if w = whyOf(t, f.nodes["tor3"], i1, t3); w.Good || !strings.Contains(w.Verdict, "port eth2 since ") {
			t.Errorf("at its own device: %s", w.Verdict)
		}
		w = whyOf(t, f.nodes["spine"], i1, t3)
		if w.Good || !w.Everything || !strings.Contains(w.Verdict, "link-down on device 10.0.0.3 port eth2 since ") || len(w.Chain) != 1 || !strings.Contains(w.Chain[0].What, "link-down") {
			t.Errorf("at the reflector: %s, %+v", w.Verdict, w.Chain)
		}
		if w = whyOf(t, f.nodes["spine"], i1, "192.0.2.200"); w.Good || !strings.Contains(w.Verdict, "192.0.2.200 is not known in the fabric") {
			t.Errorf("%s", w.Verdict)
		}
	})
}

// The events of a host are its own, and the faults and paths behind it, which do not name it.
func TestTheEventsOfAHostHaveTheFaultBehindThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		for _, name := range []string{"tor1", "tor3"} {
			n := f.nodes[name]
			path := "/v1/events?addr=" + t3
			rec := httptest.NewRecorder()
			api.Handler(n.d).ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
			body := rec.Body.String()
			if rec.Code != 200 || !strings.Contains(body, "1 host address(es) unreachable") || !strings.Contains(body, `"kind":"host"`) {
				t.Errorf("%s: %s", name, body)
			}
			if strings.Contains(body, "eth1") && name == "tor3" {
				t.Errorf("%s: events of another port: %s", name, body)
			}
		}
	})
}
