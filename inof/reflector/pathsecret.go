package reflector

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"

	"github.com/openinof/inof/inof/wire"
)

// PathSecret is what a reflector makes keys of paths from; nobody else knows it.
type PathSecret [sha256.Size]byte

// String hides it from logs.
func (PathSecret) String() string { return "[secret]" }

// GoString hides it from logs.
func (s PathSecret) GoString() string { return s.String() }

// key is that of the path between two devices, the same for both.
func (s PathSecret) key(self, dev netip.Addr) wire.PathKey {
	a, b := self, dev
	if b.Less(a) {
		a, b = b, a
	}
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte("iNOF v2 BFD " + a.String() + " " + b.String()))
	sum := mac.Sum(nil)
	return wire.PathKey{Device: dev, ID: sum[wire.PathSecretLen], Secret: [wire.PathSecretLen]byte(sum[:wire.PathSecretLen])}
}

// Answer gives the keys that a device asks for. They are of its own paths, whoever the
// other ends are: nobody gets a key of a path between others.
func (s PathSecret) Answer(self netip.Addr, q *wire.PathKeys) *wire.PathKeys {
	a := &wire.PathKeys{}
	for _, dev := range q.Asked {
		if dev != self && len(a.Keys) < wire.MaxPathKeys {
			a.Keys = append(a.Keys, s.key(self, dev))
		}
	}
	return a
}
