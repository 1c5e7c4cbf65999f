package hostagent

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// Line is one event as it is printed. Time is when the kernel received the frame for
// notices and what follows from them, and the present otherwise.
type Line struct {
	Time    time.Time     `json:"time"`
	Event   string        `json:"event"`
	NS      int64         `json:"ns"` // Time in nanoseconds since 1970
	Subject netip.Addr    `json:"subject,omitzero"`
	Host    netip.Addr    `json:"host,omitzero"`
	State   string        `json:"state,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Seq     *uint32       `json:"seq,omitempty"`
	Service *snsd.Service `json:"service,omitempty"`
	// Ignored marks a notice that leads to nothing because its subject is an initiator.
	Ignored   bool         `json:"ignored,omitempty"`
	Acked     *bool        `json:"acked,omitempty"` // of a notice or duplicate: an ack was sent
	Interface string       `json:"interface,omitempty"`
	Link      string       `json:"link,omitempty"`   // up, down, gone
	Switch    string       `json:"switch,omitempty"` // that LLDP shows on the interface
	Fence     *snsd.Fence  `json:"fence,omitempty"`  // of a notice
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Action    *Action      `json:"action,omitempty"` // what was done about a path
	Error     string       `json:"error,omitempty"`
}

// Notice fills in what is told of a notice.
func (l Line) Notice(n *snsd.Notice) Line {
	seq, svc := n.Seq, n.Service
	l.Fence = n.Fence
	l.Subject, l.Host, l.State, l.Reason, l.Seq, l.Service = n.Subject, n.Host, n.State.String(), n.Reason.String(), &seq, &svc
	return l
}
