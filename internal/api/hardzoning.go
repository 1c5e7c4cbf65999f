package api

import (
	"time"

	"github.com/openinof/inof/hardzone"
)

// HardZoning is how a switch enforces zones.
type HardZoning struct {
	State     HardState  `json:"state"`
	Why       []string   `json:"why,omitempty"` // of what is abnormal
	Suspended bool       `json:"suspended"`     // by an operator: everything passes
	Hosts     int        `json:"hosts"`         // addresses with a row
	Local     int        `json:"local"`         // of these on ports here
	Pairs     int        `json:"pairs"`         // that may talk
	Closing   int        `json:"closing"`       // that may talk no more, and wait for acks
	NoRoom    int        `json:"no_room"`       // that may talk, and have no row for want of room
	Unheard   int        `json:"unheard"`       // addresses of before the start that were not heard yet
	Audited   *time.Time `json:"audited,omitempty"`
	Repaired  int        `json:"repaired"` // rows that audits found wrong since the start
	Ports     []HardPort `json:"ports"`
	Zones     []HardZone `json:"zones"`
}

// HardPort is the filter at a port, with the frames it has seen.
type HardPort struct {
	Port   string `json:"port"`
	Attach string `json:"attach"` // native, tc or generic; empty: there is none
	Error  string `json:"error,omitempty"`
	hardzone.PortCounts
}

// HardZone is the traffic of a zone's hosts; the one without a name stands for all others.
type HardZone struct {
	Zone string `json:"zone"`
	hardzone.ZoneCounts
}

// Orders of OrderHardZoning.
const (
	HardSuspend = "suspend" // everything passes, until HardResume; also over a restart
	HardResume  = "resume"
	HardFlush   = "flush" // close at once what waits for acks, and compare all rows
)

// The values of WhyHard.Kernel, besides errors.
const (
	HardKernelPasses    = "passes"
	HardKernelDrops     = "drops"
	HardKernelSuspended = "passes: hard zoning is suspended"
)

// HardOrder is the body of an order.
type HardOrder struct {
	Order string `json:"order"`
}
