package snsd

import (
	"fmt"

	"github.com/openinof/inof/fabric"
)

// RegistrationPDU is the whole LLDPDU by which an agent registers one address. It
// is the little of LLDP that a host needs; package lldp has the complete codec.
type RegistrationPDU struct {
	MAC          fabric.MAC // chassis id: the MAC of the port
	PortID       string     // "snsd_<ifname>_<NN>", see AgentPortID; 1..255 bytes
	TTL          uint16     // seconds; 0 = shutdown LLDPDU, the registration is left out
	Registration Registration
}

// AgentPortID gives the Port ID under which an agent registers the n-th address of
// an interface, n counted from 1.
func AgentPortID(ifname string, n int) string { return fmt.Sprintf("snsd_%s_%02d", ifname, n) }

// AppendRegistrationPDU appends the LLDPDU: chassis id (subtype 4), port id (subtype
// 5), TTL, organizational TLV, end. On an error b is as it was.
func AppendRegistrationPDU(b []byte, p *RegistrationPDU) ([]byte, error) {
	if len(p.PortID) < 1 || len(p.PortID) > 255 {
		return b, refuse("registration", "port id", fmt.Sprintf("of %d bytes, want 1..255", len(p.PortID)), ErrLength)
	}
	out := append(b, 1<<1, 7, 4)
	out = append(out, p.MAC[:]...)
	n := 1 + len(p.PortID)
	out = append(out, 2<<1|byte(n>>8), byte(n), 5)
	out = append(out, p.PortID...)
	out = append(out, 3<<1, 2, byte(p.TTL>>8), byte(p.TTL))
	if p.TTL > 0 {
		at := len(out)
		var err error
		if out, err = p.Registration.AppendTLV(append(out, 127<<1, 0)); err != nil {
			return b, err
		}
		n := len(out) - at - 2
		out[at] |= byte(n >> 8)
		out[at+1] = byte(n)
	}
	return append(out, 0, 0), nil
}
