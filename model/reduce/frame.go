package reduce

import (
	"encoding/binary"
	"fmt"
)

// A frame of a job: Ethernet and a UDP/IPv4 header to port 4791 (their place is kept, what they
// would say follows from the link), then 24 bytes of our own, then numbers.
//
//	etherType 2 at 12, job 2 at 42, operation 1, kind 1, chunk 4, child 2, ranks 2, count 2, zero 10
const (
	headBytes  = 66 + 2 // with padding, so that numbers are aligned and a full frame is 1048 bytes with its FCS
	chunkInts  = 244
	etherType  = 0x88b5 // IEEE 802, local experimental
	typeAt     = 12
	jobAt      = 42
	opAt       = 44
	kindAt     = 45
	chunkAt    = 46
	childAt    = 50
	ranksAt    = 52
	countAt    = 54
	fcs        = 4
	maxTreeKid = 64 // children of a switch: bits of a word
)

// What a frame is.
const (
	kindUp   = 0 // numbers of some ranks, on their way to the root
	kindDown = 1 // the result
)

// Op is what is done with two numbers.
type Op uint8

// The operations.
const (
	Sum Op = iota
	Max
	Min
)

func (o Op) apply(a, b int32) int32 {
	switch o {
	case Max:
		return max(a, b)
	case Min:
		return min(a, b)
	}
	return a + b // wraps, as the hardware's
}

type frame struct {
	job   uint16
	op    Op
	kind  uint8
	chunk uint32
	child uint16 // the sender's number among the children of the receiver
	ranks uint16 // whose numbers it holds
	vals  []int32
}

func (f *frame) bytes() []byte {
	b := make([]byte, headBytes+4*len(f.vals))
	binary.BigEndian.PutUint16(b[typeAt:], etherType)
	binary.BigEndian.PutUint16(b[jobAt:], f.job)
	b[opAt], b[kindAt] = byte(f.op), f.kind
	binary.BigEndian.PutUint32(b[chunkAt:], f.chunk)
	binary.BigEndian.PutUint16(b[childAt:], f.child)
	binary.BigEndian.PutUint16(b[ranksAt:], f.ranks)
	binary.BigEndian.PutUint16(b[countAt:], uint16(len(f.vals)))
	for i, v := range f.vals {
		binary.BigEndian.PutUint32(b[headBytes+4*i:], uint32(v))
	}
	return b
}

// Owns reports whether a control frame belongs to a job, and to which.
func Owns(b []byte) (job int, ok bool) {
	if len(b) < headBytes || binary.BigEndian.Uint16(b[typeAt:]) != etherType {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(b[jobAt:])), true
}

func parse(b []byte) (frame, error) {
	if _, ok := Owns(b); !ok {
		return frame{}, fmt.Errorf("a frame of %d bytes that is of no job", len(b))
	}
	f := frame{job: binary.BigEndian.Uint16(b[jobAt:]), op: Op(b[opAt]), kind: b[kindAt], chunk: binary.BigEndian.Uint32(b[chunkAt:]),
		child: binary.BigEndian.Uint16(b[childAt:]), ranks: binary.BigEndian.Uint16(b[ranksAt:])}
	n := int(binary.BigEndian.Uint16(b[countAt:]))
	if n < 1 || n > chunkInts || len(b) != headBytes+4*n || f.op > Min || f.kind > kindDown {
		return frame{}, fmt.Errorf("job %d, chunk %d: %d numbers in %d bytes, operation %d, kind %d", f.job, f.chunk, n, len(b), f.op, f.kind)
	}
	f.vals = make([]int32, n)
	for i := range f.vals {
		f.vals[i] = int32(binary.BigEndian.Uint32(b[headBytes+4*i:]))
	}
	return f, nil
}
