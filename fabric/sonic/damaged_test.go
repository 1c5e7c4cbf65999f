package sonic

import (
	"testing"

	"github.com/openinof/inof/fabric"
)

// Totals of input errors, frames of a wrong length and frames that FEC could not correct, one
// reading after the other, and how many frames came in damaged by then, and what that counts.
func TestDamagedFramesAreCountedByWhatTheASICHas(t *testing.T) {
	type reading struct {
		errors, lengths, fec uint64
		total                uint64
		of                   string
	}
	for name, list := range map[string][]reading{
		"errors alone":                       {{7, 0, 0, 7, ofErrors}, {10, 0, 0, 10, ofErrors}},
		"all of a wrong length":              {{40, 40, 0, 0, ofErrors}, {45, 40, 0, 5, ofErrors}},
		"lengths are counted apart":          {{3, 9, 0, 3, ofErrors}, {5, 20, 0, 5, ofErrors}},
		"FEC alone":                          {{0, 0, 12, 12, ofFEC}, {0, 0, 15, 15, ofFEC}},
		"FEC within the input errors":        {{12, 0, 12, 12, ofFEC}, {20, 0, 20, 20, ofFEC}},
		"more errors than FEC":               {{9, 0, 4, 9, ofErrors}},
		"frames too long on a link with FEC": {{30, 25, 5, 5, ofFEC}},
		"a counter is cleared":               {{8, 0, 6, 8, ofErrors}, {0, 0, 0, 8, ofErrors}, {0, 0, 2, 10, ofFEC}},
		"nothing new names what it was":      {{0, 0, 3, 3, ofFEC}, {0, 0, 3, 3, ofFEC}},
	} {
		t.Run(name, func(t *testing.T) {
			c := errorCount{of: ofErrors}
			for i, r := range list {
				if c.add(r.errors, r.lengths, r.fec); c.total != r.total || c.of != r.of {
					t.Errorf("reading %d: %d %s, want %d %s", i, c.total, c.of, r.total, r.of)
				}
			}
		})
	}
}

// The virtual ASIC has no FEC: the total is written where the flex counters write it on a switch
// that has.
func TestFramesThatFECCouldNotCorrectAreDamage(t *testing.T) {
	p := newPeer(t)
	row := "COUNTERS:" + p.DB(t, countersDB, "hget", "COUNTERS_PORT_NAME_MAP", "Ethernet16")
	defer p.DB(t, countersDB, "hdel", row, portFields[fecErrors])
	read := func() fabric.Health {
		h, err := p.Health("Ethernet16", fabric.FieldsOfCounters)
		noErr(t, err)
		return h
	}
	before := read().RxCRC
	p.DB(t, countersDB, "hset", row, portFields[fecErrors], "25")
	if h := read(); h.RxCRC != before+25 || h.RxCRCOf != ofFEC {
		t.Errorf("25 frames that FEC could not correct count as %d %s", h.RxCRC-before, h.RxCRCOf)
	}
}
