package fabric

import (
	"fmt"
	"strings"
	"time"
)

// Priorities is the number of traffic classes of priority flow control (IEEE
// 802.1Q clause 36).
const Priorities = 8

// Fields is a set of parts of a Health.
type Fields uint32

// The parts of a Health. A driver that does not tell one differs from one that
// tells 0.
const (
	FieldCounters    Fields            = 1 << iota // Counters: frames, bytes, drops, changes of carrier
	FieldCRC                                       // RxCRC
	FieldBroadcast                                 // RxBroadcast
	FieldMulticast                                 // RxMulticast
	FieldPause                                     // RxPause and TxPause
	FieldPauseTime                                 // RxPauseTime
	FieldTxFrames                                  // TxFrames of each priority
	FieldDeadlocks                                 // Deadlocks and Deadlocked
	FieldRxPower                                   // RxPower
	FieldSpeed                                     // Speed
	FieldPortECN                                   // ECNMarked of all queues
	FieldECN                                       // ECNMarks of each queue
	FieldBuffer                                    // QueueBytes, HeadroomBytes
	FieldBufferPeak                                // QueuePeak, HeadroomPeak
	FieldRestored                                  // Restored
	FieldTxCast                                    // TxBroadcast, TxMulticast
	FieldOptic                                     // Optic
	FieldMarking                                   // Marking of each queue
	FieldVerdict                                   // Guarded and Dropping
	endOfFields                                    // not a field
	AllFields        = endOfFields - 1             // every part there is
	FieldsOfPFC      = FieldPause | FieldPauseTime | FieldTxFrames | FieldDeadlocks | FieldVerdict
	FieldsOfCounters = FieldCounters | FieldCRC  // what a Counters tells
	FieldsOfModule   = FieldRxPower | FieldOptic // what the module in the port is asked for itself
)

var fieldNames = []string{"counters", "crc", "broadcast", "multicast", "pause", "pause-time", "tx-frames", "deadlocks", "rx-power",
	"speed", "port-ecn", "ecn", "buffer", "buffer-peak", "restored", "tx-cast", "optic", "marking", "verdict"}

