package model

// DropReason tells why a frame was lost.
type DropReason uint8

// Reasons of loss; all are counted.
const (
	_             DropReason = iota
	DropTail                 // a lossy queue is over its limit
	DropHeadroom             // a lossless class whose headroom is full: PFC has failed
	DropEgress               // a lossless egress queue over its limit
	DropWRED                 // WRED on a frame that cannot be marked
	DropRecovery             // discarded while recovering from a deadlock
	DropNoRoute              // no path to the destination
	DropTTL                  // it went round in circles
	DropCarrier              // the link was or went down
	DropBlackPath            // the path swallows frames without a sign
	DropCRC                  // corrupted on the wire
	DropHost                 // the host's receive buffer is full
	DropDead                 // the switch it was in died
	DropStage                // a mechanism of the switch took it out: a notification that it had answered itself
	numReasons
)

var reasonNames = [numReasons]string{"", "tail-drop", "headroom-full", "egress-full", "wred", "deadlock-recovery", "no-route", "ttl", "no-carrier", "black-path", "crc", "host-buffer", "switch-dead", "taken-out"}

func (r DropReason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// DropReasons lists the names of all reasons.
func DropReasons() []string { return reasonNames[1:] }

// Lossless reports whether the reason is a failure of flow control: no frame of a
// lossless class may ever be lost for it.
func (r DropReason) Lossless() bool { return r == DropHeadroom || r == DropEgress }

type dropCount struct {
	frames, bytes uint64
	kinds         [numKinds]uint64
}

// count enters a lost frame into the totals.
func (s *Sim) count(why DropReason, p *packet) {
	d := &s.drops[why]
	d.frames++
	d.bytes += uint64(p.size)
	d.kinds[p.kind()]++
}

// drop ends a frame that no queue holds.
func (s *Sim) drop(pk int32, why DropReason) {
	p := &s.pool.pkts[pk]
	s.count(why, p)
	s.forgetContent(p)
	s.pool.put(pk)
}

// dropAt ends a frame in front of egress queue number i of the fabric.
func (s *Sim) dropAt(pk, i int32, why DropReason) {
	s.lost[i].frames++
	s.lost[i].bytes += uint64(s.pool.pkts[pk].size)
	s.drop(pk, why)
}

// forgetContent frees what a frame refers to.
func (s *Sim) forgetContent(p *packet) {
	switch p.kind() {
	case kindPFC:
		s.pfcFree = append(s.pfcFree, p.flow)
	case kindRaw:
		s.raws[p.flow] = nil
		s.rawFree = append(s.rawFree, p.flow)
	}
}
