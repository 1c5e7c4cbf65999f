package lldp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Neighbour is one LLDP agent (one MSAP: chassis id and port id) heard on a port.
// It is a value: its slices are never changed once it was handed out, and must not
// be changed by the reader.
type Neighbour struct {
	Port      string     `json:"port"`       // our port
	MAC       fabric.MAC `json:"mac"`        // source of its frames
	ChassisID string     `json:"chassis_id"` // printable
	PortID    string     `json:"port_id"`    // printable
	Agent     *AgentPort `json:"agent,omitempty"`
	PortDesc  string     `json:"port_description,omitempty"` // printable, as all texts here
	SysName   string     `json:"system_name,omitempty"`
	SysDesc   string     `json:"system_description,omitempty"`

	Capabilities *Capabilities `json:"capabilities,omitempty"`
	Mgmt         []netip.Addr  `json:"management_addresses,omitempty"` // all, usable for a host or not
	TTL          uint16        `json:"ttl"`                            // seconds
	FirstHeard   time.Time     `json:"first_heard"`
	LastHeard    time.Time     `json:"last_heard"`
	Expires      time.Time     `json:"expires"` // LastHeard + TTL
	// Confirmed is false from the moment the port lost its carrier until the
	// neighbour is heard again.
	Confirmed    bool               `json:"confirmed"`
	Registration *snsd.Registration `json:"registration,omitempty"`
	// Known are the host addresses that this neighbour makes known; see Hosts.
	Known []HostInfo `json:"hosts,omitempty"`
	// Refused are addresses that it announces and may not have.
	Refused []RefusedHost `json:"refused,omitempty"`
	// LLDPDU is what it sent last, without padding: all the above can be read from it again.
	LLDPDU []byte `json:"lldpdu"`
}

// HostInfo is one host address as a neighbour announces it.
type HostInfo struct {
	Addr       netip.Addr `json:"addr"`
	MAC        fabric.MAC `json:"mac"` // chassis MAC, or the frame's source when the chassis id is none
	Subscribes bool       `json:"subscribes"`
	snsd.Service
	Since time.Time `json:"since"`           // when this neighbour first announced this address
	Doubt bool      `json:"doubt,omitempty"` // its frames do not come from the chassis id, see SourcePolicy
}

// Hosts gives the host addresses that the neighbour makes known: the registered
// one, or for a plain host its management addresses with an unknown role; none for
// a neighbour that forwards. Limits of the table may have cut the list.
func (n *Neighbour) Hosts() []HostInfo { return slices.Clone(n.Known) }

// newNeighbour describes the sender of a PDU. Times are those of a first frame.
func newNeighbour(port string, src fabric.MAC, p *PDU, raw []byte, now time.Time) Neighbour {
	n := Neighbour{
		Port: port, MAC: src, TTL: p.TTL,
		ChassisID: chassisText(p.Chassis), PortID: portText(p.Port),
		PortDesc: text(p.PortDesc), SysName: text(p.SysName), SysDesc: text(p.SysDesc),
		Capabilities: p.Capabilities, Registration: p.Registration,
		FirstHeard: now, LastHeard: now, Expires: now.Add(time.Duration(p.TTL) * time.Second),
		Confirmed: true, LLDPDU: raw,
	}
	if a, ok := ParseAgentPort(p.Port.Value); ok {
		n.Agent = &a
	}
	for i := range p.Mgmt {
		if a := p.Mgmt[i].Addr.Unmap(); a.IsValid() && !slices.Contains(n.Mgmt, a) {
			n.Mgmt = append(n.Mgmt, a)
		}
	}
	n.Known = hostsOf(&n, p, now)
	return n
}

func hostsOf(n *Neighbour, p *PDU, now time.Time) []HostInfo {
	mac := machineOf(n.MAC, n.LLDPDU)
	if r := p.Registration; r != nil {
		return []HostInfo{{Addr: r.Addr, MAC: mac, Subscribes: r.Subscribes, Service: r.Service, Since: now}}
	}
	if p.RegistrationErr != nil || p.Capabilities != nil && p.Capabilities.Forwards() {
		return nil
	}
	var hosts []HostInfo
	for _, a := range n.Mgmt {
		if snsd.CheckAddr(a) == nil {
			hosts = append(hosts, HostInfo{Addr: a, MAC: mac, Since: now})
		}
	}
	return hosts
}

// machineOf returns the MAC address of the machine that an LLDPDU is of: its chassis id, if that is
// one, else the source of the frame.
func machineOf(src fabric.MAC, raw []byte) fabric.MAC {
	if len(raw) >= 9 && raw[0] == tlvChassisID<<1 && raw[1] == 7 && raw[2] == ChassisMAC { // 802.1AB clause 8.5.2
		return fabric.MAC(raw[3:9])
	}
	return src
}

func announces(hosts []HostInfo, a netip.Addr) bool {
	return slices.ContainsFunc(hosts, func(h HostInfo) bool { return h.Addr == a })
}

// keepSince carries over since when addresses were announced.
func keepSince(hosts, old []HostInfo) {
	for i := range hosts {
		for j := range old {
			if old[j].Addr == hosts[i].Addr {
				hosts[i].Since = old[j].Since
			}
		}
	}
}

// keepMachine carries over by which MAC address the machine of an LLDPDU that is read again is known.
func keepMachine(hosts, old []HostInfo) {
	for i := range hosts {
		for j := range old {
			if old[j].Addr == hosts[i].Addr && !old[j].MAC.IsZero() {
				hosts[i].MAC = old[j].MAC
			}
		}
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return printable(*s)
}

// InDoubt reports whether a host of the neighbour is in doubt.
func (n *Neighbour) InDoubt() bool {
	return slices.ContainsFunc(n.Known, func(h HostInfo) bool { return h.Doubt })
}
