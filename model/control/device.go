package control

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/bfd"
	core "github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/snsd"
)

// device is a switch: what it is, what its disk holds, and while it runs its daemon
// and its BFD process.
type device struct {
	p        *Plane
	node     model.NodeID
	id       netip.Addr
	name     string
	reflects bool
	dials    []model.NodeID // reflectors of its island
	access   []*accessPort
	byName   map[string]*accessPort

	protects bool // it has been told of a storage host
	dead     bool // the whole switch
	running  bool
	life     uint64
	epoch    uint64
	core     *core.Core
	bfd      *watcher
	disk     keep.Memory
	busy     model.Time // until then the daemon has work
	tick     virtual.Look

	streams  map[streamKey]*stream
	listen   func(*stream) // takes connections to portINOF
	nextPort uint16
	dialed   map[netip.Addr]*end
	taken    map[netip.Addr]*end
}

// accessPort is a port with a host.
type accessPort struct {
	id    model.PortID
	port  fabric.Port
	needs uint64 // generation of what is read of it
	// changes of carrier, as far as a process was there to be told
	changes uint64
}

func newDevice(p *Plane, n model.NodeID, islands []int) *device {
	d := &device{p: p, node: n, id: deviceAddr(n), name: p.sim.NodeName(n), byName: map[string]*accessPort{}}
	for _, r := range p.cfg.Reflectors {
		if r == n {
			d.reflects = true
		} else if islands[r] == islands[n] {
			d.dials = append(d.dials, r)
		}
	}
	for k := range p.sim.Ports(n) {
		id := p.sim.PortOf(n, k)
		if p.sim.IsSwitch(p.sim.PortNode(p.sim.Peer(id))) {
			continue
		}
		a := &accessPort{id: id, port: fabric.Port{Name: p.sim.PortShortName(id), Index: k + 1, MAC: portMAC(id), MTU: 9000, AdminUp: true}}
		d.access = append(d.access, a)
		d.byName[a.port.Name] = a
	}
	d.listen = d.accepted
	d.forget()
	return d
}

// forget is the end of a process: its connections are gone.
func (d *device) forget() {
	d.streams, d.dialed, d.taken = map[streamKey]*stream{}, map[netip.Addr]*end{}, map[netip.Addr]*end{}
}

// start runs the daemon with what the disk holds.
func (d *device) start() {
	p := d.p
	if d.dead || d.running || len(d.access) == 0 && !d.reflects {
		return
	}
	d.life++
	d.forget()
	d.nextPort = portFirst + uint16(p.rng.Uint64()%8192)
	if d.bfd == nil {
		d.bfd = newWatcher(d)
	}
	found := d.disk.Begin()
	st, _ := core.StateOf(found)
	st.Incomplete = st.Incomplete && !found.None // a new device has nothing to be careful about
	d.epoch = uint64(p.sim.Now()/model.Nanosecond)<<8 | 1
	n := len(d.dials)
	if d.reflects {
		n++
	}
	t := p.cfg.Timers
	cfg := core.Config{
		Self: d.id, Access: len(d.access) > 0, Reflect: d.reflects, Epoch: d.epoch, Reflectors: n, Wait: client.DefaultReflectorWait,
		ErrorDown: p.cfg.ErrorDown, Notify: hostnotify.Config{FirstSeq: uint32(d.epoch), History: 16},
		Transmit: &lldp.TxConfig{Local: lldp.Local{SysName: d.name, Mgmt: []netip.Addr{d.id}}},
		Reflector: reflector.Config{Known: st.Known,
			BFD: wire.BFDSettings{Enabled: p.cfg.BFD, Interval: max(t.MinTx, t.MinRx), DetectMult: t.DetectMult}},
	}
	if d.reflects {
		cfg.Zones = p.cfg.zones(p.sim)
	}
	cfg.Keep, cfg.Store = &d.disk, &d.disk
	c, err := core.New(cfg, d, p.time())
	if err == nil {
		err = c.Restore(st, p.time())
	}
	if err != nil {
		p.failed(fmt.Errorf("%w: switch %s: %w", ErrConfig, d.name, err))
		return
	}
	d.core, d.running, d.busy = c, true, p.sim.Now()
	d.tick.Forget()
	for _, a := range d.access {
		d.tellPort(a, fabric.PortAdded)
	}
	c.Start(p.time())
	d.bfd.tellAll()
	d.settle()
	for _, r := range d.dials {
		if len(d.access) > 0 {
			d.dial(r, 0)
		}
	}
}

