package hostagent

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/snsd"
)

// Limits of hooks.
const (
	hookLimit   = 10 * time.Second // then it is killed
	hooksAtOnce = 4
	hooksWait   = snsd.MaxAgentPairs // paths with a call that waits; of one path the newest does
)

// Hooks are programs of the operator that are told of notices, for iSCSI and other multipaths. Each
// gets one JSON object on its standard input. Those of one path run one after the other.
type Hooks struct {
	OnActive, OnInactive []string // program and arguments, no shell; empty: none
	Limit                time.Duration

	slots   chan struct{}
	mu      sync.Mutex
	waiting map[path]*HookCall // the newest call of each path that has one running
	running map[path]bool

	done, failed, skipped atomic.Uint64
}

// HookCounters count calls of hooks.
type HookCounters struct {
	Done    uint64 `json:"done"`
	Failed  uint64 `json:"failed"`  // with another exit status than 0, or killed
	Skipped uint64 `json:"skipped"` // a newer word about the same path came before they began
}

// HookCall is what a hook reads.
type HookCall struct {
	Event      string        `json:"event"` // active or inactive
	Subject    netip.Addr    `json:"subject"`
	Self       netip.Addr    `json:"self"`
	Interface  string        `json:"interface"`
	Role       snsd.Role     `json:"role"`
	Protocol   snsd.Protocol `json:"protocol"`
	Port       uint16        `json:"port"`
	NQN        string        `json:"nqn"`
	Reason     snsd.Reason   `json:"reason"`
	Sequence   uint32        `json:"sequence"`
	ReceivedAt time.Time     `json:"received-at"`
}

// NewHooks makes the two hooks.
func NewHooks(onActive, onInactive []string) *Hooks {
	return &Hooks{OnActive: onActive, OnInactive: onInactive, Limit: hookLimit, slots: make(chan struct{}, hooksAtOnce),
		waiting: make(map[path]*HookCall), running: make(map[path]bool)}
}

func (h *Hooks) counters() HookCounters {
	if h == nil {
		return HookCounters{}
	}
	return HookCounters{h.done.Load(), h.failed.Load(), h.skipped.Load()}
}

// call has the hook of a notice run, and does not wait for it.
func (h *Hooks) call(n *snsd.Notice, at time.Time, ifname string) {
	if !h.wants(n) {
		return
	}
	c := &HookCall{Event: n.State.String(), Subject: n.Subject, Self: n.Host, Interface: ifname, Role: n.Service.Role, Protocol: n.Service.Protocol,
		Port: n.Service.Port, NQN: n.Service.NQN, Reason: n.Reason, Sequence: n.Seq, ReceivedAt: at}
	p := path{n.Host, n.Subject}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[p] != nil || !h.running[p] && len(h.running) >= hooksWait {
		h.skipped.Add(1)
	}
	if !h.running[p] && len(h.running) >= hooksWait {
		return
	}
	h.waiting[p] = c
	if !h.running[p] {
		h.running[p] = true
		go h.serve(p)
	}
}

// wants reports whether there is a hook for a notice.
func (h *Hooks) wants(n *snsd.Notice) bool { return h != nil && len(h.program(n.State.String())) > 0 }

func (h *Hooks) program(event string) []string {
	if event == snsd.Active.String() {
		return h.OnActive
	}
	return h.OnInactive
}

// serve runs the hooks of one path until none waits.
func (h *Hooks) serve(p path) {
	for {
		h.slots <- struct{}{}
		h.mu.Lock()
		c := h.waiting[p]
		delete(h.waiting, p)
		if c == nil {
			delete(h.running, p)
			h.mu.Unlock()
			<-h.slots
			return
		}
		h.mu.Unlock()
		if err := h.run(c); err != nil {
			h.failed.Add(1)
		}
		h.done.Add(1)
		<-h.slots
	}
}

func (h *Hooks) run(c *HookCall) error {
	input, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.Limit)
	defer cancel()
	words := h.program(c.Event)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	cmd.WaitDelay = time.Second // its children may hold what it had open
	return cmd.Run()
}
