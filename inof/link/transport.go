package link

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// PeerEventKind tells what a PeerEvent is about.
type PeerEventKind uint8

const (
	PeerUp      PeerEventKind = iota + 1 // the session is Established
	PeerDown                             // it ended; Err says why
	PeerMessage                          // Msg was received: *Update, *EndOfSync, *Report, *PathKeys or *Bound
	PeerDrained                          // nothing waits for it any more, see Peer.WhenDrained
)

func (k PeerEventKind) String() string {
	switch k {
	case PeerUp:
		return "up"
	case PeerDown:
		return "down"
	case PeerMessage:
		return "message"
	case PeerDrained:
		return "drained"
	}
	return "unknown"
}

// PeerEvent is one thing that happened to an established session. The events of a
// session come in order: one Up, others, one Down. When a newer session of a
// device replaces an older one, the Down of the older comes before the Up of the newer.
type PeerEvent struct {
	Peer *Peer
	Kind PeerEventKind
	Msg  wire.Message
	At   time.Time // with monotonic reading
	Size int       // of a message: bytes on the wire
	Err  error
	// Of an Up: what the peer's Open says it has seen of us, and ours of it.
	Seen, Offered *wire.Resume
	Caps          wire.Capabilities
}

// TransportConfig is what the sessions of a Server or a Dialer have in common.
type TransportConfig struct {
	Self  netip.Addr
	Roles wire.Roles
	Epoch uint64
	Caps  wire.Capabilities
	// Auth is asked at each new connection, so that a password or a certificate
	// can change without a restart. It must be safe for concurrent use.
	Auth func() Auth
	// Hold and Keepalive are offered to the peer; zero: the defaults.
	Hold, Keepalive time.Duration
	// HandshakeTimeout from connection to Established; zero: the default.
	HandshakeTimeout time.Duration
	// A peer that lets more than this wait is cut; zero: DefaultQueueBytes and
	// DefaultQueueMessages.
	QueueBytes, QueueMessages int
	// Resume gives what was seen of a device in its earlier sessions, nil: nothing.
	// It must be safe for concurrent use; nil: sessions never resume.
	Resume func(device netip.Addr) *wire.Resume
	// Sink is called from the reader goroutine of a session, which reads on when it
	// returns, and for PeerDrained from the one that writes.
	Sink func(PeerEvent)
	Log  *slog.Logger // nil: no log
	// Alarm is told of what an operator must mend; nil: nobody is. It must return at
	// once and ask the transport nothing.
	Alarm func(device netip.Addr, text string)
}

