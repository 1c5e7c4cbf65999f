package device

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// fenceRig is a switch that is its own reflector, with a dataplane that does what it is told.
type fenceRig struct {
	*Core
	t       *testing.T
	now     time.Time
	frames  map[string][]snsd.Notice // by port, since the last look
	raw     [][]byte
	updates []*wire.Update // to clients
	ext     map[string]snsd.Extensions
	blocks  map[fence.Key]fence.Block
	paused  bool // the queues never drain
	failing bool
}

func (r *fenceRig) SendFrame(port string, frame []byte) {
	p, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:])
	if err != nil {
		r.t.Fatal(err)
	}
	if p.Extensions != snsd.ExtFence {
		r.t.Errorf("a frame offers %#x", p.Extensions)
	}
	r.raw = append(r.raw, frame)
	r.frames[port] = append(r.frames[port], p.Notices...)
}

func (r *fenceRig) ToClients(ds []wire.Delivery) {
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok {
			r.updates = append(r.updates, u)
		}
	}
}

const nqnOf = "nqn.2026-11.test:"

func newFenceRig(t *testing.T, cfg fence.Config) *fenceRig {
	r := &fenceRig{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), frames: map[string][]snsd.Notice{}, ext: map[string]snsd.Extensions{}, blocks: map[fence.Key]fence.Block{}}
	c, err := New(Config{Self: bareSelf, Access: true, Reflect: true, Epoch: 7, Zones: zone.Set{AutoJoin: true}, Notify: hostnotify.Config{}, Fence: cfg}, fenceActions{r}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.Core = c
	for _, p := range []string{"a1", "a2", "h1", "h2", "h3"} {
		r.port(p, true, fabric.PortAdded)
	}
	r.Start(r.now)
	r.FenceBegin(nil, r.now)
	r.register("t1", "a1", t1, snsd.RoleTarget, "sub")
	r.register("t2", "a2", t2, snsd.RoleTarget, "sub")
	r.register("i1", "h1", i1, snsd.RoleInitiator, "host")
	r.register("i2", "h2", i2, snsd.RoleInitiator, "host")
	r.register("i3", "h3", "192.0.2.13", snsd.RoleInitiator, "old")
	r.ext["i1"], r.ext["i2"] = snsd.ExtFence, snsd.ExtFence
	r.run(time.Second)
	return r
}

// fenceActions are the rig's, and nothing else happens.
type fenceActions struct{ r *fenceRig }

func (a fenceActions) SendFrame(port string, f []byte) { a.r.SendFrame(port, f) }
func (a fenceActions) ToClients(ds []wire.Delivery)    { a.r.ToClients(ds) }
func (a fenceActions) ToReflectors([]wire.Delivery)    {}
func (a fenceActions) SetAdmin(string, bool)           {}
func (a fenceActions) Event(api.Event)                 {}
func (a fenceActions) WatchPaths([]bfd.Peer)           {}

func (r *fenceRig) port(name string, up bool, kind fabric.EventKind) {
	r.Port(fabric.Event{Kind: kind, At: r.now, Port: fabric.Port{Name: name, Index: 1, MAC: hostMAC(name), AdminUp: true, Carrier: up}}, r.now)
}

