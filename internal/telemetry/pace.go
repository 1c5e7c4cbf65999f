package telemetry

import "time"

// Reader is what reads a leaf from the platform at a pace of its own; zero: it is read with the
// rest.
type Reader uint8

// The readers there are.
const (
	ReadTotals  Reader = 1 + iota // what the kernel counts of each port, all ports at once
	ReadDrivers                   // what drivers or the ASIC tell of a port
	ReadModules                   // what the module in a port tells
	ReadMachine                   // what /proc tells of the machine
	readers
)

// leastOf is the shortest period of each reader.
var leastOf = [readers]time.Duration{
	ReadTotals:  10 * time.Millisecond, // one answer of the kernel serves 5 ms
	ReadDrivers: 50 * time.Millisecond, // and within the share of a core that readings have
	ReadModules: time.Second,           // a bus of 100 kHz
	ReadMachine: 10 * time.Millisecond, // a tick of the kernel's accounts
}

// Pace is how often somebody wants each reader to read; 0: as often as it does by itself.
type Pace [readers]time.Duration

// Want notes that a leaf is wanted every so often.
func (p *Pace) Want(l *Leaf, every time.Duration) {
	if l.Reader != 0 {
		p.faster(l.Reader, max(every, leastOf[l.Reader]))
	}
}

// Add notes what somebody else wants.
func (p *Pace) Add(other Pace) {
	for r, every := range other {
		if every > 0 {
			p.faster(Reader(r), every)
		}
	}
}

func (p *Pace) faster(r Reader, every time.Duration) {
	if p[r] == 0 || every < p[r] {
		p[r] = every
	}
}
