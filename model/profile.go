package model

import (
	"errors"
	"fmt"
)

// NumQueues is the number of traffic classes, and so of queues of a port.
const NumQueues = 8

// MMUKind selects how a switch accounts its buffer.
type MMUKind uint8

// The buffer models.
const (
	MMUReference MMUKind = iota // bytes, one shared pool, threshold S-used >> shift: what the published simulators do
	MMUCells                    // cells, guaranteed + service pool + headroom pool: what switch chips do
	MMUOther                    // SwitchProfile.Other
)

// SwitchProfile is how a switch is configured. The zero value of a field means the
// default named beside it.
type SwitchProfile struct {
	Name     string
	MMU      MMUKind
	Other    BufferSettings // of MMUOther
	Buffer   int64          // bytes of packet memory
	Lossless uint8          // bit q: queue q is protected by PFC
	DSCP     *[64]uint8
	// The class is that of the frame's 802.1p priority instead of its DSCP; a frame that a
	// host sends untagged has the priority of its port.
	Trust8021p   bool
	Priorities   *[NumQueues]uint8 // 802.1p priority to queue; nil = the same number
	PortPriority uint8             // 0..7
	Remark       bool              // write the DSCP that stands for the class into what leaves
	Sched        Sched
	Balancer     BalancerSettings  // nil: by hash
	Scheduler    SchedulerSettings // nil: priority and WDRR as Sched has it
	Stages       []StageSettings   // in the order in which frames pass them
	Tuners       []TunerSettings
	ECN          ECN
	PFC          PFC
	Ref          RefMMU
	Cells        CellMMU
	Deadlock     Deadlock
}

// RefMMU holds the constants of the reference buffer model.
type RefMMU struct {
	Reserve    int32   // bytes of a port and priority, default 4096
	HeadroomX  float64 // headroom of a port in units of rate x one-way delay, default 3
	AlphaShift uint8   // threshold = free >> shift for ports at NIC speed, default 3 (1/8); one less per doubling of speed
	Resume     int32   // bytes below the threshold at which XON is sent, default 3072
}

// CellMMU holds the limits of the cell-based buffer model. Bytes are rounded up to cells.
type CellMMU struct {
	Cell         int32 // bytes, e.g. 320
	Guaranteed   int32 // bytes of an ingress port and queue
	Egress       int32 // guaranteed bytes of an egress queue
	Headroom     int32 // bytes of an ingress port and lossless queue; 0 = what the link of the port needs
	HeadroomPool int64 // bytes shared by all ports; 0 = the sum of the ports' headrooms
	Xoff         int64 // static XOFF threshold in bytes; 0 = dynamic
	XoffAlpha    uint8 // index 0..12: XOFF at 2^(index-7) x free service pool
	XonOffset    int32 // bytes below XOFF at which XON is sent
	XonFloor     int32 // the least XON threshold in bytes
	Limit        int64 // static limit of a lossy egress queue in bytes; 0 = dynamic
	LimitAlpha   uint8 // index 0..12 as above
	LosslessMax  int64 // limit of a lossless egress queue in bytes; 0 = none
}

// PFC is how a switch or NIC pauses its peers and obeys them.
type PFC struct {
	Off      bool   // neither send nor obey
	Pause    bool   // 802.3x PAUSE of the whole link instead of PFC
	Quanta   uint16 // time in an XOFF; 0 = lasts until XON, as the published simulators have it
	Refresh  uint16 // quanta after which a lasting XOFF is repeated, default half of Quanta
	Reaction Time   // from the arrival of a frame to the queue standing still
	ABS      uint8  // bit q: point braking instead of XOFF/XON on queue q
	ABSEvery Time   // decision period, default 20 us
	ABSOver  int64  // bytes in the ingress queue above which it brakes
	ABSRTT   Time   // round trip of the link; 0 = taken from the link (the distance check)
}

// ECNMode tells when a queue's depth is compared with the thresholds.
type ECNMode uint8

// ECN modes.
const (
	ECNOff     ECNMode = iota
	ECNDequeue         // when the frame leaves ("fast ECN")
	ECNEnqueue         // when it arrives, before it is counted
)

// ECN is WRED with marking: p = PMax (q-KMin)/(KMax-KMin), 1 above KMax.
type ECN struct {
	Mode       ECNMode
	Queues     uint8 // bit q: queue q marks; 0 = all
	KMin, KMax int64 // bytes at PerRate
	PMax       float64
	PerRate    Rate // the thresholds grow with port speed over this one; 0 = they do not
	DropNonECT bool // WRED drops what cannot be marked
}

// Sched is the scheduler of a port: strict priority first, then WDRR, then low
// priority queues, looked at anew before each frame.
type Sched struct {
	WDRR    uint8            // bit q: weighted deficit round robin; the others are strict
	Low     uint8            // bit q: served when nothing else is (LPQ)
	Quantum [NumQueues]int32 // bytes a round, 0 = 1024 for WDRR queues
}

