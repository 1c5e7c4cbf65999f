package link

import "fmt"

// State of a session, as operators see it.
type State uint8

const (
	StateConnect     State = iota // no transport yet, or waiting for the dialer's Open
	StateOpenSend                 // our Open is sent, the peer's is awaited
	StateOpenConfirm              // the Opens fit; the peer's first Keepalive is awaited
	StateEstablished
)

func (s State) String() string {
	switch s {
	case StateConnect:
		return "Connect"
	case StateOpenSend:
		return "OpenSend"
	case StateOpenConfirm:
		return "OpenConfirm"
	case StateEstablished:
		return "Established"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText gives the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *State) UnmarshalText(b []byte) error {
	for _, v := range []State{StateConnect, StateOpenSend, StateOpenConfirm, StateEstablished} {
		if string(b) == v.String() {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("state %q is unknown", b)
}
