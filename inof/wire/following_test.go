package wire

import (
	"bytes"
	"testing"
)

// Who sends nothing but headers does not get memory for as many records.
func TestRubbishGetsNoMemoryForRecordsThatHaveNoRoomInIt(t *testing.T) {
	long := append([]byte{tlvUpdateHost, 0, 0, 40}, make([]byte, 40)...)
	for name, c := range map[string]struct {
		rest  []byte
		count int
	}{
		"nothing":          {nil, 0},
		"records":          {bytes.Repeat(long, 10), 10},
		"another kind":     {append(bytes.Repeat(long, 3), tlvUpdateDown, 0, 0, 0), 3},
		"headers":          {bytes.Repeat([]byte{tlvUpdateHost, 0, 0, 0}, 1000), 4000 / leastRecord},
		"longer than that": {append(bytes.Repeat(long, 3), tlvUpdateHost, 0xff, 0xff, 0xff), 4},
	} {
		if n := (&reader{rest: c.rest}).following(tlvUpdateHost); n != c.count {
			t.Errorf("%s: %d records follow, want %d", name, n, c.count)
		}
	}
}
