package fencing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Admin sends commands to the admin queues of this host's controllers.
type Admin interface {
	Controllers() ([]hostkernel.Controller, error)
	Attribute(c *hostkernel.Controller, name string) (string, error)
	Admin(c *hostkernel.Controller, cmd hostkernel.AdminCommand) (result uint32, err error)
}

var _ Admin = hostkernel.Tree{}

// Cross-Controller Reset (NVMe Base 2.3, from TP8028). Figures of that revision.
const (
	opGetLog     = 0x02
	opIdentify   = 0x06
	opCrossReset = 0x38 // Figure 142; CDW10, 12 and 13: Figure 522

	identifyController = 1
	identifyLen        = 4096
	offCNTLID          = 78   // Figure 328
	offCIU             = 135  // Controller Instance Uniquifier
	offCIRN            = 136  // Controller Instance Random Number, 8 bytes
	offCCRL            = 1807 // Cross-Controller Reset Limit, 0: no such command

	resultDone = 1 // bit 0 of the completion: the reset is done already

	logReset      = 0x1e // Figures 304 and 305: a number of entries, then entries of 8 bytes at 8
	logResetLen   = 4096
	logEntryLen   = 8
	removeEntries = 1 << 8 // RMC of the log specific parameter: entries of what is done are removed
	allNamespaces = 0xffffffff

	// Status codes of type 1, command specific (Figure 103).
	statusMask       = 0x7ff
	statusInProgress = 0x13f
	statusLogFull    = 0x140
	statusLimit      = 0x141
)

// Entries of the log: what became of a reset.
const (
	resetRuns = 0
	resetDone = 1
)

// How long one command is waited for, and how often the log is read. The kernel takes the completion
// event (notice F4h) for itself, so the log is read instead.
const (
	commandTime = 2 * time.Second
	// patient is after which time without an answer the kernel leaves the path of a command: longer than its
	// own keep-alive, since what is asked here must not have it leave a path that is not fenced.
	patient    = 3 * time.Minute
	logEvery   = 20 * time.Millisecond
	learnEvery = time.Second
)

// instance is which controller answers: a number may be used again by another one.
type instance struct {
	cntlid uint16
	ciu    uint8
	cirn   uint64
	limit  uint8 // of resets at a time that it does
	stale  bool  // it has lost its connection since
}

func parseIdentify(b []byte) instance {
	return instance{cntlid: binary.LittleEndian.Uint16(b[offCNTLID:]), ciu: b[offCIU], cirn: binary.LittleEndian.Uint64(b[offCIRN:]), limit: b[offCCRL]}
}

// Reset has a living controller of a subsystem reset those of a lost path. What it must know of
// them is read while they live (Run).
type Reset struct {
	admin Admin

	mu    sync.Mutex
	known map[string]instance // by key
	stuck map[string]bool     // controllers with a command that is not waited for any longer
}

var (
	_ hostagent.Fencer       = (*Reset)(nil)
	_ hostagent.FenceChecker = (*Reset)(nil)
)

// NewReset returns a Reset for which Run has to work.
func NewReset(admin Admin) *Reset {
	return &Reset{admin: admin, known: make(map[string]instance), stuck: make(map[string]bool)}
}

// Run reads what controllers say of themselves until ctx ends.
func (r *Reset) Run(ctx context.Context) {
	for {
		r.Learn()
		select {
		case <-time.After(learnEvery):
		case <-ctx.Done():
			return
		}
	}
}

// key names a controller of the kernel as it is connected now: its number changes with each
// connection to another controller.
func (r *Reset) key(c *hostkernel.Controller) string {
	id, err := r.admin.Attribute(c, "cntlid")
	if err != nil {
		return ""
	}
	return c.Name() + " " + id + " " + c.NQN
}

// Learn asks live controllers that are new or connected anew: those are other instances. One that
// connects anew between two looks keeps the old numbers here; the array then refuses to reset it.
func (r *Reset) Learn() {
	cs, err := r.admin.Controllers()
	if err != nil && len(cs) == 0 {
		return
	}
	now := map[string]instance{}
	for i := range cs {
		c := &cs[i]
		key := r.key(c)
		if c.Discovery || key == "" {
			continue
		}
		r.mu.Lock()
		in, ok := r.known[key]
		r.mu.Unlock()
		switch {
		case c.State != hostkernel.Live:
			in.stale = true
		case !ok || in.stale:
			in, ok = r.identify(c)
		}
		if ok {
			now[key] = in
		}
	}
	r.mu.Lock()
	r.known = now
	r.mu.Unlock()
}

func (r *Reset) identify(c *hostkernel.Controller) (instance, bool) {
	b := make([]byte, identifyLen)
	_, err := r.command(c, hostkernel.AdminCommand{Name: "identify controller", Opcode: opIdentify, CDW10: identifyController, Data: b})
	return parseIdentify(b), err == nil
}

// command has a controller do a command, and waits for a while. One that did not answer is not asked again
// before it does, or its path has ended.
func (r *Reset) command(c *hostkernel.Controller, cmd hostkernel.AdminCommand) (uint32, error) {
	name := c.Name()
	r.mu.Lock()
	stuck := r.stuck[name]
	r.mu.Unlock()
	if stuck {
		return 0, fmt.Errorf("%s: %s has not answered an earlier command", cmd.Name, name)
	}
	type completion struct {
		result uint32
		err    error
	}
	cmd.Within = patient
	done := make(chan completion, 1)
	go func() {
		result, err := r.admin.Admin(c, cmd)
		done <- completion{result, err}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.stuck, name)
	}()
	timer := time.NewTimer(commandTime)
	defer timer.Stop()
	select {
	case d := <-done:
		return d.result, d.err
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(done) == 0 {
		r.stuck[name] = true
	}
	return 0, fmt.Errorf("%s: %s has not answered within %v", cmd.Name, name, commandTime)
}

