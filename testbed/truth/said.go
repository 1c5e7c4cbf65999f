package truth

import (
	"fmt"

	"github.com/openinof/inof/snsd"
)

// Word is what a notice says of a subject.
type Word struct {
	Active  bool
	Reason  string       // of one that is inactive
	Service snsd.Service // where it is looked at
}

func (w Word) String() string {
	if w.Active {
		return "active"
	}
	return "inactive (" + w.Reason + ")"
}

// about is the notice that says it.
func (w Word) about(p Pair) Notice {
	if w.Active {
		return Notice{p.Host, p.Subject, Active, ""}
	}
	return Notice{p.Host, p.Subject, Inactive, w.Reason}
}

// Said is what was said of one subject to one host: as the host heard it, or as one switch put it
// on the wire.
type Said struct {
	Word   Word // the last one
	Any    bool // there was one
	Seq    uint32
	before map[uint32]Word
}

// Saying is what a notice is beside those before it.
type Saying uint8

// The sayings.
const (
	News   Saying = iota // another word than the last one
	Again                // the last one with a number of its own: that needs a reason
	Resent               // the last one's frame
	Behind               // the frame of one before the last: only somebody who forgot the last one sends it
	Wrong                // never right, whatever the truth is
)

// Hear takes a notice, but for one that is behind. Of that and of a wrong one it says why.
func (s *Said) Hear(seq uint32, w Word) (Saying, string) {
	was := *s
	if said, again := s.numbered(seq); again {
		switch {
		case said != w:
			return Wrong, fmt.Sprintf("number %d said %s before", seq, said)
		case was.Seq == seq:
			return Resent, ""
		}
		return Behind, fmt.Sprintf("it is repeated after number %d said %s", was.Seq, was.Word)
	}
	s.Take(seq, w)
	switch {
	case !was.Any && !w.Active:
		return Wrong, "it was never told of it before"
	case was.Any && was.Word == w:
		return Again, ""
	}
	return News, ""
}

// Replaces reports whether a word tells of a service that takes the place of the last one's: the
// host must have been told before that the old one is gone.
func (s *Said) Replaces(w Word) bool {
	return s.Any && s.Word.Active && w.Active && s.Word.Service.ReplacedBy(w.Service)
}

// numbered gives what a number said.
func (s *Said) numbered(seq uint32) (Word, bool) {
	if s.Any && s.Seq == seq {
		return s.Word, true
	}
	w, said := s.before[seq]
	return w, said
}

// Take has a word be the last one.
func (s *Said) Take(seq uint32, w Word) {
	if s.Any {
		if s.before == nil {
			s.before = map[uint32]Word{}
		}
		s.before[s.Seq] = s.Word
	}
	s.Word, s.Seq, s.Any = w, seq, true
}
