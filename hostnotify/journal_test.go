package hostnotify

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// facts drops what a journal does not keep: it repeats a notice rather than lose one.
var facts = cmp.Options{cmpopts.EquateComparable(ip(hostA)), cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(ToldSnapshot{}, "Acked", "Stale")}

// through goes through the form on disk.
func through(t *testing.T, entries []Entry) []Entry {
	t.Helper()
	b, err := json.Marshal(entries)
	var out []Entry
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestASnapshotWithTheEntriesSinceIsALaterSnapshot(t *testing.T) {
	r := twoHosts(t)
	r.n.Journal()
	s := r.n.Snapshot()
	r.fault(farT, snsd.ReasonPFCStorm)
	r.settle()
	r.fault(farT, 0)
	r.settle()
	r.fault(hostB, snsd.ReasonLinkDown)
	r.settle()
	s.Replay(through(t, r.n.Journal()))
	if diff := cmp.Diff(r.n.Snapshot(), s, facts); diff != "" {
		t.Errorf("(-later +replayed)\n%s", diff)
	}
	if more := r.n.Journal(); len(more) > 0 {
		t.Errorf("entries are given twice: %v", more)
	}
}

func TestTheEntriesOfTheFirstNoticesAreASnapshotByThemselves(t *testing.T) {
	r := twoHosts(t)
	var s Snapshot
	s.Replay(through(t, r.n.Journal()))
	if diff := cmp.Diff(r.n.Snapshot(), s, facts); diff != "" {
		t.Errorf("(-snapshot +replayed)\n%s", diff)
	}
}

func TestAnAnswerThatWasGivenIsNotOwedAfterAReplay(t *testing.T) {
	r := twoHosts(t)
	r.n.PortDown("p1")
	s := r.n.Snapshot()
	r.n.Journal()
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(ip(hostA), "p1", r.w.hosts[ip(hostA)].MAC, r.now)
	r.settle()
	s.Replay(through(t, r.n.Journal()))
	if diff := cmp.Diff(r.n.Snapshot(), s, facts); diff != "" {
		t.Errorf("(-later +replayed)\n%s", diff)
	}
}

func TestAnotherMachineWithTheAddressWasToldNothing(t *testing.T) {
	s := Snapshot{Hosts: []HostSnapshot{{Addr: ip(hostA), MAC: fabric.MAC{2, 1}, Told: []ToldSnapshot{{Subject: ip(farT), State: snsd.Active}}}}}
	s.Replay([]Entry{{Host: ip(hostA), MAC: fabric.MAC{2, 2}, Told: ToldSnapshot{Subject: ip(hostB), State: snsd.Active, Seq: 7}}})
	if h := s.Hosts[0]; h.MAC != (fabric.MAC{2, 2}) || len(h.Told) != 1 || h.Told[0].Subject != ip(hostB) || s.Seq != 8 {
		t.Errorf("%+v, next number %d", h, s.Seq)
	}
}
