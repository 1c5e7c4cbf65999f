package inof

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

	// Placed are own hosts that the reflector has taken in, and hosts of others that
	// it has said for the first time in this session. It says hosts behind the zones
	// they are members of: from here on a host that is in none of the device's zones
	// is in no configured zone at all.
	Placed []zone.HostKey

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
	seq   uint64

	hosts  map[zone.HostKey]zone.Host
	faults map[string]FaultRecord // by port
	// What has changed since the last Flush, by key: only the latest state of a
	// record leaves, however often it changed.
	dirtyHosts  map[zone.HostKey]snsd.Reason // the reason counts when the host is gone
	dirtyFaults map[string]struct{}
	faultAt     time.Time

	learned  learned
	counters ClientCounters
}

// NewClient gives a client for the device self. Epoch is a new value at each start
// of the process, never zero.
func NewClient(self netip.Addr, epoch uint64) *Client {
	return &Client{
		self: self, epoch: epoch,
		hosts:       map[zone.HostKey]zone.Host{},
		faults:      map[string]FaultRecord{},
		dirtyHosts:  map[zone.HostKey]snsd.Reason{},
		dirtyFaults: map[string]struct{}{},
		learned:     newLearned(),
	}
}

// PutHost adds or replaces a host of this device; its Device is set by the client.
// The change leaves with the next Flush; a host that is as before changes nothing.
func (c *Client) PutHost(h zone.Host) {
	h.Device = c.self
	old, known := c.hosts[h.HostKey]
	if _, dirty := c.dirtyHosts[h.HostKey]; known && !dirty && sameHost(&old, &h) {
		return
	}
	c.hosts[h.HostKey] = h
	c.dirtyHosts[h.HostKey] = snsd.ReasonNone
}

func sameHost(a, b *zone.Host) bool {
	return a.HostKey == b.HostKey && a.MAC == b.MAC && a.Subscribes == b.Subscribes && a.Service == b.Service && a.Since.Equal(b.Since)
}

// WithdrawHost removes a host of this device for a reason; one that is not there
// is passed over.
func (c *Client) WithdrawHost(k zone.HostKey, why snsd.Reason) {
	k.Device = c.self
	if _, known := c.hosts[k]; !known {
		return
	}
	delete(c.hosts, k)
	c.dirtyHosts[k] = why
}

// PutFault adds or replaces the fault of one port of this device; Op and Device
// are set by the client.
func (c *Client) PutFault(f FaultRecord) {
	f.Op, f.Device = Put, c.self
	f.Addrs = slices.Clone(f.Addrs)
	slices.SortFunc(f.Addrs, netip.Addr.Compare)
	f.Addrs = slices.Compact(f.Addrs)
	old, known := c.faults[f.Port]
	if _, dirty := c.dirtyFaults[f.Port]; known && !dirty && sameFault(&old, &f) {
		return
	}
	c.faults[f.Port] = f
	c.dirtyFaults[f.Port] = struct{}{}
}

func sameFault(a, b *FaultRecord) bool {
	return a.Device == b.Device && a.Port == b.Port && a.Why == b.Why && a.Since.Equal(b.Since) && slices.Equal(a.Addrs, b.Addrs)
}

// WithdrawFault clears the fault of a port; one that is not there is passed over.
func (c *Client) WithdrawFault(port string) {
	if _, known := c.faults[port]; !known {
		return
	}
	delete(c.faults, port)
	c.dirtyFaults[port] = struct{}{}
}

// MarkFault stamps the next Flush with the time of the event that caused the
// changes; the earliest of several counts.
func (c *Client) MarkFault(at time.Time) {
	if c.faultAt.IsZero() || at.Before(c.faultAt) {
		c.faultAt = at
	}
}

// Flush gives the changes since the last one for every reflector that is up. They
// are forgotten when there is none: Up tells a reflector everything.
func (c *Client) Flush(now time.Time) []Delivery {
	b := c.pending()
	at := c.faultAt
	c.faultAt = time.Time{}
	if b.empty() {
		return nil
	}
	to := c.learned.up()
	return c.deliver(&b, to, at, now)
}

// pending empties the sets of changes into a batch, sorted by key.
func (c *Client) pending() batch {
	var b batch
	for k, why := range c.dirtyHosts {
		r := HostRecord{Op: Withdraw, Host: zone.Host{HostKey: k}, Why: why}
		if h, ok := c.hosts[k]; ok {
			r = HostRecord{Op: Put, Host: h}
		}
		b.Hosts = append(b.Hosts, r)
	}
	for port := range c.dirtyFaults {
		f, ok := c.faults[port]
		if !ok {
			f = FaultRecord{Op: Withdraw, Device: c.self, Port: port}
		}
		b.Faults = append(b.Faults, f)
	}
	clear(c.dirtyHosts)
	clear(c.dirtyFaults)
	b.sort()
	return b
}

