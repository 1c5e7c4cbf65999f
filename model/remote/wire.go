package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openinof/inof/fabric"
)

// MaxLine bounds one line in bytes: a frame of 9,216 bytes in base64 and what goes
// around it; a status of a large fabric is the longest.
const MaxLine = 4 << 20

// Request is the first line of a connection. One field is set.
type Request struct {
	Attach string          `json:"attach,omitempty"` // be the control plane of this switch
	Fault  json.RawMessage `json:"fault,omitempty"`  // let this happen
	Status bool            `json:"status,omitempty"` // tell how the fabric stands
}

// Reply answers a Request.
type Reply struct {
	Error  string          `json:"error,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
}

// Event is a fabric.Event.
type Event struct {
	Kind fabric.EventKind `json:"kind"`
	Port fabric.Port      `json:"port"`
	At   int64            `json:"at_ns"` // Unix time: both ends are on one machine
}

// Frame is a whole Ethernet frame.
type Frame struct {
	Port string `json:"port"`
	Data []byte `json:"data"`
	At   int64  `json:"at_ns,omitempty"`
}

// Ask wants an answer. Admin or Want is set.
type Ask struct {
	ID    uint64        `json:"id"`
	Port  string        `json:"port"`
	Admin *bool         `json:"admin,omitempty"` // shut or open it
	Want  fabric.Fields `json:"want,omitempty"`  // read its health
}

// Answer is one.
type Answer struct {
	ID     uint64         `json:"id"`
	Error  string         `json:"error,omitempty"`
	Health *fabric.Health `json:"health,omitempty"`
}

// Up is a line to the fabric.
type Up struct {
	Send *Frame `json:"send,omitempty"`
	Ask  *Ask   `json:"ask,omitempty"`
}

// Down is a line from it.
type Down struct {
	Event  *Event  `json:"event,omitempty"`
	Ready  bool    `json:"ready,omitempty"` // all ports have been told
	Frame  *Frame  `json:"frame,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

// ErrLine is wrapped by errors about a line.
var ErrLine = errors.New("line of the fabric's socket")

// Reader reads lines.
type Reader struct{ s *bufio.Scanner }

// NewReader makes a Reader.
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), MaxLine)
	return &Reader{s}
}

// Read reads one line strictly; io.EOF at the end.
func (r *Reader) Read(into any) error {
	if !r.s.Scan() {
		if err := r.s.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrLine, err)
		}
		return io.EOF
	}
	d := json.NewDecoder(bytes.NewReader(r.s.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	return nil
}

// Write writes one line.
func Write(w io.Writer, line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func unix(t time.Time) int64 { return t.UnixNano() }

// NewEvent is e for the wire.
func NewEvent(e fabric.Event) *Event { return &Event{e.Kind, e.Port, unix(e.At)} }