func (r *Reset) instance(c *hostkernel.Controller) (instance, bool) {
	key := r.key(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	in, ok := r.known[key]
	return in, ok
}

// ErrNoReset means that no living controller offers the reset of another one.
var ErrNoReset = errors.New("no living controller offers Cross-Controller Reset (CCRL is 0)")

// prepare finds a living controller that can reset, and what it must know of the others.
func (r *Reset) prepare(p hostagent.FencePair) (by *hostkernel.Controller, lost []instance, err error) {
	for i := range p.Living {
		if in, ok := r.instance(&p.Living[i]); ok && in.limit > 0 {
			by = &p.Living[i]
			break
		}
	}
	switch {
	case by == nil:
		return nil, nil, ErrNoReset
	case len(p.Controllers) == 0:
		return nil, nil, errors.New("no controller to reset")
	}
	for i := range p.Controllers {
		in, ok := r.instance(&p.Controllers[i])
		if !ok {
			return nil, nil, fmt.Errorf("%s: what it is was not read while it lived: it cannot be reset by another controller", p.Controllers[i].Name())
		}
		lost = append(lost, in)
	}
	return by, lost, nil
}

// Check implements hostagent.FenceChecker.
func (r *Reset) Check(_ context.Context, p hostagent.FencePair) error {
	_, _, err := r.prepare(p)
	return err
}

// Fence implements hostagent.Fencer: each controller of the path is reset by a living one.
func (r *Reset) Fence(ctx context.Context, p hostagent.FencePair, working func()) (snsd.Fence, error) {
	begun := time.Now()
	by, lost, err := r.prepare(p)
	if err != nil {
		return snsd.Fence{}, err
	}
	for i, in := range lost {
		if err := r.reset(ctx, by, in, working); err != nil {
			return snsd.Fence{}, fmt.Errorf("reset of %s by %s: %w", p.Controllers[i].Name(), by.Name(), err)
		}
	}
	return snsd.Fence{Level: snsd.FenceArray, Way: snsd.FenceByNVMe, Took: time.Since(begun)}, nil
}

// Confirm implements hostagent.Fencer: nothing is blocked.
func (r *Reset) Confirm(context.Context, hostagent.FencePair) error { return nil }

// reset has a controller reset another one, and waits until that is done.
func (r *Reset) reset(ctx context.Context, by *hostkernel.Controller, in instance, working func()) error {
	cmd := hostkernel.AdminCommand{Name: "cross-controller reset", Opcode: opCrossReset, CDW10: uint32(in.cntlid) | uint32(in.ciu)<<16,
		CDW12: uint32(in.cirn), CDW13: uint32(in.cirn >> 32)}
	for {
		result, err := r.command(by, cmd)
		var status hostkernel.StatusError
		if errors.As(err, &status) {
			switch status & statusMask {
			case statusInProgress: // another host, or we before, asked for it
				working()
				return r.await(ctx, by, in)
			case statusLogFull:
				if _, err := r.log(by, true); err != nil {
					return err
				}
				fallthrough
			case statusLimit:
				if err := rest(ctx); err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case err != nil:
			return err
		case result&resultDone != 0:
			return nil
		}
		working()
		return r.await(ctx, by, in)
	}
}

// await reads the log until the reset is done.
func (r *Reset) await(ctx context.Context, by *hostkernel.Controller, in instance) error {
	for {
		entries, err := r.log(by, false)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.cntlid != in.cntlid || e.ciu != in.ciu || e.status == resetRuns {
				continue
			}
			if e.status == resetDone {
				return nil
			}
			return fmt.Errorf("the controller reports status %d of the reset", e.status)
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context) error {
	select {
	case <-time.After(logEvery):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("not done yet: %w", ctx.Err())
	}
}

// logEntry is one entry of the log: what became of a reset.
type logEntry struct {
	cntlid uint16 // of the controller that is reset
	ciu    uint8
	status uint8
}

// log reads the log of resets; with remove, entries of what is done are removed.
func (r *Reset) log(by *hostkernel.Controller, remove bool) ([]logEntry, error) {
	b := make([]byte, logResetLen)
	dwords := uint32(len(b)/4 - 1)
	cmd := hostkernel.AdminCommand{Name: "log of resets", Opcode: opGetLog, NSID: allNamespaces, CDW10: logReset | dwords<<16, Data: b}
	if remove {
		cmd.CDW10 |= removeEntries
	}
	if _, err := r.command(by, cmd); err != nil {
		return nil, err
	}
	return parseLog(b), nil
}

func parseLog(b []byte) (list []logEntry) {
	n := int(binary.LittleEndian.Uint16(b))
	for at := logEntryLen; n > 0 && at+logEntryLen <= len(b); at, n = at+logEntryLen, n-1 {
		e := b[at:]
		list = append(list, logEntry{cntlid: binary.LittleEndian.Uint16(e), ciu: e[2], status: e[6]})
	}
	return list
}
