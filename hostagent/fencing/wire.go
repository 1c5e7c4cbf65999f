package fencing

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// The protocol: one request and one answer a connection, each a length of 4 bytes, big-endian, and
// that many bytes of JSON. Fields that are not known are ignored.
const (
	Version    = 1
	maxMessage = 4096 // bytes
)

// Op is what a request asks for.
type Op string

// The requests.
const (
	OpFence   Op = "fence"   // answered when level "array" is reached, or cannot be
	OpConfirm Op = "confirm" // the host has left the path, or will not: the block may be lifted
	OpCheck   Op = "check"   // changes nothing: whether a fence could be had
)

// request is what a host sends.
type request struct {
	Version     int        `json:"version"`
	Op          Op         `json:"op"`
	Host        netip.Addr `json:"host"`
	Array       netip.Addr `json:"array"`
	KeepAliveMS int64      `json:"keep-alive-ms,omitempty"` // of the pair's controllers; 0: none, or not known
}

// Code says why a request was not done.
type Code string

// The codes.
const (
	CodeRequest Code = "bad-request"  // not to be understood
	CodeDenied  Code = "denied"       // the caller has not proven the address
	CodeUnknown Code = "not-here"     // this machine does not serve the array's address
	CodeBusy    Code = "busy"         // too much at a time
	CodeBlock   Code = "cannot-block" // frames of the pair cannot be dropped
	CodeWait    Code = "executing"    // commands are still in execution at the end of the hold
	CodeFailed  Code = "failed"       // anything else
)

// answer is what the array sends. Without a code it is a success.
type answer struct {
	Version int    `json:"version"`
	Code    Code   `json:"code,omitempty"`
	Error   string `json:"error,omitempty"`
	TookMS  int64  `json:"took-ms,omitempty"` // from the begin of the block until nothing executed
	HoldMS  int64  `json:"hold-ms,omitempty"` // how long the block stands from its begin
}

// Refusal is an answer that is no success.
type Refusal struct {
	Code Code
	Text string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Text) }

func refuse(code Code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// refusal returns an error as a Refusal.
func refusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{CodeFailed, err.Error()}
}

// writeMessage writes one message.
func writeMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("message of %d bytes: at most %d", len(b), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...))
	return err
}

// readMessage reads one message into v, and never more bytes than it is long.
func readMessage(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > maxMessage {
		return fmt.Errorf("message of %d bytes: want 1..%d", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return nil
}

// maxKeepAlive bounds what a host may say of its keep-alive time.
const maxKeepAlive = 10 * time.Minute

// readRequest reads a request and checks it.
func readRequest(r io.Reader) (q request, err error) {
	if err := readMessage(r, &q); err != nil {
		return q, refuse(CodeRequest, "%v", err)
	}
	q.Host, q.Array = q.Host.Unmap(), q.Array.Unmap()
	switch {
	case q.Version != Version:
		return q, refuse(CodeRequest, "version %d: this agent speaks version %d", q.Version, Version)
	case q.Op != OpFence && q.Op != OpConfirm && q.Op != OpCheck:
		return q, refuse(CodeRequest, "op %.20q: want fence, confirm or check", q.Op)
	case !usable(q.Host) || !usable(q.Array) || q.Host.Is4() != q.Array.Is4() || q.Host == q.Array:
		return q, refuse(CodeRequest, "host %v, array %v: want two unicast addresses of one family, without a zone", q.Host, q.Array)
	case q.KeepAliveMS < 0 || q.KeepAliveMS > maxKeepAlive.Milliseconds():
		return q, refuse(CodeRequest, "keep-alive-ms %d: want 0..%d", q.KeepAliveMS, maxKeepAlive.Milliseconds())
	}
	return q, nil
}

func usable(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}

// readAnswer reads an answer. One with a code is a Refusal.
func readAnswer(r io.Reader) (a answer, err error) {
	if err := readMessage(r, &a); err != nil {
		return a, err
	}
	switch {
	case a.Code != "":
		return a, &Refusal{a.Code, a.Error}
	case a.Version != Version:
		return a, fmt.Errorf("answer of version %d: this agent speaks version %d", a.Version, Version)
	case a.TookMS < 0 || a.HoldMS < 0:
		return a, fmt.Errorf("answer with took-ms %d, hold-ms %d: want no negative times", a.TookMS, a.HoldMS)
	}
	return a, nil
}
