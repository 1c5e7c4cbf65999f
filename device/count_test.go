package device

import (
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
)

// Each attachment is one host of the count, as in the list of hosts: a host with two ports here,
// or with one here and one at another device, takes none of another device's from it.
func TestHostsHereAndElsewhereAreCountedByAttachment(t *testing.T) {
	m := newMeshCore(t) // i1 and i2 here, t1 and t2 elsewhere
	b := &bareCore{Core: m.c, t: t, now: m.now, changes: map[string]uint64{}}
	b.carrier("eth3", true, fabric.PortAdded)
	b.register("h1", "eth3", i1)
	m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(far1, "eth8", i2)}})
	if n := b.Counts(); n.HostsLocal != 3 || n.HostsRemote != 3 {
		t.Errorf("%d local, %d remote, want 3 and 3", n.HostsLocal, n.HostsRemote)
	}
}
