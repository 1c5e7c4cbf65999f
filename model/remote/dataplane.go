package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/fabric"
)

// Config says which switch of which fabric a Dataplane is.
type Config struct {
	Socket string   // of the process that runs the fabric
	Device string   // name of the switch there
	Access []string // names or globs of the ports that are taken care of
}

// Limits of what waits.
const (
	maxOut    = 4096            // lines to the fabric; more are dropped and counted
	maxIn     = 4096            // received frames; more are dropped and counted
	maxEvents = 4096            // events; a daemon that leaves more lying holds up everything else
	askPeriod = 2 * time.Second // for an answer
)

// Stats are the totals of a Dataplane.
type Stats struct {
	FramesIn    uint64 `json:"frames_in"`
	FramesOut   uint64 `json:"frames_out"`
	InDropped   uint64 `json:"in_dropped"`  // the daemon was too slow
	OutDropped  uint64 `json:"out_dropped"` // the fabric was too slow
	Overlong    uint64 `json:"overlong"`    // frames longer than control frames may be
	Unasked     uint64 `json:"unasked"`     // answers that nobody waited for
	OtherPorts  uint64 `json:"other_ports"` // events and frames of ports that are not configured
	AskTimeouts uint64 `json:"ask_timeouts"`
}

// Dataplane is a switch of a fabric that another process simulates.
type Dataplane struct {
	cfg    Config
	access fabric.Names
	events chan fabric.Event
	frames chan fabric.Frame
	ready  chan struct{}
	out    chan Up
	gone   chan struct{} // closed when Run ends

	mu      sync.Mutex
	nextID  uint64
	waiting map[uint64]chan Answer

	framesIn, framesOut, inDropped, outDropped, overlong, unasked, otherPorts, timeouts atomic.Uint64
}

var (
	_ fabric.Dataplane    = (*Dataplane)(nil)
	_ fabric.HealthReader = (*Dataplane)(nil)
)

// ErrGone is wrapped by errors about a fabric that has ended, or that never answered.
var ErrGone = errors.New("the simulated fabric is not there")

// New makes a Dataplane; Run attaches it.
func New(cfg Config) (*Dataplane, error) {
	names, err := fabric.ParseNames(cfg.Access)
	if err != nil {
		return nil, err
	}
	return &Dataplane{cfg: cfg, access: names, events: make(chan fabric.Event, maxEvents), frames: make(chan fabric.Frame, maxIn), ready: make(chan struct{}),
		out: make(chan Up, maxOut), gone: make(chan struct{}), waiting: map[uint64]chan Answer{}}, nil
}

// String names the dataplane.
func (d *Dataplane) String() string { return "model " + d.cfg.Device }

// Ready is closed when all ports have been told.
func (d *Dataplane) Ready() <-chan struct{} { return d.ready }

// Events gives ports and their changes.
func (d *Dataplane) Events() <-chan fabric.Event { return d.events }

// Frames gives received control frames.
func (d *Dataplane) Frames() <-chan fabric.Frame { return d.frames }

// Stats gives a copy of the totals.
func (d *Dataplane) Stats() Stats {
	return Stats{d.framesIn.Load(), d.framesOut.Load(), d.inDropped.Load(), d.outDropped.Load(), d.overlong.Load(), d.unasked.Load(), d.otherPorts.Load(), d.timeouts.Load()}
}

// Run attaches to the fabric and works until ctx ends or the fabric does, once.
func (d *Dataplane) Run(ctx context.Context) error {
	defer close(d.gone)
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", d.cfg.Socket)
	if err != nil {
		return fmt.Errorf("%w: %w; start it with `inofctl fabric serve`", ErrGone, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	r := NewReader(c)
	var reply Reply
	if err := Write(c, Request{Attach: d.cfg.Device}); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := r.Read(&reply); err != nil {
		return d.ended(ctx, err)
	}
	if reply.Error != "" {
		return fmt.Errorf("switch %s of the simulated fabric: %s", d.cfg.Device, reply.Error)
	}
	written := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(written)
		d.write(c, done)
	}()
	defer func() { close(done); <-written }()
	for {
		var line Down
		if err := r.Read(&line); err != nil {
			return d.ended(ctx, err)
		}
		if !d.take(ctx, &line) {
			return context.Cause(ctx)
		}
	}
}

func (d *Dataplane) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it has ended, or switch %s was switched off", ErrGone, d.cfg.Device)
	}
	return err
}

// write sends what waits.
func (d *Dataplane) write(c net.Conn, done <-chan struct{}) {
	for {
		select {
		case line := <-d.out:
			if err := Write(c, line); err != nil {
				c.Close() // the reader says why
				return
			}
		case <-done:
			return
		}
	}
}

