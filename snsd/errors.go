package snsd

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Sentinels that an Error wraps; ask with errors.Is.
var (
	ErrTruncated = errors.New("shorter than its fields need")
	ErrTooLong   = errors.New("longer than the format allows")
	ErrForeign   = errors.New("not an SNSD TLV (want OUI 00-18-82, subtype 101)")
	ErrVersion   = errors.New("version not supported")
	ErrFamily    = errors.New("unknown or mixed address family")
	ErrAddress   = errors.New("not usable as a host address")
	ErrMissing   = errors.New("required sub-TLV is missing")
	ErrDuplicate = errors.New("sub-TLV occurs twice")
	ErrLength    = errors.New("wrong length")
	ErrValue     = errors.New("value out of range")
	ErrKind      = errors.New("unknown root TLV type")
	ErrNQN       = errors.New("not a printable UTF-8 name")
)

// Error tells what of an SNSD message was refused: Where ("registration",
// "notify"), Field ("address", "sub-TLV 8"), the Value found and the sentinel Err.
type Error struct {
	Where string
	Field string
	Value string
	Err   error
}

func (e *Error) Error() string {
	s := "snsd " + e.Where + ": " + e.Field
	if e.Value != "" {
		s += " " + e.Value
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Err }

func refuse(where, field string, value any, err error) error {
	v := ""
	if value != nil {
		v = fmt.Sprint(value)
	}
	return &Error{Where: where, Field: field, Value: v, Err: err}
}

// maxPartial is how many refusals a PartialError keeps; the rest is only counted,
// so that a frame full of rubbish costs no more than a short one.
const maxPartial = 4

// PartialError tells that some root TLVs of a packet were refused; the others are
// in the packet that came with it.
type PartialError struct {
	Bad  int     // root TLVs refused
	Errs []error // the first few of the refusals
}

// add notes a refusal, in a new PartialError when e is nil.
func (e *PartialError) add(err error) *PartialError {
	if e == nil {
		e = new(PartialError)
	}
	e.Bad++
	if len(e.Errs) < maxPartial {
		e.Errs = append(e.Errs, err)
	}
	return e
}

func (e *PartialError) Error() string {
	parts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		parts[i] = err.Error()
	}
	return fmt.Sprintf("%d root TLVs refused: %s", e.Bad, strings.Join(parts, "; "))
}

// Unwrap gives the refusals that were kept.
func (e *PartialError) Unwrap() []error { return e.Errs }

// CheckAddr tells why an address cannot be a storage host's: the error wraps
// ErrAddress. IPv4-mapped IPv6 addresses are refused because they would give one
// host two names, and zoned ones because they mean something on one link only.
func CheckAddr(a netip.Addr) error {
	why := addrFault(a)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAddress, why)
}

func addrFault(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.Zone() != "" || a.IsLinkLocalUnicast():
		return "link-local"
	case a.Is4In6():
		return "IPv4-mapped"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsMulticast():
		return "multicast"
	case a == broadcast4:
		return "broadcast"
	}
	return ""
}

var broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
