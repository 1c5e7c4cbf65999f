package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// Why is what a device knows of two hosts, and of what they were told of each other.
type Why struct {
	Device netip.Addr `json:"device"` // that answers
	Synced bool       `json:"synced"`
	// LastSync is when the device was in step with a reflector last, while it decides by what was
	// known then because none has answered since its start.
	LastSync *time.Time `json:"not_synchronized_since,omitempty"`
	// Everything: the device is a reflector, which knows all hosts there are; another one
	// knows those that concern it.
	Everything bool       `json:"everything"`
	Hosts      [2]WhyHost `json:"hosts"` // as asked for
	Shared     []string   `json:"shared_zones"`
	// Told has an entry for each of the two that this device tells, of the other.
	Told []Told `json:"told"`
	// Notices are the last ones to either about the other, oldest first.
	Notices []Notice `json:"notices"`
	// Chain is the way of the last fault of which either was told, from its cause to the ack.
	Chain []Step `json:"last_fault,omitempty"`
	// Hard is what this device enforces between the two; nil: nothing.
	Hard *WhyHard `json:"hard_zoning,omitempty"`

	Good    bool   `json:"good"` // both can be reached, and know it
	Verdict string `json:"verdict"`
	Do      string `json:"do,omitempty"`
}

// WhyHard is what a device enforces between two hosts.
type WhyHard struct {
	Here    bool       `json:"here"`    // one of them is attached to this device
	May     bool       `json:"may"`     // the zones say that they may talk
	Open    bool       `json:"open"`    // they have a row
	NoRoom  bool       `json:"no_room"` // they may talk, and there is no room for their row
	Closing *time.Time `json:"closing,omitempty"`
	// Kernel is what the dataplane has between them: passed, dropped, suspended, or an error.
	Kernel string `json:"kernel"`
	Agrees bool   `json:"agrees"` // the dataplane does what it was told
}

// WhyHost is one of the two.
type WhyHost struct {
	Addr        netip.Addr `json:"addr"`
	Attachments []Host     `json:"attachments"` // none: it is not known here
	Faults      []WhyFault `json:"faults"`      // that stand between it and others
}

// WhyFault is a fault of a port, or of the path to a device.
type WhyFault struct {
	Device netip.Addr  `json:"device"`
	Port   string      `json:"port,omitempty"` // empty: the path from this device
	Reason snsd.Reason `json:"reason"`
	Since  *time.Time  `json:"since,omitempty"` // nil: not known here
}

// Told is what a local host was told last of another one.
type Told struct {
	Host    netip.Addr `json:"host"`
	Subject netip.Addr `json:"subject"`
	// Subscribes: it asked for notices. Usable: there is a port it can be told over.
	Subscribes bool        `json:"subscribes"`
	Usable     bool        `json:"usable"`
	Said       bool        `json:"said"` // false: nothing, and State and Reason mean nothing
	State      snsd.State  `json:"state"`
	Reason     snsd.Reason `json:"reason"`
	Acked      bool        `json:"acked"`
	Waiting    bool        `json:"waiting"` // something newer is about to be sent
	Retries    int         `json:"retries"` // of the notice, while it is not acked
}

// Step is one moment on the way of a fault.
type Step struct {
	At     time.Time  `json:"at"`              // by the clock of Device
	Device netip.Addr `json:"device,omitzero"` // none: a reflector
	What   string     `json:"what"`
	After  *int64     `json:"after_us,omitempty"` // since the step before; nil: the first, or their clocks differ
}

// why serves GET /v1/why?a=&b=.
func (h *handler) why(r *http.Request) (any, error) {
	p := query(r)
	a, b := p.addr("a"), p.addr("b")
	if err := p.close(); err != nil {
		return nil, err
	}
	if !a.IsValid() || !b.IsValid() || a == b {
		return nil, fmt.Errorf("%w: parameters a and b are two different IP addresses", ErrInvalid)
	}
	w, err := h.src.Why(r.Context(), a.Unmap(), b.Unmap())
	Some(&w.Shared)
	Some(&w.Told)
	Some(&w.Notices)
	for i := range w.Hosts {
		Some(&w.Hosts[i].Attachments)
		Some(&w.Hosts[i].Faults)
	}
	return w, err
}
