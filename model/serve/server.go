package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/live"
	"github.com/openinof/inof/model/remote"
	"github.com/openinof/inof/model/scenario"
)

// Limits of connections.
const (
	greeting  = 5 * time.Second // for the first line
	writeTime = 5 * time.Second // for a line; a daemon that takes longer is cut off
	maxConns  = 1024
	maxLog    = 1000
)

// Event is something that happened, for people.
type Event struct {
	Time time.Time `json:"time"`
	Node string    `json:"node"`
	Text string    `json:"text"`
}

// Server is a fabric at work.
type Server struct {
	name   string
	lab    *scenario.Lab
	fabric *live.Fabric
	hosts  []*host
	tell   func(Event)

	mu       sync.Mutex
	conns    int
	attached map[model.NodeID]*attachment
	booted   map[model.NodeID]bool // had a control plane once
	log      []Event
	rates    rates
}

// errOff ends the attachment of a switch that was switched off.
var errOff = errors.New("the switch was switched off")

// New builds the fabric of a scenario. Tell, which may be nil, is called with each
// event; it must not wait.
func New(f *scenario.File, tell func(Event)) (*Server, error) {
	lab, err := f.Lab()
	if err != nil {
		return nil, err
	}
	s := &Server{name: f.Name, lab: lab, tell: tell, attached: map[model.NodeID]*attachment{}, booted: map[model.NodeID]bool{}}
	s.fabric = live.New(lab.Sim(), lab.Handler(breaker{s}))
	for _, h := range lab.Hosts() {
		s.hosts = append(s.hosts, newHost(s, h))
	}
	return s, nil
}

// breaker breaks things in the fabric; what runs in a switch goes with it.
type breaker struct{ s *Server }

func (b breaker) SetCable(l model.LinkID, whole bool) { b.s.fabric.SetCable(l, whole) }

func (b breaker) KillSwitch(n model.NodeID) {
	b.s.fabric.KillSwitch(n)
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if a := b.s.attached[n]; a != nil {
		a.cut(errOff)
	}
}

func (b breaker) ReviveSwitch(n model.NodeID) { b.s.fabric.ReviveSwitch(n) }

// note keeps an event and tells it.
func (s *Server) note(node, format string, args ...any) {
	e := Event{Time: time.Now(), Node: node, Text: fmt.Sprintf(format, args...)}
	s.mu.Lock()
	s.log = append(s.log, e)
	if len(s.log) > maxLog {
		s.log = append(s.log[:0], s.log[len(s.log)-maxLog/2:]...)
	}
	s.mu.Unlock()
	if s.tell != nil {
		s.tell(e)
	}
}

// Run serves connections of l until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, end := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end(nil)
	if err := s.fabric.Do(func(*model.Sim) error { return s.lab.Start() }); err != nil {
		return err
	}
	task := func(f func(context.Context) error) {
		all.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				end(err)
			}
		})
	}
	task(s.run)
	task(s.measure)
	for _, h := range s.hosts {
		task(h.run)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		if !s.admit() {
			_ = remote.Write(c, remote.Reply{Error: fmt.Sprintf("there are %d connections already", maxConns)})
			c.Close()
			continue
		}
		all.Go(func() {
			defer s.leave()
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			s.serve(ctx, c)
		})
	}
}

// run lets time pass; what a load has to say about its end counts more.
func (s *Server) run(ctx context.Context) error {
	err := s.fabric.Run(ctx)
	if broken := s.lab.Err(); broken != nil {
		return broken
	}
	return err
}

func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns >= maxConns {
		return false
	}
	s.conns++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns--
}

// serve handles one connection.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(greeting))
	r := remote.NewReader(c)
	var req remote.Request
	err := r.Read(&req)
	_ = c.SetReadDeadline(time.Time{})
	var reply remote.Reply
	switch {
	case err != nil:
	case req.Attach != "":
		err = s.attach(ctx, c, r, req.Attach)
		if err == nil {
			return
		}
	case len(req.Fault) > 0:
		err = s.strike(req.Fault)
	case req.Status:
		reply.Status, err = json.Marshal(s.Status())
	default:
		err = errors.New("an empty request")
	}
	if err != nil {
		reply.Error = err.Error()
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	_ = remote.Write(c, reply)
}

// strike lets a fault happen now.
func (s *Server) strike(text json.RawMessage) error {
	var f scenario.Fault
	if err := strict(text, &f); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	if err := s.fabric.Do(func(*model.Sim) error { return s.lab.Strike(f) }); err != nil {
		return err
	}
	s.note("fabric", "fault: %s %s%s%s", f.Kind, f.Link, f.Switch, f.Host)
	return nil
}

