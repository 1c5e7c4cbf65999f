package model

import "math/bits"

// The choice among equal paths of the public ns-3 code for RoCE (HPCC), for comparisons
// with its results: which flows meet on a link is the first thing they depend on. It hashes
// addresses and UDP ports with MurmurHash3, seeded by the number of the switch; hosts are
// numbered before switches; a host counts its source ports from 10000, and its traffic
// generator writes 100 as every destination port. Equal paths stand in the order of
// the addresses of its node objects in memory: switches are so large (2 MB) that the
// allocator maps each below the one before, so the last comes first.

const (
	nsSourcePort = 10000
	nsDestPort   = 100
)

// nsAddress gives the IPv4 address of node n: 11.0.0.1 + n x 256.
func nsAddress(n uint32) uint32 { return 0x0b000001 + n<<8 }

// nsPath gives the member of a group of n that a frame takes at a switch.
func (s *Sim) nsPath(sw *swtch, p *packet, n int32) int32 {
	f := &s.flows[p.flow]
	from, to := nsAddress(uint32(f.spec.Src)), nsAddress(uint32(f.spec.Dst))
	ports := (nsSourcePort+f.nth)&0xffff | nsDestPort<<16
	if p.kind() != kindData { // answers go the other way
		from, to, ports = to, from, bits.RotateLeft32(ports, 16)
	}
	seed := uint32(len(s.nics)) + uint32(s.ports[sw.portBase].sw)
	return n - 1 - int32(murmur3(seed, [3]uint32{from, to, ports})%uint32(n))
}

// murmur3 is MurmurHash3_x86_32 of three words.
func murmur3(h uint32, words [3]uint32) uint32 {
	for _, k := range words {
		h ^= bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	h ^= 4 * uint32(len(words))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
