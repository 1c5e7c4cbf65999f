package keep

import (
	"bytes"
	"maps"
)

// Memory is a Keeper for simulations: what its machine would have on its disk, and in its
// memory beside the process. It outlives the processes that use it.
type Memory struct {
	disk    map[string]Row
	unsaved []Row
	clean   bool
	cut     bool // the power was, since the last process began
}

// Put implements Sink.
func (m *Memory) Put(t Table, key, value []byte) {
	m.unsaved = append(m.unsaved, Row{Table: t, Key: bytes.Clone(key), Value: append([]byte{}, value...)})
}

// Delete implements Sink.
func (m *Memory) Delete(t Table, key []byte) {
	m.unsaved = append(m.unsaved, Row{Table: t, Key: bytes.Clone(key)})
}

// Flush implements Sink: a process of a simulation is not killed between two rows.
func (m *Memory) Flush() {}

// Pending is how many rows the disk does not have.
func (m *Memory) Pending() int { return len(m.unsaved) }

// Commit brings the first n rows of those that are pending to the disk, all or none.
func (m *Memory) Commit(n int) {
	if m.disk == nil {
		m.disk = make(map[string]Row)
	}
	apply(m.disk, m.unsaved[:n])
	m.unsaved = append([]Row(nil), m.unsaved[n:]...)
}

func apply(to map[string]Row, rows []Row) {
	for _, r := range rows {
		if k := string(r.Table) + "\x00" + string(r.Key); r.Value == nil {
			delete(to, k)
		} else {
			to[k] = r
		}
	}
}

// Stop ends a process as it was told to.
func (m *Memory) Stop() {
	m.Commit(len(m.unsaved))
	m.clean = true
}

// PowerCut takes from the machine what is not on its disk.
func (m *Memory) PowerCut() { m.unsaved, m.cut = nil, true }

// Lose takes everything.
func (m *Memory) Lose() { *m = Memory{} }

// Look gives what the last process kept, or the present one would have if it were killed now.
func (m *Memory) Look() Found {
	f := Found{None: m.disk == nil, Whole: m.disk != nil, Clean: m.clean, SameBoot: !m.cut}
	rows := make(map[string]Row, len(m.disk))
	maps.Copy(rows, m.disk)
	if !f.None {
		apply(rows, m.unsaved)
	}
	for _, r := range rows {
		f.Rows = append(f.Rows, r)
	}
	f.Rows = latest(f.Rows)
	return f
}

// Begin is the start of a process, with Look.
func (m *Memory) Begin() Found {
	f := m.Look()
	if f.None {
		m.unsaved = nil
	}
	m.Commit(len(m.unsaved))
	m.clean, m.cut = false, false
	return f
}
