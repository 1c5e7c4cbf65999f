package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/raft"

	"github.com/openinof/inof/zone"
)

var clusterSeeds = flag.Int("cluster.seeds", 12, "how many seeds of partitions, crashes and restarts to run")
var clusterSeed = flag.Uint64("cluster.seed", 0, "run this seed only")

// operation is what one client asked of the cluster.
type operation struct {
	kind   Kind // 0: a read
	zone   string
	member string
}

// outcome is what it was told; unknown: the answer was lost.
type outcome struct {
	code    Code
	members string
	unknown bool
}

// zoneModel is one zone as a single machine would have it: "-" or its members.
var zoneModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			name := op.Input.(operation).zone
			by[name] = append(by[name], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return "-" },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(operation), output.(outcome)
		if in.kind == 0 {
			return out.members == state.(string), state
		}
		code, next := stepZone(state.(string), in)
		return out.unknown || out.code == code, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func stepZone(state string, in operation) (Code, string) {
	members := strings.Fields(state)
	switch {
	case in.kind == KindAddZone && state != "-":
		return CodeExists, state
	case in.kind == KindAddZone:
		return CodeOK, in.member
	case state == "-":
		return CodeNotFound, state
	case in.kind == KindRemoveZone:
		return CodeOK, "-"
	case in.kind == KindAddMembers:
		if !slices.Contains(members, in.member) {
			members = append(members, in.member)
		}
	default:
		i := slices.Index(members, in.member)
		if i < 0 {
			return CodeNotFound, state
		}
		members = slices.Delete(members, i, i+1)
	}
	var ms []zone.Member
	ms = append(ms, parse(members)...)
	parts := []string{}
	for _, m := range (zone.Zone{Members: ms}).Canonical().Members {
		parts = append(parts, m.String())
	}
	return CodeOK, strings.Join(parts, " ")
}

// history is what happened, in one order of calls and returns.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (h *history) do(client int, in operation, call func() (outcome, bool)) {
	began := h.clock.Add(1)
	out, happened := call()
	ended := h.clock.Add(1)
	if !happened {
		return
	}
	if out.unknown {
		ended = 1 << 60
	}
	h.mu.Lock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: began, Return: ended})
	h.mu.Unlock()
}

// committed is the index that everything committed before the call has at most. The barrier
// is committed by a majority: the member is the leader still.
func (r *running) committed() (uint64, bool) {
	leader := r.up()
	if leader == nil || leader.State() != raft.Leader || leader.Barrier(r.patience()).Error() != nil {
		return 0, false
	}
	r.Node.mu.Lock()
	defer r.Node.mu.Unlock()
	return r.machine.Index(), true
}

// sync waits until a member shows all that was committed before the call anywhere in the
// cluster.
func (r *running) sync(ctx context.Context, members func() []*running) error {
	for {
		for _, m := range members() {
			if index, ok := m.committed(); ok {
				return r.inForce(ctx, index)
			}
		}
		if !pause(ctx, r.cfg.Heartbeat/10) {
			return ctx.Err()
		}
	}
}

// at does an operation at a member; false: it did not happen.
func (in operation) at(r *running, members func() []*running) (outcome, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if in.kind == 0 {
		if r.sync(ctx, members) != nil {
			return outcome{}, false
		}
		return outcome{members: r.shown(in.zone)}, true
	}
	e := Entry{Kind: in.kind, Name: in.zone}
	if in.member != "" {
		e.Members = parse([]string{in.member})
	}
	_, err := r.Change(ctx, e)
	var refused *Refusal
	switch {
	case err == nil:
		return outcome{}, true
	case errors.As(err, &refused):
		return outcome{code: refused.Code}, true
	case errors.Is(err, ErrUncertain):
		return outcome{unknown: true}, true
	}
	return outcome{}, false // it says that nothing was changed
}

