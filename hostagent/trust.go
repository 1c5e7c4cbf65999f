package hostagent

import (
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
)

const (
	maxSwitches  = 4 // on one link: one, or a few where something between repeats LLDP
	refusedInRow = 3 // notices, until an event reports them
)

// lldpGroups are the destinations that no bridge forwards (IEEE 802.1AB-2016 table 7-1).
var lldpGroups = []fabric.MAC{fabric.MACNearestBridge, {0x01, 0x80, 0xc2, 0x00, 0x00, 0x03}, {0x01, 0x80, 0xc2, 0x00, 0x00, 0x00}}

// trust says whose notices count on one link: those of the switch that LLDP showed there, or that
// the operator named. It is a pure machine with one owner.
//
// Silence is no reason to trust a switch less: one whose LLDP has not been heard for its TTL, or
// since the link was down, stays until another one is heard.
type trust struct {
	named  []fabric.MAC // of the configuration; LLDP does not count then
	heard  []speaker
	count  Refusals
	row    int        // frames refused since one was accepted
	reason refusal    // of the last one
	source fabric.MAC // of the last one
}

type speaker struct {
	mac   fabric.MAC
	until time.Time // by its TTL; zero: before the link was down
}

// Refusals counts frames of EtherType 0x88A7 that were not read.
type Refusals struct {
	Destination uint64 `json:"destination"` // not addressed to the group 01-80-C2-00-00-0D
	Source      uint64 `json:"source"`      // not from the switch that LLDP showed, or that is named
	NoSwitch    uint64 `json:"no_switch"`   // no switch is known on the link
}

// refusal is why a frame is not read.
type refusal uint8

const (
	accepted refusal = iota
	refusedDestination
	refusedSource
	refusedNoSwitch
)

// lldp takes an LLDPDU and reports whether it shows a switch that was not known.
func (t *trust) lldp(f *fabric.Frame, now time.Time) bool {
	if !slices.Contains(lldpGroups, f.Dst) {
		return false
	}
	p, err := lldp.Parse(f.Payload)
	if err != nil || p.TTL == 0 || p.Registration != nil || p.RegistrationErr != nil ||
		p.Capabilities != nil && !p.Capabilities.Forwards() {
		return false // no LLDPDU, a farewell, or a host's
	}
	known := slices.ContainsFunc(t.heard, func(s speaker) bool { return s.mac == f.Src })
	t.heard = slices.DeleteFunc(t.heard, func(s speaker) bool { return s.mac == f.Src || !s.until.After(now) })
	if len(t.heard) == maxSwitches {
		t.heard = slices.Delete(t.heard, 0, 1)
	}
	t.heard = append(t.heard, speaker{f.Src, now.Add(time.Duration(p.TTL) * time.Second)})
	return !known
}

// down has the first switch that is heard next take the place of those known.
func (t *trust) down() {
	for i := range t.heard {
		t.heard[i].until = time.Time{}
	}
}

// switches are those whose notices count.
func (t *trust) switches() []fabric.MAC {
	if len(t.named) > 0 {
		return t.named
	}
	list := make([]fabric.MAC, 0, len(t.heard))
	for _, s := range t.heard {
		list = append(list, s.mac)
	}
	return list
}

// nts reports whether a frame of EtherType 0x88A7 is to be read, and what to tell of those that
// are not: at the third in a row, the sixth, the twelfth and so on.
func (t *trust) nts(f *fabric.Frame) (ok bool, event string) {
	switch known := t.switches(); {
	case f.Dst != fabric.MACNTS:
		t.count.Destination++
		t.reason = refusedDestination
	case len(known) == 0:
		t.count.NoSwitch++
		t.reason = refusedNoSwitch
	case !slices.Contains(known, f.Src):
		t.count.Source++
		t.reason = refusedSource
	default:
		t.row, t.reason = 0, accepted
		return true, ""
	}
	t.row++
	t.source = f.Src
	if n := t.row / refusedInRow; t.row%refusedInRow == 0 && n&(n-1) == 0 {
		event = t.text()
	}
	return false, event
}

// text says what was refused last.
func (t *trust) text() string {
	who := fmt.Sprintf("%d frames in a row, the last from %v", t.row, t.source)
	switch t.reason {
	case refusedDestination:
		return who + ", are not addressed to the group " + fabric.MACNTS.String() + ": another machine than the switch sent them"
	case refusedNoSwitch:
		return who + ": " + noSwitch
	}
	return fmt.Sprintf("%s, are not from the switch on this link, %v: another machine sent them, or ports[].switch names the wrong one", who, t.switches())
}

// noSwitch is a warning.
const noSwitch = "no LLDP of a switch was heard on this link, so its notices are refused: have the switch send LLDP (inofd: lldp.transmit), or name it with ports[].switch"