// stop is a crash. What was not on the disk yet is in the memory of the machine, and comes there
// now.
func (d *device) stop() {
	d.disk.Commit(d.disk.Pending())
	d.running, d.core = false, nil
	if d.dead {
		d.bfd = nil
	}
	d.life++
	d.forget()
}

// crash is the end of the daemon alone: the switch forwards, BFD goes on, and the
// kernel closes what the daemon had open.
func (d *device) crash() {
	keys := slices.SortedFunc(maps.Keys(d.streams), func(a, b streamKey) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.local, b.local), cmp.Compare(a.other, b.other))
	})
	for _, k := range keys {
		d.streams[k].abort()
	}
	d.stop()
}

// work has the daemon handle an event when it has done what came before.
func (d *device) work(fn func()) {
	if !d.running {
		return
	}
	d.busy = max(d.busy, d.p.sim.Now()) + d.p.cfg.Processing
	life := d.life
	d.p.at(d.busy, func() {
		if d.running && d.life == life {
			fn()
			d.settle()
		}
	})
}

// settle follows an event: frames that are due, what is read of ports, the next tick.
func (d *device) settle() {
	p := d.p
	d.core.Pump(p.time())
	d.core.Replan(d.plan)
	d.followHosts()
	if n := d.disk.Pending(); n > 4096 {
		d.disk.Commit(n)
	}
	next := d.core.Next()
	if next.IsZero() {
		return
	}
	life := d.life
	d.tick.Plan(p, next, func() bool { return d.running && d.life == life }, func() {
		d.core.Tick(p.time())
		d.settle()
	})
}

// followHosts turns the lossless classes of the switch on when it knows the first storage host.
func (d *device) followHosts() {
	if d.protects || !d.p.cfg.LosslessFollows {
		return
	}
	for h := range d.core.View().AllHosts() {
		if h.Protocol != snsd.ProtocolRoCE { // of one that speaks LLDP alone nothing is known
			continue
		}
		d.protects = true
		d.p.sim.SetLossless(d.node, 0xff)
		d.p.note(StepLossless, d.name, "", "%s (%s) is known: its class is protected", h.Addr, h.Role)
		return
	}
}

// route sends a routed frame, if there is a switch to send it.
func (d *device) route(to model.NodeID, hash uint32, frame []byte) {
	if !d.dead {
		d.p.failed(d.p.sim.SendRouted(d.node, to, d.p.tos, hash, frame))
	}
}

// carrier takes the event of a port.
func (d *device) carrier(port model.PortID, up bool) {
	for _, a := range d.access {
		if a.id == port && d.running {
			d.p.note(StepDetected, d.name, "", "carrier of %s %s", d.p.sim.PortName(port), upDown(up))
			d.work(func() { d.tellPort(a, fabric.PortChanged) })
		}
	}
}

func upDown(up bool) string {
	if up {
		return "is back"
	}
	return "is lost"
}

// tellPort tells the Core of a port as it is.
func (d *device) tellPort(a *accessPort, kind fabric.EventKind) {
	a.port.AdminUp = !d.p.shut[a.id]
	if is := d.p.ports[a.id].told && a.port.AdminUp; is != a.port.Carrier {
		a.port.Carrier = is
		a.changes++
	}
	d.core.Port(fabric.Event{Kind: kind, Port: a.port, At: d.p.time(), Changes: a.changes + 1}, d.p.time())
}

// frame takes a frame off the wire.
func (d *device) frame(port model.PortID, b []byte) {
	if binary.BigEndian.Uint16(b[12:]) == etherIPv4 {
		d.routed(b)
		return
	}
	for _, a := range d.access {
		if a.id == port {
			f := fabric.Frame{Port: a.port.Name, Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]), EtherType: binary.BigEndian.Uint16(b[12:]), Payload: b[fabric.EthernetHeaderLen:], At: d.p.time()}
			d.work(func() { d.core.Frame(f, d.p.time()) })
		}
	}
}

