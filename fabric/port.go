package fabric

import "time"

// Port is the state of one port at one moment. Ports are named as the operator
// names them (the kernel's interface name on Linux), at most MaxPortName bytes.
type Port struct {
	Name    string `json:"name"`
	Index   int    `json:"index"` // the dataplane's own number, >= 1; a new one when a port of the same name is plugged again
	MAC     MAC    `json:"mac"`
	MTU     int    `json:"mtu"`      // bytes, without the Ethernet header
	AdminUp bool   `json:"admin_up"` // what the operator or error-down asked for
	Carrier bool   `json:"carrier"`  // what the wire says; false whenever AdminUp is false
}

// Up tells whether frames can pass.
func (p Port) Up() bool { return p.AdminUp && p.Carrier }

// MaxPortName is the longest port name taken anywhere (SONiC names stay below 32).
const MaxPortName = 63

// Counters are a port's totals since the dataplane last reset them; they may jump
// or go back to zero at any time.
type Counters struct {
	RxFrames uint64 `json:"rx_frames"`
	TxFrames uint64 `json:"tx_frames"`
	RxBytes  uint64 `json:"rx_bytes"`
	TxBytes  uint64 `json:"tx_bytes"`
	RxErrors uint64 `json:"rx_errors"`
	RxCRC    uint64 `json:"rx_crc_errors"`
	RxDrops  uint64 `json:"rx_drops"`
	TxDrops  uint64 `json:"tx_drops"`
	TxErrors uint64 `json:"tx_errors"`
	// CarrierChanges counts every change of carrier that the dataplane saw, so
	// that a flap too short for events still counts.
	CarrierChanges uint64 `json:"carrier_changes"`
}

// EventKind tells what an Event is about.
type EventKind uint8

const (
	PortAdded   EventKind = iota + 1 // a port that the configuration names has appeared
	PortRemoved                      // it is gone
	PortChanged                      // carrier, administrative state, MAC or MTU differ from before
)

func (k EventKind) String() string {
	switch k {
	case PortAdded:
		return "added"
	case PortRemoved:
		return "removed"
	case PortChanged:
		return "changed"
	}
	return "unknown"
}

// Event is one change of one port. Port is the state after it (before it, for PortRemoved).
type Event struct {
	Kind EventKind
	Port Port
	At   time.Time // when it happened, or when the dataplane was told; with monotonic reading
	// Changes is one more than the changes of carrier that the port has had since the machine
	// was started or the port was made, seen by anybody or not; zero: nobody counts them.
	Changes uint64
	// ShutByUs says of a port that is added that SetAdmin has shut it before, in this process or an
	// earlier one: a dataplane may keep that.
	ShutByUs bool
}
