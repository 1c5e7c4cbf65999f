package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Largest configuration taken by default. Rules may say otherwise.
const (
	DefaultMaxZones   = 160_000
	DefaultMaxMembers = 320_000 // of all zones together
)

// Rules say what a configuration may hold. The zero value is the strict default.
type Rules struct {
	AllowLoopback bool // a lab in one machine has nothing else
	MaxZones      int  // 0 means DefaultMaxZones
	MaxMembers    int  // 0 means DefaultMaxMembers
	MaxSize       int  // of one zone where it is told, in bytes; 0 means MaxSize
	BoundNQNs     bool // a member by NQN must be bound to a place
}

// ZoneError says which zone of a Set is wrong, and where in it.
type ZoneError struct {
	Zone   string
	Index  int // of the zone in the Set
	Member int // index of the member, -1 when it is about the zone as a whole
	Err    error
}

func (e *ZoneError) Error() string {
	if e.Member >= 0 {
		return fmt.Sprintf("zone %q: member %d: %v", e.Zone, e.Member+1, e.Err)
	}
	return fmt.Sprintf("zone %q: %v", e.Zone, e.Err)
}

func (e *ZoneError) Unwrap() error { return e.Err }

// Sentinels that a ZoneError may wrap.
var (
	ErrDuplicateZone  = errors.New("the name is used twice")
	ErrDefaultMembers = errors.New("the default zone has no configured members; hosts join it by themselves")
	ErrTooManyZones   = errors.New("too many zones")
	ErrTooManyMembers = errors.New("too many members")
	ErrBadName        = errors.New("not a zone name")
	ErrBadAddress     = errors.New("address not allowed")
	ErrUnboundNQN     = errors.New("an NQN alone is a claim of any host that says it, and zones.nqn-binding is required")
)

// forbidden are the blocks that no service, peer or host address may lie in.
var forbidden = [...]struct {
	what     string
	prefix   netip.Prefix
	loopback bool
}{
	{"unspecified", netip.MustParsePrefix("0.0.0.0/32"), false},
	{"loopback", netip.MustParsePrefix("127.0.0.0/8"), true},
	{"link-local", netip.MustParsePrefix("169.254.0.0/16"), false},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4"), false},
	{"broadcast", netip.MustParsePrefix("255.255.255.255/32"), false},
	{"unspecified", netip.MustParsePrefix("::/128"), false},
	{"loopback", netip.MustParsePrefix("::1/128"), true},
	{"IPv4-mapped", netip.MustParsePrefix("::ffff:0:0/96"), false},
	{"link-local", netip.MustParsePrefix("fe80::/10"), false},
	{"multicast", netip.MustParsePrefix("ff00::/8"), false},
}

// CheckAddr reports whether a may be the address of a host, a device or a peer:
// unicast of global or private scope.
func (r Rules) CheckAddr(a netip.Addr) error { return r.checkSpan(a.Unmap(), a.Unmap()) }

// checkSpan refuses first..last when it touches a forbidden block.
func (r Rules) checkSpan(first, last netip.Addr) error {
	if !first.IsValid() || first.Zone() != "" || last.Zone() != "" {
		return fmt.Errorf("%w: %v is no plain IP address", ErrBadAddress, first)
	}
	for i := range forbidden {
		f := &forbidden[i]
		if f.loopback && r.AllowLoopback || f.prefix.Addr().BitLen() != first.BitLen() {
			continue
		}
		if last.Less(f.prefix.Addr()) || lastOf(f.prefix).Less(first) {
			continue
		}
		if first == last {
			return fmt.Errorf("%w: %v is %s (%v)", ErrBadAddress, first, f.what, f.prefix)
		}
		return fmt.Errorf("%w: %v-%v holds %s addresses (%v)", ErrBadAddress, first, last, f.what, f.prefix)
	}
	return nil
}

// CheckName reports whether a zone may have this name: 1..MaxName bytes of
// printable UTF-8 without leading or trailing space.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %q is empty, want 1..%d bytes", ErrBadName, name, MaxName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: %.*q... has %d bytes, want 1..%d", ErrBadName, MaxName, name, len(name), MaxName)
	case !isPrintable(name):
		return fmt.Errorf("%w: %q has control or unprintable characters", ErrBadName, name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %q begins or ends with a space", ErrBadName, name)
	}
	return nil
}

// CheckMember reports whether m may stand in a zone.
func (r Rules) CheckMember(m Member) error {
	m = m.Canonical()
	if err := m.wellFormed(m.String()); err != nil {
		return err
	}
	switch m.Kind {
	case MemberAddr:
		return r.checkSpan(m.First, m.First)
	case MemberRange:
		return r.checkSpan(m.First, m.Last)
	case MemberNQN:
		if r.BoundNQNs {
			return fmt.Errorf("%w: write %s at %s", ErrUnboundNQN, m.NQN, placeForms)
		}
	case MemberBound:
		if m.First.IsValid() {
			return r.checkSpan(m.First, m.Last)
		}
		return r.CheckAddr(m.Device)
	case MemberPort:
		return r.CheckAddr(m.Device)
	}
	return nil
}

// CheckZone gives every error of one zone, joined; each is a ZoneError.
func (r Rules) CheckZone(z Zone) error { return errors.Join(r.zoneErrors(0, z)...) }

func (r Rules) zoneErrors(index int, z Zone) []error {
	var errs []error
	add := func(member int, err error) {
		if err != nil {
			errs = append(errs, &ZoneError{Zone: z.Name, Index: index, Member: member, Err: err})
		}
	}
	add(-1, CheckName(z.Name))
	if z.Name == DefaultName && len(z.Members) > 0 {
		add(-1, ErrDefaultMembers)
	}
	for i, m := range z.Members {
		add(i, r.CheckMember(m))
	}
	add(-1, z.checkSize(orDefault(r.MaxSize, MaxSize)))
	return errs
}

// Check gives every error of s, joined; each is a ZoneError but for the sizes.
func (r Rules) Check(s Set) error {
	var errs []error
	first := make(map[string]int, len(s.Zones))
	members := 0
	for i, z := range s.Zones {
		errs = append(errs, r.zoneErrors(i, z)...)
		members += len(z.Members)
		if j, dup := first[z.Name]; dup {
			errs = append(errs, &ZoneError{Zone: z.Name, Index: i, Member: -1,
				Err: fmt.Errorf("%w: zones %d and %d of the list", ErrDuplicateZone, j+1, i+1)})
			continue
		}
		first[z.Name] = i
	}
	if most := orDefault(r.MaxZones, DefaultMaxZones); len(s.Zones) > most {
		errs = append(errs, fmt.Errorf("%w: %d, at most %d", ErrTooManyZones, len(s.Zones), most))
	}
	if most := orDefault(r.MaxMembers, DefaultMaxMembers); members > most {
		errs = append(errs, fmt.Errorf("%w: %d in all zones, at most %d", ErrTooManyMembers, members, most))
	}
	return errors.Join(errs...)
}

// Validate is Check under the strict default Rules.
func (s Set) Validate() error { return Rules{}.Check(s) }

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}
