package lldp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRowsSurviveARestart(t *testing.T) {
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.12", 120), at(20), Updated)
	hear(t, tab, registration("swp2", 2, 1, "2001:db8::1", 120), at(90), Learned)
	hear(t, tab, plain("swp3", 3, nil, "192.0.2.3", "2001:db8::3"), at(5), Learned)
	tab.PortDown("swp3", at(6))
	before := tab.All()
	var read []Neighbour
	for i := range before {
		n, err := ParseRow(before[i].RowKey(nil), before[i].AppendRow(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(n.RowKey(nil), before[i].RowKey(nil)) {
			t.Errorf("another key: %q, was %q", n.RowKey(nil), before[i].RowKey(nil))
		}
		n.Confirmed = before[i].Confirmed
		read = append(read, n)
	}
	again := NewTable(Limits{})
	if err := again.Restore(read, at(95)); err != nil {
		t.Fatal(err)
	}
	for i := range before {
		before[i].Expires = at(95).Add(time.Duration(before[i].TTL) * time.Second)
	}
	if d := cmp.Diff(before, again.All(), cmpAddr); d != "" {
		t.Errorf("restored differently:\n%s", d)
	}
	if got := again.Expire(at(134.9)); len(got) != 0 {
		t.Errorf("%d aged out although nobody listened", len(got))
	}
	hear(t, again, registration("swp1", 1, 1, "192.0.2.12", 120), at(134.9), Refreshed)
	wantHosts(t, hear(t, again, plain("swp3", 3, nil, "192.0.2.3", "2001:db8::3"), at(134.9), Confirmed),
		[]string{"192.0.2.3", "2001:db8::3"}, nil, 0)
	if again.Weight() != 4 {
		t.Errorf("weight %d", again.Weight())
	}
}

func TestRestoreLeavesOutWhatIsBroken(t *testing.T) {
	tab := NewTable(Limits{PortRegistrations: 2})
	f := func(n int, ttl uint16) []byte {
		return registration("p", 1, n, fmt.Sprintf("192.0.2.%d", n), ttl).Payload
	}
	far := at(1e9)
	err := tab.Restore([]Neighbour{
		{Port: "p", LLDPDU: f(1, 120), Expires: far, FirstHeard: far, LastHeard: far},
		{Port: "p", LLDPDU: f(1, 120)},
		{Port: "p", LLDPDU: []byte{1, 2, 3}},
		{Port: "p", LLDPDU: f(2, 0)},
		{Port: "", LLDPDU: f(2, 120)},
		{Port: "p", LLDPDU: f(3, 120)},
		{Port: "p", LLDPDU: f(4, 120)},
	}, at(0))
	var fe *FrameError
	if !errors.As(err, &fe) || !errors.Is(err, ErrLimit) || tab.Len() != 2 {
		t.Errorf("%d restored, %v", tab.Len(), err)
	}
	if n := tab.Neighbours("p"); n[0].Expires.After(at(120)) || n[0].FirstHeard.After(at(0)) {
		t.Errorf("times of the future were taken: %+v", n[0])
	}
}

// A clock that was set back over a restart, or is set back after it, gives an address to nobody who
// claims it later, and of those that were known before the earlier stays the earlier.
func TestAClockThatIsSetBackMakesNobodyTheEarlier(t *testing.T) {
	const back = 40 * 365 * 24 * time.Hour
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 2, 1, "192.0.2.11", 120), at(0), Learned)
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(10), Learned)
	var rows []Neighbour
	for _, n := range tab.All() {
		row, err := ParseRow(n.RowKey(nil), n.AppendRow(nil))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	again := NewTable(Limits{})
	now := at(20).Add(-back)
	if err := again.Restore(rows, now); err != nil {
		t.Fatal(err)
	}
	f := registration("swp1", 3, 1, "192.0.2.11", 120)
	hear(t, again, f, now.Add(time.Second), Learned)
	if h := again.Hosts("swp1"); len(h) != 1 || h[0].MAC[5] != 2 || h[0].Since.After(now) {
		t.Errorf("the address is of %+v, want that of the first", h)
	}
	// The clock that stands on: a time with a monotonic reading is compared by it.
	stood := NewTable(Limits{})
	start := time.Now()
	for i := range rows {
		rows[i].FirstHeard, rows[i].LastHeard = start.Round(0), start.Round(0)
		for j := range rows[i].Known {
			rows[i].Known[j].Since = start.Round(0)
		}
	}
	if err := stood.Restore(rows, start); err != nil {
		t.Fatal(err)
	}
	for _, h := range stood.Hosts("swp1") {
		if h.Since == h.Since.Round(0) {
			t.Errorf("%v has no monotonic reading", h.Since)
		}
	}
}
