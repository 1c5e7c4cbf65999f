package model

import "math/bits"

// RNG is a splitmix64 generator; every entity that draws has its own, so that what
// one does never shifts the numbers of another.
type RNG uint64

// Uint64 gives the next 64 random bits.
func (r *RNG) Uint64() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix64(uint64(*r))
}

// Float64 gives a number in [0, 1) with 53 random bits.
func (r *RNG) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Intn gives a number in [0, n), n > 0.
func (r *RNG) Intn(n int) int {
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(hi)
}

// mix64 is the finaliser of splitmix64: every input bit reaches every output bit.
func mix64(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// seedFor derives the generator of entity number n of a class from the run's seed.
func seedFor(seed uint64, class, n int) RNG {
	return RNG(mix64(seed + 0x632be59bd9b4e019*uint64(class+1) + mix64(uint64(n)+1)))
}
