package cluster

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/openinof/inof/zone/change"
)

// A snapshot is a magic, the state in sections, each with a length of 32 bits, and nothing after:
// head, settings, outcomes, then the zones with their versions as JSON in pieces, then an empty
// section.
const (
	snapshotMagic = "iNOFzns2"
	// maxSection bounds a section, in bytes.
	maxSection  = 8 << 20
	MaxSnapshot = 512 << 20
)

// Snapshot is a Machine at one index. Zones are shared with the Machine, which never
// changes them in place.
type Snapshot struct {
	head     []byte
	settings []byte
	requests []byte
	book     *change.Book
}

// Snapshot takes one; it copies no zone.
func (m *Machine) Snapshot() (*Snapshot, error) {
	if m.halted != nil {
		return nil, m.halted
	}
	s := &Snapshot{book: m.Book()}
	s.head = binary.BigEndian.AppendUint64(s.head, m.index)
	s.head = binary.BigEndian.AppendUint64(s.head, m.cluster)
	s.head = appendRules(s.head, m.rules)
	s.head = binary.BigEndian.AppendUint64(s.head, m.done.trimmed)
	for _, key := range slices.Sorted(maps.Keys(m.settings)) {
		s.settings = appendText(appendText(s.settings, key), m.settings[key])
	}
	for _, id := range m.done.order {
		res := m.done.results[id]
		b := binary.BigEndian.AppendUint64(s.requests, id.Origin)
		b = binary.BigEndian.AppendUint64(b, id.Number)
		b = binary.BigEndian.AppendUint64(b, res.Index)
		code, text := CodeOK, ""
		if res.Refused != nil {
			code, text = res.Refused.Code, res.Refused.Text
		}
		s.requests = appendText(append(b, byte(code)), text)
	}
	return s, nil
}

// Write writes the snapshot.
func (s *Snapshot) Write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	if _, err := w.WriteString(snapshotMagic); err != nil {
		return err
	}
	for _, b := range [][]byte{s.head, s.settings, s.requests} {
		if err := writeSection(w, b); err != nil {
			return err
		}
	}
	text, err := json.Marshal(s.book)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(text, maxSection/2) {
		if err := writeSection(w, part); err != nil {
			return err
		}
	}
	if err := writeSection(w, nil); err != nil {
		return err
	}
	return w.Flush()
}

func writeSection(w io.Writer, b []byte) error {
	if len(b) > maxSection {
		return broken("snapshot", "a section of %d bytes, at most %d", len(b), maxSection)
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b)))); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// ReadSnapshot gives the Machine of a snapshot. The error is a *DecodeError, or of from.
func ReadSnapshot(from io.Reader) (*Machine, error) {
	in := bufio.NewReaderSize(io.LimitReader(from, MaxSnapshot), 64<<10)
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return nil, broken("snapshot", "no magic: %v", err)
	}
	if string(magic) != snapshotMagic {
		return nil, broken("snapshot", "begins with %q, want %q", magic, snapshotMagic)
	}
	m := NewMachine()
	for _, take := range []func(*reader){m.readHead, m.readSettings, m.readRequests} {
		b, err := readSection(in)
		if err != nil {
			return nil, err
		}
		r := &reader{b: b, where: "snapshot"}
		take(r)
		if err := r.end(); err != nil {
			return nil, err
		}
	}
	var text []byte
	for {
		b, err := readSection(in)
		if err != nil {
			return nil, err
		}
		if text = append(text, b...); len(b) > 0 {
			continue
		}
		if _, err := in.ReadByte(); err != io.EOF {
			return nil, broken("snapshot", "something follows the end")
		}
		return m, m.readBook(text)
	}
}

func readSection(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, broken("snapshot", "truncated: %v", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxSection {
		return nil, broken("snapshot", "a section of %d bytes, at most %d", n, maxSection)
	}
	b, err := readGrowing(in, int(n))
	if err != nil {
		return nil, broken("snapshot", "truncated: %v", err)
	}
	return b, nil
}

// readGrowing reads n bytes and allocates as they come: a length alone costs nothing.
func readGrowing(in io.Reader, n int) ([]byte, error) {
	const step = 64 << 10
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		at := len(b)
		b = slices.Grow(b, min(n-at, max(step, at)))
		b = b[:at+min(n-at, max(step, at))]
		if _, err := io.ReadFull(in, b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (m *Machine) readHead(r *reader) {
	m.index, m.cluster = r.u64("index"), r.u64("cluster")
	m.rules = r.rules()
	m.done.trimmed = r.u64("trimmed")
}

func (m *Machine) readSettings(r *reader) {
	for len(r.b) > 0 && r.err == nil {
		if len(m.settings) == MaxSettings {
			r.fail("more than %d settings", MaxSettings)
			return
		}
		key := r.text("setting", maxKey)
		m.settings[key] = r.text("value", maxValue)
	}
}

func (m *Machine) readRequests(r *reader) {
	for len(r.b) > 0 && r.err == nil {
		if len(m.done.results) == keptRequests {
			r.fail("more than %d outcomes", keptRequests)
			return
		}
		id := RequestID{r.u64("origin"), r.u64("number")}
		res := Result{Index: r.u64("index")}
		if code, text := Code(r.u8("code")), r.text("refusal", maxRefusalText); code != CodeOK {
			res.Refused = &Refusal{Code: code, Text: text}
		}
		if _, dup := m.done.results[id]; dup {
			r.fail("a request is there twice")
			return
		}
		m.done.add(id, res)
	}
}

func (m *Machine) readBook(text []byte) error {
	book := new(change.Book)
	if err := json.Unmarshal(text, book); err != nil {
		return broken("snapshot", "zones: %v", err)
	}
	empty := change.Plan{}
	delta := change.Diff(&empty, book.Plan())
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
