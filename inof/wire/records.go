package wire

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Op tells what is done with a record.
type Op uint8

const (
	Put      Op = 1 // add the record, or replace the one with its key
	Withdraw Op = 2 // remove the record with its key
)

func (o Op) String() string {
	switch o {
	case Put:
		return "put"
	case Withdraw:
		return "withdraw"
	}
	return "unknown"
}

// HostRecord puts or withdraws one attachment; its key is Host.HostKey. Of a
// withdrawn record only the key and Why travel.
type HostRecord struct {
	Op   Op
	Host zone.Host
	Why  snsd.Reason // of a withdrawal: 4 zone changed, 5 moved or replaced, 6 aged out
}

// DownRecord says of hosts at one port of a device that they cannot be reached by a fault, or
// with the zero Down that they can again. A receiver that does not know a host passes it over:
// it is put with its state. So a fault of a port is one short record, however many hosts it has.
type DownRecord struct {
	Device netip.Addr
	Port   string
	zone.Down
	Addrs []netip.Addr // at most MaxDownAddrs
}

// ZoneRecord puts or withdraws a configured zone; its key is Zone.Name. Of a
// withdrawn record only the name travels.
type ZoneRecord struct {
	Op   Op
	Zone zone.Zone
	// Packed are the members instead of Zone.Members, for who sends them often; a record that
	// was received has none.
	Packed PackedMembers
}

// BFDSettings are the device-to-device liveness timers that a reflector hands out.
type BFDSettings struct {
	Enabled    bool          `json:"enabled"`
	Interval   time.Duration `json:"interval"`    // 3 ms .. 1 s, whole microseconds
	DetectMult uint8         `json:"detect_mult"` // 3..50
	// MeshAll asks for sessions between all devices that know of each other, not only
	// between those with hosts in a common zone.
	MeshAll bool `json:"mesh_all"`
}

// Settings are the switches that a reflector sets for every client.
type Settings struct {
	AutoJoin bool        `json:"auto_join"` // hosts of no zone join the default zone
	Hard     bool        `json:"hard"`      // isolate zones in the dataplane too
	BFD      BFDSettings `json:"bfd"`
}
