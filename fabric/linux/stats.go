package linux

import (
	"sync/atomic"
	"time"
)

// Stats are the counts of a whole dataplane since New.
type Stats struct {
	Messages    uint64 `json:"messages"`     // link messages read
	BadMessages uint64 `json:"bad_messages"` // of these, not understood
	Lost        uint64 `json:"lost"`         // times that the kernel had to drop notifications (ENOBUFS)
	Errors      uint64 `json:"errors"`       // other failures of the link socket; each makes a new one
	Dumps       uint64 `json:"dumps"`        // complete dumps read
	Events      uint64 `json:"events"`       // events handed to the owner
	// Carrier and administrative changes by who saw them first: the kernel function itself, a
	// notification, the carrier poller, or a dump (which means that the others missed it).
	SeenEarly    uint64 `json:"seen_early"`
	SeenByNotice uint64 `json:"seen_by_notice"`
	SeenByPoll   uint64 `json:"seen_by_poll"`
	SeenByDump   uint64 `json:"seen_by_dump"`
	Words        uint64 `json:"words"`       // heard of the kernel function about carrier
	WordsLost    uint64 `json:"words_lost"`  // that the kernel could not hand over; all links are read then
	EarlyWrong   uint64 `json:"early_wrong"` // losses heard early that netlink, when asked, knew nothing of
	// Polls counts rounds over all ports; PollCost is the moving average of what one
	// takes; PollSource says what they read: "sysfs", "ethtool" or "off".
	// Where all changes are heard early there are no rounds.
	Polls      uint64        `json:"polls"`
	PollCost   time.Duration `json:"poll_cost_ns"`
	PollSource string        `json:"poll_source"`
	Ports      []PortStats   `json:"ports"` // by name
}

// PortStats are the counts of one port's control frames since it was added.
type PortStats struct {
	Port      string `json:"port"`
	LLDP      uint64 `json:"lldp"`      // frames of EtherType 0x88cc handed to the owner
	NTS       uint64 `json:"nts"`       // frames of EtherType 0x88a7 handed to the owner
	Answers   uint64 `json:"answers"`   // ARP and IPv6 frames handed to the owner, after it asked for an address
	Overlong  uint64 `json:"overlong"`  // frames with more than fabric.MaxControlPayload bytes
	Throttled uint64 `json:"throttled"` // times that the port had used up its rate and had to wait
	Dropped   uint64 `json:"dropped"`   // frames the kernel dropped while it or the owner was waiting
	Errors    uint64 `json:"errors"`    // receive errors other than the port being shut
	Sent      uint64 `json:"sent"`
	SendDown  uint64 `json:"send_down"`  // frames not sent: port down
	SendBusy  uint64 `json:"send_busy"`  // frames not sent: transmit ring full, or carrier just lost
	SendError uint64 `json:"send_error"` // frames not sent: anything else
}

type counters struct {
	messages, badMessages, lost, errors, dumps, events  atomic.Uint64
	seenByNotice, seenByPoll, seenByDump, polls, costNS atomic.Uint64
	seenEarly, words, wordsLost, earlyWrong             atomic.Uint64
}

type portCounters struct {
	lldp, nts, answers, overlong, throttled, errors atomic.Uint64
	sent, sendDown, sendBusy, sendError             atomic.Uint64
}
