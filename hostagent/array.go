package hostagent

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// Array is notified of what its switch and its cables report about the hosts of an array. Its methods
// must not wait.
type Array interface {
	HostLost(host, array netip.Addr)
	PortLost(arrays []netip.Addr)
}

// Serve has an Array notified. It is to be called before Run.
func (a *Agent) Serve(x Array) { a.array = x }

// hostLost notifies the Array of an initiator that cannot be reached.
func (a *Agent) hostLost(n *snsd.Notice) {
	unreachable := n.Reason == snsd.ReasonLinkDown || n.Reason == snsd.ReasonPFCStorm || n.Reason == snsd.ReasonBFDDown
	if a.array != nil && n.Service.Role == snsd.RoleInitiator && n.State == snsd.Inactive && unreachable {
		a.array.HostLost(n.Subject, n.Host)
	}
}
