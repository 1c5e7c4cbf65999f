package errdown

import (
	"fmt"

	"github.com/openinof/inof/snsd"
)

// Cause is why a port is faulty. The lower value is the more serious one.
type Cause uint8

const (
	LinkDown     Cause = iota + 1 // no carrier, shut by the operator, or removed
	Manual                        // shut by hand, through us
	Drained                       // taken out of service in order, through us
	LinkFlap                      // the carrier changed too often
	PFCStorm                      // PFC frames keep a priority from being sent for too long, again and again
	CRC                           // frames arrive damaged
	LowPower                      // the module receives too little light
	StormControl                  // too many broadcast or multicast frames arrive

	endOfCauses
)

// kinds lists the causes: what each is called, what hosts are told, and how it is
// detected. Its order is that of the constants.
var kinds = [endOfCauses]struct {
	name   string
	reason snsd.Reason
	detect func(cfg *Config) Detector
}{
	LinkDown:     {"link-down", snsd.ReasonLinkDown, newLinkDown},
	Manual:       {"manual", snsd.ReasonLinkDown, newManual},
	Drained:      {"drained", snsd.ReasonAgedOut, newDrain},
	LinkFlap:     {"link-flap", snsd.ReasonLinkDown, newLinkFlap},
	PFCStorm:     {"pfc-storm", snsd.ReasonPFCStorm, newPFCStorm},
	CRC:          {"crc", snsd.ReasonPacketError, newCRC},
	LowPower:     {"low-receive-power", snsd.ReasonPacketError, newLowPower},
	StormControl: {"storm-control", snsd.ReasonPacketError, newStormControl},
}

func (c Cause) valid() bool { return c >= LinkDown && c < endOfCauses }

// Reason is the one that notices carry for the cause; 0 for an unknown cause.
func (c Cause) Reason() snsd.Reason {
	if !c.valid() {
		return snsd.ReasonNone
	}
	return kinds[c].reason
}

func (c Cause) String() string {
	if !c.valid() {
		return fmt.Sprintf("cause %d", uint8(c))
	}
	return kinds[c].name
}

// MarshalText gives the name that String gives.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (c *Cause) UnmarshalText(b []byte) error {
	for k := LinkDown; k < endOfCauses; k++ {
		if kinds[k].name == string(b) {
			*c = k
			return nil
		}
	}
	return fmt.Errorf("error-down cause %q is not known", b)
}
