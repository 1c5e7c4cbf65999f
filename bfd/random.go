package bfd

// random is a splitmix64 generator: jitter and first sequence numbers need no more,
// and a test repeats with its seed.
type random struct{ x uint64 }

func (r *random) u64() uint64 {
	r.x += 0x9e3779b97f4a7c15
	return mix(r.x)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *random) u32() uint32 { return uint32(r.u64() >> 32) }

// upTo gives a number from 0 to n.
func (r *random) upTo(n uint64) uint64 { return r.u64() % (n + 1) }

// discriminators are a permutation of all 32-bit numbers: hard to guess without the
// seed (RFC 5880 section 6.8.1), and none is used again before all others were.
type discriminators struct {
	key  uint64
	next uint32
}

// take gives the next number that is neither zero nor in use.
func (d *discriminators) take(used func(uint32) bool) uint32 {
	for {
		n := d.permute(d.next)
		d.next++
		if n != 0 && !used(n) {
			return n
		}
	}
}

// permute is a Feistel network of four rounds over two halves of 16 bits.
func (d *discriminators) permute(n uint32) uint32 {
	l, r := uint16(n>>16), uint16(n)
	for round := range uint64(4) {
		l, r = r, l^uint16(mix(d.key^round<<48^uint64(r)))
	}
	return uint32(l)<<16 | uint32(r)
}
