package bfd

import "fmt"

// UnmarshalText is the inverse of MarshalText.
func (s *State) UnmarshalText(b []byte) error {
	return unmarshal(s, b, StateUp, "state")
}

// UnmarshalText is the inverse of MarshalText.
func (d *Diag) UnmarshalText(b []byte) error {
	return unmarshal(d, b, 31, "diagnostic") // five bits (RFC 5880 section 4.1)
}

// UnmarshalText is the inverse of MarshalText.
func (r *Report) UnmarshalText(b []byte) error {
	return unmarshal(r, b, ReportAdminDown, "report")
}

// UnmarshalText is the inverse of MarshalText.
func (t *AuthType) UnmarshalText(b []byte) error {
	return unmarshal(t, b, 255, "authentication type")
}

// unmarshal finds the value up to last whose name is b.
func unmarshal[T interface {
	~uint8
	fmt.Stringer
}](out *T, b []byte, last T, what string) error {
	for v := T(0); ; v++ {
		if v.String() == string(b) {
			*out = v
			return nil
		}
		if v == last {
			return fmt.Errorf("BFD %s %q is not known", what, b)
		}
	}
}
