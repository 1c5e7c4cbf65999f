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

var nsPathsMechanism = Mechanism{Part: PartBalancer, Kind: "ns-paths",
	About: "the choice of the public ns-3 code for RoCE (HPCC), for comparisons with its results",
	New:   func() Settings { return &NSPaths{} }}

// NSPaths is static balancing by the hash of that code.
type NSPaths struct{}

// Check has nothing to refuse.
func (*NSPaths) Check() error { return nil }

// Balancer makes that of a switch.
func (*NSPaths) Balancer(sw Switch) Balancer {
	return nsPaths{seed: uint32(len(sw.s.nics)) + uint32(sw.i), own: sw.s.switches[sw.i].seed}
}

type nsPaths struct{ seed, own uint32 }

// Pick gives the member of a group that a frame takes.
func (b nsPaths) Pick(_ Switch, fr Frame, ways []PortID) int {
	p, n := fr.packet(), uint32(len(ways))
	if p.kind() == kindRaw {
		return int(pickECMP(p.hash, b.own, int32(n)))
	}
	f := &fr.s.flows[p.flow]
	from, to := nsAddress(uint32(f.spec.Src)), nsAddress(uint32(f.spec.Dst))
	ports := (nsSourcePort+f.nth)&0xffff | nsDestPort<<16
	if p.kind() != kindData { // answers go the other way
		from, to, ports = to, from, bits.RotateLeft32(ports, 16)
	}
	return int(n - 1 - murmur3(b.seed, [3]uint32{from, to, ports})%n)
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