// take handles one line; false when ctx has ended.
func (d *Dataplane) take(ctx context.Context, line *Down) bool {
	switch {
	case line.Event != nil:
		if !d.access.Match(line.Event.Port.Name) {
			d.otherPorts.Add(1)
			return true
		}
		select {
		case d.events <- fabric.Event{Kind: line.Event.Kind, Port: line.Event.Port, At: time.Unix(0, line.Event.At)}:
		case <-ctx.Done():
			return false
		}
	case line.Ready:
		select {
		case <-d.ready:
		default:
			close(d.ready)
		}
	case line.Frame != nil:
		d.frame(line.Frame)
	case line.Answer != nil:
		d.mu.Lock()
		ch := d.waiting[line.Answer.ID]
		delete(d.waiting, line.Answer.ID)
		d.mu.Unlock()
		if ch == nil {
			d.unasked.Add(1)
			return true
		}
		ch <- *line.Answer
	}
	return true
}

func (d *Dataplane) frame(f *Frame) {
	b := f.Data
	switch {
	case len(b) < fabric.EthernetHeaderLen || len(b) > fabric.EthernetHeaderLen+fabric.MaxControlPayload:
		d.overlong.Add(1)
		return
	case !d.access.Match(f.Port):
		d.otherPorts.Add(1)
		return
	}
	d.framesIn.Add(1)
	got := fabric.Frame{Port: f.Port, Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]), EtherType: binary.BigEndian.Uint16(b[12:]), Payload: b[fabric.EthernetHeaderLen:], At: time.Unix(0, f.At)}
	select {
	case d.frames <- got:
	default:
		d.inDropped.Add(1)
	}
}

// Send puts a frame on the wire of a port; it never waits.
func (d *Dataplane) Send(port string, frame []byte) error {
	if !d.access.Match(port) {
		return fmt.Errorf("%s: port %q: %w", d, port, fabric.ErrNoPort)
	}
	select {
	case d.out <- Up{Send: &Frame{Port: port, Data: append([]byte(nil), frame...)}}:
		d.framesOut.Add(1)
		return nil
	default:
		d.outDropped.Add(1)
		return fmt.Errorf("%s: port %s: the simulated fabric does not keep up", d, port)
	}
}

// ask sends a question and waits for the answer.
func (d *Dataplane) ask(q Ask) (Answer, error) {
	ch := make(chan Answer, 1)
	d.mu.Lock()
	d.nextID++
	q.ID = d.nextID
	d.waiting[q.ID] = ch
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, q.ID)
		d.mu.Unlock()
	}()
	timer := time.NewTimer(askPeriod)
	defer timer.Stop()
	select {
	case d.out <- Up{Ask: &q}:
	case <-d.gone:
		return Answer{}, ErrGone
	case <-timer.C:
		d.timeouts.Add(1)
		return Answer{}, fmt.Errorf("%w: it takes no question", ErrGone)
	}
	select {
	case a := <-ch:
		if a.Error != "" {
			return a, fmt.Errorf("%s: port %s: %s", d, q.Port, a.Error)
		}
		return a, nil
	case <-d.gone:
		return Answer{}, ErrGone
	case <-timer.C:
		d.timeouts.Add(1)
		return Answer{}, fmt.Errorf("%w: no answer within %v", ErrGone, askPeriod)
	}
}

// SetAdmin shuts or opens a port.
func (d *Dataplane) SetAdmin(port string, up bool) error {
	if !d.access.Match(port) {
		return fmt.Errorf("%s: port %q: %w", d, port, fabric.ErrNoPort)
	}
	_, err := d.ask(Ask{Port: port, Admin: &up})
	return err
}

// Health reads the wanted fields of a port.
func (d *Dataplane) Health(port string, want fabric.Fields) (fabric.Health, error) {
	if !d.access.Match(port) {
		return fabric.Health{}, fmt.Errorf("%s: port %q: %w", d, port, fabric.ErrNoPort)
	}
	a, err := d.ask(Ask{Port: port, Want: want & fabric.AllFields})
	if err != nil {
		return fabric.Health{}, err
	}
	if a.Health == nil {
		return fabric.Health{}, fmt.Errorf("%s: port %s: an answer without a reading", d, port)
	}
	h := *a.Health
	h.At = time.Now() // with monotonic reading; the way of the answer is the error
	return h, nil
}

// Counters reads a port's totals.
func (d *Dataplane) Counters(port string) (fabric.Counters, error) {
	h, err := d.Health(port, fabric.FieldsOfCounters)
	return h.Counters, err
}

// Do sends a request of an operator to the process that runs a fabric.
func Do(ctx context.Context, socket string, req Request) (Reply, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return Reply{}, fmt.Errorf("%w: %w; start it with `inofctl fabric serve`", ErrGone, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := Write(c, req); err != nil {
		return Reply{}, err
	}
	var r Reply
	if err := NewReader(c).Read(&r); err != nil {
		return Reply{}, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}
