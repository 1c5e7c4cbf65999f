package fabric

import (
	"fmt"
	"net"
)

// MAC is an IEEE 802 EUI-48 address, comparable so that it can be a map key.
type MAC [6]byte

// ParseMAC reads the colon, hyphen or dot form of a 48-bit address.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil {
		return MAC{}, err
	}
	if len(hw) != 6 {
		return MAC{}, fmt.Errorf("MAC address %q has %d bytes, want 6", s, len(hw))
	}
	return MAC(hw), nil
}

// String gives the lower-case colon form.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether no address is set.
func (m MAC) IsZero() bool { return m == MAC{} }

// IsHost reports whether a machine can have the address: it is neither zero nor of a group (IEEE 802
// clause 8.2.2, I/G bit).
func (m MAC) IsHost() bool { return !m.IsZero() && m[0]&1 == 0 }

// MarshalText gives the colon form, and an empty text for the zero address.
func (m MAC) MarshalText() ([]byte, error) {
	if m.IsZero() {
		return nil, nil
	}
	return []byte(m.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (m *MAC) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = MAC{}
		return nil
	}
	v, err := ParseMAC(string(b))
	if err != nil {
		return err
	}
	*m = v
	return nil
}
