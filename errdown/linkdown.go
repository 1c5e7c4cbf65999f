package errdown

import "time"

// linkDown is the loss of carrier, for whatever reason: cable, peer, the
// operator's own shutting, or a port that is gone.
type linkDown struct{ cfg *Config }

func newLinkDown(cfg *Config) Detector { return linkDown{cfg} }

func (linkDown) Look(in *Input) Signal {
	if in.Present && in.Port.Up() {
		return Clear
	}
	return Trip
}

func (linkDown) Next() time.Time { return time.Time{} }

func (linkDown) Reset() {}

func (d linkDown) Policy() Policy {
	return Policy{Response: RespondNotify, HoldUp: d.cfg.LinkDown.HoldUp, Lasting: true}
}

func (linkDown) Need() Need { return Need{} }
