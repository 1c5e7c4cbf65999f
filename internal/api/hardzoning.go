package api

import (
	"context"
	"net/http"
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

// HardZoning asks how the device enforces zones.
func (c *Client) HardZoning(ctx context.Context) (HardZoning, error) {
	return ask[HardZoning](ctx, c, http.MethodGet, "/v1/hard-zoning", nil, nil)
}

// OrderHardZoning suspends, resumes or flushes the enforcement.
func (c *Client) OrderHardZoning(ctx context.Context, order string) error {
	return c.change(ctx, http.MethodPost, "/v1/hard-zoning", nil, HardOrder{order})
}

func (h *handler) hardZoning(r *http.Request) (any, error) {
	if err := query(r).close(); err != nil {
		return nil, err
	}
	return h.src.HardZoning(r.Context())
}

func (h *handler) orderHardZoning(r *http.Request) (any, error) {
	o, err := body[HardOrder](r)
	if err != nil {
		return nil, err
	}
	return nil, h.src.OrderHardZoning(r.Context(), o.Order)
}
