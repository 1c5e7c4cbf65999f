package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// deeds notes what a Core does to the world.
type deeds struct {
	nowhere
	done []string
}

func (d *deeds) SendFrame(port string, frame []byte) {
	if binary.BigEndian.Uint16(frame[12:]) == uint16(fabric.EtherTypeNTS) {
		d.done = append(d.done, "notice at "+port)
	}
}

func (d *deeds) SetAdmin(port string, up bool) {
	d.done = append(d.done, fmt.Sprintf("%s up=%t", port, up))
}

func (d *deeds) take() []string {
	done := d.done
	d.done = nil
	return done
}

// observed is a Core with two ports with a host each, whose storms shut.
func observed(t *testing.T, reflect, observe bool, disk *keep.Memory, st State) (*bareCore, *deeds) {
	t.Helper()
	b := &bareCore{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), disk: disk, changes: map[string]uint64{}}
	var ed errdown.Config
	ed.CRC.Response = errdown.RespondShut
	d := &deeds{}
	disk.Begin()
	c, err := New(Config{Self: bareSelf, Access: true, Reflect: reflect, Epoch: 1, Zones: zone.Set{AutoJoin: true}, ErrorDown: ed,
		Notify: hostnotify.Config{AllRoles: true}, Keep: disk, Observe: observe}, d, b.now)
	if err == nil {
		err = c.Restore(st, b.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Core = c
	for _, p := range []string{"eth1", "eth2"} {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	return b, d
}

// crc has the port count broken frames until the cause trips.
func (b *bareCore) crc(port string) {
	for n := range uint64(20) {
		b.now = b.now.Add(500 * time.Millisecond)
		h := fabric.Health{At: b.now, Valid: fabric.FieldsOfCounters, RxCRC: 10 * n, Counters: fabric.Counters{RxFrames: 1000 * n, RxCRC: 10 * n}}
		b.Sample(port, h, b.now)
		b.Tick(b.now)
	}
}

// ackAll has the hosts ack what they were sent.
func (b *bareCore) ackAll(observed bool) {
	for _, n := range b.notify.Notices() {
		if n.Acked.IsZero() && !observed {
			b.notify.AckAt(n.Port, snsd.Ack{Host: n.Host, Subject: n.Subject, Seq: n.Seq}, b.now, b.now)
		}
	}
	b.Tick(b.now)
}

func (b *bareCore) decided() (list []string) {
	for _, n := range b.notify.Notices() {
		list = append(list, fmt.Sprintf("%s of %s %v %v", n.Host, n.Subject, n.State, n.Reason))
	}
	return list
}

func TestADeviceThatObservesDecidesTheSameAndActsOnNothing(t *testing.T) {
	decided := map[bool][]string{}
	for _, observe := range []bool{false, true} {
		b, d := observed(t, true, observe, &keep.Memory{}, State{})
		b.register("a", "eth1", t1)
		b.register("b", "eth2", t2)
		b.ackAll(observe)
		b.crc("eth1")
		if shut := b.faults.ShutByCause("eth1"); !shut {
			t.Fatalf("observe=%t: the port was not to be shut", observe)
		}
		if !observe { // what the kernel says after it was shut
			b.Port(fabric.Event{Kind: fabric.PortChanged, At: b.now, Changes: 2, Port: fabric.Port{Name: "eth1", Index: 1}}, b.now)
			b.Tick(b.now)
		}
		b.ackAll(observe)
		if err := b.RecoverPort("eth1", b.now); err != nil {
			t.Errorf("observe=%t: %v", observe, err)
		}
		if !observe {
			b.carrier("eth1", true, fabric.PortChanged)
		}
		b.Tick(b.now)
		b.register("a", "eth1", t1)
		decided[observe] = b.decided()
		if did := len(d.take()) > 0; did == observe {
			t.Errorf("observe=%t: acted: %t", observe, did)
		}
	}
	if !slices.Equal(decided[false], decided[true]) || len(decided[true]) < 3 {
		t.Errorf("decided, acting:\n%q\nobserving:\n%q", decided[false], decided[true])
	}
}

func TestAHaltOpensWhatACauseShutAndAResumeShutsItAgain(t *testing.T) {
	disk := &keep.Memory{}
	b, d := observed(t, true, false, disk, State{})
	b.register("a", "eth1", t1)
	b.register("b", "eth2", t2)
	b.crc("eth1")
	b.Port(fabric.Event{Kind: fabric.PortChanged, At: b.now, Changes: 2, Port: fabric.Port{Name: "eth1", Index: 1}}, b.now)
	b.Tick(b.now)
	d.take()

	if err := b.Halt(api.Halt{Reason: "test", By: "tester", Since: b.now}, true, b.now); err != nil {
		t.Fatal(err)
	}
	if did := d.take(); !slices.Equal(did, []string{"eth1 up=true"}) {
		t.Errorf("at the halt: %v", did)
	}
	b.carrier("eth1", true, fabric.PortChanged)
	b.crc("eth2")
	for range 30 {
		b.now = b.now.Add(time.Second)
		b.Tick(b.now)
	}
	if did := d.take(); len(did) > 0 {
		t.Errorf("halted, it did %v", did)
	}
	for _, err := range []error{b.ShutPort("eth2", b.now), b.SendTestNotice(netip.MustParseAddr(t1), "eth1", nil, b.now), second(b.Drain(nil, time.Second, b.now))} {
		if !errors.Is(err, api.ErrRefused) {
			t.Errorf("an order of an operator: %v", err)
		}
	}
	if m := b.Mode(); !m.Observes || m.Fabric == nil || len(m.Reflectors) != 1 {
		t.Errorf("%+v", m)
	}

	// It survives the end of the process.
	b.KeepRows(b.now)
	disk.Stop()
	st := keptIn(t, disk)
	again, did := observed(t, true, false, disk, st)
	if m := again.Mode(); !m.Observes || m.Fabric == nil || m.Fabric.Reason != "test" {
		t.Errorf("after a restart: %+v", m)
	}
	did.take()

	if err := b.Resume(true, false, b.now); err != nil {
		t.Fatal(err)
	}
	b.Tick(b.now)
	if did := d.take(); !slices.Contains(did, "eth1 up=false") || !slices.Contains(did, "eth2 up=false") {
		t.Errorf("resumed, it did %v", did)
	}
}

func second[T any](_ T, err error) error { return err }

// A reflector's word stands while it is silent, over a restart, and until it says otherwise.
func TestAReflectorsHaltStands(t *testing.T) {
	disk := &keep.Memory{}
	b, _ := observed(t, false, false, disk, State{})
	b.ReflectorUp(bareReflector, b.now)
	say := func(h wire.Halt, seq uint64) {
		b.ReflectorMessage(bareReflector, &wire.Update{Origin: bareReflector, Epoch: 1, Seq: seq, Settings: &wire.Settings{Halt: h}, More: true}, b.now)
	}
	say(wire.Halt{On: true, OpenZoning: true}, 1)
	if !b.Mode().Observes || !b.OpensZoning() {
		t.Fatalf("%+v", b.Mode())
	}
	b.ReflectorDown(bareReflector, errors.New("gone"), b.now)
	if !b.Mode().Observes {
		t.Error("it acts because the reflector is silent")
	}
	if err := b.Resume(false, false, b.now); !errors.Is(err, api.ErrRefused) || !b.Mode().Observes {
		t.Errorf("a resume here: %v, %+v", err, b.Mode())
	}
	b.KeepRows(b.now)
	disk.Stop()
	b, _ = observed(t, false, false, disk, keptIn(t, disk))
	if !b.Mode().Observes {
		t.Error("it acts after a restart")
	}
	b.ReflectorUp(bareReflector, b.now)
	say(wire.Halt{}, 2)
	if b.Mode().Observes || b.OpensZoning() {
		t.Errorf("the reflector resumed: %+v", b.Mode())
	}
	say(wire.Halt{On: true}, 3)
	if err := b.Resume(false, true, b.now); err != nil || b.Mode().Observes {
		t.Errorf("forced: %v, %+v", err, b.Mode())
	}
}

// A seed of chaos in both modes: carriers that flap, broken frames, hosts that come, move and go,
// remote hosts that fail; the decisions are equal, and the one that observes does nothing.
func TestChaosInBothModesDecidesTheSame(t *testing.T) {
	decisions, acts := 0, 0
	for seed := range uint64(40) {
		run := func(observe bool) (decided, did []string) {
			b, d := observed(t, false, observe, &keep.Memory{}, State{})
			b.ReflectorUp(bareReflector, b.now)
			rnd := rand.New(rand.NewPCG(seed, 1))
			up, shut := map[string]bool{"eth1": true, "eth2": true}, map[string]bool{}
			remote := zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(t3), Device: netip.MustParseAddr("10.0.0.2"), Port: "eth1"},
				MAC: hostMAC("far"), Subscribes: true, Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE}}
			b.ReflectorMessage(bareReflector, &wire.Update{Origin: bareReflector, Epoch: 1, Seq: 1, Anew: true, Settings: &wire.Settings{AutoJoin: true}}, b.now)
			b.ReflectorMessage(bareReflector, &wire.EndOfSync{Epoch: 1, Seq: 1}, b.now)
			tick := func() { // and what the kernel says after an order
				b.Tick(b.now)
				for _, act := range d.take() {
					did = append(did, act)
					var p string
					var open bool
					if n, _ := fmt.Sscanf(act, "%s up=%t", &p, &open); n == 2 {
						shut[p] = !open
						b.Port(fabric.Event{Kind: fabric.PortChanged, At: b.now, Changes: b.changes[p],
							Port: fabric.Port{Name: p, Index: 1, AdminUp: open, Carrier: open && up[p]}}, b.now)
					}
				}
				b.Tick(b.now)
				b.ackAll(observe)
			}
			isShut := func(p string) bool { return shut[p] || b.ports[p].pretend }
			for seq := uint64(2); seq < 150; seq++ {
				b.now = b.now.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
				port, host := []string{"eth1", "eth2"}[rnd.IntN(2)], []string{t1, t2}[rnd.IntN(2)]
				u := &wire.Update{Origin: remote.Device, Epoch: 1, Seq: seq}
				switch rnd.IntN(6) {
				case 0: // the kernel of a port that is not really shut goes on saying
					if up[port] = !up[port]; observe || !isShut(port) {
						b.carrier(port, up[port], fabric.PortChanged)
					}
				case 1:
					for n := range uint64(20) {
						b.now = b.now.Add(500 * time.Millisecond)
						b.Sample(port, fabric.Health{At: b.now, Valid: fabric.FieldsOfCounters, RxCRC: 10 * n, Counters: fabric.Counters{RxFrames: 1000 * n, RxCRC: 10 * n}}, b.now)
						tick()
					}
				case 2:
					if up[port] && !isShut(port) {
						b.register(host, port, host)
					}
				case 3:
					u.Hosts = []wire.HostRecord{{Op: wire.Op(1 + rnd.IntN(2)), Host: remote, Why: snsd.ReasonAgedOut}}
				case 4:
					u.Downs = []wire.DownRecord{{Device: remote.Device, Port: "eth1", Addrs: []netip.Addr{remote.Addr},
						Down: zone.Down{Why: snsd.Reason(rnd.IntN(2)), Since: b.now}}}
				case 5:
					_ = b.RecoverPort(port, b.now)
				}
				if len(u.Hosts)+len(u.Downs) > 0 {
					b.ReflectorMessage(bareReflector, u, b.now)
				}
				tick()
			}
			list := b.decided() // in the order of each pair; that of pairs at one moment is nobody's affair
			slices.SortStableFunc(list, func(x, y string) int {
				return strings.Compare(x[:len("192.0.2.51 of 192.0.2.52")], y[:len("192.0.2.51 of 192.0.2.52")])
			})
			return list, did
		}
		acting, did := run(false)
		observing, nothing := run(true)
		if !slices.Equal(acting, observing) {
			t.Errorf("seed %d: decided, acting:\n%s\nobserving:\n%s", seed, strings.Join(acting, "\n"), strings.Join(observing, "\n"))
			return
		}
		if len(nothing) > 0 {
			t.Errorf("seed %d: observing, it did %v", seed, nothing)
		}
		decisions, acts = decisions+len(acting), acts+len(did)
	}
	if decisions < 400 || acts < 400 {
		t.Errorf("only %d decisions, %d acts", decisions, acts)
	}
}
