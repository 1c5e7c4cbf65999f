package wire

import (
	"errors"
	"fmt"
)

// Code is the reason of a Notification.
type Code uint16

const (
	CodeCease            Code = 1  // the sender stops or the session was taken out of its configuration
	CodeNotINOF          Code = 2  // the bytes are those of another protocol
	CodeVersion          Code = 3  // no common protocol version
	CodeLength           Code = 4  // length field below the least or above the limit
	CodeType             Code = 5  // unknown message type
	CodeMalformed        Code = 6  // a TLV is truncated, missing or holds an impossible value
	CodeAuthMode         Code = 7  // the two sides ask for different authentication modes
	CodeAuthFailed       Code = 8  // the tag does not match: wrong password or altered bytes
	CodeHandshakeTimeout Code = 9  // not Established in time
	CodeHoldExpired      Code = 10 // nothing was heard for the hold time
	CodeSequence         Code = 11 // session sequence number out of order
	CodeOwnID            Code = 12 // the peer claims the receiver's own device id
	CodeDevice           Code = 13 // device id not expected here
	CodeTimers           Code = 14 // hold or keepalive time out of range
	CodeUnexpected       Code = 15 // message not allowed in this state
	CodeReplaced         Code = 16 // a newer session of the same device took over
	CodeLimit            Code = 17 // a limit of the receiver is reached
	CodeSlow             Code = 18 // the receiver of this did not read fast enough
	CodeRole             Code = 19 // the two roles do not fit together
	CodeCertificate      Code = 20 // the certificate is not taken, or is not for that device
	CodeTLS              Code = 21 // the TLS handshake failed, or TLS was broken later
	CodeDuplicate        Code = 22 // another session of the same device stands and answers

	LastCode = CodeDuplicate
)

var codeNames = map[Code]string{
	CodeCease: "cease", CodeNotINOF: "not iNOF", CodeVersion: "unsupported version", CodeLength: "bad length",
	CodeType: "unknown message type", CodeMalformed: "malformed message", CodeAuthMode: "authentication mode mismatch",
	CodeAuthFailed: "authentication failed", CodeHandshakeTimeout: "handshake timeout", CodeHoldExpired: "hold time expired",
	CodeSequence: "bad sequence number", CodeOwnID: "own device id", CodeDevice: "unexpected device id",
	CodeTimers: "unacceptable timers", CodeUnexpected: "unexpected message", CodeReplaced: "replaced by a newer session",
	CodeLimit: "limit reached", CodeSlow: "slow reader", CodeRole: "roles do not fit",
	CodeCertificate: "certificate refused", CodeTLS: "TLS failed", CodeDuplicate: "duplicate device id",
}

func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	return fmt.Sprintf("code %d", uint16(c))
}

// ProtocolError is what is wrong with the bytes or the behaviour of a peer. Its
// Code is what the peer is told in a Notification.
type ProtocolError struct {
	Code   Code
	Where  string // message and field, for example "Update.Host.port"
	Detail string // the offending value, and what is allowed

	AnswerIn uint8 // of CodeVersion: the version of the header, in which the peer is told; 0: ours
}

func (e *ProtocolError) Error() string {
	if e.Where == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Where, e.Detail)
}

// LimitError is a record that was refused because a table is full.
type LimitError struct {
	What  string // "hosts", "zones", "memberships", "clients", "fault addresses"
	Key   string // the refused record
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s refused: limit of %d %s is reached", e.Key, e.Limit, e.What)
}

// RefusedError tells which records of a message were not taken and why; the rest
// of the message was.
type RefusedError struct {
	Refused int   // records not taken
	First   error // why the first of them was not: *LimitError, *OwnerError or *ProtocolError
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d record(s) refused, first: %v", e.Refused, e.First)
}

// Add notes a refusal, if err is one, and reports whether it is.
func (e *RefusedError) Add(err error) bool {
	if err == nil {
		return false
	}
	if e.Refused++; e.First == nil {
		e.First = err
	}
	return true
}

// Unwrap gives the first cause.
func (e *RefusedError) Unwrap() error { return e.First }

// ErrTooLarge is a record that no message can hold.
var ErrTooLarge = errors.New("record does not fit into a message")

// Malformed is the error of a field that cannot be so.
func Malformed(where, format string, args ...any) error {
	return &ProtocolError{Code: CodeMalformed, Where: where, Detail: fmt.Sprintf(format, args...)}
}

// CodeOf gives the Notification code of an error, 0 when the peer need not be told.
func CodeOf(err error) Code {
	var p *ProtocolError
	if errors.As(err, &p) {
		return p.Code
	}
	return 0
}
