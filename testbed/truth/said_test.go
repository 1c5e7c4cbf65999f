package truth

import (
	"testing"

	"github.com/openinof/inof/snsd"
)

func TestWhatANoticeIsBesideThoseBeforeIt(t *testing.T) {
	up, down, aged := Word{Active: true}, Word{Reason: LinkDown}, Word{Reason: AgedOut}
	for name, c := range map[string]struct {
		words []Word
		seqs  []uint32
		is    Saying // the last one
	}{
		"the first":                          {[]Word{up}, []uint32{1}, News},
		"the first, of one that is gone":     {[]Word{down}, []uint32{1}, Wrong},
		"another":                            {[]Word{up, down}, []uint32{1, 2}, News},
		"another reason":                     {[]Word{up, down, aged}, []uint32{1, 2, 3}, News},
		"the same":                           {[]Word{up, up}, []uint32{1, 2}, Again},
		"the same frame":                     {[]Word{up, up}, []uint32{1, 1}, Resent},
		"the same frame with another word":   {[]Word{up, down}, []uint32{1, 1}, Wrong},
		"an old frame":                       {[]Word{up, down, up}, []uint32{1, 2, 1}, Behind},
		"an old frame with another word":     {[]Word{up, down, aged}, []uint32{1, 2, 1}, Wrong},
		"an old frame, and the last again":   {[]Word{up, down, up, down}, []uint32{1, 2, 1, 2}, Resent},
		"an old frame, and what it says":     {[]Word{up, down, up, up}, []uint32{1, 2, 1, 3}, News},
		"another service":                    {[]Word{up, {Active: true, Service: snsd.Service{NQN: "x"}}}, []uint32{1, 2}, News},
		"the same frame, another service":    {[]Word{up, {Active: true, Service: snsd.Service{NQN: "x"}}}, []uint32{1, 1}, Wrong},
		"after a wrong frame, the right one": {[]Word{up, down, up}, []uint32{1, 1, 1}, Resent},
	} {
		var s Said
		var is Saying
		for i, w := range c.words {
			is, _ = s.Hear(c.seqs[i], w)
		}
		if is != c.is {
			t.Errorf("%s: %d, want %d", name, is, c.is)
		}
	}
}

func TestAServiceIsTakenBackBeforeTheNextOne(t *testing.T) {
	old, next := snsd.Service{Role: snsd.RoleTarget, NQN: "old"}, snsd.Service{Role: snsd.RoleTarget, NQN: "next"}
	var s Said
	if s.Replaces(Word{Active: true, Service: next}) {
		t.Error("there is nothing to replace")
	}
	s.Hear(1, Word{Active: true, Service: old})
	if !s.Replaces(Word{Active: true, Service: next}) || s.Replaces(Word{Active: true, Service: old}) || s.Replaces(Word{Reason: AgedOut}) {
		t.Error("another service replaces the old one, and nothing else does")
	}
	s.Hear(2, Word{Reason: AgedOut})
	if s.Replaces(Word{Active: true, Service: next}) {
		t.Error("the old one was taken back")
	}
}
