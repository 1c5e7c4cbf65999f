package testbed

import (
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
)

func TestTheHopsOfANoticeAddUpToItsWay(t *testing.T) {
	fault := time.Unix(1000, 0)
	at := func(us int) *time.Time { t := fault.Add(time.Duration(us) * time.Microsecond); return &t }
	n := api.Notice{FaultAt: at(90), DecidedAt: at(150), SentAt: at(170), ReflectorAt: at(230), ReflectedAt: at(300),
		ReceivedAt: at(350), Queued: at(360), Sent: at(400)}
	for _, c := range []struct {
		name    string
		noticed time.Time
		first   time.Duration
	}{{"nothing hears the kernel", time.Time{}, 90}, {"the daemon heard it first", *at(95), 90}, {"netlink told the daemon", *at(40), 40}} {
		var h hops
		h.add(fault, c.noticed, &n, *at(405))
		if len(h[0]) != 1 || h[0][0] != c.first*time.Microsecond {
			t.Errorf("%s: noticed after %v, want %v", c.name, h[0], c.first*time.Microsecond)
		}
		var all time.Duration
		for i, row := range h.rows() {
			if row.Trials != 1 || row.Name != hopNames[i] {
				t.Errorf("%s: row %d is %+v", c.name, i, row)
			}
			all += h[i][0]
		}
		if all != 405*time.Microsecond {
			t.Errorf("%s: the hops add up to %v, want 405us", c.name, all)
		}
	}
	n.SentAt = nil
	var h hops
	h.add(fault, *at(90), &n, *at(405))
	if len(h[2]) != 0 || h[3][0] != 80*time.Microsecond {
		t.Errorf("a time that is not known: %v, then %v; want none, then 80us", h[2], h[3])
	}
}
