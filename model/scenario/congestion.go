package scenario

import "github.com/openinof/inof/model"

// congestion turns the file's rate control into the model's; nil is none.
func (b *builder) congestion() *model.DCQCN {
	c := &b.f.Congestion
	var p *model.DCQCN
	switch c.Set {
	case "cx4":
		p = model.CX4()
	case "paper":
		p = model.Paper()
	case "", "none":
		if *c != (Congestion{Line: c.Line, Set: c.Set}) {
			b.problem(c.Line, "congestion.set", "is missing: the values of cx4 or paper are the others'")
		}
		return nil
	default:
		b.problem(c.Line, "congestion", "%q is not none, cx4 or paper", c.Set)
		return nil
	}
	override(&p.CNPEvery, c.CNPEvery)
	override(&p.AlphaTimer, c.AlphaTimer)
	override(&p.DecreaseCheck, c.DecreaseCheck)
	override(&p.ClampTarget, c.ClampTarget)
	override(&p.IncreaseTimer, c.IncreaseTimer)
	override(&p.F, c.FastRecovery)
	override(&p.GShift, c.GShift)
	override(&p.AI, c.Additive)
	override(&p.HAI, c.Hyper)
	override(&p.Min, c.Minimum)
	override(&p.InitialAlpha, c.FirstAlpha)
	if c.ByteCounter != nil {
		p.ByteCounter = int64(*c.ByteCounter)
	}
	if c.CNPDSCP != nil {
		p.CNPTOS = b.dscp(c.Line, "congestion.cnp-dscp", *c.CNPDSCP)
	}
	return p
}

// override sets what the file gives.
func override[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
