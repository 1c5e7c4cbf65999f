package model

func (s *Sim) consumeRaw(pi, pk int32) {
	p := &s.pool.pkts[pk]
	frame := s.raws[p.flow]
	s.ended[kindRaw]++
	s.forgetContent(p)
	s.pool.put(pk)
	s.portInfo[pi].rawRx++
	if s.handler != nil {
		s.handler.Control(s, PortID(pi), frame)
	}
}
