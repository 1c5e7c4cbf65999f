package zone

import "github.com/openinof/inof/snsd"

// This file brings an address in step with what has changed of its attachments: who has it, then
// its zones, then whether it can be reached.

// settleHolder follows a change of the attachments of an address.
func (d *Directory) settleHolder(id uint32, had claimant) {
	d.contend(&d.hosts[id], had)
	d.rematch(id)
	d.restate(id)
}

// recontend applies the rule anew to an address that more than one attachment claims, and
// follows to its zones and its state.
func (d *Directory) recontend(id uint32) {
	h := &d.hosts[id]
	if len(h.atts) < 2 {
		return
	}
	d.touch(id)
	before := h.moves
	d.contend(h, d.claimantOf(&h.atts[0]))
	if h.moves != before {
		d.rematch(id)
	}
	d.restate(id)
}

// restate computes the state of a host: active when one attachment of its owner
// can be reached, else inactive for the smallest reason, the most physical one.
func (d *Directory) restate(id uint32) {
	h := &d.hosts[id]
	h.state, h.reason = snsd.Inactive, snsd.ReasonNone
	for i := range h.atts {
		if !d.counts(h, i) {
			continue
		}
		a := &h.atts[i]
		why := worse(a.down.Why, d.devs[a.dev].fault)
		if why == snsd.ReasonNone {
			h.state, h.reason = snsd.Active, snsd.ReasonNone
			return
		}
		h.reason = worse(h.reason, why)
	}
}

// worse gives the smaller of two reasons that is not 0.
func worse(a, b snsd.Reason) snsd.Reason {
	if a == snsd.ReasonNone || b != snsd.ReasonNone && b < a {
		return b
	}
	return a
}