// withDefaults fills in what is zero and checks the rest.
func (c TransportConfig) withDefaults() (TransportConfig, error) {
	if c.QueueBytes == 0 {
		c.QueueBytes = DefaultQueueBytes
	}
	if c.QueueMessages == 0 {
		c.QueueMessages = DefaultQueueMessages
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = wire.HandshakeTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Alarm == nil {
		c.Alarm = func(netip.Addr, string) {}
	}
	if c.Auth == nil || c.Sink == nil {
		return c, errors.New("Auth and Sink must be set")
	}
	_, err := c.session(false).withDefaults()
	return c, err
}

// session is the configuration of a new session; its nonce is not set yet.
func (c *TransportConfig) session(dialer bool) SessionConfig {
	return SessionConfig{
		Self: c.Self, Dialer: dialer, Roles: c.Roles, Epoch: c.Epoch, Caps: c.Caps, Auth: c.Auth(),
		Hold: c.Hold, Keepalive: c.Keepalive, HandshakeTimeout: c.HandshakeTimeout,
	}
}

// Limits of the transport.
const (
	DefaultQueueBytes    = 32 << 20 // bytes that may wait for one peer
	DefaultQueueMessages = 65536    // messages that may wait for one peer
	DefaultMaxPending    = 256      // connections that are not Established yet
)

// PeerInfo is one session as operators see it.
type PeerInfo struct {
	Device     netip.Addr    `json:"device"`  // zero before the peer's Open
	Address    string        `json:"address"` // of the transport
	Role       wire.Roles    `json:"-"`
	RoleName   string        `json:"role"`
	State      State         `json:"state"`
	Since      time.Time     `json:"since"` // of the state
	MsgIn      uint64        `json:"messages_in"`
	MsgOut     uint64        `json:"messages_out"`
	BytesIn    uint64        `json:"bytes_in"`
	BytesOut   uint64        `json:"bytes_out"`
	QueueBytes int           `json:"queue_bytes"`
	LastError  string        `json:"last_error,omitempty"`
	LastErrAt  time.Time     `json:"last_error_at"`
	LastCode   wire.Code     `json:"last_code"`  // of LastError; 0: none
	Reconnects uint64        `json:"reconnects"` // connections after the first
	Hold       time.Duration `json:"hold_ns"`    // negotiated
	Keepalive  time.Duration `json:"keepalive_ns"`
	Auth       wire.AuthMode `json:"auth"`
	Password   PasswordUse   `json:"password,omitempty"` // of a session in mode hmac-sha256
	Epoch      uint64        `json:"epoch"`              // of the peer
	Dialed     bool          `json:"dialed"`
	// CertExpires is when the peer's certificate expires; zero without TLS.
	CertExpires time.Time `json:"certificate_expires"`
	// SlowedSince is since when the peer sends more than it may and is not read as fast as
	// it sends; zero: it does not. Slowed is for how long it was held up in all.
	SlowedSince time.Time     `json:"slowed_since"`
	Slowed      time.Duration `json:"slowed_ns"`
}

// TransportCounters count what happened to connections.
type TransportCounters struct {
	Accepted         uint64 `json:"accepted"`
	AcceptErrors     uint64 `json:"accept_errors"`
	PendingRefused   uint64 `json:"pending_refused"` // too many connections not Established
	Dials            uint64 `json:"dials"`
	DialErrors       uint64 `json:"dial_errors"`
	Established      uint64 `json:"established"`
	AuthFailed       uint64 `json:"auth_failed"`
	AuthMode         uint64 `json:"auth_mode_mismatch"`
	NotINOF          uint64 `json:"not_inof"`
	BadVersion       uint64 `json:"bad_version"`
	BadLength        uint64 `json:"bad_length"`
	BadType          uint64 `json:"bad_type"`
	Malformed        uint64 `json:"malformed"`
	BadSequence      uint64 `json:"bad_sequence"`
	BadDevice        uint64 `json:"bad_device"` // own, unexpected or not allowed device id, or roles that do not fit
	BadTimers        uint64 `json:"bad_timers"`
	BadCertificate   uint64 `json:"bad_certificate"` // of a peer: not taken, or not for its device
	TLSFailed        uint64 `json:"tls_failed"`
	Unexpected       uint64 `json:"unexpected_messages"`
	HandshakeTimeout uint64 `json:"handshake_timeouts"`
	HoldExpired      uint64 `json:"hold_expired"`
	Replaced         uint64 `json:"replaced"`
	LimitRefused     uint64 `json:"limit_refused"`
	GuessesRefused   uint64 `json:"guesses_refused"`   // connections from sources of too many wrong passwords
	SessionsRefused  uint64 `json:"sessions_refused"`  // of devices whose sessions begin and end too often
	DuplicateRefused uint64 `json:"duplicate_refused"` // sessions of a device whose session stands and answers; on that device too
	SlowCut          uint64 `json:"slow_cut"`
	Coalesced        uint64 `json:"messages_coalesced"` // became part of the latest state that waits for a slow peer
	NotifiedByPeer   uint64 `json:"notified_by_peer"`
	MsgIn            uint64 `json:"messages_in"`
	MsgOut           uint64 `json:"messages_out"`
	BytesIn          uint64 `json:"bytes_in"`
	BytesOut         uint64 `json:"bytes_out"`
	Writes           uint64 `json:"writes"` // write calls; MsgOut/Writes is the coalescing
}
