package daemon

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// fakeFence blocks nothing, and keeps what it was told over a restart.
type fakeFence struct {
	mu     sync.Mutex
	blocks map[fence.Key]fence.Block
	fails  int // the next so many blocks do
}

func (f *fakeFence) Adopted() ([]fence.Block, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.blocks)), nil
}

func (f *fakeFence) Block(k fence.Key, until time.Time) (fence.Block, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return fence.Block{}, errors.New("the table is full")
	}
	b := fence.Block{Key: k, Since: time.Now(), Until: until}
	f.blocks[k] = b
	return b, nil
}

func (f *fakeFence) Drained(fence.Block) (bool, error) { return true, nil }

func (f *fakeFence) Lift(k fence.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.blocks, k)
	return nil
}

func (f *fakeFence) LiftAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.blocks)
	return nil
}

func (f *fakeFence) Counts() (map[fence.Key]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[fence.Key]uint64{}
	for k := range f.blocks {
		out[k] = 7
	}
	return out, nil
}

func (f *fakeFence) String() string { return "fake" }
func (f *fakeFence) Close() error   { return nil }

func (f *fakeFence) stand() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.blocks)
}

func (h *labHost) lastOf(subject string) (last snsd.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.told {
		if n.Subject.String() == subject {
			last = n
		}
	}
	return last
}

// A switch with an array loses its link: the host's agent hears `network` once the block is in force, operators
// see the block, its record and its counters, and it outlives the daemon.
func TestAnArraysSwitchBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		f.add("spine", reflectorID, "reflector")
		f.zones("spine", map[string][]string{"a": {i1, t1, t2}})
		f.add("tor1", "10.0.0.1", "client", "eth1")
		n := f.add("tor2", "10.0.0.2", "client", "eth1")
		f.add("tor3", "10.0.0.3", "client", "eth1")
		n.halt()
		dp := &fakeFence{blocks: map[fence.Key]fence.Block{}, fails: 1}
		n.tune = func(e *Env) { e.Fence = func() (fence.Dataplane, error) { return dp, nil } }
		n.start()
		settle(20 * time.Second)
		host := f.hostWith("i1", "tor1", "eth1", snsd.AgentConfig{Addrs: []netip.Addr{netip.MustParseAddr(i1)}, Extensions: snsd.ExtFence,
			Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolTCP, NQN: "nqn.2026-11.test:host"}})
		array := func(name, dev, addr string) *labHost {
			return f.hostWith(name, dev, "eth1", snsd.AgentConfig{Addrs: []netip.Addr{netip.MustParseAddr(addr)},
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, NQN: "nqn.2026-11.test:sub"}})
		}
		array("t1", "tor2", t1)
		array("t2", "tor3", t2)
		settle(5 * time.Second)
		lost := time.Now()
		if err := n.fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		is := host.lastOf(t1)
		if is.State != snsd.Inactive || is.Fence == nil || is.Fence.Level != snsd.FenceNetwork {
			t.Fatalf("the agent has %+v, fence %+v", is, is.Fence)
		}
		if dp.stand() != 1 {
			t.Errorf("%d blocks", dp.stand())
		}
		list, err := ask[[]api.Fence](t.Context(), n.d, "fence")
		if err != nil || len(list) != 1 || list[0].Port != "eth1" || list[0].Array.IsValid() || !strings.HasPrefix(list[0].Fenced, "fenced: network by switch in") || list[0].Dropped == nil || *list[0].Dropped != 7 {
			t.Errorf("show fence: %+v %v", list, err)
		}
		if there, err := ask[[]api.Fence](t.Context(), f.nodes["tor1"].d, "fence"); err != nil || len(there) != 1 || there[0].Device.String() != "10.0.0.2" || there[0].Array.String() != t1 {
			t.Errorf("show fence at the host's switch: %+v %v", there, err)
		}
		notices, err := ask[[]api.Notice](t.Context(), f.nodes["tor1"].d, "notices", "subject="+t1)
		if err != nil || len(notices) == 0 || !strings.HasPrefix(notices[len(notices)-1].Fenced, "fenced: network by switch in") {
			t.Errorf("show notice: %+v %v", notices, err)
		}
		n.halt()
		if dp.stand() != 1 {
			t.Error("the block has ended with the daemon")
		}
		n.start()
		if err := n.fake.SetCarrier("eth1", true); err != nil {
			t.Fatal(err)
		}
		settle(time.Until(lost.Add(25 * time.Second)))
		settle(30 * time.Second) // until it is heard
		if is := host.lastOf(t1); is.State != snsd.Active || dp.stand() != 0 {
			t.Errorf("after the hold the agent has %+v, %d blocks", is, dp.stand())
		}
		audit, err := n.d.AuditRecords(t.Context(), 100)
		what := map[string]int{}
		for _, r := range audit.Newest {
			what[r.What+" "+r.Result]++
		}
		if err != nil || what["fence.block failed"] != 1 || what["fence.block done"] == 0 || what["fence.lift done"] == 0 {
			t.Errorf("audit: %v %v", what, err)
		}
	})
}
