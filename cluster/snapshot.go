package cluster

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// A snapshot is a magic and two values of JSON: the state except the zones, and these. Those of the former magic are read
// (snapshot2.go).
const (
	snapshotMagic = "iNOFzns3"
	// MaxSnapshot bounds it, in bytes.
	MaxSnapshot = 512 << 20
)

// Snapshot is a Machine at one index. Zones are shared with the Machine, which never
// changes them in place.
type Snapshot struct {
	Index    uint64            `json:"index"`
	Cluster  uint64            `json:"cluster"`
	Rules    zone.Rules        `json:"rules"`
	Settings map[string]string `json:"settings"`
	Trimmed  uint64            `json:"trimmed"`
	Outcomes []keptOutcome     `json:"outcomes"` // oldest first
	Book     *change.Book      `json:"-"`
}

// keptOutcome is what became of a change.
type keptOutcome struct {
	ID     RequestID `json:"id"`
	Result Result    `json:"result"`
}

// Snapshot takes one; it copies no zone.
func (m *Machine) Snapshot() (*Snapshot, error) {
	if m.halted != nil {
		return nil, m.halted
	}
	s := &Snapshot{Index: m.index, Cluster: m.cluster, Rules: m.rules, Settings: maps.Clone(m.settings), Trimmed: m.done.trimmed, Book: m.Book()}
	for _, id := range m.done.order {
		s.Outcomes = append(s.Outcomes, keptOutcome{id, m.done.results[id]})
	}
	return s, nil
}

// Write writes the snapshot.
func (s *Snapshot) Write(to io.Writer) error {
	if _, err := io.WriteString(to, snapshotMagic); err != nil {
		return err
	}
	if err := json.NewEncoder(to).Encode(s); err != nil {
		return err
	}
	book, err := json.Marshal(s.Book)
	if err != nil {
		return err
	}
	_, err = to.Write(book)
	return err
}

// ReadSnapshot returns the Machine of a snapshot. The error is a *DecodeError, or of from.
func ReadSnapshot(from io.Reader) (*Machine, error) {
	in := bufio.NewReaderSize(io.LimitReader(from, MaxSnapshot), 64<<10)
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return nil, broken("snapshot", "no magic: %v", err)
	}
	m := NewMachine()
	switch string(magic) {
	case snapshotMagic:
	case snapshotMagic2:
		text, err := m.readSections(in)
		if err != nil {
			return nil, err
		}
		return m, m.readBook(text)
	default:
		return nil, broken("snapshot", "begins with %q, want %q", magic, snapshotMagic)
	}
	var s Snapshot
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, broken("snapshot", "%v", err)
	}
	if len(s.Settings) > MaxSettings || len(s.Outcomes) > keptRequests {
		return nil, broken("snapshot", "%d settings, at most %d; %d outcomes, at most %d", len(s.Settings), MaxSettings, len(s.Outcomes), keptRequests)
	}
	m.index, m.cluster, m.rules, m.done.trimmed = s.Index, s.Cluster, s.Rules, s.Trimmed
	maps.Copy(m.settings, s.Settings)
	for _, o := range s.Outcomes {
		if _, twice := m.done.results[o.ID]; twice {
			return nil, broken("snapshot", "a request is there twice")
		}
		m.done.add(o.ID, o.Result)
	}
	text, err := io.ReadAll(io.MultiReader(dec.Buffered(), in))
	if err != nil {
		return nil, broken("snapshot", "truncated: %v", err)
	}
	return m, m.readBook(text)
}

// readBook takes over what operators write of zones.
func (m *Machine) readBook(text []byte) error {
	book := new(change.Book)
	if err := json.Unmarshal(text, book); err != nil {
		return broken("snapshot", "zones: %v", err)
	}
	delta := change.Diff(&change.Plan{}, book.Plan())
	if !delta.Empty() {
		changed, r := m.follows(&delta)
		if r != nil {
			return broken("snapshot", "zones: %v", r)
		}
		m.take(changed, &Edit{})
	}
	m.book = book
	return nil
}
