package hostnotify

import (
	"iter"
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Directory is what the Notifier asks about the truth; *zone.Directory is one. It is
// only read during calls of the Notifier's methods.
type Directory interface {
	// State is Active, or Inactive and why; Inactive for an address not known.
	State(addr netip.Addr) (snsd.State, snsd.Reason)
	// Host is the attachment that counts for the address.
	Host(addr netip.Addr) (zone.Host, bool)
	// Peers are all known hosts in any state that share a zone with addr, each once, addr itself
	// excepted; and those that SubscribeAs said.
	Peers(addr netip.Addr) iter.Seq[netip.Addr]
	// Share reports whether both are known and have a zone in common.
	Share(a, b netip.Addr) bool
	// Known reports whether there is an attachment of the address.
	Known(addr netip.Addr) bool
	// Moves counts how often the address has passed from one holder to another.
	Moves(addr netip.Addr) uint32
}

// Config holds the Notifier's limits. A zero field means its default.
type Config struct {
	// FramesPerWindow is the most frames a port may send in any Window. The host
	// agent goes deaf for about 10 s at 500 frames within 500 ms. Default 100 in 500 ms.
	// Every fourth of them is kept for new inactive notices, so that telling a host
	// all its peers does not hold up a fault.
	FramesPerWindow int
	Window          time.Duration
	// MaxInFlight is the most notices sent and not yet acked for one host (one MAC on one port;
	// its addresses share it evenly). The host agent queues at most 1,000. A quarter is kept for
	// inactive notices. One that proves true after all while it waited for its ack is retried even
	// beyond this number. Default 256.
	MaxInFlight int
	// FirstRetry and MaxRetry bound how long a host may send no ack, while notices are under
	// way to it, before some are repeated; in between its acks decide (see flight.go).
	// Defaults 20 ms and 1 s.
	FirstRetry, MaxRetry time.Duration
	// RepeatActive is the distance of the repetitions of an active notice after the first
	// one: each restarts the 3 s for which the agent waits before it connects. Default 5 s.
	RepeatActive time.Duration
	// AllRoles has hosts told of hosts of their own role too: initiators of initiators and
	// targets of targets.
	AllRoles bool
	// QueryInterval is the least time between two answers to zone queries of one
	// address; queries in between are answered together at its end. Default 1 s.
	QueryInterval time.Duration
	// Grace is how long after Restore or Withdraw a host has to register before what it was
	// told is forgotten. Default 130 s (the usual LLDP TTL and 10 s).
	Grace time.Duration
	// FirstSeq is the first sequence number. Choose one that differs between starts.
	FirstSeq uint32
	// MaxHosts and MaxPairs bound the tables: local subscribers (default 16,384) and
	// (subscriber, subject) pairs (default 4,194,304, about 200 bytes each).
	MaxHosts, MaxPairs int
	// MaxGone bounds, of the pairs, those whose subject is gone after its host was told
	// to keep trying to reach it. Beyond it the oldest are forgotten. Default 65,536.
	MaxGone int
	// Keep has Rows and RowsOf give what is to be kept over a restart.
	Keep bool
	// History is how many recent notices are kept for operators. Default 4,096.
	History int
}

// withDefaults fills what is zero or out of range.
func (c Config) withDefaults() Config {
	num := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	dur := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	num(&c.FramesPerWindow, 100)
	dur(&c.Window, 500*time.Millisecond)
	num(&c.MaxInFlight, 256)
	dur(&c.FirstRetry, 20*time.Millisecond)
	dur(&c.MaxRetry, time.Second)
	dur(&c.RepeatActive, 5*time.Second)
	dur(&c.QueryInterval, time.Second)
	dur(&c.Grace, 130*time.Second)
	num(&c.MaxHosts, 16384)
	num(&c.MaxPairs, 4<<20)
	num(&c.MaxGone, 64<<10)
	num(&c.History, 4096)
	return c
}

// Out is one frame to send.
type Out struct {
	Port  string
	Frame []byte // whole Ethernet frame without FCS, at most 1,513 bytes; owned by the receiver

	first, end int // its new notices in Notifier.packed
}

// Notice is the record of one notice that was put on the wire.
type Notice struct {
	Host    netip.Addr   `json:"host"`    // told
	Subject netip.Addr   `json:"subject"` // about
	Port    string       `json:"port"`    // over which it went last
	Seq     uint32       `json:"seq"`
	State   snsd.State   `json:"state"`
	Reason  snsd.Reason  `json:"reason"`
	Service snsd.Service `json:"service"`
	Fence   *snsd.Fence  `json:"fence,omitempty"` // nil: the agent has not announced it, or there is nothing to fence
	Cause
	Decided time.Time `json:"decided"`        // when the difference was found
	Sent    time.Time `json:"sent"`           // its first frame was handed to the dataplane
	Acked   time.Time `json:"acked,omitzero"` // the ack was received; zero: not yet
	Retries int       `json:"retries"`
	// Skewed: the clocks of the devices differ, so that nothing can be said of the time
	// from FaultAt to any time of this device.
	Skewed bool `json:"skewed,omitempty"`
	// Observed: the device observes (mode: observe, or halted); the notice was decided and recorded,
	// and not sent.
	Observed bool `json:"observed,omitempty"`
	// Dropped is set when it is not repeated any more though nobody acked it: the truth
	// changed. GivenUp: because the host left.
	Dropped bool `json:"dropped,omitempty"`
	GivenUp bool `json:"given_up,omitempty"`
}

// Counters are totals since New, apart from the ones marked "now".
type Counters struct {
	Decided    uint64 `json:"decided"`     // differences found and queued
	Cancelled  uint64 `json:"cancelled"`   // of these, no longer true before they were sent
	Sent       uint64 `json:"sent"`        // notices, without retries
	SentActive uint64 `json:"sent_active"` // of these, active ones
	Retried    uint64 `json:"retried"`     // notices sent again
	Acked      uint64 `json:"acked"`       // notices acked
	Observed   uint64 `json:"observed"`    // of Sent: recorded only, since the device observes
	Superseded uint64 `json:"superseded"`  // sent, not acked, no longer true
	GivenUp    uint64 `json:"given_up"`    // sent, not acked, and the host left
	Frames     uint64 `json:"frames"`      // frames handed out
	Bytes      uint64 `json:"bytes"`       // their bytes, Ethernet header included

	AcksRepeated uint64 `json:"acks_repeated"` // acks of what was acked before
	AcksStale    uint64 `json:"acks_stale"`    // acks with another sequence number than the last one sent
	AcksUnknown  uint64 `json:"acks_unknown"`  // acks of a pair that was not told, or from a port the host is not registered on

	Queries         uint64 `json:"queries"`          // zone queries of subscribers
	QueriesDeferred uint64 `json:"queries_deferred"` // of these, put off by Config.QueryInterval
	QueriesUnknown  uint64 `json:"queries_unknown"`  // zone queries of addresses that do not subscribe

	FamilyMismatch uint64 `json:"family_mismatch"` // looks at a pair of an IPv4 and an IPv6 address, which is never told
	Conflicts      uint64 `json:"conflicts"`       // registrations of an address that another MAC holds
	HostsRefused   uint64 `json:"hosts_refused"`   // registrations beyond Config.MaxHosts, or without a valid address
	PairsRefused   uint64 `json:"pairs_refused"`   // active pairs not told because of Config.MaxPairs
	GoneForgotten  uint64 `json:"gone_forgotten"`  // pairs forgotten because of Config.MaxGone
	Unnamed        uint64 `json:"unnamed"`         // notices told without the subject's NQN, which is none
	Unencodable    uint64 `json:"unencodable"`     // notices that the format cannot carry
	RestoreBad     uint64 `json:"restore_bad"`     // entries of a snapshot that were not taken
	ClockSkewed    uint64 `json:"clock_skewed"`    // notices whose event's time cannot be right by our clock, left out of the latency figures
	Unmeasured     uint64 `json:"unmeasured"`      // inactive notices of no event: learned by a sync, say

	Detours        uint64 `json:"detours"`         // notices of a fence to a host by another port of its
	DetoursAcked   uint64 `json:"detours_acked"`   // of these, acked
	DetoursRefused uint64 `json:"detours_refused"` // of these, not sent because there were too many

	Hosts    uint64 `json:"hosts"`     // now: subscribers
	Pairs    uint64 `json:"pairs"`     // now: pairs told or about to be told
	Gone     uint64 `json:"gone"`      // now: of these, kept although the subject is gone
	Waiting  uint64 `json:"waiting"`   // now: notices queued, not yet sent
	InFlight uint64 `json:"in_flight"` // now: notices sent, not acked
}
