package scenario

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
)

// fault is a Fault with its names resolved.
type fault struct {
	spec Fault
	link model.LinkID
	node model.NodeID
	ep   model.EndpointID
	mask uint8
}

// probe is a queue to sample.
type probe struct {
	name  string
	port  model.PortID
	queue int
}

func (b *builder) fault(i int, f *Fault) {
	key := fmt.Sprintf("faults[%d]", i)
	out := fault{spec: *f}
	if f.At < 0 || f.At > b.f.Duration {
		b.problem(f.Line, key+".at", "%v is not within the run of %v", f.At, b.f.Duration)
	}
	switch f.Kind {
	case "link-down", "link-up", "loss", "black", "clear":
		x, y, _ := strings.Cut(f.Link, "-")
		p, err := b.portTowards(x + ">" + y)
		if err != nil {
			b.problem(f.Line, key+".link", "%q: want \"node-neighbour\": %v", f.Link, err)
		} else {
			out.link = b.sim.LinkOf(p)
		}
		if f.Loss < 0 || f.Loss > 1 {
			b.problem(f.Line, key+".probability", "%g, want 0..1", f.Loss)
		}
	case "switch-down", "switch-up":
		id, ok := b.nodes[f.Switch]
		if !ok || !b.sim.IsSwitch(id) {
			b.problem(f.Line, key+".switch", "%q is not a switch", f.Switch)
		}
		out.node = id
	case "daemon-down", "daemon-up":
		id, ok := b.nodes[f.Switch]
		if !ok || !b.sim.IsSwitch(id) || b.f.Control == nil || b.plane == nil && len(b.problems) == 0 {
			b.problem(f.Line, key+".switch", "%q is not a switch with a simulated daemon", f.Switch)
		}
		out.node = id
	case "tell-down", "tell-up":
		ep, err := b.endpoint(f.Host)
		if err != nil {
			b.problem(f.Line, key+".host", "%v", err)
		}
		out.ep = ep
	case "storm":
		ep, err := b.endpoint(f.Host)
		if err != nil {
			b.problem(f.Line, key+".host", "%v", err)
		}
		out.ep = ep
		out.mask = b.queueMask(f.Line, key+".queues", f.Queues)
		if out.mask == 0 || f.Every <= 0 || f.For <= 0 {
			b.problem(f.Line, key, "a storm needs queues, every and for")
		}
	default:
		b.problem(f.Line, key+".kind", "%q is not link-down, link-up, switch-down, switch-up, daemon-down, daemon-up, storm, loss, black, clear, tell-down or tell-up", f.Kind)
	}
	b.faults = append(b.faults, out)
}

func (b *builder) probe(key, name string) {
	where, q, ok := strings.Cut(name, "/")
	n, err := strconv.Atoi(q)
	if !ok || err != nil || n < 0 || n >= model.NumQueues {
		b.problem(b.f.Record.Line, key, "%q: want \"node>neighbour/queue\"", name)
		return
	}
	p, err := b.portTowards(where)
	if err != nil {
		b.problem(b.f.Record.Line, key, "%v", err)
		return
	}
	b.probes = append(b.probes, probe{name, p, n})
}

// Progress is told how far a run is.
type Progress func(now, end model.Time, events uint64)

// runner is the Handler of a run: its timers are faults and new tables.
type runner struct {
	b *builder
}

// Tags of timers; a fault's is its number.
const tagReroute = 1 << 32

func (r runner) FlowDone(*model.Sim, model.FlowID) {}

// Divided reports whether all that happens, until the next timer, happens to one host or switch.
func (r runner) Divided() bool {
	for _, a := range r.b.apps {
		if !a.Divided() {
			return false
		}
	}
	return r.b.plane == nil
}

func (r runner) Timer(s *model.Sim, tag uint64) {
	if n := int(tag >> 56); n > 0 {
		if n == tagControl {
			r.failed(r.b.plane.Timer())
		} else if n <= len(r.b.apps) {
			r.failed(r.b.apps[n-1].Timer(s, tag))
		}
		return
	}
	if tag >= tagReroute {
		r.reroute(s, tag-tagReroute)
		return
	}
	r.happen(s, &r.b.faults[tag])
}

// happen lets a fault strike and, after those that change the ways, plans new tables.
func (r runner) happen(s *model.Sim, f *fault) {
	r.strike(s, f)
	switch f.spec.Kind {
	case "link-down", "link-up", "switch-down", "switch-up":
		if d := r.b.f.Reroute; d != nil {
			s.At(s.Now()+*d, tagReroute)
		}
	}
}

// breaker is who cuts cables and kills switches: the fabric itself, or the control
// plane that must know of it.
type breaker interface {
	SetCable(l model.LinkID, whole bool)
	KillSwitch(n model.NodeID)
	ReviveSwitch(n model.NodeID)
}

