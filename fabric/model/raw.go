package model

import "fmt"

// Control frames: LLDP, NTS and the like are link-local. They go first, are not
// paused, take no buffer of the shared pools, and end at the peer's control plane.

// SendControl puts a whole Ethernet frame (without FCS, 14..9216 bytes) on the wire
// of a port; the Handler's Control is called when it arrives at the peer.
func (s *Sim) SendControl(port PortID, frame []byte) error {
	if len(frame) < 14 || len(frame) > 9216 {
		return fmt.Errorf("control frame of %d bytes, want 14..9216", len(frame))
	}
	pi := int32(port)
	pt := &s.ports[pi]
	i := int32(len(s.raws))
	if n := len(s.rawFree); n > 0 {
		i = s.rawFree[n-1]
		s.rawFree = s.rawFree[:n-1]
		s.raws[i] = frame
	} else {
		s.raws = append(s.raws, frame)
	}
	pk := s.pool.get()
	p := &s.pool.pkts[pk]
	*p = packet{flow: i, size: uint16(max(len(frame)+4, 64)), tos: 7 << 5, kf: uint8(kindRaw)}
	s.made[kindRaw]++
	if pt.flags&portDown != 0 {
		s.drop(pk, DropCarrier)
		return nil
	}
	s.portInfo[pi].control = append(s.portInfo[pi].control, pk)
	pt.paws |= pawsControl
	s.needTx(pi, pt)
	return nil
}

// sendControlFrame launches the first waiting control frame of an idle port.
func (s *Sim) sendControlFrame(pi int32, pt *port) {
	info := &s.portInfo[pi]
	pk := info.control[0]
	copy(info.control, info.control[1:])
	info.control = info.control[:len(info.control)-1]
	if len(info.control) == 0 {
		pt.paws &^= pawsControl
	}
	info.ctlFrames++
	info.ctlBytes += uint64(s.pool.pkts[pk].size)
	s.launch(pi, pt, pk, &s.pool.pkts[pk])
}

// dropControl loses the control frames that wait at a port whose carrier went.
func (s *Sim) dropControl(pi int32, pt *port) {
	info := &s.portInfo[pi]
	for _, pk := range info.control {
		s.drop(pk, DropCarrier)
	}
	info.control = info.control[:0]
	pt.paws &^= pawsControl
}

// consumeRaw ends a control frame at the port it was sent to.
func (s *Sim) consumeRaw(pi, pk int32) {
	p := &s.pool.pkts[pk]
	frame := s.raws[p.flow]
	s.ended[kindRaw]++
	s.forgetContent(p)
	s.pool.put(pk)
	if s.handler != nil {
		s.handler.Control(s, PortID(pi), frame)
	}
}

// ControlInFlight gives how many control frames have been sent and neither arrived nor
// been lost.
func (s *Sim) ControlInFlight() int {
	n := s.made[kindRaw] - s.ended[kindRaw]
	for r := range s.drops {
		n -= s.drops[r].kinds[kindRaw]
	}
	return int(n)
}
