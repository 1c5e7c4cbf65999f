package snsd

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// FenceLevel says how far the copies of a write that are still under way are kept from the media
// of an array, so that a host may send the write again over another path.
type FenceLevel uint8

// The levels, as sub-TLV 10 carries them.
const (
	FenceNone    FenceLevel = 0 // nothing is known to hold old copies back (yet)
	FenceNetwork FenceLevel = 1 // no copy that was in the host or in the network reaches the array
	FenceArray   FenceLevel = 2 // nor is one executed that had reached the array
)

// FenceWay is who gave the fence.
type FenceWay uint8

// The ways, as sub-TLV 10 carries them.
const (
	FenceBySwitch FenceWay = 1 // the array's switch blocks
	FenceByTarget FenceWay = 2 // the target's agent blocked, closed, and waited for its commands
	FenceByNVMe   FenceWay = 3 // Cross-Controller Reset
	FenceBySettle FenceWay = 4 // the switch blocked, and the operator's array.settle has passed
)

// Fence is what is known of the fence between a host and a subject that is inactive (sub-TLV 10
// of a notify).
type Fence struct {
	Level FenceLevel    `json:"level"`
	Way   FenceWay      `json:"way,omitempty"`  // zero with FenceNone
	Hold  time.Duration `json:"hold,omitempty"` // how long the block stands from its begin, whole seconds, 0..65,535 s
	Took  time.Duration `json:"took,omitempty"` // from the fault to the confirmation, whole milliseconds, 0..49 days
}

const fenceLen = 8 // level 1, way 1, seconds of hold 2, milliseconds that it took 4

// readFence reads sub-TLV 10. What it says beyond our reading must never cost the notice that it is
// part of, nor count as a fence: a value that is too short, or of a level that is not known, is
// read as FenceNone. A way that is not known is kept; bytes after the fields are ignored.
func readFence(v []byte) (*Fence, Oddity) {
	if len(v) < fenceLen || v[0] > byte(FenceArray) {
		return new(Fence), OddFence
	}
	return &Fence{
		Level: FenceLevel(v[0]), Way: FenceWay(v[1]),
		Hold: time.Duration(binary.BigEndian.Uint16(v[2:])) * time.Second,
		Took: time.Duration(binary.BigEndian.Uint32(v[4:])) * time.Millisecond,
	}, 0
}

// check refuses what readFence would not read as it is. Parts of a second (of Hold) and of a
// millisecond (of Took) are cut off.
func (f *Fence) check(s State) error {
	switch {
	case s != Inactive:
		return refuse("notify", "fence of a subject that is", s, ErrValue)
	case f.Level > FenceArray:
		return refuse("notify", "fence level", f.Level, ErrValue)
	case f.Hold < 0 || f.Hold/time.Second > math.MaxUint16:
		return refuse("notify", "hold of a fence", f.Hold, ErrValue)
	case f.Took < 0 || f.Took/time.Millisecond > math.MaxUint32:
		return refuse("notify", "time of a fence", f.Took, ErrValue)
	}
	return nil
}

func (f *Fence) append(b []byte) []byte {
	b = append(b, subFence, 0, fenceLen, byte(f.Level), byte(f.Way))
	b = binary.BigEndian.AppendUint16(b, uint16(f.Hold/time.Second))
	return binary.BigEndian.AppendUint32(b, uint32(f.Took/time.Millisecond))
}

func (f *Fence) String() string {
	if f.Level == FenceNone {
		return f.Level.String()
	}
	return fmt.Sprintf("%v by %v in %v", f.Level, f.Way, f.Took)
}

// Extensions are what two ends of a link have agreed on beside the existing agent's protocol: the
// last byte of the reserved header bytes (offset 7).
type Extensions uint8

// The extensions.
const (
	ExtDegraded Extensions = 0x01 // sub-TLV 9
	ExtFence    Extensions = 0x02 // sub-TLV 10
)

var (
	fenceLevelNames = []string{"none", "network", "array"}
	fenceWayNames   = []string{"", "switch", "target", "nvme", "settle"}
)

func (l FenceLevel) String() string               { return name(l, fenceLevelNames) }
func (l FenceLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
func (l *FenceLevel) UnmarshalText(b []byte) error {
	return unname(l, "fence level", fenceLevelNames, b)
}
func (w FenceWay) String() string                { return name(w, fenceWayNames) }
func (w FenceWay) MarshalText() ([]byte, error)  { return []byte(w.String()), nil }
func (w *FenceWay) UnmarshalText(b []byte) error { return unname(w, "fence way", fenceWayNames, b) }
