package snsd

import "time"

// FenceLevel says how far the copies of a write that are still under way are kept from the media
// of an array, so that a host may send the write again over another path.
type FenceLevel uint8

// The levels, as sub-TLV 10 carries them.
const (
	FenceNone    FenceLevel = 0 // nothing is known to hold old copies back (yet)
	FenceNetwork FenceLevel = 1 // no copy that was in the host or in the network reaches the array any more
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