// Whatever is cut apart, crashes and restarts: all that is told about zones is as if
// there were one machine, and in the end all members have the same.
func TestZoneChangesAreLinearizable(t *testing.T) {
	seeds := *clusterSeeds
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	for s := range seeds {
		seed := uint64(s + 1)
		if *clusterSeed != 0 {
			seed = *clusterSeed
		}
		members := 3 + 2*int(seed%2)
		t.Run(fmt.Sprintf("seed %d, %d members", seed, members), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, members, seed) })
		})
		if *clusterSeed != 0 {
			break
		}
	}
}

func chaos(t *testing.T, members int, seed uint64) {
	l := newLab(t, members)
	defer l.stopAll()
	l.tune = func(c *Config) { c.SnapshotEntries, c.SnapshotInterval, c.Trailing = 16, 2*time.Second, 8 }
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range members {
		l.start(i)
	}
	l.awaitLeader(seq(members)...)
	var nodes sync.RWMutex // guards l.nodes against the chaos
	running := func() []*running {
		nodes.RLock()
		defer nodes.RUnlock()
		return slices.Collect(maps.Values(l.nodes))
	}
	var h history
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for client := range 5 {
		mine := rand.New(rand.NewPCG(seed, uint64(100+client)))
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(mine.IntN(400)) * time.Millisecond):
				}
				in := operation{kind: []Kind{0, 0, KindAddZone, KindRemoveZone, KindAddMembers, KindRemoveMembers}[mine.IntN(6)], zone: fmt.Sprintf("z%d", mine.IntN(3))}
				if in.kind == KindAddZone || in.kind == KindAddMembers || in.kind == KindRemoveMembers {
					in.member = fmt.Sprintf("192.0.2.%d", 101+mine.IntN(4))
				}
				nodes.RLock()
				n := l.node(mine.IntN(members))
				nodes.RUnlock()
				if n != nil {
					h.do(client, in, func() (outcome, bool) { return in.at(n, running) })
				}
			}
		})
	}
	for range 12 {
		time.Sleep(time.Duration(500+r.IntN(5000)) * time.Millisecond)
		i := r.IntN(members)
		switch r.IntN(4) {
		case 0:
			sides := r.Perm(members)
			k := 1 + r.IntN(members-1)
			l.partition(sides[:k], sides[k:])
		case 1:
			l.heal(members)
		default:
			nodes.Lock()
			if l.node(i) != nil {
				n := l.node(i)
				delete(l.nodes, devAddr(i))
				nodes.Unlock()
				n.stop()
			} else {
				l.start(i)
				nodes.Unlock()
			}
		}
	}
	l.heal(members)
	nodes.Lock()
	for i := range members {
		if l.node(i) == nil {
			l.start(i)
		}
	}
	nodes.Unlock()
	l.awaitLeader(seq(members)...)
	time.Sleep(5 * time.Second)
	close(stop)
	clients.Wait()
	l.await("all members have the same", time.Minute, func() bool {
		want := l.node(0).state()
		for i := range members {
			if l.node(i).state() != want {
				return false
			}
		}
		return true
	})
	changes := 0
	for _, op := range h.ops {
		if op.Input.(operation).kind != 0 && !op.Output.(outcome).unknown {
			changes++
		}
	}
	if changes < 50 {
		t.Errorf("only %d changes were made: the test shows nothing", changes)
	}
	if res, _ := porcupine.CheckOperationsVerbose(zoneModel, h.ops, 0); res != porcupine.Ok {
		t.Errorf("seed %d: the history of %d operations is not linearizable (-cluster.seed=%d)", seed, len(h.ops), seed)
	}
}

// state is all that is replicated and in force, as text.
func (r *running) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	set, _ := r.Zones()
	inForce := zone.Set{AutoJoin: set.AutoJoin, Hard: set.Hard}
	for _, z := range r.zones {
		inForce.Zones = append(inForce.Zones, z)
	}
	return fmt.Sprintf("%v %v", set, inForce.Equal(set))
}