// String lists the fields by name, "none" when there is none.
func (f Fields) String() string {
	var names []string
	for i, n := range fieldNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseField reads the name of one field.
func ParseField(s string) (Fields, error) {
	for i, n := range fieldNames {
		if n == s {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("field %q is none of %s", s, strings.Join(fieldNames, ", "))
}

// KernelCounter begins names that are no driver's counters but the kernel's statistics
// of every link (/sys/class/net/PORT/statistics); two of them can stand for damaged frames.
const (
	KernelCounter   = "statistics/"
	KernelRxErrors  = KernelCounter + "rx_errors"
	KernelRxDropped = KernelCounter + "rx_dropped"
)

// CounterName says what a counter of a driver counts.
type CounterName struct {
	Driver string // name or glob
	Field  Fields // one
	Name   string // # stands for the priority
}

// String gives driver, field and name.
func (n CounterName) String() string { return n.Driver + " " + n.Field.String() + " " + n.Name }

// Health is one reading of what tells a good port from a bad one. Totals may jump,
// wrap or go back to zero at any time. Only the parts in Valid mean anything.
type Health struct {
	At    time.Time `json:"at"` // when it was read, with monotonic reading
	Valid Fields    `json:"valid"`

	Counters    Counters `json:"counters"`
	RxCRC       uint64   `json:"rx_crc_errors"`      // frames with a wrong FCS, as near to the wire as the driver counts them
	RxCRCOf     string   `json:"rx_crc_of,omitzero"` // what RxCRC counts in truth, where it is not that
	RxBroadcast uint64   `json:"rx_broadcast"`       // frames
	RxMulticast uint64   `json:"rx_multicast"`       // frames; some drivers include broadcast

	// RxPause and TxPause are PFC frames by priority.
	RxPause [Priorities]uint64 `json:"rx_pause"`
	TxPause [Priorities]uint64 `json:"tx_pause"`
	// RxPauseTime is for how long all received PFC frames together have kept a
	// priority from being sent.
	RxPauseTime [Priorities]time.Duration `json:"rx_pause_time_ns"`
	TxFrames    [Priorities]uint64        `json:"tx_frames"`
	// Deadlocks are those that the dataplane's own PFC watchdog has found;
	// Deadlocked has a bit for each priority that it holds to be in one now.
	Deadlocks  [Priorities]uint64 `json:"deadlocks"`
	Deadlocked uint8              `json:"deadlocked"`
	// Guarded has a bit for each priority that the dataplane's own watchdog looks after, and of
	// which it drops all frames while it holds it to be in a storm; Dropping: it does so now.
	Guarded  uint8 `json:"guarded,omitzero"`
	Dropping uint8 `json:"dropping,omitzero"`

	// RxPower is the optical power that the weakest lane receives, in 1/1000 dBm;
	// NoLight without any.
	RxPower int `json:"rx_power_mdbm"`

	// Speed of the link in bits a second.
	Speed uint64 `json:"speed_bps,omitzero"`
	// ECNMarked are frames that were marked (RFC 3168: CE) on their way out, ECNMarks by queue.
	ECNMarked uint64             `json:"ecn_marked,omitzero"`
	ECNMarks  [Priorities]uint64 `json:"ecn_marks,omitzero"`
	// Bytes of the buffer: what waits in a queue to be sent, and what came in of a priority
	// and stands in its headroom; now, and the most since somebody set it back.
	QueueBytes    [Priorities]uint64 `json:"queue_bytes,omitzero"`
	HeadroomBytes [Priorities]uint64 `json:"headroom_bytes,omitzero"`
	QueuePeak     [Priorities]uint64 `json:"queue_peak_bytes,omitzero"`
	HeadroomPeak  [Priorities]uint64 `json:"headroom_peak_bytes,omitzero"`
	// Restored are Deadlocks that are over.
	Restored [Priorities]uint64 `json:"restored,omitzero"`

	TxBroadcast uint64 `json:"tx_broadcast,omitzero"` // frames
	TxMulticast uint64 `json:"tx_multicast,omitzero"` // frames
	Optic       Optic  `json:"optic,omitzero"`

	Marking [Priorities]Marking `json:"marking,omitzero"`
}

// Marking is how a queue marks now (RFC 3168: CE): none of its frames while less than Low waits, of
// those that come while High waits a part, beyond High all.
type Marking struct {
	Mode        MarkingMode `json:"mode"` // empty: it does not mark
	Low         uint64      `json:"low_bytes"`
	High        uint64      `json:"high_bytes"`
	Probability float64     `json:"probability"` // at High, 0..1
}

// MarkingMode is who chooses the thresholds of a queue.
type MarkingMode string

// The values of MarkingMode.
const (
	MarkingStatic  MarkingMode = "STATIC"  // they are configured
	MarkingDynamic MarkingMode = "DYNAMIC" // by the degree of incast
	MarkingNN      MarkingMode = "NN"      // AI-ECN: a trained network
	MarkingBBR     MarkingMode = "BBR"     // AI-ECN: a heuristic search
)

// Optic is what a module tells beside what it receives.
type Optic struct {
	Vendor, Serial string // printable; empty: not told
	TxPower        int    // of the weakest lane, 1/1000 dBm; NoLight without any
	Bias           int    // of the laser that takes most, microamperes
	Temperature    int    // 1/1000 degrees Celsius
	Voltage        int    // millivolts
}

// NoLight is the RxPower of a receiver that measures nothing: the least that the
// measure of 0.1 uW can express.
const NoLight = -40_000

// Has tells whether all of these fields are valid.
func (h *Health) Has(f Fields) bool { return h.Valid&f == f }

// HealthReader is a Dataplane that knows more of its ports than Counters tells.
type HealthReader interface {
	// Health reads the wanted fields of a port, or those of them that its driver
	// tells. It may take as long as the slowest of these takes the hardware, up to
	// some 100 ms for FieldRxPower, so it is never called where a fault would wait.
	Health(port string, want Fields) (Health, error)
}

// ReadHealth reads the wanted fields from a HealthReader, or what the Counters of
// any other Dataplane tell of them.
func ReadHealth(dp Dataplane, port string, want Fields, now func() time.Time) (Health, error) {
	if r, ok := dp.(HealthReader); ok {
		return r.Health(port, want)
	}
	h := Health{At: now()}
	if want&FieldsOfCounters == 0 {
		return h, nil
	}
	c, err := dp.Counters(port)
	if err != nil {
		return Health{}, err
	}
	h.Counters, h.RxCRC, h.Valid = c, c.RxCRC, want&FieldsOfCounters
	return h, nil
}

// HealthTeller is a Dataplane that says at once what its own watchdog found; the reading has
// FieldVerdict alone. The handler may wait; it is set before Run.
type HealthTeller interface {
	HandleHealth(handle func(port string, h Health))
}

// Doubter is a Dataplane that reads back what it was asked to do.
type Doubter interface {
	Doubts(now time.Time) []Doubt
}

// Doubt is what cannot be confirmed: that a port was opened (Up) or shut, or that a program of the
// switch runs.
type Doubt struct {
	Port  string
	Up    bool
	Since time.Time
	Err   error // why it could not even be asked for; nil: it was

	Program, Without string // Port is empty: what does not run, and what is missing without it
}

// LostFrames is how many control frames of a port were lost before they could be read.
type LostFrames struct {
	Port   string
	Frames uint64 // since the port was added
}

// LossReader is a Dataplane that knows what was lost on the way to Frames.
type LossReader interface {
	// LostFrames returns the totals of all ports.
	LostFrames() []LostFrames
}
