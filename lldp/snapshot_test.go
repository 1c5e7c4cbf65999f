package lldp

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotSurvivesARestart(t *testing.T) {
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.12", 120), at(20), Updated)
	hear(t, tab, registration("swp2", 2, 1, "2001:db8::1", 120), at(90), Learned)
	hear(t, tab, plain("swp3", 3, nil, "192.0.2.3", "2001:db8::3"), at(5), Learned)
	tab.PortDown("swp3", at(6))
	before := tab.Snapshot()
	blob, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var read []Neighbour
	if err := json.Unmarshal(blob, &read); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, read, cmpAddr); d != "" {
		t.Errorf("JSON form differs:\n%s", d)
	}
	again := NewTable(Limits{})
	if err := again.Restore(read, at(95)); err != nil {
		t.Fatal(err)
	}
	// what expires within a third of its TTL from the restart is given that third
	for i := range before {
		if e := at(95 + 40); before[i].Expires.Before(e) {
			before[i].Expires = e
		}
	}
	if d := cmp.Diff(before, again.Snapshot(), cmpAddr); d != "" {
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