type bare struct{ *model.Sim }

func (s bare) SetCable(l model.LinkID, whole bool) { s.SetLink(l, whole) }

// strike lets a fault happen.
func (r runner) strike(s *model.Sim, f *fault) {
	var by breaker = bare{s}
	if r.b.breaker != nil {
		by = r.b.breaker
	}
	if r.b.plane != nil {
		r.b.plane.Note(control.Step{At: s.Now(), Step: control.StepFault, Node: f.where(), What: f.spec.Kind})
		by = r.b.plane
	}
	switch f.spec.Kind {
	case "link-down":
		by.SetCable(f.link, false)
	case "link-up":
		by.SetCable(f.link, true)
	case "loss":
		s.SetLoss(f.link, f.spec.Loss)
	case "black":
		s.SetMute(f.link, true, true)
	case "clear":
		s.SetMute(f.link, false, false)
		s.SetLoss(f.link, 0)
	case "switch-down":
		by.KillSwitch(f.node)
	case "switch-up":
		by.ReviveSwitch(f.node)
	case "daemon-down":
		r.b.plane.StopDaemon(f.node)
	case "daemon-up":
		r.b.plane.StartDaemon(f.node)
	case "tell-down":
		r.tell(f.ep, false)
	case "tell-up":
		r.tell(f.ep, true)
	case "storm":
		s.Storm(f.ep, f.mask, f.spec.Every, s.Now()+f.spec.For)
	}
}

// where names what breaks.
func (f *fault) where() string { return cmp.Or(f.spec.Link, f.spec.Switch, f.spec.Host) }

// reroute gives switch number n its new table, and the next one its turn; without a
// spread all get theirs at once.
func (r runner) reroute(s *model.Sim, n uint64) {
	spread := r.b.f.Spread
	sw := r.b.switches
	if spread <= 0 || len(sw) < 2 {
		s.Reroute()
		return
	}
	s.RerouteSwitch(sw[n])
	if int(n)+1 < len(sw) {
		s.At(s.Now()+spread/model.Time(len(sw)-1), tagReroute+n+1)
	}
}

// Check builds a scenario without running it.
func (f *File) Check() error {
	_, err := f.build()
	return err
}

// Run runs a scenario to its end, or until ctx is done: then the result holds what
// was reached and the error is ctx's.
func (f *File) Run(ctx context.Context, progress Progress) (*Result, error) {
	b, err := f.build()
	if err != nil {
		return nil, err
	}
	s := b.sim
	if err := b.begin(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	if progress != nil {
		s.OnProgress(func(now model.Time, events uint64) { progress(now, f.Duration, events) })
	}
	if f.Live != nil {
		s.OnProgress(func(model.Time, uint64) { f.Live(b.look) })
	}
	rec := newRecorder(b)
	err = b.advance(ctx, rec)
	if b.broken != nil {
		err = b.broken
	} else if err == model.ErrStopped {
		err = context.Cause(ctx)
	}
	res := b.result(rec)
	if rec.camera != nil {
		res.Film = rec.camera.cut(s, res)
	}
	if err == nil {
		err = s.CheckConservation()
	}
	return res, err
}

// begin plans the faults and starts what acts on the fabric.
func (b *builder) begin() error {
	s := b.sim
	if len(b.faults)+len(b.apps) > 0 || b.plane != nil || b.f.Reroute != nil {
		s.SetHandler(runner{b})
	}
	if b.f.Cores > 1 {
		if b.oneCore = b.whyOneCore(); b.oneCore != "" {
			b.f.Cores = 1
		}
	}
	for i := range b.faults {
		s.At(b.faults[i].spec.At, uint64(i))
	}
	if b.plane != nil {
		b.plane.Start()
	}
	for _, j := range b.jobs {
		j.Start()
	}
	for _, l := range b.loads {
		if err := l.Start(); err != nil {
			return err
		}
	}
	return nil
}

// whyOneCore tells why more cores cannot help; "" = they can.
func (b *builder) whyOneCore() string {
	if b.plane != nil {
		return "the control plane acts on several switches and hosts at one moment"
	}
	return b.sim.OneCore(b.f.Cores)
}

// advance runs in steps of the recording period, or in a hundred.
func (b *builder) advance(ctx context.Context, rec *recorder) error {
	step := b.f.Record.Every
	if step == 0 {
		step = max(b.f.Duration/100, 1)
	}
	for at := step; ; at += step {
		at = min(at, b.f.Duration)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.sim.RunOn(max(1, b.f.Cores), at); err != nil {
			return err
		}
		rec.sample()
		if at == b.f.Duration || b.f.UntilIdle && b.idle() {
			return nil
		}
	}
}