func (d *device) routed(b []byte) {
	g, u, err := parseRouted(b)
	switch {
	case err != nil:
		d.p.failed(err)
	case g != nil:
		d.segment(g)
	case d.bfd != nil:
		d.bfd.receive(u)
	}
}

// SendFrame implements core.Actions.
func (d *device) SendFrame(port string, frame []byte) {
	a := d.byName[port]
	if binary.BigEndian.Uint16(frame[12:]) == fabric.EtherTypeNTS {
		if pkt, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:]); err == nil && len(pkt.Notices) > 0 {
			d.p.note(StepFrameSent, d.name, d.p.sim.NodeName(d.p.sim.PortNode(d.p.sim.Peer(a.id))), "%s", notices(pkt.Notices))
		}
	}
	d.p.failed(d.p.sim.SendControl(a.id, d.p.cfg.Class, append([]byte(nil), frame...)))
}

// ToReflectors implements core.Actions.
func (d *device) ToReflectors(ds []wire.Delivery) {
	d.deliver(d.dialed, ds, StepSent)
}

// ToClients implements core.Actions.
func (d *device) ToClients(ds []wire.Delivery) {
	d.deliver(d.taken, ds, StepReflected)
}

func (d *device) deliver(to map[netip.Addr]*end, ds []wire.Delivery, step string) {
	d.p.failed(virtual.Deliver(ds, to, func(e *end, m wire.Message, enc *wire.Encoded) {
		if e.Up && !e.Closed {
			if what := faults(m); what != "" {
				d.p.note(step, d.name, e.peerName(), "%s", what)
			}
			e.deliver(m, enc)
		}
	}))
}

// SetAdmin implements core.Actions.
func (d *device) SetAdmin(port string, up bool) {
	a := d.byName[port]
	if d.p.shut[a.id] == !up {
		return
	}
	d.p.shut[a.id] = !up
	d.p.light(d.p.sim.LinkOf(a.id))
	d.work(func() { d.tellPort(a, fabric.PortChanged) })
}

// WatchPaths implements core.Actions.
func (d *device) WatchPaths(peers []bfd.Peer) { d.bfd.watch(peers) }

// Event implements core.Actions: what the daemon decided about its own ports and
// paths goes into the report.
func (d *device) Event(e api.Event) {
	switch {
	case e.Kind == "fault" && e.Fields["cause"] != "", e.Kind == "path", e.Kind == "error":
		d.p.note(StepDecided, d.name, "", "%s", e.Text)
	}
}

// notices is what a frame says, in short.
func notices(list []snsd.Notice) string {
	n := list[0]
	s := fmt.Sprintf("%s %s", n.Subject, n.State)
	if n.State == snsd.Inactive {
		s += fmt.Sprintf(" (%s)", n.Reason)
	}
	if len(list) > 1 {
		s += fmt.Sprintf(" and %d more", len(list)-1)
	}
	return s
}

// faults is what a message says of faults; empty when it is about something else.
func faults(m wire.Message) string {
	u, ok := m.(*wire.Update)
	if !ok || len(u.Downs) == 0 {
		return ""
	}
	d := u.Downs[0]
	if !d.Is() {
		return fmt.Sprintf("fault of %s port %s is over", d.Device, d.Port)
	}
	return fmt.Sprintf("%s at %s port %s", d.Why, d.Device, d.Port)
}

// plan reads a port's health as often as the detectors need.
func (d *device) plan(name string, needs []errdownNeed) {
	a := d.byName[name]
	if a == nil {
		return
	}
	a.needs++
	gen, life := a.needs, d.life
	for _, n := range needs {
		var read func()
		every := model.FromDuration(max(n.Every, time.Millisecond))
		read = func() {
			if !d.running || d.life != life || a.needs != gen {
				return
			}
			h := d.p.health(a.id, n.Fields)
			d.work(func() { d.core.Sample(name, h, d.p.time()) })
			d.p.after(every, read)
		}
		d.p.after(0, read)
	}
}
