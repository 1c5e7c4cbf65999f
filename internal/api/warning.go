package api

import (
	"net/netip"
	"strings"
	"time"
)

// Warning is one thing that an operator should look at.
type Warning struct {
	Rule string `json:"rule"` // what kind of thing, see docs/warnings.md; for programs
	Text string `json:"text"` // what, where, which value; one line for people
	Do   string `json:"do"`   // what to do about it
	// Devices are the clients of this reflector that report it; none: it is of this device.
	Devices []netip.Addr `json:"devices,omitempty"`
	// Of what happened, as opposed to what stands: how often, and when last.
	Count uint64     `json:"count,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
}

// Warnings are those of one moment.
type Warnings []Warning

// Own are the warnings of the device itself, without those that its clients report.
func (ws Warnings) Own() (own Warnings) {
	for _, w := range ws {
		if len(w.Devices) == 0 {
			own = append(own, w)
		}
	}
	return own
}

// String gives the texts, one a line.
func (ws Warnings) String() string {
	texts := make([]string, len(ws))
	for i, w := range ws {
		texts[i] = w.Text
	}
	return strings.Join(texts, "\n")
}
