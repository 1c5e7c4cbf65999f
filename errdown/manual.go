package errdown

import (
	"time"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// Manual is a port that is shut by hand, through Monitor.Shut.
const Manual Cause = "manual"

// ManualConfig is nothing: nothing can be set.
type ManualConfig struct{}

func (*ManualConfig) cause() (Cause, snsd.Reason) { return Manual, snsd.ReasonLinkDown }

// Settings implements kind.
func (*ManualConfig) Settings() []setting.Setting { return nil }

func (*ManualConfig) detector() Detector { return manual{} }

// manual is a port that the operator has shut through Monitor.Shut: unlike one that
// he shuts behind our back, others are told before the carrier goes.
type manual struct{}

func (manual) Look(*Input) Signal { return Quiet }

func (manual) Next() time.Time { return time.Time{} }

func (manual) Reset() {}

func (manual) Policy() Policy { return Policy{Response: RespondShut, Latched: true} }

func (manual) Need() Need { return Need{} }
