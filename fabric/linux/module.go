package linux

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/openinof/inof/fabric"
)

// Module types of linux/ethtool.h, which say how an EEPROM is laid out.
const (
	moduleSFF8472 = 2 // SFP with diagnostics: page A0 in the first 256 bytes, A2 after it
	moduleSFF8636 = 3 // QSFP28
	moduleSFF8436 = 4 // QSFP+

	maxEEPROM = 1024 // bytes, more than any of these have
)

// Places in the EEPROM.
const (
	// SFF-8472 table 4-2, byte 92: type of diagnostics.
	sfpDiagnostics = 92
	sfpImplemented = 1 << 6
	sfpCalibrated  = 1 << 5 // internally: values are what they say
	// SFF-8472 table 9-11, A2 bytes 104 and 105: received power.
	sfpRxPower = 256 + 104
	// SFF-8636 table 6-7, bytes 34 to 41: received power of four lanes.
	qsfpRxPower = 34
	qsfpLanes   = 4
)

// rxPower reads from a module what its weakest lane receives, in 1/1000 dBm; read
// gives n bytes of its EEPROM. The error wraps errNotTold when the module has no
// diagnostics, or those of a kind that is not known here.
func rxPower(kind uint32, size int, read func(offset, n int) ([]byte, error)) (int, error) {
	get := func(offset, n int) ([]byte, error) {
		if offset+n > size {
			return nil, fmt.Errorf("%w: its module's EEPROM has %d bytes, want %d", errNotTold, size, offset+n)
		}
		b, err := read(offset, n)
		if err == nil && len(b) < n {
			err = fmt.Errorf("module EEPROM gave %d bytes, want %d", len(b), n)
		}
		return b, err
	}
	switch kind {
	case moduleSFF8472:
		b, err := get(sfpDiagnostics, 1)
		if err != nil {
			return 0, err
		}
		if b[0]&(sfpImplemented|sfpCalibrated) != sfpImplemented|sfpCalibrated {
			return 0, fmt.Errorf("%w: diagnostics of the SFP are of kind %#02x", errNotTold, b[0])
		}
		if b, err = get(sfpRxPower, 2); err != nil {
			return 0, err
		}
		return weakest(b), nil
	case moduleSFF8636, moduleSFF8436:
		b, err := get(qsfpRxPower, 2*qsfpLanes)
		if err != nil {
			return 0, err
		}
		return weakest(b[:2*qsfpLanes]), nil
	}
	return 0, fmt.Errorf("%w: module type %d", errNotTold, kind)
}

// weakest gives the least of several powers in units of 0.1 uW. A lane with 0 is not
// in use, as without light on a lane in use there is no link.
func weakest(b []byte) int {
	least := uint16(0)
	for ; len(b) >= 2; b = b[2:] {
		if v := binary.BigEndian.Uint16(b); v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	if least == 0 {
		return fabric.NoLight
	}
	return int(math.Round(10_000 * math.Log10(float64(least)/10_000)))
}