// Deadlock is the watchdog on lasting XOFF (sections "detect, recover, control").
type Deadlock struct {
	On      bool
	Detect  Time // XOFF for this long is a deadlock
	Poll    Time // period of looking; 0 = at the very moment
	Recover Time // how long PFC is ignored afterwards; 0 = detect again at once
	Discard bool // drop instead of forward meanwhile
	TurnOff int  // this many deadlocks within Window turn PFC of the queue off; 0 = never
	// ... or, if set, take the port down (error-down) until its link is taken up again.
	ErrorDown bool
	Window    Time // default 20 s
}

// NICProfile is how a host's port is configured.
type NICProfile struct {
	Name      string
	MTU       int32            // payload of a full data frame in bytes, default 1000
	Header    int32            // bytes of headers, default 48
	Ack       int32            // bytes of an ACK, NACK or CNP frame, default 60
	AckEvery  int32            // data frames an ACK answers, default 1
	AckTOS    int16            // class of ACKs; -1 = that of the data they answer
	CC        Control          // of its queue pairs; nil = none
	RTO       Time             // go back to the first unacknowledged frame; 0 = never
	CNPGap    Time             // least time between the CNPs of all flows; those that come sooner are forgotten
	NackGap   Time             // least time between NACKs for the same frame, default 500 us
	Selective bool             // selective repeat instead of go-back-N
	Receiver  ReceiverSettings // nil: as Selective says
	Window    int32
	PFC       PFC
	RxRate    Rate  // how fast the host takes frames; 0 = line rate
	RxBuffer  int64 // bytes the NIC holds for a slow host, default 1 MiB
	RxXoff    int64 // bytes at which it pauses its switch, default half
}

// ErrProfile is wrapped by errors about profiles, ErrNICProfile by those about hosts' ports,
// ErrCongestion by those about rate control.
var (
	ErrProfile    = errors.New("profile")
	ErrNICProfile = fmt.Errorf("NIC %w", ErrProfile)
	ErrCongestion = fmt.Errorf("congestion %w", ErrProfile)
)

func (p *SwitchProfile) fill() error {
	if p.Buffer <= 0 || p.Buffer > 1<<31-1 {
		return fmt.Errorf("%w %q: buffer of %d bytes, want 1..%d", ErrProfile, p.Name, p.Buffer, 1<<31-1)
	}
	if p.DSCP == nil {
		p.DSCP = DefaultDSCP()
	}
	for d, q := range p.DSCP {
		if q >= NumQueues {
			return fmt.Errorf("%w %q: DSCP %d maps to queue %d, want 0..7", ErrProfile, p.Name, d, q)
		}
	}
	if p.Priorities == nil {
		p.Priorities = DefaultPriorities()
	}
	for prio, q := range p.Priorities {
		if q >= NumQueues || p.PortPriority >= NumQueues {
			return fmt.Errorf("%w %q: 802.1p priority %d maps to queue %d, port priority %d: want 0..7", ErrProfile, p.Name, prio, q, p.PortPriority)
		}
	}
	if p.Sched.WDRR&p.Sched.Low != 0 {
		return fmt.Errorf("%w %q: queues %#x are both WDRR and low priority", ErrProfile, p.Name, p.Sched.WDRR&p.Sched.Low)
	}
	for q := range p.Sched.Quantum {
		if p.Sched.Quantum[q] < 0 {
			return fmt.Errorf("%w %q: quantum of queue %d is %d bytes, want more than 0", ErrProfile, p.Name, q, p.Sched.Quantum[q])
		}
		if p.Sched.Quantum[q] == 0 {
			p.Sched.Quantum[q] = 1024
		}
	}
	e := &p.ECN
	if e.Mode != ECNOff && !(e.KMin >= 0 && e.KMax > e.KMin && e.PMax >= 0 && e.PMax <= 1) {
		return fmt.Errorf("%w %q: ECN thresholds %d..%d bytes at %g, want KMin < KMax and a probability", ErrProfile, p.Name, e.KMin, e.KMax, e.PMax)
	}
	if e.Queues == 0 {
		e.Queues = 0xff
	}
	defaultTo(&p.Ref.Reserve, 4096)
	defaultTo(&p.Ref.HeadroomX, 3)
	defaultTo(&p.Ref.AlphaShift, 3)
	defaultTo(&p.Ref.Resume, 3072)
	if p.Ref.Reserve < 0 || !(p.Ref.HeadroomX >= 0) || p.Ref.AlphaShift > 20 || p.Ref.Resume < 0 {
		return fmt.Errorf("%w %q: reserve, headroom and resume offset cannot be negative, nor the shift above 20", ErrProfile, p.Name)
	}
	if err := p.PFC.fill(); err != nil {
		return fmt.Errorf("%w %q: %w", ErrProfile, p.Name, err)
	}
	if p.PFC.ABS != 0 && p.MMU != MMUCells {
		return fmt.Errorf("%w %q: point braking on queues %#x needs the cell-based buffer model", ErrProfile, p.Name, p.PFC.ABS)
	}
	d := &p.Deadlock
	defaultTo(&d.Window, 20*Second)
	if d.On && d.Detect <= 0 {
		return fmt.Errorf("%w %q: deadlock detection after %v, want more than 0", ErrProfile, p.Name, d.Detect)
	}
	if p.MMU == MMUCells {
		return p.fillCells()
	}
	return nil
}

