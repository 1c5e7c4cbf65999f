package zone

import (
	"bytes"
	"net/netip"
)

// lastOf is the highest address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		switch host := (i+1)*8 - p.Bits(); {
		case host >= 8:
			b[i] = 0xff
		case host > 0:
			b[i] |= 1<<host - 1
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// asPrefix reports whether first..last is exactly one prefix, and which.
func asPrefix(first, last netip.Addr) (netip.Prefix, bool) {
	if first.BitLen() != last.BitLen() || first.BitLen() == 0 {
		return netip.Prefix{}, false
	}
	a, b := first.AsSlice(), last.AsSlice()
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same += 8
			continue
		}
		for bit := byte(0x80); a[i]&bit == b[i]&bit; bit >>= 1 {
			same++
		}
		break
	}
	p := netip.PrefixFrom(first, same)
	return p, p.Masked() == p && bytes.Equal(lastOf(p).AsSlice(), b)
}

// Prefix is the place of a bound member, if it is a prefix.
func (m *Member) Prefix() (netip.Prefix, bool) {
	if m.Kind != MemberBound {
		return netip.Prefix{}, false
	}
	return asPrefix(m.First, m.Last)
}

// PrefixEnds gives the first and the last address of a prefix; none of one that is not valid.
func PrefixEnds(p netip.Prefix) (first, last netip.Addr) {
	if !p.IsValid() {
		return netip.Addr{}, netip.Addr{}
	}
	return p.Addr(), lastOf(p)
}
