package cluster

import (
	"encoding/binary"
	"io"
)

// A snapshot of earlier versions of inofd is a magic, the state in sections, each with a length of
// 32 bits, and nothing after: head, settings, outcomes, then the zones with their versions as JSON in
// pieces, then an empty section.
const (
	snapshotMagic2 = "iNOFzns2"
	maxSection     = 8 << 20 // bytes
)

// readSections reads all but the zones, of which it returns the text.
func (m *Machine) readSections(in io.Reader) ([]byte, error) {
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
		if n, _ := in.Read(make([]byte, 1)); n > 0 {
			return nil, broken("snapshot", "something follows the end")
		}
		return text, nil
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
