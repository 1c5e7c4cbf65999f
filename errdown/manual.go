package errdown

import "time"

// manual is a port that the operator has shut through Monitor.Shut: unlike one that
// he shuts behind our back, others are told before the carrier goes.
type manual struct{}

func newManual(*Config) Detector { return manual{} }

func (manual) Look(*Input) Signal { return Quiet }

func (manual) Next() time.Time { return time.Time{} }

func (manual) Reset() {}

func (manual) Policy() Policy { return Policy{Response: RespondShut, Latched: true} }

func (manual) Need() Need { return Need{} }