// has reports whether a switch has a control plane; no other one may attach while it does.
func (s *Server) has(n model.NodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached[n] != nil
}

// attachment is a control plane of a switch. One that was cut off has gone when gone is closed.
type attachment struct {
	ctx  context.Context
	cut  context.CancelCauseFunc
	gone chan struct{}
}

// place makes the control plane's place at a switch taken; first reports whether nobody had it
// before. Next to one that was cut off and has not quite gone it waits.
func (s *Server) place(ctx context.Context, n model.NodeID, name string) (a *attachment, first bool, err error) {
	for {
		var before *attachment
		// A switch is switched off with the fabric held: either this sees it, or that finds this.
		err := s.fabric.Do(func(*model.Sim) error {
			if s.fabric.Dead(n) {
				return fmt.Errorf("switch %s is off", name)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if before = s.attached[n]; before != nil {
				return nil
			}
			a, first = &attachment{gone: make(chan struct{})}, !s.booted[n]
			a.ctx, a.cut = context.WithCancelCause(ctx)
			s.attached[n], s.booted[n] = a, true
			return nil
		})
		if err != nil || a != nil {
			return a, first, err
		}
		if before.ctx.Err() == nil {
			return nil, false, fmt.Errorf("switch %s: %w", name, live.ErrBusy)
		}
		select {
		case <-before.gone:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// attach makes a connection the control plane of a switch until it ends. An error is
// for the reply; after a good one it returns nil.
func (s *Server) attach(ctx context.Context, c net.Conn, r *remote.Reader, name string) error {
	n, ok := s.lab.Node(name)
	if !ok || !s.lab.Sim().IsSwitch(n) {
		return fmt.Errorf("there is no switch %q in fabric %s", name, s.name)
	}
	a, first, err := s.place(ctx, n, name)
	if err != nil {
		return err
	}
	ctx, cut := a.ctx, a.cut
	d := s.fabric.Device(n)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = d.Run(ctx) }()
	defer func() { // the next one may attach when this one has quite gone
		cut(nil)
		<-ended
		s.mu.Lock()
		delete(s.attached, n)
		s.mu.Unlock()
		close(a.gone)
		s.note(name, "control plane has detached")
	}()
	s.note(name, "control plane has attached")
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := remote.Write(c, remote.Reply{}); err != nil {
		return nil
	}
	if first {
		s.register(ctx, n)
	}
	answers := make(chan remote.Answer, 16)
	all := sync.WaitGroup{}
	all.Go(func() {
		if err := pump(ctx, c, d, answers); err != nil {
			cut(err)
		}
	})
	for {
		var up remote.Up
		if err := r.Read(&up); err != nil {
			cut(err)
			break
		}
		s.up(ctx, d, &up, answers)
	}
	all.Wait()
	return nil
}

// register has the hosts of a switch that got its first control plane speak as if
// their links had just come up: on a real switch they would have.
func (s *Server) register(ctx context.Context, n model.NodeID) {
	go func() {
		select {
		case <-s.fabric.Device(n).Ready():
		case <-ctx.Done():
			return
		}
		for _, h := range s.hosts {
			select {
			case h.told <- func() { h.again(n) }:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// pump writes what a device has to tell.
func pump(ctx context.Context, c net.Conn, d *live.Device, answers <-chan remote.Answer) error {
	ready := d.Ready()
	for {
		var line remote.Down
		select {
		case e := <-d.Events():
			line.Event = remote.NewEvent(e)
		case <-ready:
			ready, line.Ready = nil, true
		case f := <-d.Frames():
			b := fabric.AppendEthernet(nil, f.Dst, f.Src, f.EtherType)
			line.Frame = &remote.Frame{Port: f.Port, Data: append(b, f.Payload...), At: f.At.UnixNano()}
		case a := <-answers:
			line.Answer = &a
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_ = c.SetWriteDeadline(time.Now().Add(writeTime))
		if err := remote.Write(c, line); err != nil {
			return err
		}
	}
}

// up does what a daemon wants done.
func (s *Server) up(ctx context.Context, d *live.Device, up *remote.Up, answers chan<- remote.Answer) {
	if f := up.Send; f != nil {
		_ = d.Send(f.Port, f.Data) // a port that is not there was checked at the other end
	}
	q := up.Ask
	if q == nil {
		return
	}
	a := remote.Answer{ID: q.ID}
	var err error
	if q.Admin != nil {
		err = d.SetAdmin(q.Port, *q.Admin)
	} else {
		var h fabric.Health
		h, err = d.Health(q.Port, q.Want)
		a.Health = &h
	}
	if err != nil {
		a.Error, a.Health = err.Error(), nil
	}
	select {
	case answers <- a:
	case <-ctx.Done():
	}
}
