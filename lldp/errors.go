package lldp

import (
	"errors"
	"fmt"
)

// Sentinels that an Error or a LimitError wraps; ask with errors.Is.
var (
	ErrTruncated    = errors.New("runs past the end of the LLDPDU")
	ErrOrder        = errors.New("mandatory TLV is missing or not in its place")
	ErrDuplicate    = errors.New("TLV may occur only once")
	ErrLength       = errors.New("information string has a wrong length")
	ErrValue        = errors.New("value out of range")
	ErrNotLLDP      = errors.New("not an LLDP frame")
	ErrScope        = errors.New("not sent to the nearest bridge address")
	ErrRegistration = errors.New("SNSD registration refused")
	ErrLimit        = errors.New("neighbour limit reached")
	ErrDeclared     = errors.New("chassis id of declared hosts, which register nothing: a frame that has it is forged")
)

// Error tells what of an LLDPDU was refused: the TLV (its type), the Value found,
// and the sentinel Err.
type Error struct {
	TLV   uint8 // type 0..127
	Value string
	Err   error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("lldp: %s TLV (type %d)", tlvName(e.TLV), e.TLV)
	if e.Value != "" {
		s += " " + e.Value
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Err }

func refuse(tlv uint8, err error, format string, args ...any) error {
	return &Error{TLV: tlv, Value: fmt.Sprintf(format, args...), Err: err}
}

// FrameError tells which frame was refused, where it came from and why.
type FrameError struct {
	Port string
	Src  string // source MAC
	Err  error
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("port %s, frame from %s: %v", e.Port, e.Src, e.Err)
}

// Unwrap gives the cause.
func (e *FrameError) Unwrap() error { return e.Err }

// LimitError tells that a neighbour was not taken because a table is full. What is
// known already keeps being refreshed.
type LimitError struct {
	What  string // "registrations on the port", "other neighbours on the port", "addresses on the device"
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %d %s; raise the limit or look for a host that announces too much", ErrLimit, e.Limit, e.What)
}

// Unwrap gives ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

func tlvName(t uint8) string {
	switch t {
	case tlvEnd:
		return "End Of LLDPDU"
	case tlvChassisID:
		return "Chassis ID"
	case tlvPortID:
		return "Port ID"
	case tlvTTL:
		return "Time To Live"
	case tlvPortDesc:
		return "Port Description"
	case tlvSysName:
		return "System Name"
	case tlvSysDesc:
		return "System Description"
	case tlvCapabilities:
		return "System Capabilities"
	case tlvMgmtAddr:
		return "Management Address"
	case tlvOrg:
		return "organizational"
	}
	return "reserved"
}
