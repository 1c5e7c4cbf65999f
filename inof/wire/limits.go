package wire

import "time"

// Limits of messages and records. Lengths are bytes.
const (
	MaxMessage          = 1 << 20  // a whole message, header and tag included
	MaxHandshakeMessage = 4096     // the same before the peer has proved the password
	SyncChunk           = 32 << 10 // records of a full sync are grouped into Updates of about this size
	MaxDownAddrs        = 16384    // addresses in one DownRecord
	MaxFencePeers       = 512      // hosts in one FenceRecord
	MaxNotificationText = 512      // text of a Notification
	MaxReflectors       = 5        // reflectors of one client
)

// Limits of a reflector (the figures this project promises).
const (
	DefaultMaxClients     = 4096
	DefaultMaxZones       = 160_000
	DefaultMaxHosts       = 80_000
	DefaultMaxMemberships = 320_000
)

// Session timers.
const (
	DefaultHold      = 9 * time.Second
	DefaultKeepalive = 3 * time.Second
	MinHold          = 300 * time.Millisecond
	MinKeepalive     = 100 * time.Millisecond
	MaxHold          = time.Hour
	// HandshakeTimeout is the time from the TCP connection to Established.
	HandshakeTimeout = 5 * time.Second
	// DefaultGrace is how long a reflector keeps the records of a device that
	// left, and how long after its own start it waits for the devices it knew.
	DefaultGrace = 120 * time.Second
)
