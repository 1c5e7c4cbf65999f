package bfdd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/openinof/inof/bfd"
)

// Protocol is the number of this protocol; both sides must have the same.
const Protocol = 4

// Limits of the protocol.
const (
	MaxLine  = 256 << 10 // bytes of a message, its line end included
	maxBatch = 64        // sessions, events or states in one message
	maxPeers = bfd.DefaultMaxSessions
	// maxIgnored is how many interfaces of host ports there may be.
	maxIgnored = 4096
)

// message is one line; exactly one field is set.
type message struct {
	Hello  *hello  `json:"hello,omitempty"`
	Want   *want   `json:"want,omitempty"`
	Ask    *ask    `json:"ask,omitempty"`
	Stop   *stop   `json:"stop,omitempty"`
	Paths  *paths  `json:"paths,omitempty"`
	Done   *done   `json:"done,omitempty"`
	Status *status `json:"status,omitempty"`
	Bye    *bye    `json:"bye,omitempty"`
}

// hello is the first line of either side. Fields may only ever be added to it.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	PID      int    `json:"pid"`
	// Started is when the process began, on the clock that all share: an owner replaces
	// an older one of another build, and gets along with a newer one.
	Started int64 `json:"started"`
	// Device is the id of the device that either works for.
	Device string `json:"device"`
}

// want is the whole set of sessions, in parts; it counts when the last has come.
type want struct {
	Seq   uint64     `json:"seq"`
	Peers []bfd.Peer `json:"peers"`
	// Ignore are the indexes of the interfaces of host ports, in the last part.
	Ignore []int `json:"ignore,omitempty"`
	More   bool  `json:"more,omitempty"`
}

// done says that a set is in force, and what of it could not be.
type done struct {
	Seq   uint64 `json:"seq"`
	Error string `json:"error,omitempty"`
}

type ask struct {
	ID uint64 `json:"id"`
}

// stop has the process say AdminDown to its peers and end.
type stop struct {
	Why string `json:"why"`
}

// bye is the last line to an owner.
type bye struct {
	Why string `json:"why"`
}

// paths are reports, all of them after an owner has come, then changes.
type paths struct {
	Events []event `json:"events"`
}

// event is a bfd.Event with its moments as they travel; zero is none.
type event struct {
	bfd.Key
	Report     bfd.Report `json:"report"`
	Diag       bfd.Diag   `json:"diag"`
	RemoteDiag bfd.Diag   `json:"remote_diag"`
	At         int64      `json:"at"`
	Heard      int64      `json:"heard,omitempty"`
	Flaps      uint64     `json:"flaps"`
}

// status answers an ask, in parts.
type status struct {
	ID       uint64       `json:"id"`
	Sessions []bfd.Status `json:"sessions"`
	Process  *Process     `json:"process,omitempty"` // in the last part
	More     bool         `json:"more,omitempty"`
}

// Process is what a BFD process says about itself.
type Process struct {
	PID       int       `json:"pid"`
	Build     string    `json:"build"`
	Started   time.Time `json:"started"`
	Priority  string    `json:"priority"`        // what the kernel granted
	Failure   string    `json:"failure"`         // why its sockets do not work; empty: they do
	Owners    uint64    `json:"owners"`          // that have come so far
	Coalesced uint64    `json:"coalesced"`       // changes an owner did not read before the next one of the same path
	Errors    uint64    `json:"protocol_errors"` // connections that were ended because of what came
	// Holders are other processes on the port, Stray is what came for them.
	Holders   []bfd.Holder          `json:"holders,omitempty"`
	Stray     bfd.Stray             `json:"stray"`
	BFD       bfd.Counters          `json:"bfd"`
	Transport bfd.TransportCounters `json:"transport"`
}

// Errors of the protocol.
var (
	ErrLine    = errors.New("message is too long")
	ErrMessage = errors.New("message is malformed")
)

// lines reads messages.
type lines struct {
	r     *bufio.Reader
	first bool
}

func newLines(r io.Reader) *lines {
	return &lines{r: bufio.NewReaderSize(r, MaxLine), first: true}
}

// next gives the next message. Its errors are those of the connection, ErrLine or
// ErrMessage.
func (l *lines) next() (message, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return message{}, fmt.Errorf("%w: more than %d bytes", ErrLine, MaxLine)
	}
	if err != nil {
		return message{}, err
	}
	first := l.first
	l.first = false
	return decode(line, first)
}

// decode parses one line. Only a hello may have fields that are not known.
func decode(line []byte, first bool) (message, error) {
	var m message
	d := json.NewDecoder(bytes.NewReader(line))
	if !first {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&m); err != nil {
		return message{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return message{}, fmt.Errorf("%w: more than one value in a line", ErrMessage)
	}
	n := 0
	for _, set := range [...]bool{m.Hello != nil, m.Want != nil, m.Ask != nil, m.Stop != nil, m.Paths != nil, m.Done != nil, m.Status != nil, m.Bye != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return message{}, fmt.Errorf("%w: %d kinds in one, want 1", ErrMessage, n)
	case first != (m.Hello != nil):
		return message{}, fmt.Errorf("%w: hello must be the first message, and no other", ErrMessage)
	}
	return m, nil
}

// encode gives the line of a message.
func encode(m message) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(b)+1 > MaxLine {
		return nil, fmt.Errorf("%w: %d bytes", ErrLine, len(b)+1)
	}
	return append(b, '\n'), nil
}

func send(w io.Writer, m message) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// toWire converts a report; now and mono are one moment on both clocks.
func toWire(e bfd.Event, now time.Time, mono int64) event {
	at := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return mono + int64(t.Sub(now))
	}
	return event{Key: e.Key, Report: e.Report, Diag: e.Diag, RemoteDiag: e.RemoteDiag, At: at(e.At), Heard: at(e.Heard), Flaps: e.Flaps}
}

// fromWire is the inverse.
func (e event) fromWire(now time.Time, mono int64) bfd.Event {
	at := func(ns int64) time.Time {
		if ns == 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(ns - mono))
	}
	return bfd.Event{Key: e.Key, Report: e.Report, Diag: e.Diag, RemoteDiag: e.RemoteDiag, At: at(e.At), Heard: at(e.Heard), Flaps: e.Flaps}
}

// check refuses what no process reports.
func (e event) check() error {
	if !e.Peer.IsValid() || e.Report > bfd.ReportAdminDown {
		return fmt.Errorf("%w: report %d of peer %q", ErrMessage, uint8(e.Report), text(e.Peer))
	}
	return nil
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
