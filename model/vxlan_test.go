package model

import "testing"

// All 16 combinations of inner and outer codepoint at the end of a tunnel (RFC 6040, figure 4).
func TestDecapsulation(t *testing.T) {
	const not, ect1, ect0, ce, drop = 0, 1, 2, 3, 99
	want := [4][4]int{ // [inner][outer]
		not:  {not: not, ect1: not, ect0: not, ce: drop},
		ect1: {not: ect1, ect1: ect1, ect0: ect1, ce: ce},
		ect0: {not: ect0, ect1: ect1, ect0: ect0, ce: ce},
		ce:   {not: ce, ect1: ce, ect0: ce, ce: ce},
	}
	for inner := range uint8(4) {
		for outer := range uint8(4) {
			ecn, dropped, odd := decapsulate(inner, outer)
			got := int(ecn)
			if dropped {
				got = drop
			}
			if got != want[inner][outer] {
				t.Errorf("inner %02b, outer %02b: %02b, want %02b", inner, outer, got, want[inner][outer])
			}
			if logged := inner == not && outer != not || inner == ce && outer == ect1; odd != logged {
				t.Errorf("inner %02b, outer %02b: logged %v", inner, outer, odd)
			}
		}
	}
}
