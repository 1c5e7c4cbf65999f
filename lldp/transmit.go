package lldp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// Timers of the transmit state machines (IEEE 802.1AB-2016 clause 9.2.5), with the
// standard's defaults.
const (
	DefaultInterval = 30 * time.Second // msgTxInterval (9.2.5.7), 1..3600 s
	DefaultHold     = 4                // msgTxHold (9.2.5.6), 1..100: TTL = interval x hold
	fastInterval    = time.Second      // msgFastTx (9.2.5.5)
	fastFrames      = 4                // txFastInit (9.2.5.19)
	creditMax       = 5                // txCreditMax (9.2.5.17): frames in a row, one more a second
)

// Local is what a device says about itself.
type Local struct {
	Chassis      fabric.MAC
	SysName      string // 0..255 bytes, longer ones are cut
	SysDesc      string // 0..255 bytes, longer ones are cut
	Capabilities Capabilities
	Mgmt         []netip.Addr
}

// TxConfig sets up a Transmitter. A zero field means its default.
type TxConfig struct {
	Local    Local
	Interval time.Duration // between two LLDPDUs of one port
	// Hold times Interval is the TTL. The standard's 2009 and 2016 editions add one
	// second; the deployed agents and lldpd do not, and neither do we.
	Hold int
}

// Out is a frame that is to leave by a port now.
type Out struct {
	Port  string
	Frame []byte // Ethernet header included
}

// Transmitter decides when which port sends the device's own LLDPDU. It has one owner.
type Transmitter struct {
	cfg   TxConfig
	ports map[string]*txPort
	count TxCounters
}

// TxCounters are the totals of a Transmitter.
type TxCounters struct {
	FramesOut    uint64 `json:"frames_out"`
	Shutdowns    uint64 `json:"shutdowns"`
	FastStarts   uint64 `json:"fast_starts"`
	LengthErrors uint64 `json:"length_errors"` // LLDPDUs that could not be encoded
}

type txPort struct {
	mac    fabric.MAC
	desc   string
	due    time.Time // next frame, before credit is looked at
	fast   int       // fast frames still to send
	credit int
	filled time.Time // when credit was last counted up
}

// NewTransmitter gives a transmitter without ports.
func NewTransmitter(cfg TxConfig) *Transmitter {
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Hold <= 0 {
		cfg.Hold = DefaultHold
	}
	cfg.Local.SysName = cutText(cfg.Local.SysName)
	cfg.Local.SysDesc = cutText(cfg.Local.SysDesc)
	return &Transmitter{cfg: cfg, ports: make(map[string]*txPort)}
}

func cutText(s string) string { return s[:min(len(s), maxText)] }

// TTL that the LLDPDUs carry, in seconds: at least 1, at most 65535 (clause 9.2.5.22).
func (x *Transmitter) TTL() uint16 {
	ttl := (x.cfg.Interval*time.Duration(x.cfg.Hold) + time.Second - 1) / time.Second
	return uint16(min(max(ttl, 1), 65535))
}

// Counters gives a copy of the totals.
func (x *Transmitter) Counters() TxCounters { return x.count }

// PortUp starts sending on a port with a fast start; known ports only take the new
// MAC and description.
func (x *Transmitter) PortUp(port, desc string, mac fabric.MAC, now time.Time) {
	if p := x.ports[port]; p != nil {
		if p.mac != mac || p.desc != desc {
			p.mac, p.desc, p.due = mac, desc, now
		}
		return
	}
	x.ports[port] = &txPort{mac: mac, desc: desc, due: now, fast: fastFrames, credit: creditMax, filled: now}
	x.count.FastStarts++
}

// PortDown ends sending on a port whose carrier is lost: no shutdown LLDPDU could
// leave it.
func (x *Transmitter) PortDown(port string) { delete(x.ports, port) }

// NewNeighbour begins a fast start, so that a neighbour that was just learned
// learns us soon (clause 9.2.7.9).
func (x *Transmitter) NewNeighbour(port string, now time.Time) {
	p := x.ports[port]
	if p == nil {
		return
	}
	p.due = earlier(p.due, now) // also amid a fast start: one that came after the last frame heard none
	if p.fast == 0 {
		p.fast = fastFrames
		x.count.FastStarts++
	}
}