func (r *fenceRig) register(name, port, addr string, role snsd.Role, nqn string) {
	pdu, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{MAC: hostMAC(name), PortID: snsd.AgentPortID("eth0", 1), TTL: 120,
		Registration: snsd.Registration{Addr: netip.MustParseAddr(addr), Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
			Service: snsd.Service{Role: role, Protocol: snsd.ProtocolTCP, NQN: nqnOf + nqn}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Frame(fabric.Frame{Port: port, Src: hostMAC(name), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: pdu, At: r.now}, r.now)
}

// run lets time pass in steps: agents ack, the dataplane acts.
func (r *fenceRig) run(d time.Duration) {
	names := map[string]string{"a1": "t1", "a2": "t2", "h1": "i1", "h2": "i2", "h3": "i3"}
	seen := map[string]int{}
	for end := r.now.Add(d); !r.now.After(end); r.now = r.now.Add(10 * time.Millisecond) {
		r.Tick(r.now)
		for port, list := range r.frames {
			var acks []snsd.Ack
			for _, n := range list[min(seen[port], len(list)):] {
				acks = append(acks, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
			}
			if seen[port] = len(list); len(acks) > 0 {
				payload, err := snsd.Packet{Version: snsd.Version, Extensions: r.ext[names[port]], Acks: acks}.Append(nil)
				if err != nil {
					r.t.Fatal(err)
				}
				r.Frame(fabric.Frame{Port: port, Src: hostMAC(names[port]), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: r.now}, r.now)
			}
		}
		r.dataplane()
	}
}

func (r *fenceRig) dataplane() {
	var out []fence.Result
	for _, s := range r.FenceWork(r.now) {
		res := fence.Result{Step: s}
		switch {
		case r.failing:
			res.Err = errFailing
		case s.Op == fence.OpBlock:
			res.Since = r.now
			r.blocks[s.Key] = res.Block
		case s.Op == fence.OpDrained:
			res.Drained = !r.paused
		case s.Op == fence.OpLift:
			delete(r.blocks, s.Key)
		case s.Op == fence.OpLiftAll:
			clear(r.blocks)
		}
		out = append(out, res)
	}
	if len(out) > 0 {
		r.FenceDone(out, r.now)
	}
}

type failing struct{}

func (failing) Error() string { return "the map is full" }

var errFailing = failing{}

// take returns the notices that a host got about a subject over a port since the last call.
func (r *fenceRig) take(port, subject string) (list []snsd.Notice) {
	rest := r.frames[port][:0:0]
	for _, n := range r.frames[port] {
		if n.Subject.String() == subject {
			list = append(list, n)
		} else {
			rest = append(rest, n)
		}
	}
	r.frames[port] = rest
	return list
}

func (r *fenceRig) forget() { clear(r.frames); r.raw, r.updates = nil, nil }

var fenceOn = fence.Config{On: true, Hold: 20 * time.Second}

// A port of an array loses its carrier: the notice leaves at once, one more says network once the
// block is in force, and the port stays closed until 20 s after the loss though the array is heard before.
func TestAnArraysPortThatLosesItsCarrier(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	r.forget()
	lost := r.now
	r.port("a1", false, fabric.PortChanged)
	if k := (fence.Key{Port: "a1"}); len(r.updates) > 0 {
		t.Errorf("%v: %+v was sent to no client", k, r.updates)
	}
	r.run(time.Second)
	got := r.take("h1", t1)
	if len(got) != 2 || got[0].State != snsd.Inactive || got[0].Fence == nil || got[0].Fence.Level != snsd.FenceNone {
		t.Fatalf("the agent got %+v", got)
	}
	if f := got[1].Fence; got[1].State != snsd.Inactive || got[1].Reason != got[0].Reason || f == nil || f.Level != snsd.FenceNetwork || f.Way != snsd.FenceBySwitch || f.Hold != 20*time.Second {
		t.Fatalf("once the block was in force the agent got %+v, %+v", got[1], f)
	}
	if old := r.take("h3", t1); len(old) != 1 || old[0].Fence != nil {
		t.Errorf("an agent that announced nothing got %+v", old)
	}
	if _, blocked := r.blocks[fence.Key{Port: "a1"}]; !blocked {
		t.Errorf("the port is not blocked: %v", r.blocks)
	}
	r.port("a1", true, fabric.PortChanged)
	r.register("t1", "a1", t1, snsd.RoleTarget, "sub")
	r.run(lost.Add(20*time.Second - 100*time.Millisecond).Sub(r.now))
	if got := r.take("h1", t1); len(got) > 0 {
		t.Errorf("%v after the loss the agent got %+v", r.now.Sub(lost), got)
	}
	r.run(time.Second)
	if got := r.take("h1", t1); len(got) != 1 || got[0].State != snsd.Active {
		t.Errorf("once the port is open the agent got %+v", got)
	}
	if len(r.blocks) > 0 {
		t.Errorf("%v are left", r.blocks)
	}
}

// A port that is shut because of a fault is fenced once it is down, and no earlier.
func TestAnArraysPortThatIsShut(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	r.forget()
	if err := r.ShutPort("a1", r.now); err != nil {
		t.Fatal(err)
	}
	r.run(time.Second)
	if got := r.take("h1", t1); len(got) != 1 || got[0].State != snsd.Inactive || got[0].Fence.Level != snsd.FenceNone || len(r.blocks) > 0 {
		t.Fatalf("while frames still pass the agent got %+v, and blocks are %v", got, r.blocks)
	}
	r.Port(fabric.Event{Kind: fabric.PortChanged, At: r.now, Port: fabric.Port{Name: "a1", Index: 1, MAC: hostMAC("a1")}}, r.now)
	r.run(time.Second)
	if got := r.take("h1", t1); len(got) != 1 || got[0].Fence.Level != snsd.FenceNetwork {
		t.Errorf("once the port was down the agent got %+v", got)
	}
}

// The path to a device fails: its host is kept from each array here by blocks of the pair, the level
// rises once the queue is empty, and the pair is not announced active while the block stands.
func TestAPathThatFails(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	dev := netip.MustParseAddr("10.0.0.2")
	remote := zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("192.0.2.21"), Device: dev, Port: "p"}, MAC: hostMAC("r1"), Since: r.now,
		Service: snsd.Service{Role: snsd.RoleInitiator, NQN: nqnOf + "remote"}}
	second := remote // by another device, so that there is another path
	second.Addr, second.Device = netip.MustParseAddr("192.0.2.22"), netip.MustParseAddr("10.0.0.3")
	for _, h := range []zone.Host{remote, second} {
		r.ClientUp(h.Device, r.now)
		r.ClientMessage(h.Device, &wire.Update{Origin: h.Device, Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{{Op: wire.Put, Host: h}}}, r.now)
		r.ClientMessage(h.Device, &wire.EndOfSync{Epoch: 1, Seq: 1}, r.now)
	}
	r.run(100 * time.Millisecond)
	r.forget()
	r.paused = true
	r.mesh.settings.Enabled = true
	r.mesh.watched, r.mesh.told = map[netip.Addr]bool{dev: true}, true
	path := func(report bfd.Report) {
		r.Path(bfd.Event{Key: bfd.Key{Peer: dev, Local: bareSelf, Multihop: true}, Report: report, At: r.now}, r.now)
	}
	began := r.now
	path(bfd.ReportDown)
	r.run(300 * time.Millisecond)
	pair := fence.Key{Port: "a1", Array: netip.MustParseAddr(t1), Host: remote.Addr}
	if len(r.blocks) != 2 || r.blocks[pair].Until.Sub(began).Round(time.Second) != 20*time.Second {
		t.Fatalf("blocks: %v", r.blocks)
	}
	level := func() (last snsd.FenceLevel, said bool) {
		for _, u := range r.updates {
			for _, f := range u.Fences {
				if f.Array == pair.Array && len(f.Peers) == 1 && f.Peers[0].Host == pair.Host {
					last, said = f.Peers[0].Level, true
				} else if f.Array == pair.Array && len(f.Peers) == 0 {
					last, said = snsd.FenceNone, false
				}
			}
		}
		return last, said
	}
	if l, said := level(); l != snsd.FenceNone || !said {
		t.Errorf("while the queue is paused clients have %v, %v", l, said)
	}
	r.paused = false
	r.run(100 * time.Millisecond)
	if l, said := level(); l != snsd.FenceNetwork || !said {
		t.Errorf("with the queue empty clients have %v, %v", l, said)
	}
	path(bfd.ReportUp)
	r.run(10 * time.Second)
	if f, blocked := r.fence.Between(pair.Array, pair.Host); !blocked || f.Level != snsd.FenceNetwork {
		t.Errorf("the path works, the block stands: %v, %v", f, blocked)
	}
	r.run(10 * time.Second)
	if l, said := level(); said || len(r.blocks) > 0 {
		t.Errorf("after the hold clients have %v, %v, blocks %v", l, said, r.blocks)
	}
	path(bfd.ReportDown)
	r.run(100 * time.Millisecond)
	if len(r.blocks) != 2 {
		t.Errorf("the second fault: %v", r.blocks)
	}
	r.LiftFences(r.now)
	r.run(time.Second)
	if len(r.blocks) > 0 {
		t.Errorf("lifted in order: %v", r.blocks)
	}
	if c := r.fence.machine.Counters(); c.LastPath != 0 || c.LiftedAll != 1 || c.Standing != 0 {
		t.Errorf("%+v", c)
	}
}

// A host's own port goes: it is kept from the arrays, and hears of it over its other port. A host
// with one port is not blocked, and an array's port that others use stays open.
func TestAHostsOwnPort(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	r.forget()
	r.port("h1", false, fabric.PortChanged)
	r.run(time.Second)
	for _, a := range []string{t1, t2} {
		var mine []snsd.Notice
		for _, n := range r.take("h2", a) {
			if n.Host.String() == i1 {
				mine = append(mine, n)
			}
		}
		if len(mine) != 1 || mine[0].State != snsd.Inactive || mine[0].Fence == nil || mine[0].Fence.Level != snsd.FenceNetwork || mine[0].Service.NQN != nqnOf+"sub" {
			t.Errorf("about %s over the other port: %+v", a, mine)
		}
	}
	if c := r.notify.Counters(); c.Detours != 2 || c.DetoursAcked != 2 {
		t.Errorf("%d notices by another port, %d acked", c.Detours, c.DetoursAcked)
	}
	for k := range r.blocks {
		if k.WholePort() || k.Host.String() != i1 {
			t.Errorf("%v is blocked", k)
		}
	}
	r.port("h3", false, fabric.PortChanged) // another path by i3 to t2, so it has one
	r.run(time.Second)
	if c := r.fence.machine.Counters(); c.LastPath == 0 {
		t.Errorf("a host with one port: %+v", c)
	}
}

// What stood before a restart is shown, kept, and lifted in its time.
func TestBlocksOfBeforeARestart(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	closed := fence.Block{Key: fence.Key{Port: "a1"}, Since: r.now.Add(-5 * time.Second), Until: r.now.Add(15 * time.Second)}
	r.forget()
	r.blocks[closed.Key] = closed
	r.FenceBegin([]fence.Block{closed}, r.now)
	r.run(time.Second)
	if got := r.take("h1", t1); len(got) != 2 || got[0].State != snsd.Inactive || got[0].Fence.Level != snsd.FenceNone || got[1].Fence.Level != snsd.FenceNetwork || got[1].Seq == got[0].Seq {
		t.Errorf("the agent got %+v", got)
	}
	r.run(20 * time.Second) // the queue was looked at anew: whatever passed last was no longer ago
	if got := r.take("h1", t1); len(r.blocks) > 0 || len(got) == 0 || got[len(got)-1].State != snsd.Active {
		t.Errorf("after its time: %v, the agent got %+v", r.blocks, got)
	}
}

// With client.fence off, without a dataplane, or with one that fails, no notice says that anything is
// fenced, and the port is open as soon as it is back.
func TestNothingIsFencedThatNobodyBlocks(t *testing.T) {
	for what, prepare := range map[string]func(r *fenceRig){
		"off":          func(r *fenceRig) { r.SetFence(fence.Config{Hold: 20 * time.Second}, r.now) },
		"no dataplane": func(r *fenceRig) { r.FenceEnd(r.now) },
	} {
		r := newFenceRig(t, fenceOn)
		prepare(r)
		r.forget()
		r.port("a1", false, fabric.PortChanged)
		r.run(time.Second)
		if got := r.take("h1", t1); len(got) != 1 || got[0].Fence == nil || got[0].Fence.Level != snsd.FenceNone {
			t.Errorf("%s: the agent got %+v", what, got)
		}
		r.port("a1", true, fabric.PortChanged)
		r.register("t1", "a1", t1, snsd.RoleTarget, "sub")
		r.run(time.Second)
		if got := r.take("h1", t1); len(got) != 1 || got[0].State != snsd.Active {
			t.Errorf("%s: with the port back the agent got %+v", what, got)
		}
	}
}

// A device that is told to observe lifts what stands, and blocks nothing until it acts again.
func TestADeviceThatObservesBlocksNothing(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	r.port("h1", false, fabric.PortChanged)
	r.run(time.Second)
	if len(r.blocks) == 0 {
		t.Fatal("nothing was blocked")
	}
	r.SetObserve(true, r.now)
	r.run(100 * time.Millisecond)
	if len(r.blocks) > 0 {
		t.Errorf("observing: %v", r.blocks)
	}
	r.port("h1", true, fabric.PortChanged)
	r.port("h2", false, fabric.PortChanged)
	r.run(time.Second)
	if len(r.blocks) > 0 {
		t.Errorf("a fault while it observes: %v", r.blocks)
	}
	r.SetObserve(false, r.now)
	r.port("a1", false, fabric.PortChanged)
	r.run(time.Second)
	if len(r.blocks) == 0 {
		t.Error("acting again it blocks nothing")
	}
}

// The frame to an agent that announced nothing is what it was, byte for byte, except for the byte
// that offers.
func TestTheFramesOfTheExistingAgentStayAsTheyAre(t *testing.T) {
	r := newFenceRig(t, fenceOn)
	r.forget()
	r.port("a1", false, fabric.PortChanged)
	r.run(100 * time.Millisecond)
	seen := 0
	for _, frame := range r.raw {
		payload := frame[fabric.EthernetHeaderLen:]
		p, err := snsd.ParsePacket(payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Notices {
			if n.Host.String() != "192.0.2.13" {
				continue
			}
			seen++
			want, err := snsd.AppendNotify(nil, snsd.Notice{Subject: n.Subject, Host: n.Host, Seq: n.Seq, State: snsd.Inactive, Reason: snsd.ReasonLinkDown,
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, NQN: nqnOf + "sub"}})
			if err != nil {
				t.Fatal(err)
			}
			if want[7] = 0x02; !bytes.Equal(payload[:len(want)], want) {
				t.Errorf("got  %x\nwant %x", payload, want)
			}
		}
	}
	if seen == 0 {
		t.Error("the agent got nothing")
	}
}
