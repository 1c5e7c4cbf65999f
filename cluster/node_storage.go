package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// Storage is what a member keeps: the log, its votes, snapshots, and how far the log was in
// force.
type Storage struct {
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Closer    func() error

	stopping atomic.Bool
}

// Where the stable store has the incarnation, and the index of the last entry that came into
// force. The latter is on the disk before clients are told of the entry: a member that comes
// back, also after a power cut, never says zones of before those it had said.
var (
	keyIncarnation = []byte("inof-incarnation")
	keyInForce     = []byte("inof-in-force")
)

// OpenStorage opens the files of a member below a directory, and makes them at the
// first time.
func OpenStorage(dir string) (*Storage, error) {
	wrong := func(err error) (*Storage, error) {
		return nil, fmt.Errorf("cluster state %s: %w; if the disk has lost it, move the directory away, start, and have this member replaced", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wrong(err)
	}
	store, err := openBolt(filepath.Join(dir, "raft.db"))
	if err != nil {
		return wrong(err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, newLogger(nil))
	if err != nil {
		_ = store.Close()
		return wrong(err)
	}
	cache, err := raft.NewLogCache(512, store)
	if err != nil {
		_ = store.Close()
		return wrong(err)
	}
	return &Storage{Logs: cache, Stable: store, Snapshots: snaps, Closer: store.Close}, nil
}

// openBolt opens the store; a damaged file must be an error, not a panic.
func openBolt(path string) (store *raftboltdb.BoltStore, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", path, p)
		}
	}()
	return raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType}})
}

// MemoryStorage keeps everything in memory, for tests and simulations. It outlives
// the Nodes that use it, as a disk does.
func MemoryStorage() *Storage {
	store := raft.NewInmemStore()
	return &Storage{Logs: store, Stable: store, Snapshots: raft.NewInmemSnapshotStore()}
}

// inForce is the index of the last entry that came into force, 0: of none.
func (s *Storage) inForce() uint64 {
	v, err := s.Stable.GetUint64(keyInForce)
	if err != nil { // not found
		return 0
	}
	return v
}

func (s *Storage) setInForce(v uint64) error { return s.Stable.SetUint64(keyInForce, v) }

func (s *Storage) stop() { s.stopping.Store(true) }

// Close closes the files.
func (s *Storage) Close() error {
	s.stopping.Store(false) // memory is used again
	if s.Closer == nil {
		return nil
	}
	return s.Closer()
}

// incarnation is the number of this state, made with it.
func (s *Storage) incarnation() (uint64, error) {
	b, err := s.Stable.Get(keyIncarnation)
	if err == nil && len(b) == 8 {
		return binary.BigEndian.Uint64(b), nil
	}
	if err != nil && err.Error() != "not found" {
		return 0, err
	}
	v := random()
	return v, s.Stable.Set(keyIncarnation, binary.BigEndian.AppendUint64(nil, v))
}

// replay gives the Machine as it was in force last: the newest snapshot and the
// entries behind it up to the one in force, which were committed.
func (s *Storage) replay() (*Machine, error) {
	m, index, err := s.newest()
	if err != nil {
		return nil, err
	}
	last, err := s.Logs.LastIndex()
	if err != nil {
		return nil, err
	}
	first, err := s.Logs.FirstIndex()
	if err != nil {
		return nil, err
	}
	for i := max(index+1, first); i <= min(last, s.inForce()); i++ {
		var l raft.Log
		if err := s.Logs.GetLog(i, &l); err != nil {
			return nil, fmt.Errorf("log entry %d: %w", i, err)
		}
		if l.Type == raft.LogCommand {
			m.Apply(l.Index, l.Data)
		}
	}
	return m, nil
}

// newest reads the newest snapshot that is whole.
func (s *Storage) newest() (*Machine, uint64, error) {
	list, err := s.Snapshots.List()
	if err != nil || len(list) == 0 {
		return NewMachine(), 0, err
	}
	var errs []error
	for _, meta := range list {
		_, from, err := s.Snapshots.Open(meta.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m, err := ReadSnapshot(from)
		_ = from.Close()
		if err == nil {
			return m, meta.Index, nil
		}
		errs = append(errs, err)
	}
	return nil, 0, fmt.Errorf("no snapshot can be read: %w", errors.Join(errs...))
}

// The library panics when the disk does not take a term or a vote, or does not give an
// entry. A member whose disk fails must not take the device down with it: it waits,
// and the others go on without it.
const diskRetry = 500 * time.Millisecond

// insist repeats until the disk does it or the member stops.
func (s *Storage) insist(n *Node, what string, do func() error) error {
	for first := true; ; first = false {
		err := do()
		if err == nil || errors.Is(err, raft.ErrLogNotFound) || err.Error() == "not found" {
			return err
		}
		n.count(func(c *Counters) { c.DiskErrors++ })
		if first {
			n.cfg.Event(Event{Text: fmt.Sprintf("the cluster's disk fails: %s: %v; this member takes no part until it works", what, err), Fields: map[string]string{"change": "disk"}})
		}
		if s.stopping.Load() {
			runtime.Goexit() // an error here would be a panic there
		}
		time.Sleep(diskRetry)
	}
}

type patientStable struct {
	raft.StableStore
	s *Storage
	n *Node
}

func (s *Storage) patientStable(n *Node) raft.StableStore { return &patientStable{s.Stable, s, n} }

// Set implements raft.StableStore.
func (p *patientStable) Set(key, val []byte) error {
	return p.s.insist(p.n, "writing", func() error { return p.StableStore.Set(key, val) })
}

// SetUint64 implements raft.StableStore.
func (p *patientStable) SetUint64(key []byte, val uint64) error {
	return p.s.insist(p.n, "writing", func() error { return p.StableStore.SetUint64(key, val) })
}

type patientLogs struct {
	raft.LogStore
	s *Storage
	n *Node
}

func (s *Storage) patientLogs(n *Node) raft.LogStore { return &patientLogs{s.Logs, s, n} }

// GetLog implements raft.LogStore.
func (p *patientLogs) GetLog(index uint64, l *raft.Log) error {
	return p.s.insist(p.n, "reading", func() error { return p.LogStore.GetLog(index, l) })
}
