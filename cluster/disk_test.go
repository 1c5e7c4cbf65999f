package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/zone"
)

// flaky is a disk that fails while it is told to.
type flaky struct {
	raft.StableStore
	fails atomic.Bool
}

func (f *flaky) SetUint64(key []byte, v uint64) error {
	if f.fails.Load() {
		return errors.New("no space left on device")
	}
	return f.StableStore.SetUint64(key, v)
}

func (f *flaky) Set(key, v []byte) error {
	if f.fails.Load() {
		return errors.New("no space left on device")
	}
	return f.StableStore.Set(key, v)
}

// A member whose disk takes nothing neither votes nor ends the process, and takes
// part again when the disk works. It can be stopped meanwhile.
func TestAFailingDiskIsWaitedFor(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		disks := map[int]*flaky{}
		for i := range 3 {
			s := MemoryStorage()
			disks[i] = &flaky{StableStore: s.Stable}
			s.Stable = disks[i]
			l.stores[devAddr(i)] = s
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		bad, good := (leader+1)%3, (leader+2)%3
		disks[bad].fails.Store(true)
		l.crash(leader)
		l.await("the disk error is told", time.Minute, func() bool { return strings.Contains(l.story(), "no space left on device") })
		if _, err := l.node(good).Change(t.Context(), addZone("blue")); err == nil {
			t.Error("a change is made by one of three members")
		}
		disks[bad].fails.Store(false)
		l.awaitLeader(bad, good)
		mustChange(t, l.node(bad), addZone("blue"))
		disks[good].fails.Store(true)
		disks[bad].fails.Store(true)
		l.partition([]int{bad}, []int{good}) // both want to vote
		time.Sleep(10 * time.Second)
		l.crash(good)
		l.crash(bad)
	})
}

// What is on a real disk is there again; a damaged file is an error that says what to do.
func TestFilesOfAMember(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	s, err := OpenStorage(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.incarnation()
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 9})
	d.do(addZone("a", "192.0.2.1"))
	d.do(addZone("b"))
	for i, b := range d.log {
		if err := s.Logs.StoreLog(&raft.Log{Index: uint64(i + 1), Term: 1, Data: b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.setInForce(2); err != nil { // the third entry may not be committed
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStorage(dir); err != nil {
		t.Fatal(err)
	}
	again, _ := s.incarnation()
	m, err := s.replay()
	if err != nil || again != first || m.Index() != 2 || len(m.Set().Zones) != 1 {
		t.Errorf("incarnation %x and %x, index %d, %v, %v", first, again, m.Index(), m.Set(), err)
	}
	_ = s.Close()
	if err := os.WriteFile(filepath.Join(dir, "raft.db"), bytes.Repeat([]byte{7}, 70000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStorage(dir); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a damaged file: %v", err)
	}
}

// largest is a configuration at the limits: 160,000 zones, 320,000 memberships.
func largest() []zone.Zone {
	zones := make([]zone.Zone, 160_000)
	for i := range zones {
		zones[i] = zone.Zone{Name: fmt.Sprintf("zone-%06d", i), Members: []zone.Member{
			{Kind: zone.MemberAddr, First: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})},
			{Kind: zone.MemberAddr, First: netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})}}}
	}
	return zones
}

func BenchmarkLargestSet(b *testing.B) {
	zones := largest()
	e := Entry{Kind: KindGenesis, Cluster: 7, Rules: zone.Rules{MaxZones: 160_000, MaxMembers: 320_000}, Zones: zones}
	data := encode(b, e)
	m := NewMachine()
	if res, _ := m.Apply(1, data); res.Refused != nil {
		b.Fatal(res.Refused)
	}
	snap := snapshotOf(b, m)
	b.Run("apply-all", func(b *testing.B) {
		b.ReportMetric(float64(len(data)), "bytes")
		for b.Loop() {
			if res, _ := NewMachine().Apply(1, data); res.Refused != nil {
				b.Fatal(res.Refused)
			}
		}
	})
	b.Run("apply-one-zone", func(b *testing.B) {
		index := uint64(1)
		one := [2]Entry{{Kind: KindAddMembers, Name: "zone-000001"}, {Kind: KindAddMembers, Name: "zone-000002"}}
		for b.Loop() {
			index++
			x := one[index%2]
			x.ID, x.Since = RequestID{1, index}, index
			if res, _ := m.Apply(index, encode(b, x)); res.Refused != nil {
				b.Fatal(res.Refused)
			}
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			snapshotOf(b, m)
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportMetric(float64(len(snap)), "bytes")
		for b.Loop() {
			if _, err := ReadSnapshot(bytes.NewReader(snap)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