// SetLocal changes what is announced; every port sends as soon as its credit allows
// (somethingChangedLocal, clause 9.2.5.16).
func (x *Transmitter) SetLocal(l Local, now time.Time) {
	l.SysName, l.SysDesc = cutText(l.SysName), cutText(l.SysDesc)
	x.cfg.Local = l
	for _, p := range x.ports {
		p.due = earlier(p.due, now)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ready is when the port may send: when it is due and has credit.
func (p *txPort) ready() time.Time {
	if p.credit > 0 {
		return p.due
	}
	if next := p.filled.Add(time.Second); next.After(p.due) {
		return next
	}
	return p.due
}

// fill gives one frame of credit for each second that passed (clause 9.2.8.1).
func (p *txPort) fill(now time.Time) {
	n := int64(now.Sub(p.filled) / time.Second)
	if n <= 0 {
		return
	}
	p.filled = p.filled.Add(time.Duration(n) * time.Second)
	p.credit = int(min(int64(p.credit)+n, creditMax))
}

// Due gives the frames that are to leave now, by port name.
func (x *Transmitter) Due(now time.Time) []Out {
	var out []Out
	for _, name := range x.names() {
		p := x.ports[name]
		p.fill(now)
		if p.ready().After(now) {
			continue
		}
		p.credit--
		interval := x.cfg.Interval
		if p.fast > 0 {
			if p.fast--; p.fast > 0 {
				interval = min(interval, fastInterval)
			}
		}
		p.due = now.Add(interval)
		out = x.emit(out, name, p, x.TTL())
	}
	return out
}

// Next is when Due has something to give; zero when nothing is to be sent.
func (x *Transmitter) Next() time.Time {
	var next time.Time
	for _, p := range x.ports {
		if r := p.ready(); next.IsZero() || r.Before(next) {
			next = r
		}
	}
	return next
}

// Disable ends sending on a port that still has its carrier and gives its shutdown
// LLDPDU (clause 9.1.2.2).
func (x *Transmitter) Disable(port string) []Out {
	p := x.ports[port]
	if p == nil {
		return nil
	}
	delete(x.ports, port)
	x.count.Shutdowns++
	return x.emit(nil, port, p, 0)
}

// Stop gives the shutdown LLDPDUs of all ports and forgets them.
func (x *Transmitter) Stop() []Out {
	var out []Out
	for _, name := range x.names() {
		out = append(out, x.Disable(name)...)
	}
	return out
}

func (x *Transmitter) names() []string {
	names := make([]string, 0, len(x.ports))
	for name := range x.ports {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (x *Transmitter) emit(out []Out, name string, p *txPort, ttl uint16) []Out {
	frame := fabric.AppendEthernet(make([]byte, 0, 256), fabric.MACNearestBridge, p.mac, fabric.EtherTypeLLDP)
	frame, err := x.PDU(name, p.desc, p.mac, ttl).Append(frame)
	if err != nil {
		x.count.LengthErrors++
		return out
	}
	x.count.FramesOut++
	return append(out, Out{Port: name, Frame: frame})
}

// PDU is the device's own LLDPDU for a port.
func (x *Transmitter) PDU(port, desc string, mac fabric.MAC, ttl uint16) *PDU {
	l := &x.cfg.Local
	chassis := l.Chassis
	if chassis.IsZero() {
		chassis = mac
	}
	desc = cutText(cmp.Or(desc, port))
	p := &PDU{
		Chassis: MACID(ChassisMAC, chassis), Port: ID{PortInterface, port}, TTL: ttl,
		PortDesc: &desc, Capabilities: &l.Capabilities,
	}
	if l.SysName != "" {
		p.SysName = &l.SysName
	}
	if l.SysDesc != "" {
		p.SysDesc = &l.SysDesc
	}
	for _, a := range l.Mgmt {
		p.Mgmt = append(p.Mgmt, MgmtAddr{Addr: a, IfSubtype: 1}) // interface number unknown
	}
	return p
}
