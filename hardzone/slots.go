package hardzone

// ZoneCounters is how many zones are counted each by itself; the others share counter 0.
const ZoneCounters = 4096

// slots gives the zones in use a counter each, from 1 to ZoneCounters.
type slots struct {
	names  []string // by counter
	uses   []int    // by counter: rows
	byName map[string]uint32
	free   []uint32
}

func newSlots() slots {
	return slots{names: []string{""}, uses: []int{0}, byName: make(map[string]uint32)}
}

// take gives the counter of a zone for one more row; fresh: it was another zone's, or nobody's.
func (s *slots) take(name string) (slot uint32, fresh bool) {
	slot, known := s.byName[name]
	switch {
	case name == "":
		return 0, false
	case known:
		s.uses[slot]++
		return slot, false
	case len(s.free) > 0:
		slot = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
	case len(s.names) <= ZoneCounters:
		slot = uint32(len(s.names))
		s.names, s.uses = append(s.names, ""), append(s.uses, 0)
	default:
		return 0, false
	}
	s.names[slot], s.uses[slot], s.byName[name] = name, 1, slot
	return slot, true
}

// drop takes one row's use back.
func (s *slots) drop(slot uint32) {
	if slot == 0 || slot >= uint32(len(s.uses)) {
		return
	}
	if s.uses[slot]--; s.uses[slot] == 0 {
		delete(s.byName, s.names[slot])
		s.names[slot] = ""
		s.free = append(s.free, slot)
	}
}

// is reports whether a row that has this counter need not get another one for the zone.
func (s *slots) is(slot uint32, name string) bool {
	if slot == 0 {
		_, named := s.byName[name]
		return name == "" || !named && len(s.free) == 0 && len(s.names) > ZoneCounters
	}
	return slot < uint32(len(s.names)) && s.names[slot] == name
}
