package model

import "testing"

// MurmurHash3_x86_32 of twelve bytes, as other implementations give it.
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		seed  uint32
		words [3]uint32
		want  uint32
	}{
		{0, [3]uint32{0x6c6c6568, 0x77202c6f, 0x646c726f}, 0x149bbb7f}, // "hello, world"
	} {
		if got := murmur3(c.seed, c.words); got != c.want {
			t.Errorf("seed %d: %#08x, want %#08x", c.seed, got, c.want)
		}
	}
}
