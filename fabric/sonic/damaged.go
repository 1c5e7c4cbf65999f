package sonic

import "github.com/openinof/inof/fabric"

// No orchagent has a counter of CRC errors. It has input errors, which count each frame that is too
// long or too short as well, and on links with FEC the frames that FEC could not mend. Fragments
// and jabbers are errors of length with a wrong checksum, so they stay.

// What RxCRC stands for.
const (
	ofFEC    = "frames that FEC could not correct"
	ofErrors = "input errors, without frames of a wrong length"
)

// errorCount makes one total of those of a port, from the increments between readings.
type errorCount struct {
	errors, lengths, fec, total uint64
	of                          string
}

// add takes a reading. Frames of a wrong length are part of the input errors, unless there have been
// more of them: such an ASIC counts them apart, or counts frames that it takes. A frame that FEC
// could not mend may be among the input errors too: the larger increment counts.
func (c *errorCount) add(errors, lengths, fec uint64) {
	rise := func(was *uint64, is uint64) (n uint64) {
		if is > *was { // else it was cleared
			n = is - *was
		}
		*was = is
		return n
	}
	more, wrong, broken := rise(&c.errors, errors), rise(&c.lengths, lengths), rise(&c.fec, fec)
	if lengths <= errors {
		more -= min(more, wrong)
	}
	if broken > 0 && broken >= more {
		c.total, c.of = c.total+broken, ofFEC
	} else if c.total += more; more > 0 {
		c.of = ofErrors
	}
}

// damaged takes how many frames of a port came in damaged.
func (s *Source) damaged(port string, list []value, h *fabric.Health) {
	errors, ok := number(at(list, inErrors))
	if !ok {
		return
	}
	long, _ := number(at(list, oversize))
	short, _ := number(at(list, undersize))
	fec, _ := number(at(list, fecErrors))
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.errsOf[port]
	if c == nil {
		c = &errorCount{of: ofErrors}
		s.errsOf[port] = c
	}
	c.add(errors, long+short, fec)
	h.RxCRC, h.RxCRCOf = c.total, c.of
	h.Valid |= fabric.FieldCRC
}
