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
