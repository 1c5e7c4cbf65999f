package inof

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Applied is what a received message changes in the device's Directory, in the
// order of the fields; with the stamps of the Update that caused it. Records about
// the client's own device never appear in it.
type Applied struct {
	From        netip.Addr // the reflector
	Origin      netip.Addr // device whose change it is
	FaultAt     time.Time
	SentAt      time.Time
	ReflectedAt time.Time

	Settings *Settings // nil: unchanged
	Zones    []ZoneRecord
	Hosts    []HostRecord
	Faults   []FaultRecord

	Synced bool // an End-of-Sync was handled: the reflector's view is complete
}

// Empty tells whether there is nothing to apply.
func (a *Applied) Empty() bool {
	return a.Settings == nil && len(a.Zones) == 0 && len(a.Hosts) == 0 && len(a.Faults) == 0
}

// ClientCounters count what a Client did.
type ClientCounters struct {
	UpdatesOut      uint64 `json:"updates_out"`
	RecordsOut      uint64 `json:"records_out"`
	UpdatesIn       uint64 `json:"updates_in"`
	RecordsIn       uint64 `json:"records_in"`
	OwnIgnored      uint64 `json:"own_records_ignored"` // records about this device that came back
	UnknownPeer     uint64 `json:"unknown_reflector"`   // messages of a reflector that is not up
	UnexpectedTypes uint64 `json:"unexpected_types"`
	Syncs           uint64 `json:"syncs"`
	Swept           uint64 `json:"records_swept"` // withdrawn because a full sync did not repeat them
	TooLarge        uint64 `json:"records_too_large"`
}

// Client is the client side of a device: what it tells its reflectors of its own
// hosts and faults, and what it has learned from them.
type Client struct {
	self  netip.Addr
	epoch uint64
}

// NewClient gives a client for the device self. Epoch is a new value at each start
// of the process, never zero.
func NewClient(self netip.Addr, epoch uint64) *Client { return &Client{self: self, epoch: epoch} }

// PutHost adds or replaces a host of this device. The change leaves with the next Flush.
func (c *Client) PutHost(h zone.Host) {}

// WithdrawHost removes a host of this device for a reason.
func (c *Client) WithdrawHost(k zone.HostKey, why snsd.Reason) {}

// PutFault adds or replaces the fault of one port of this device. Op and Device are set by the client.
func (c *Client) PutFault(f FaultRecord) {}

// WithdrawFault clears the fault of a port.
func (c *Client) WithdrawFault(port string) {}

// MarkFault stamps the next Flush with the time of the event that caused the
// changes; the earliest of several counts.
func (c *Client) MarkFault(at time.Time) {}

// Flush gives the changes since the last one for every reflector that is up.
func (c *Client) Flush(now time.Time) []Delivery { return nil }

// Up says that the session to a reflector (its device id) is established: it gets
// all own records and an EndOfSync.
func (c *Client) Up(reflector netip.Addr, now time.Time) []Delivery { return nil }

// Down says that the session ended. What was learned stays in force.
func (c *Client) Down(reflector netip.Addr, now time.Time) {}

// Receive takes a message of an established session.
func (c *Client) Receive(reflector netip.Addr, m Message, now time.Time) (Applied, error) {
	return Applied{}, nil
}

// Synced tells whether at least one reflector has completed a full sync since the start.
func (c *Client) Synced() bool { return false }

// Counters returns a copy.
func (c *Client) Counters() ClientCounters { return ClientCounters{} }
