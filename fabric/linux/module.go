package linux

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

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
	// SFF-8472 tables 4-1 and 9-11: vendor and serial number, A0; temperature, voltage, bias
	// and power that is sent, A2, two bytes each.
	sfpVendor, sfpSerial = 20, 68
	sfpMeasured          = 256 + 96
	// SFF-8636 tables 6-4, 6-7 and 6-14: temperature, voltage; bias and power of four lanes;
	// vendor and serial number in the upper page 00h.
	qsfpTemperature, qsfpVoltage = 22, 26
	qsfpBias                     = 42
	qsfpVendor, qsfpSerial       = 148, 196
	nameLen                      = 16
)

// rxPower reads from a module what its weakest lane receives, in 1/1000 dBm; read
// gives n bytes of its EEPROM. The error wraps errNotTold when the module has no
// diagnostics, or those of a kind that is not known here.
func rxPower(kind uint32, size int, read func(offset, n int) ([]byte, error)) (int, error) {
	get := within(size, read)
	switch kind {
	case moduleSFF8472:
		if err := sfpTells(get); err != nil {
			return 0, err
		}
		b, err := get(sfpRxPower, 2)
		if err != nil {
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

// within reads from an EEPROM of size bytes, whole pieces only.
func within(size int, read func(offset, n int) ([]byte, error)) func(offset, n int) ([]byte, error) {
	return func(offset, n int) ([]byte, error) {
		if offset+n > size {
			return nil, fmt.Errorf("%w: its module's EEPROM has %d bytes, want %d", errNotTold, size, offset+n)
		}
		b, err := read(offset, n)
		if err == nil && len(b) < n {
			err = fmt.Errorf("module EEPROM gave %d bytes, want %d", len(b), n)
		}
		return b, err
	}
}

// sfpTells returns an error if an SFP measures nothing, or not as is known here.
func sfpTells(get func(offset, n int) ([]byte, error)) error {
	b, err := get(sfpDiagnostics, 1)
	if err == nil && b[0]&(sfpImplemented|sfpCalibrated) != sfpImplemented|sfpCalibrated {
		err = fmt.Errorf("%w: diagnostics of the SFP are of kind %#02x", errNotTold, b[0])
	}
	return err
}

// optic reads what else a module tells; its error is as that of rxPower.
func optic(kind uint32, size int, read func(offset, n int) ([]byte, error)) (o fabric.Optic, err error) {
	get := within(size, read)
	piece := func(offset, n int) []byte {
		if err != nil {
			return make([]byte, n)
		}
		var b []byte
		if b, err = get(offset, n); err != nil {
			return make([]byte, n)
		}
		return b[:n]
	}
	switch kind {
	case moduleSFF8472:
		if err = sfpTells(get); err != nil {
			return o, err
		}
		b := piece(sfpMeasured, 8)
		o = fabric.Optic{Temperature: degrees(b), Voltage: volts(b[2:]), Bias: most(b[4:6]), TxPower: weakest(b[6:8])}
		o.Vendor, o.Serial = name(piece(sfpVendor, nameLen)), name(piece(sfpSerial, nameLen))
	case moduleSFF8636, moduleSFF8436:
		lanes := piece(qsfpBias, 4*qsfpLanes)
		o = fabric.Optic{Temperature: degrees(piece(qsfpTemperature, 2)), Voltage: volts(piece(qsfpVoltage, 2)), Bias: most(lanes[:2*qsfpLanes]), TxPower: weakest(lanes[2*qsfpLanes:])}
		o.Vendor, o.Serial = name(piece(qsfpVendor, nameLen)), name(piece(qsfpSerial, nameLen))
	default:
		return o, fmt.Errorf("%w: module type %d", errNotTold, kind)
	}
	return o, err
}

// degrees is a temperature in units of 1/256 degree Celsius, in 1/1000.
func degrees(b []byte) int { return int(int16(binary.BigEndian.Uint16(b))) * 1000 / 256 }

// volts is a voltage in units of 100 uV, in millivolts.
func volts(b []byte) int { return int(binary.BigEndian.Uint16(b)) / 10 }

// most is the greatest of several currents in units of 2 uA, in microamperes.
func most(b []byte) (greatest int) {
	for ; len(b) >= 2; b = b[2:] {
		greatest = max(greatest, 2*int(binary.BigEndian.Uint16(b)))
	}
	return greatest
}

// name is a text of an EEPROM, padded with blanks; what is not printable is left out.
func name(b []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(b)))
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