func (p *SwitchProfile) fillCells() error {
	c := &p.Cells
	defaultTo(&c.Cell, 320)
	if c.Cell <= 0 || c.Guaranteed < 0 || c.Egress < 0 || c.Headroom < 0 || c.HeadroomPool < 0 || c.XonOffset < 0 || c.Xoff < 0 || c.Limit < 0 || c.LosslessMax < 0 {
		return fmt.Errorf("%w %q: a size of the buffer is negative", ErrProfile, p.Name)
	}
	if c.XoffAlpha > 12 || c.LimitAlpha > 12 {
		return fmt.Errorf("%w %q: alpha index %d or %d, want 0..12", ErrProfile, p.Name, c.XoffAlpha, c.LimitAlpha)
	}
	if c.Xoff > p.Buffer || c.Limit > p.Buffer || c.LosslessMax > p.Buffer {
		return fmt.Errorf("%w %q: a threshold lies above the buffer of %d bytes", ErrProfile, p.Name, p.Buffer)
	}
	return nil
}

// fill sets defaults, and refuses a lasting XOFF that would run out between two frames.
func (c *PFC) fill() error {
	switch {
	case c.Quanta == 1:
		return errors.New("pause quanta 1: an XOFF cannot be repeated before it runs out; want 0 (until XON) or 2..65535")
	case c.Quanta == 0 && c.Refresh > 0:
		return fmt.Errorf("refresh after %d quanta is of no use without quanta: an XOFF lasts until XON", c.Refresh)
	case c.Quanta > 0 && c.Refresh >= c.Quanta:
		return fmt.Errorf("refresh after %d quanta comes when an XOFF of %d has run out", c.Refresh, c.Quanta)
	case c.Reaction < 0 || c.ABSEvery < 0 || c.ABSOver < 0 || c.ABSRTT < 0:
		return errors.New("a time or threshold of flow control is negative")
	}
	if c.Quanta > 0 && c.Refresh == 0 {
		c.Refresh = c.Quanta / 2
	}
	if c.ABS != 0 {
		defaultTo(&c.ABSEvery, 20*Microsecond)
	}
	return nil
}

func (p *NICProfile) fill() error {
	defaultTo(&p.MTU, 1000)
	defaultTo(&p.Header, 48)
	defaultTo(&p.Ack, 60)
	defaultTo(&p.AckEvery, 1)
	defaultTo(&p.NackGap, 500*Microsecond)
	defaultTo(&p.RxBuffer, 1<<20)
	defaultTo(&p.RxXoff, p.RxBuffer/2)
	if p.MTU < 64 || p.Header < 0 || p.MTU+p.Header > 65535 || p.Ack < 20 || p.Ack > 65535 || p.AckEvery < 1 {
		return fmt.Errorf("%w %q: payload %d + header %d, ACK %d: frames have 64..65535 bytes", ErrNICProfile, p.Name, p.MTU, p.Header, p.Ack)
	}
	if p.AckTOS > 255 || p.Window < 0 || p.RTO < 0 || p.RxRate < 0 || p.RxXoff > p.RxBuffer {
		return fmt.Errorf("%w %q: a value is out of range", ErrNICProfile, p.Name)
	}
	if err := p.PFC.fill(); err != nil {
		return fmt.Errorf("%w %q: %w", ErrNICProfile, p.Name, err)
	}
	if p.PFC.ABS != 0 {
		return fmt.Errorf("%w %q: point braking is for switches", ErrNICProfile, p.Name)
	}
	if p.CC != nil {
		if err := p.CC.Check(); err != nil {
			return fmt.Errorf("%w: %w", ErrCongestion, err)
		}
	}
	return nil
}

func defaultTo[T int32 | int64 | float64 | uint8 | uint16 | Time](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// DefaultDSCP is the map in which a queue is the upper three bits of the DSCP.
func DefaultDSCP() *[64]uint8 {
	m := new([64]uint8)
	for i := range m {
		m[i] = uint8(i >> 3)
	}
	return m
}

// ReferenceSwitch is the profile that the published RoCE simulators share, so that
// results can be compared like with like: queue 3 lossless with a dynamic threshold
// and ECN at dequeue by the set given (nil = PFC only).
func ReferenceSwitch(buffer int64, cc Control) SwitchProfile {
	p := SwitchProfile{Name: "reference-mmu", MMU: MMUReference, Buffer: buffer, Lossless: 1 << 3}
	if cc != nil {
		p.ECN = cc.Marking()
	}
	return p
}

// ReferenceNIC is the NIC of the same simulators.
func ReferenceNIC(cc Control) NICProfile {
	return NICProfile{Name: "reference-nic", AckTOS: -1, CC: cc}
}
