package client

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Applied is what a received message changes in the device's Directory: settings, zones, hosts,
// claims, whether hosts are down, in this order; with the stamps of the Update that caused it.
// Records about the client's own device never appear in it.
type Applied struct {
	From        netip.Addr // the reflector
	Origin      netip.Addr // device whose change it is
	FaultAt     time.Time
	SentAt      time.Time
	ReflectedAt time.Time
	DecidedAt   time.Time
	ReflectorAt time.Time
	ReceivedAt  time.Time

	// Batch is what has changed. Settings are nil where they have not; a host's Withdraw without a
	// reason: a full sync left the host out; Downs are of hosts that are as before, but for whether
	// they can be reached.
	wire.Batch
	// Reserved are members that some reflector names but that are not in force: a
	// Put keeps these hosts out of the default zone (before Zones are applied), a
	// Withdraw ends it (after).
	Reserved []wire.ZoneRecord
	// Claims are hosts that are as before, but for what the reflectors say of their claim
	// to the address.
	Claims []zone.Host

	// Taken are own hosts that the reflector has taken in: what follows from them for this
	// device it has said.
	Taken []zone.HostKey

	// Bound: a reflector binds this device to other hosts than before, see Client.Outside.
	Bound bool

	Synced bool // an End-of-Sync was handled: the reflector's view is complete
}

func (a *Applied) sort() {
	a.Batch.Sort()
	(&wire.Batch{Zones: a.Reserved}).Sort()
	slices.SortFunc(a.Claims, func(x, y zone.Host) int { return zone.CompareKeys(x.HostKey, y.HostKey) })
}
