package daemon

import (
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/config"
)

// errorDownConfig translates the configuration for the monitor of faults.
func errorDownConfig(cfg *config.Config) errdown.Config {
	c := causesConfig(&cfg.ErrorDown.Causes)
	for i := range cfg.ErrorDown.Ports {
		p := &cfg.ErrorDown.Ports[i]
		// The configuration has checked the names by the same rules.
		if names, err := fabric.ParseNames(p.Names); err == nil {
			c.Ports = append(c.Ports, errdown.Exception{Names: names, Config: causesConfig(&p.Causes)})
		}
	}
	return c
}

func causesConfig(c *config.Causes) errdown.Config {
	reaction := func(r config.Reaction) errdown.Reaction {
		return errdown.Reaction{Response: response(r.Action), Recovery: r.Recovery, HoldUp: r.HoldUp, ClearPercent: r.ClearPercent}
	}
	f, p, l, s := c.LinkFlap, c.PFCStorm, c.LowPower, c.StormControl
	return errdown.Config{
		LinkDown: errdown.LinkDownConfig{HoldUp: c.LinkDown.HoldUp},
		LinkFlap: errdown.LinkFlapConfig{Changes: f.Changes, Window: f.Window, Response: response(f.Action), Recovery: f.Recovery},
		PFCStorm: errdown.PFCStormConfig{Detect: p.Detect, Recover: p.Recover, Deadlocks: p.Deadlocks, Window: p.Window,
			PauseFrames: p.PauseFrames, Reaction: reaction(p.Reaction)},
		CRC: errdown.CRCConfig{Errors: c.CRC.Errors, Window: c.CRC.Window, PerMillion: c.CRC.PerMillion, Reaction: reaction(c.CRC.Reaction)},
		LowPower: errdown.LowPowerConfig{Below: l.Below, Hysteresis: l.Hysteresis, Window: l.Window,
			Reaction: reaction(l.Reaction)},
		StormControl: errdown.StormControlConfig{Broadcast: s.Broadcast, Multicast: s.Multicast, Window: s.Window,
			Reaction: reaction(s.Reaction)},
	}
}

func response(a config.Action) errdown.Response {
	switch a {
	case config.ActionNotify:
		return errdown.RespondNotify
	case config.ActionErrorDown:
		return errdown.RespondShut
	}
	return errdown.RespondNone
}
