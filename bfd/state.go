package bfd

import "fmt"

// State is bfd.SessionState (RFC 5880 section 4.1, field Sta).
type State uint8

const (
	StateAdminDown State = 0 // held down on purpose
	StateDown      State = 1 // or just made
	StateInit      State = 2 // the peer is heard, but does not hear us yet
	StateUp        State = 3
)

func (s State) String() string {
	switch s {
	case StateAdminDown:
		return "AdminDown"
	case StateDown:
		return "Down"
	case StateInit:
		return "Init"
	case StateUp:
		return "Up"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText gives the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diag is the reason of the last change of state (RFC 5880 section 4.1, field Diag).
type Diag uint8

const (
	DiagNone              Diag = 0
	DiagDetectTime        Diag = 1 // Control Detection Time Expired
	DiagEchoFailed        Diag = 2 // Echo Function Failed
	DiagNeighborDown      Diag = 3 // Neighbor Signaled Session Down
	DiagForwardingReset   Diag = 4 // Forwarding Plane Reset
	DiagPathDown          Diag = 5 // Path Down
	DiagConcatenatedDown  Diag = 6 // Concatenated Path Down
	DiagAdminDown         Diag = 7 // Administratively Down
	DiagReverseConcatDown Diag = 8 // Reverse Concatenated Path Down
)

var diagNames = [...]string{
	"none", "detection time expired", "echo failed", "neighbor signaled session down", "forwarding plane reset",
	"path down", "concatenated path down", "administratively down", "reverse concatenated path down",
}

func (d Diag) String() string {
	if int(d) < len(diagNames) {
		return diagNames[d]
	}
	return fmt.Sprintf("diagnostic %d", uint8(d))
}

// MarshalText gives the name of the diagnostic.
func (d Diag) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
