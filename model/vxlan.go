package model

import "fmt"

var vxlanMechanism = Mechanism{Part: PartStage, Kind: "vxlan",
	About: "leaves put traffic between them into a tunnel; congestion marks cross its ends by RFC 6040",
	New:   func() Settings { return &VXLAN{Header: 50, CopyOuter: true} }}

// VXLAN makes a switch a tunnel end (NVE) for traffic between its hosts and other switches. The
// inner codepoint travels in two bits of the frame's hash, which then do not choose its way.
type VXLAN struct {
	Header    int  `yaml:"header" about:"bytes that a frame is longer by in the tunnel"`
	CopyOuter bool `yaml:"copy-outer" about:"at the far end a mark of the outer header reaches the inner one; off, it is lost with it"`
	MarkInner bool `yaml:"mark-inner" about:"a switch in between marks the inner header as well, for ends that cannot copy"`
}

// Check refuses headers that cannot be.
func (c *VXLAN) Check() error {
	if c.Header < 0 || c.Header > 200 {
		return fmt.Errorf("vxlan: a header of %d bytes, want 0..200", c.Header)
	}
	return nil
}

// Stage makes that of a switch.
func (c *VXLAN) Stage(sw Switch) (Stage, error) {
	sw.s.innerECN = ecnMask
	return &vxlan{par: c}, nil
}

type vxlan struct {
	par                  *VXLAN
	encap, decap, copied uint64
	odd, refused         uint64
}

func (c *vxlan) Tapped() bool { return true }

// Arrive opens the tunnel of frames from hosts to elsewhere, and ends that of frames to hosts.
func (c *vxlan) Arrive(sw Switch, f Frame, in, out PortID) int {
	if f.IsControl() {
		return PassOn
	}
	p := f.packet()
	switch from, to := sw.Leads(in), sw.Leads(out); {
	case from && !to:
		c.encap++
		p.size += uint16(c.par.Header)
	case !from && to:
		c.decap++
		p.size -= uint16(c.par.Header)
		inner, outer := uint8(p.hash&ecnMask), p.tos&ecnMask
		p.hash &^= ecnMask
		ecn, drop, odd := decapsulate(inner, outer)
		if !c.par.CopyOuter {
			ecn, drop, odd = inner, false, false
		}
		if drop {
			c.refused++
			return TakeIt
		}
		if odd {
			c.odd++
		}
		if ecn == ecnCE && inner != ecnCE {
			c.copied++
		}
		p.tos = p.tos&^ecnMask | ecn
	}
	return PassOn
}

// Leave makes the inner header of what enters the tunnel, with the marks of this switch.
func (c *vxlan) Leave(sw Switch, f Frame, in, out PortID, _ int, _ int64) {
	if f.IsControl() || sw.Leads(out) {
		return
	}
	p := f.packet()
	if sw.Leads(in) || c.par.MarkInner && p.tos&ecnMask == ecnCE && p.hash&ecnMask != 0 {
		p.hash = p.hash&^ecnMask | uint32(p.tos&ecnMask)
	}
}

// decapsulate combines the codepoints of RFC 6040 figure 4: what goes on, whether the frame is
// to be dropped, and whether the combination should not occur and is to be logged.
func decapsulate(inner, outer uint8) (ecn uint8, drop, odd bool) {
	const notECT, ect1 = 0, 1
	switch {
	case inner == notECT && outer == ecnCE:
		return inner, true, true
	case inner == notECT:
		return inner, false, outer != notECT
	case inner == ecnCE:
		return inner, false, outer == ect1
	case outer == ecnCE:
		return ecnCE, false, false
	case inner == ecnECT && outer == ect1:
		return ect1, false, false
	}
	return inner, false, false
}

func (c *vxlan) Counters(put func(string, uint64)) {
	put("vxlan.encapsulated", c.encap)
	put("vxlan.decapsulated", c.decap)
	put("vxlan.ce-copied", c.copied)
	put("vxlan.odd", c.odd)
	put("vxlan.refused", c.refused)
}
