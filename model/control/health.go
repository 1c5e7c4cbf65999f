package control

import (
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/live"
)

type errdownNeed = errdown.Need

// health is a reading of a simulated port.
func (p *Plane) health(port model.PortID, want fabric.Fields) fabric.Health {
	h := live.PortHealth(p.sim, port, want)
	h.At = p.time()
	return h
}
