package netconf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// endOfMessage ends a message of base:1.0 (RFC 6242 section 4.3).
const endOfMessage = "]]>]]>"

// Errors of a reader of messages.
var (
	errFraming = errors.New("framing is wrong")                                                   // the session ends (RFC 6242 section 4.2)
	errTooBig  = fmt.Errorf("a message of more than %d bytes, of which none is read", MaxMessage) // it ends too
)

// messages reads messages one after the other.
type messages struct {
	r       *bufio.Reader
	chunked bool
	// began is called with the first byte of each message; nil: nobody.
	began func()
}

func newMessages(r io.Reader) *messages { return &messages{r: bufio.NewReader(r)} }

// next gives the next message, at most MaxMessage bytes of it: with errTooBig the beginning.
func (m *messages) next() ([]byte, error) {
	for { // blanks between messages are nothing
		b, err := m.r.Peek(1)
		if err != nil {
			return nil, err
		}
		if m.chunked || b[0] != '\n' && b[0] != '\r' && b[0] != ' ' && b[0] != '\t' {
			break
		}
		_, _ = m.r.Discard(1) // it is there
	}
	if m.began != nil {
		m.began()
	}
	if m.chunked {
		return m.chunks()
	}
	return m.delimited()
}

// delimited reads up to endOfMessage.
func (m *messages) delimited() (out []byte, err error) {
	for {
		part, err := m.r.ReadSlice('>')
		out = append(out, part...)
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return out, err
		case len(out) >= len(endOfMessage) && string(out[len(out)-len(endOfMessage):]) == endOfMessage:
			return out[:len(out)-len(endOfMessage)], nil
		case len(out) > MaxMessage:
			return out[:MaxMessage], errTooBig
		}
	}
}

// chunks reads chunks up to the end of them (RFC 6242 section 4.2).
func (m *messages) chunks() (out []byte, err error) {
	for {
		size, err := m.head()
		switch {
		case err != nil:
			return out, err
		case size == 0 && len(out) == 0:
			return nil, errFraming // a message has one chunk at least
		case size == 0:
			return out, nil
		}
		room := MaxMessage - len(out)
		n := min(size, int64(room))
		from := len(out)
		for n > 0 { // grown as it comes, not as it is promised
			step := min(n, 64<<10)
			out = append(out, make([]byte, step)...)
			if _, err := io.ReadFull(m.r, out[from:from+int(step)]); err != nil {
				return out[:from], err
			}
			from, n = from+int(step), n-step
		}
		if size > int64(room) {
			return out, errTooBig
		}
	}
}

// head reads the head of a chunk, "\n#LENGTH\n", or of the end, "\n##\n"; 0 is the end.
func (m *messages) head() (size int64, err error) {
	for i := range 13 { // "\n#" , ten digits, "\n"
		b, err := m.r.ReadByte()
		if err == io.EOF && i > 0 {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case err != nil:
			return 0, err
		case i == 0 && b == '\n', i == 1 && b == '#':
		case i == 2 && b == '#':
			if b, err = m.r.ReadByte(); err == nil && b == '\n' {
				return 0, nil
			}
			return 0, errors.Join(errFraming, err)
		case i == 2 && b >= '1' && b <= '9', i > 2 && b >= '0' && b <= '9':
			size = size*10 + int64(b-'0')
		case i > 2 && b == '\n' && size <= 1<<32-1:
			return size, nil
		default:
			return 0, errFraming
		}
	}
	return 0, errFraming
}

// sender writes messages.
type sender struct {
	w       io.Writer
	chunked bool
}

// send writes one document: an element in no namespace yet.
func (s *sender) send(e *element) error {
	out := &framed{s: s}
	w := bufio.NewWriterSize(out, 32<<10)
	if !s.chunked {
		w.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	}
	e.write(w, "")
	if err := w.Flush(); err != nil {
		return err
	}
	end := "\n##\n"
	if !s.chunked {
		end = endOfMessage
	}
	_, err := io.WriteString(s.w, end)
	return err
}

// framed puts each write into a chunk.
type framed struct{ s *sender }

func (f *framed) Write(b []byte) (int, error) {
	if f.s.chunked {
		if _, err := fmt.Fprintf(f.s.w, "\n#%d\n", len(b)); err != nil {
			return 0, err
		}
	}
	return f.s.w.Write(b)
}
