package api

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// Mode says whether a device acts, or observes: it decides and records everything, but notifies no
// host, shuts no port and blocks nothing.
type Mode struct {
	Observes   bool  `json:"observes"`
	Configured bool  `json:"configured,omitempty"` // mode: observe
	Local      *Halt `json:"local,omitempty"`      // an operator halted this device
	Fabric     *Halt `json:"fabric,omitempty"`     // an operator halted the clients of this reflector
	// Reflectors are those that say that the fabric is halted.
	Reflectors []netip.Addr `json:"reflectors,omitempty"`
	OpenZoning bool         `json:"open_zoning,omitempty"` // hard zoning lets everything pass
}

// Halt is an operator's order to observe.
type Halt struct {
	On         bool      `json:"on"`
	OpenZoning bool      `json:"open_zoning,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	By         string    `json:"by,omitempty"`
	Since      time.Time `json:"since,omitzero"`
}

// Name is "act" or "observe", as the configuration writes it.
func (m Mode) Name() string {
	if m.Observes {
		return "observe"
	}
	return "act"
}

// String is the mode with what made it so.
func (m Mode) String() string {
	var why []string
	if m.Configured {
		why = append(why, "mode: observe in the configuration")
	}
	if m.Local != nil {
		why = append(why, "halted here by "+m.Local.text())
	}
	for _, r := range m.Reflectors {
		why = append(why, "fabric halted at reflector "+r.String())
	}
	text := m.Name()
	if m.Observes {
		text += ": " + strings.Join(why, "; ")
	}
	if m.Fabric != nil {
		text += "; clients of this reflector are halted by " + m.Fabric.text()
	}
	return text
}

func (h *Halt) text() string {
	text := h.By + " since " + h.Since.Format(time.RFC3339)
	if h.Reason != "" {
		text += " (" + h.Reason + ")"
	}
	return text
}

// HaltOrder halts this device or, at a reflector, all its clients.
type HaltOrder struct {
	Fabric     bool   `json:"fabric,omitempty"`
	OpenZoning bool   `json:"open_zoning,omitempty"`
	Reason     string `json:"reason,omitempty"` // at most MaxHaltReason bytes
	// Force, of a resume, forgets what reflectors said, until they say it anew.
	Force bool `json:"force,omitempty"`
}

// MaxHaltReason is the longest reason of a halt, in bytes.
const MaxHaltReason = 200

func (o *HaltOrder) wrong() string {
	if len(o.Reason) > MaxHaltReason {
		return "reason is longer than 200 bytes"
	}
	return ""
}

// Actions on the mode.
var (
	// HaltDevices has this device observe, or all clients of this reflector.
	HaltDevices = Action[HaltOrder, Mode]{path: "/v1/halt", check: (*HaltOrder).wrong,
		do: func(src Source, ctx context.Context, o HaltOrder) (Mode, error) { return src.Halt(ctx, o) }}
	// ResumeDevices ends that.
	ResumeDevices = Action[HaltOrder, Mode]{path: "/v1/resume", check: (*HaltOrder).wrong,
		do: func(src Source, ctx context.Context, o HaltOrder) (Mode, error) { return src.Resume(ctx, o) }}
)
