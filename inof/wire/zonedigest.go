package wire

import "crypto/sha256"

// ZoneDigest is what two sides compare to find whether they hold the same zones: the exclusive
// or, over all zones, of the first 16 bytes of SHA-256 of the zone as it stands in a record
// (length of the name, name, members in canonical order). So it is kept zone by zone, in any
// order. Zero is that of no zones.
type ZoneDigest [16]byte

// Known reports whether it is that of any zones.
func (d ZoneDigest) Known() bool { return d != ZoneDigest{} }

// Toggle adds a zone that was not there, or takes out one that was.
func (d *ZoneDigest) Toggle(name string, members PackedMembers) {
	b := make([]byte, 0, 256)
	b = append(appendText(b, name), members...)
	sum := sha256.Sum256(b)
	for i := range d {
		d[i] ^= sum[i]
	}
}
