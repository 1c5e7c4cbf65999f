package api

import (
	"net/netip"
	"time"
)

// BFD is the watching of the paths to other devices.
type BFD struct {
	// Enabled: the reflectors ask for it. Off: this device takes no part by its own
	// configuration; its sessions are held in AdminDown.
	Enabled bool       `json:"enabled"`
	Off     bool       `json:"off"`
	Process BFDProcess `json:"process"`
	// Sessions by device; what the process does not say is what was asked of it.
	Sessions []BFDSession `json:"sessions"`
}

// BFDProcess is the process that holds the sessions.
type BFDProcess struct {
	Needed    bool       `json:"needed"` // there are paths to watch
	Connected bool       `json:"connected"`
	Since     time.Time  `json:"since"` // of Connected or its opposite
	PID       int        `json:"pid,omitempty"`
	Build     string     `json:"build,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	Priority  string     `json:"priority,omitempty"`   // what the kernel granted
	Failure   string     `json:"failure,omitempty"`    // why its sockets do not work
	Refused   string     `json:"refused,omitempty"`    // sessions that it does not hold
	LastError string     `json:"last_error,omitempty"` // why it is not connected, or did not answer
	// Holders are other processes with a socket on UDP port 4784, Stray is what came to the
	// device id for them.
	Holders []BFDHolder `json:"holders,omitempty"`
	Stray   *BFDStray   `json:"stray,omitempty"`
	// Counters by room: "process", "bfd", "transport".
	Counters map[string]any `json:"counters,omitempty"`
}

// BFDHolder is another process on the port.
type BFDHolder struct {
	Address netip.Addr `json:"address"` // 0.0.0.0 and :: are all
	Owner   string     `json:"owner"`
}

// BFDStray are packets of BFD that came to the device id and are for no session of ours.
type BFDStray struct {
	From  netip.Addr `json:"from"`
	Since time.Time  `json:"since"`
	Last  time.Time  `json:"last"`
}

// BFDTimers are what one side asks for.
type BFDTimers struct {
	MinTx      Duration `json:"min_tx_s"`
	MinRx      Duration `json:"min_rx_s"`
	DetectMult uint8    `json:"detect_mult"`
}

// BFDSession is the path to one device.
type BFDSession struct {
	Device      netip.Addr `json:"device"`
	Local       netip.Addr `json:"local"`
	Multihop    bool       `json:"multihop"`
	State       string     `json:"state"`        // AdminDown, Down, Init, Up; empty: the process does not say
	RemoteState string     `json:"remote_state"` // as last received
	Report      string     `json:"report"`       // what follows: unknown (never up), up, down, admin-down
	// Fault: hosts are told that those of the device cannot be reached.
	Fault       bool       `json:"fault"`
	Diag        string     `json:"diag"`
	RemoteDiag  string     `json:"remote_diag"`
	Configured  BFDTimers  `json:"configured"`
	Remote      *BFDTimers `json:"remote,omitempty"` // as last received
	TxInterval  Duration   `json:"tx_interval_s"`    // negotiated
	DetectTime  Duration   `json:"detect_time_s"`    // negotiated; 0: nothing was heard
	Auth        string     `json:"auth"`
	Keyless     bool       `json:"keyless"`              // no reflector has handed out a key yet: it is not watched
	Keys        int        `json:"keys"`                 // that are taken
	Since       *time.Time `json:"since,omitempty"`      // of State
	LastHeard   *time.Time `json:"last_heard,omitempty"` // nil: never
	LastDown    *time.Time `json:"last_down,omitempty"`  // nil: never
	Flaps       uint64     `json:"flaps"`
	HoldUp      Duration   `json:"hold_up_s"`   // how long a path that failed must work before it is told; longer for one that flaps
	HoldLeft    Duration   `json:"hold_left_s"` // until it is told that it works
	DownLeft    Duration   `json:"down_left_s"` // until it is told that a peer which was started again has not come back
	Retiring    bool       `json:"retiring"`    // no longer watched
	LocalDiscr  uint32     `json:"local_discriminator"`
	RemoteDiscr uint32     `json:"remote_discriminator"`
	PacketsIn   uint64     `json:"packets_in"`
	PacketsOut  uint64     `json:"packets_out"`
	TxLate      uint64     `json:"tx_late"` // packets sent late
}

// PathCounts say how many paths to other devices are watched.
type PathCounts struct {
	Watched int `json:"watched"`
	Failed  int `json:"failed"`
}
