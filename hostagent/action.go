package hostagent

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Action is one thing that was done about a path, or was tried.
type Action struct {
	Kind     string      `json:"kind"` // failover, reset, probe, avoid, forget, connect, refused, stay, kept, kernel-left, confirm, hook
	Subject  netip.Addr  `json:"subject"`
	Host     netip.Addr  `json:"host,omitzero"`
	Reason   snsd.Reason `json:"reason"`
	OwnLink  bool        `json:"own_link,omitempty"` // a port of this host lost its carrier
	Observed bool        `json:"observed,omitempty"` // mode: observe; it would have been done
	Seq      uint32      `json:"seq,omitempty"`
	Received time.Time   `json:"received"` // when the kernel took the frame, or the carrier was lost
	Begun    time.Time   `json:"begun"`
	Done     time.Time   `json:"done"`
	// Controllers are those it was done to; Left those that were left alone, each with the reason.
	Controllers []string `json:"controllers,omitempty"`
	Left        []string `json:"left,omitempty"`
	Sockets     int      `json:"sockets,omitempty"` // that were destroyed
	// Fence is what was known of the fence when a path was left, or was not.
	Fence *Fenced `json:"fence,omitempty"`
	Error string  `json:"error,omitempty"`
}

// fail adds an error.
func (a *Action) fail(err error) {
	if err == nil {
		return
	}
	if a.Error != "" {
		a.Error += "; "
	}
	a.Error += err.Error()
}

func (a *Action) leave(c *hostkernel.Controller, why string) {
	a.Left = append(a.Left, c.Name()+": "+why)
}

// Text says it in a line.
func (a *Action) Text() string {
	var b strings.Builder
	if a.Observed {
		b.WriteString("only observed: ")
	}
	fmt.Fprintf(&b, "%s %v", a.Kind, a.Subject)
	if a.OwnLink {
		b.WriteString(" (own link)")
	}
	if a.Reason != snsd.ReasonNone {
		fmt.Fprintf(&b, " (%v)", a.Reason)
	}
	if len(a.Controllers) > 0 {
		fmt.Fprintf(&b, " %s", strings.Join(a.Controllers, " "))
	}
	if a.Sockets > 0 {
		fmt.Fprintf(&b, ", %d socket(s) destroyed", a.Sockets)
	}
	round := func(t time.Time) time.Duration { return t.Sub(a.Received).Round(10 * time.Microsecond) }
	fmt.Fprintf(&b, ", begun after %v, done after %v", round(a.Begun), round(a.Done))
	if a.Fence != nil {
		fmt.Fprintf(&b, "; %v", a.Fence)
	}
	for _, l := range a.Left {
		fmt.Fprintf(&b, "; left %s", l)
	}
	if a.Error != "" {
		fmt.Fprintf(&b, ": %s", a.Error)
	}
	return b.String()
}
