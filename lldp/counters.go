package lldp

import "errors"

// Counters are the totals of a Table since it was made. The first block is that of
// the standard (clause 9.2.6), the second one is ours.
type Counters struct {
	FramesIn         uint64 `json:"frames_in"`
	FramesDiscarded  uint64 `json:"frames_discarded"`  // LLDPDUs refused as a whole
	FramesInErrors   uint64 `json:"frames_in_errors"`  // LLDPDUs with any error
	TLVsDiscarded    uint64 `json:"tlvs_discarded"`    // optional TLVs dropped
	TLVsUnrecognized uint64 `json:"tlvs_unrecognized"` // reserved types skipped
	Inserts          uint64 `json:"inserts"`
	Deletes          uint64 `json:"deletes"`
	Drops            uint64 `json:"drops"` // neighbours refused because of a limit
	Ageouts          uint64 `json:"ageouts"`

	Refreshed        uint64 `json:"refreshed"`
	Updated          uint64 `json:"updated"`
	Confirmed        uint64 `json:"confirmed"`
	Shutdowns        uint64 `json:"shutdowns"`         // shutdown LLDPDUs
	ForeignFrames    uint64 `json:"foreign_frames"`    // other ethertype or group address
	BadRegistrations uint64 `json:"bad_registrations"` // SNSD TLVs refused
	OddRegistrations uint64 `json:"odd_registrations"` // taken with something tolerated: role, protocol or NQN read as unknown
	NoPrefix         uint64 `json:"no_prefix"`         // registrations taken without the agents' Port ID prefix
	TTLsCut          uint64 `json:"ttls_cut"`          // LLDPDUs whose time to live was above the longest taken
	AddressesCut     uint64 `json:"addresses_cut"`     // management addresses left out because of a limit
	SourcesForeign   uint64 `json:"sources_foreign"`   // new LLDPDUs of a host whose source is neither its chassis id nor bound
	HostsRefused     uint64 `json:"hosts_refused"`     // addresses of new LLDPDUs that may not be at that port, or are those of a switch
}

// note counts a frame that was refused, or taken without its registration.
func (c *Counters) note(err error) {
	switch {
	case errors.Is(err, ErrLimit):
		c.Drops++
	case errors.Is(err, ErrNotLLDP), errors.Is(err, ErrScope):
		c.ForeignFrames++
	case errors.Is(err, ErrRegistration):
		c.BadRegistrations++
	default:
		c.FramesDiscarded++
		c.FramesInErrors++
	}
}

// noteBeliefs counts what is not believed of a neighbour.
func (c *Counters) noteBeliefs(n *Neighbour) {
	c.HostsRefused += uint64(len(n.Refused))
	if n.InDoubt() {
		c.SourcesForeign++
	}
}

// notePDU counts what was left out of a PDU or tolerated in it.
func (c *Counters) notePDU(p *PDU) {
	if bad := p.Skipped.Bad + p.Skipped.Duplicate; bad > 0 {
		c.TLVsDiscarded += uint64(bad)
		c.FramesInErrors++
	}
	c.TLVsUnrecognized += uint64(p.Skipped.Unknown)
	if p.Registration == nil {
		return
	}
	if p.Odd != 0 {
		c.OddRegistrations++
	}
	if _, ok := ParseAgentPort(p.Port.Value); !ok && p.Chassis.Value != declaredChassis {
		c.NoPrefix++
	}
}
