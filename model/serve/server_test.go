package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/remote"
	"github.com/openinof/inof/model/scenario"
)

// patience bounds waits; it is far above what anything takes.
const patience = 40 * time.Second

// rig is a server on the example's fabric.
type rig struct {
	t      *testing.T
	s      *Server
	socket string
	end    context.CancelFunc
}

func newRig(t *testing.T) *rig {
	t.Helper()
	f, err := scenario.Load("../../docs/examples/model/fabric.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, s: s, socket: filepath.Join(t.TempDir(), "f")}
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	r.end = end
	t.Cleanup(func() {
		end()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return r
}

// daemon is a dataplane as a daemon uses it.
type daemon struct {
	*remote.Dataplane
	err chan error
	end context.CancelFunc
}

func (r *rig) attach(device string, access ...string) *daemon {
	r.t.Helper()
	dp, err := remote.New(remote.Config{Socket: r.socket, Device: device, Access: access})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	d := &daemon{dp, make(chan error, 1), end}
	go func() { d.err <- dp.Run(ctx) }()
	r.t.Cleanup(end)
	return d
}

func get[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// ports takes the dump of ports in.
func (r *rig) ports(d *daemon, want int) {
	r.t.Helper()
	for range want {
		select {
		case e := <-d.Events():
			if e.Kind != fabric.PortAdded {
				r.t.Fatalf("%+v", e)
			}
		case err := <-d.err:
			r.t.Fatalf("the daemon ended before it had its ports: %v", err)
		case <-time.After(patience):
			r.t.Fatal("no port")
		}
	}
	get(r.t, "ready", d.Ready())
}

func (r *rig) fault(text string) error {
	_, err := remote.Do(r.t.Context(), r.socket, remote.Request{Fault: json.RawMessage(text)})
	return err
}

func (r *rig) status() (st Status) {
	r.t.Helper()
	reply, err := remote.Do(r.t.Context(), r.socket, remote.Request{Status: true})
	if err == nil {
		err = json.Unmarshal(reply.Status, &st)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// A daemon gets its ports, the frames of its hosts, carrier, and readings; it sends and
// shuts ports; and the next one gets the same.
func TestDaemonOnASimulatedSwitch(t *testing.T) {
	r := newRig(t)
	for round := range 2 {
		d := r.attach("leaf1", "eth[12]")
		r.ports(d, 2)
		if round > 0 { // hosts speak of their own again, to show that frames pass
			r.s.hosts[0].told <- func() { r.s.hosts[0].again(r.s.hosts[0].peer("eth0")) }
		}
		f := get(t, "registration", d.Frames())
		if f.EtherType != fabric.EtherTypeLLDP && f.EtherType != fabric.EtherTypeNTS || !strings.HasPrefix(f.Port, "eth") {
			t.Errorf("%+v", f)
		}
		if err := r.fault(`{"kind": "link-down", "link": "i0-leaf1"}`); err != nil {
			t.Fatal(err)
		}
		if e := get(t, "change", d.Events()); e.Port.Name != "eth1" || e.Port.Carrier || !e.Port.AdminUp {
			t.Errorf("%+v", e)
		}
		if err := r.fault(`{"kind": "link-up", "link": "i0-leaf1"}`); err != nil {
			t.Fatal(err)
		}
		if e := get(t, "change", d.Events()); e.Port.Name != "eth1" || !e.Port.Carrier {
			t.Errorf("%+v", e)
		}
		if err := d.SetAdmin("eth2", false); err != nil {
			t.Error(err)
		}
		if e := get(t, "change", d.Events()); e.Port.Name != "eth2" || e.Port.AdminUp || e.Port.Carrier {
			t.Errorf("shut: %+v", e)
		}
		if err := d.SetAdmin("eth2", true); err != nil {
			t.Error(err)
		}
		get(t, "change", d.Events())
		h, err := d.Health("eth1", fabric.AllFields)
		if err != nil || !h.Has(fabric.FieldPauseTime|fabric.FieldTxFrames|fabric.FieldsOfCounters) || h.Has(fabric.FieldRxPower) || h.Counters.RxFrames == 0 || h.At.IsZero() {
			t.Errorf("%+v, %v", h, err)
		}
		if c, err := d.Counters("eth1"); err != nil || c.CarrierChanges < 2 {
			t.Errorf("%+v, %v", c, err)
		}
		for _, err := range []error{d.Send("eth3", make([]byte, 64)), d.SetAdmin("up", false)} {
			if !errors.Is(err, fabric.ErrNoPort) {
				t.Errorf("a port that is not ours: %v", err)
			}
		}
		if err := d.Send("eth1", fabric.AppendEthernet(nil, fabric.MACNTS, fabric.MAC{2}, fabric.EtherTypeNTS)); err != nil {
			t.Error(err)
		}
		if sw := r.status().Switches; !sw[0].Attached || sw[1].Attached {
			t.Errorf("%+v", sw)
		}
		second := r.attach("leaf1", "*")
		if err := get(t, "refusal", second.err); err == nil || !strings.Contains(err.Error(), "has a control plane already") {
			t.Errorf("a second daemon: %v", err)
		}
		d.end()
		if err := get(t, "end", d.err); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		if _, err := d.Health("eth1", fabric.FieldCRC); !errors.Is(err, remote.ErrGone) {
			t.Errorf("a reading after the end: %v", err)
		}
		waitFor(t, func() bool { return !r.status().Switches[0].Attached })
	}
}

// peer is the switch that a port of the host is on.
func (h *host) peer(port string) model.NodeID {
	sim := h.s.lab.Sim()
	return sim.PortNode(sim.Peer(sim.EndpointPort(h.nics[port].ep)))
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// A switch that is switched off takes its daemon along and lets no other in.
func TestSwitchOff(t *testing.T) {
	r := newRig(t)
	d := r.attach("leaf2", "*")
	r.ports(d, 2)
	if err := r.fault(`{"kind": "switch-down", "switch": "leaf2"}`); err != nil {
		t.Fatal(err)
	}
	if err := get(t, "end", d.err); !errors.Is(err, remote.ErrGone) {
		t.Errorf("ended with %v", err)
	}
	if err := get(t, "refusal", r.attach("leaf2", "*").err); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Errorf("attached to a switch that is off: %v", err)
	}
	if st := r.status(); !st.Switches[1].Off || st.Switches[1].Ports[0].Carrier {
		t.Errorf("%+v", st.Switches[1])
	}
	if err := r.fault(`{"kind": "switch-up", "switch": "leaf2"}`); err != nil {
		t.Fatal(err)
	}
	r.ports(r.attach("leaf2", "*"), 2)
}

// What is wrong is refused with a reason, and harms nobody.
func TestBadRequests(t *testing.T) {
	r := newRig(t)
	for text, want := range map[string]string{
		`{"kind": "link-down", "link": "i0-leaf9"}`:            `want "node>neighbour"`,
		`{"kind": "melt", "link": "i0-leaf1"}`:                 `"melt" is not`,
		`{"kind": "storm", "host": "t0/7", "queues": [3]}`:     "no port number",
		`{"kind": "link-down", "link": "i0-leaf1", "wh": "x"}`: "unknown field",
		`[]`: "cannot unmarshal",
	} {
		if err := r.fault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, line := range []string{"\n", "{}\n", "rubbish\n", `{"attach": "i0"}` + "\n", `{"attach": 5}` + "\n", `{"what": 1}` + "\n", strings.Repeat("x", remote.MaxLine+10) + "\n"} {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(line)) // may be cut off on the way
		var reply remote.Reply
		if err := remote.NewReader(c).Read(&reply); err == nil && reply.Error == "" {
			t.Errorf("%.20q was taken", line)
		}
		c.Close()
	}
	// A daemon that sends rubbish loses its connection, and the switch can be had again.
	c, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(c, remote.Request{Attach: "leaf1"}); err != nil {
		t.Fatal(err)
	}
	reader := remote.NewReader(c)
	var reply remote.Reply
	if err := reader.Read(&reply); err != nil || reply.Error != "" {
		t.Fatal(reply, err)
	}
	_, _ = c.Write([]byte(`{"send": {"port": "nowhere", "data": "AAAA"}}` + "\n" + `{"send": "what"}` + "\n"))
	for err == nil {
		var d remote.Down
		err = reader.Read(&d)
	}
	c.Close()
	waitFor(t, func() bool { return !r.status().Switches[0].Attached })
	r.ports(r.attach("leaf1", "*"), 4)
	if _, err := remote.Do(t.Context(), filepath.Join(t.TempDir(), "none"), remote.Request{Status: true}); !errors.Is(err, remote.ErrGone) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no server: %v", err)
	}
}

// Traffic that would end has no place in real time.
func TestOnlyStorageInRealTime(t *testing.T) {
	f, err := scenario.Load("../../scenarios/incast-pfc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(f, nil); err == nil || !strings.Contains(err.Error(), "only storage is") {
		t.Errorf("got %v", err)
	}
}
