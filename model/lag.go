package model

// Parallel links between two nodes are one link aggregation group: routing spreads flows over
// its members by the same hash as over equal paths. When a member loses its carrier, the node
// moves the member's flows to the others at once, without waiting for new tables.

// lagMember gives the port to use in place of one that is down: another to the same
// neighbour that is up, chosen by the hash of the flow; else the same.
func (s *Sim) lagMember(sw *swtch, out int32, p *packet) int32 {
	peer := s.portInfo[s.ports[out].peer].node
	up := int32(0)
	for pass := range 2 {
		want := int32(-1)
		if pass == 1 {
			if up == 0 {
				return out
			}
			want = pickECMP(p.hash&^s.innerECN, sw.seed, up)
		}
		k := int32(0)
		for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
			if s.portInfo[s.ports[pi].peer].node != peer || !s.usable(pi) {
				continue
			}
			if k == want {
				return pi
			}
			k++
		}
		up = k
	}
	return out
}