func (b *batch) sort() {
	slices.SortFunc(b.Zones, func(x, y ZoneRecord) int { return strings.Compare(x.Zone.Name, y.Zone.Name) })
	slices.SortFunc(b.Hosts, func(x, y HostRecord) int { return compareKeys(x.Host.HostKey, y.Host.HostKey) })
	slices.SortFunc(b.Faults, func(x, y FaultRecord) int {
		return cmp.Or(x.Device.Compare(y.Device), strings.Compare(x.Port, y.Port))
	})
}

func compareKeys(a, b zone.HostKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port))
}

func (c *Client) deliver(b *batch, to []netip.Addr, faultAt, now time.Time) []Delivery {
	if len(to) == 0 {
		return nil
	}
	us := b.updates(stamps{origin: c.self, epoch: c.epoch, seq: c.next, fault: faultAt, sent: now}, &c.counters.TooLarge)
	out := make([]Delivery, len(us))
	for i, u := range us {
		out[i] = Delivery{To: to, Msg: u}
		c.counters.UpdatesOut++
		c.counters.RecordsOut += uint64(len(u.Hosts) + len(u.Faults))
	}
	return out
}

func (c *Client) next() uint64 { c.seq++; return c.seq }

// Up says that the session to a reflector (its device id) is established: it gets
// all own records and an EndOfSync. Changes that wait for Flush are not lost: they
// are in the records already, and the other reflectors get them with the Flush.
func (c *Client) Up(reflector netip.Addr, now time.Time) []Delivery {
	if err := c.learned.begin(reflector); err != nil {
		return []Delivery{{To: []netip.Addr{reflector}, Msg: &Notification{Code: CodeLimit, Text: err.Error()}}}
	}
	var b batch
	for _, h := range c.hosts {
		b.Hosts = append(b.Hosts, HostRecord{Op: Put, Host: h})
	}
	for _, f := range c.faults {
		b.Faults = append(b.Faults, f)
	}
	b.sort()
	to := []netip.Addr{reflector}
	out := c.deliver(&b, to, time.Time{}, now)
	return append(out, Delivery{To: to, Msg: &EndOfSync{Epoch: c.epoch, Seq: c.seq}})
}

// Down says that the session ended. What was learned stays in force.
func (c *Client) Down(reflector netip.Addr, now time.Time) { c.learned.end(reflector) }

// Receive takes a message of an established session. The error tells of a message
// that was not expected; it changes nothing.
func (c *Client) Receive(reflector netip.Addr, m Message, now time.Time) (Applied, error) {
	a := Applied{From: reflector, Origin: reflector}
	idx, ok := c.learned.index(reflector)
	if !ok {
		c.counters.UnknownPeer++
		return a, fmt.Errorf("%v of %v, which has no session", m.Type(), reflector)
	}
	switch m := m.(type) {
	case *Update:
		c.counters.UpdatesIn++
		a.Origin, a.FaultAt, a.SentAt, a.ReflectedAt = m.Origin, m.FaultAt, m.SentAt, m.ReflectedAt
		c.apply(idx, m, &a)
	case *EndOfSync:
		c.counters.Syncs++
		c.learned.sweep(idx, &a)
		c.counters.Swept += uint64(len(a.Zones) + len(a.Hosts) + len(a.Faults))
		a.Synced = true
	default:
		c.counters.UnexpectedTypes++
		return a, &ProtocolError{Code: CodeUnexpected, Where: m.Type().String(), Detail: "no message for a client"}
	}
	return a, nil
}

func (c *Client) apply(idx int, u *Update, a *Applied) {
	c.counters.RecordsIn += uint64(len(u.Zones) + len(u.Hosts) + len(u.Faults))
	a.Settings = c.learned.setSettings(u.Settings)
	for i := range u.Zones {
		c.learned.zone(idx, &u.Zones[i], a)
	}
	for i := range u.Hosts {
		if h := &u.Hosts[i]; h.Host.Device == c.self {
			if _, ours := c.hosts[h.Host.HostKey]; ours && h.Op == Put {
				a.Placed = append(a.Placed, h.Host.HostKey)
			} else {
				c.counters.OwnIgnored++
			}
			continue
		}
		c.learned.host(idx, &u.Hosts[i], a)
	}
	for i := range u.Faults {
		if u.Faults[i].Device == c.self {
			c.counters.OwnIgnored++
			continue
		}
		c.learned.fault(idx, &u.Faults[i], a)
	}
}

// Stale tells whether a host was learned that no reflector with a session has said
// in its present session. It stays in force, but in which zones it is nobody says
// any more: the zones may change without it.
func (c *Client) Stale(k zone.HostKey) bool {
	e := c.learned.hosts[k]
	return e != nil && !c.learned.said(&e.said)
}

// Synced tells whether at least one reflector has completed a full sync since the
// start. It never becomes false again: what was learned stays known.
func (c *Client) Synced() bool { return c.learned.synced }

// Counters returns a copy.
func (c *Client) Counters() ClientCounters { return c.counters }
