package zone

import "net/netip"

func ParseMember(s string) (Member, error)     { return Member{}, nil }
func (m Member) String() string                { return "" }
func (m Member) MarshalText() ([]byte, error)  { return nil, nil }
func (m *Member) UnmarshalText(b []byte) error { return nil }
func (m Member) Canonical() Member             { return m }
func (m Member) Matches(h Host) bool           { return false }

// Rules say which addresses and how many zones are allowed; the zero value is the strict default.
type Rules struct {
	AllowLoopback bool
	MaxZones      int
	MaxMembers    int
}

func (r Rules) CheckAddr(a netip.Addr) error { return nil }
func (r Rules) CheckName(name string) error  { return nil }
func (r Rules) CheckMember(m Member) error   { return nil }
func (r Rules) CheckZone(z Zone) error       { return nil }
func (r Rules) Check(s Set) error            { return nil }

func (s Set) Validate() error  { return nil }
func (s Set) Canonical() Set   { return s }
func (s Set) Equal(o Set) bool { return false }
func (z Zone) Canonical() Zone { return z }

type Index struct{}

func Compile(s Set) *Index             { return &Index{} }
func (ix *Index) Zones() []Zone        { return nil }
func (ix *Index) ZonesOf(h Host) []int { return nil }
