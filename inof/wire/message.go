package wire

import (
	"fmt"
	"net/netip"
	"time"
)

// DefaultPort is the TCP port a reflector listens on.
const DefaultPort = 19516

// Version is the protocol version of this package (docs/protocol.md).
const Version = 2

// MsgType is the type octet of a message header.
type MsgType uint8

const (
	TypeOpen         MsgType = 1
	TypeKeepalive    MsgType = 2
	TypeUpdate       MsgType = 3
	TypeEndOfSync    MsgType = 4
	TypeNotification MsgType = 5
	TypeReport       MsgType = 6
	TypePathKeys     MsgType = 7
	TypeBound        MsgType = 8
)

// messages are the types there are: name, and what reads the bytes between header and tag.
var messages = [...]struct {
	name   string
	decode func(body []byte) (Message, error)
}{
	TypeOpen:         {"Open", reads(decodeOpen)},
	TypeKeepalive:    {"Keepalive", reads(decodeKeepalive)},
	TypeUpdate:       {"Update", reads(decodeUpdate)},
	TypeEndOfSync:    {"EndOfSync", reads(decodeEndOfSync)},
	TypeNotification: {"Notification", reads(decodeNotification)},
	TypeReport:       {"Report", reads(decodeReport)},
	TypePathKeys:     {"PathKeys", reads(decodePathKeys)},
	TypeBound:        {"Bound", reads(readBound)},
}

const lastType = MsgType(len(messages) - 1)

// reads keeps a nil pointer from becoming a Message that is not nil.
func reads[M Message](decode func([]byte) (M, error)) func([]byte) (Message, error) {
	return func(body []byte) (Message, error) {
		m, err := decode(body)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

func (t MsgType) known() bool { return t >= TypeOpen && t <= lastType }

func (t MsgType) String() string {
	if t.known() {
		return messages[t].name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Message is one of *Open, *Keepalive, *Update, *EndOfSync, *Notification, *Report,
// *PathKeys, *Bound. A message that was handed to a Session or Peer must not be changed any more.
type Message interface {
	Type() MsgType
	// appendBody writes what stands between header and tag.
	appendBody(b []byte) ([]byte, error)
}

// Roles of a device, a bitmap.
type Roles uint8

const (
	RoleReflector Roles = 1 << 0
	RoleClient    Roles = 1 << 1
)

func (r Roles) String() string {
	switch r {
	case RoleReflector:
		return "reflector"
	case RoleClient:
		return "client"
	case RoleReflector | RoleClient:
		return "reflector,client"
	}
	return fmt.Sprintf("roles %#x", uint8(r))
}

// Capabilities is the bitmap of optional abilities; unknown bits are ignored.
type Capabilities uint64

// The capabilities.
const (
	// CapInterestAll is a client that asks for all hosts, not only for those
	// that concern it.
	CapInterestAll Capabilities = 1 << 0
	// CapFence is a device that takes fence records. What such records say is unknown to another
	// one, for which nothing is fenced.
	CapFence Capabilities = 1 << 1
	// CapDeclared is a client that takes the hosts of a Bound. Others do not have them.
	CapDeclared Capabilities = 1 << 2
)

// For is the message as a peer with these capabilities takes it: m itself, or a copy without
// what it does not know.
func (c Capabilities) For(m Message) Message {
	switch m := m.(type) {
	case *Update:
		if len(m.Fences) > 0 && c&CapFence == 0 {
			without := *m
			without.Fences = nil
			return &without
		}
	case *Bound:
		if len(m.Hosts) > 0 && c&CapDeclared == 0 {
			return &Bound{Prefixes: m.Prefixes, NQNs: m.NQNs}
		}
	}
	return m
}

// NonceLen is the length of a session nonce in bytes.
const NonceLen = 32

// Open is the first message in each direction of a session.
type Open struct {
	Device     netip.Addr // device id of the sender
	Roles      Roles
	MinVersion uint8 // protocol versions that the sender speaks, both included
	MaxVersion uint8
	Caps       Capabilities
	Hold       time.Duration // whole milliseconds, MinHold..MaxHold
	Keepalive  time.Duration // whole milliseconds, MinKeepalive..Hold/3 is usual
	Nonce      [NonceLen]byte
	Epoch      uint64
	Auth       AuthMode
	Resume     *Resume // nil: nothing to resume from
}

// Resume names the last Update seen from the receiver of the Open, which has to
// send only what came after it.
type Resume struct {
	Epoch uint64
	Seq   uint64
	// Zones are the receiver's as the sender holds them, whole: where they are still the same
	// a full sync brings none. Zero: it holds none.
	Zones ZoneDigest
}

// Keepalive says that the sender lives, and as the first message after the Open
// that it knows the password.
type Keepalive struct {
	Proof  []byte // in the dialer's first: that it knows a second password; nil: it has one
	Demand uint64 // the receiver answers at once; 0: need not
	Answer uint64 // to this Demand; 0: to none
}

// EndOfSync says that a full sync is complete: what the sender did not repeat
// since the session began is gone. Epoch and Seq are the last ones of the sender.
// Resumed says that only what the receiver had missed was sent: nothing is gone.
type EndOfSync struct {
	Epoch   uint64
	Seq     uint64
	Resumed bool
	// Short are devices of whose hosts the reflector has no room for some, sorted: nothing of
	// them is gone.
	Short   []netip.Addr
	Cluster ClusterStamp // of a reflector in a cluster
	Members []netip.Addr // device ids of that cluster's reflectors, sorted
}

// Notification is the last message of a session: why the sender closes it.
type Notification struct {
	Code Code
	Text string // at most MaxNotificationText bytes of UTF-8, for a person
}

func (*Open) Type() MsgType         { return TypeOpen }
func (*Keepalive) Type() MsgType    { return TypeKeepalive }
func (*Update) Type() MsgType       { return TypeUpdate }
func (*EndOfSync) Type() MsgType    { return TypeEndOfSync }
func (*Notification) Type() MsgType { return TypeNotification }

// Delivery is one message for one or more devices.
type Delivery struct {
	To  []netip.Addr // sorted, each once
	Msg Message
	// Form is that of Msg for all deliveries that give it; nil: it is given by this one only.
	Form *Form
}
