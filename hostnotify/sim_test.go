package hostnotify

import (
	"iter"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// world is a naive Directory: it computes every answer from scratch.
type world struct {
	hosts map[netip.Addr]*zone.Host
	fault map[netip.Addr]snsd.Reason
	zones map[string]map[netip.Addr]bool
	moves map[netip.Addr]uint32 // may be nil
}

func newWorld() *world {
	return &world{hosts: map[netip.Addr]*zone.Host{}, fault: map[netip.Addr]snsd.Reason{}, zones: map[string]map[netip.Addr]bool{}}
}

func (w *world) Host(a netip.Addr) (zone.Host, bool) {
	if h := w.hosts[a]; h != nil {
		return *h, true
	}
	return zone.Host{}, false
}

func (w *world) Known(a netip.Addr) bool { return w.hosts[a] != nil }

func (w *world) Moves(a netip.Addr) uint32 { return w.moves[a] }

func (w *world) State(a netip.Addr) (snsd.State, snsd.Reason) {
	if w.hosts[a] == nil {
		return snsd.Inactive, snsd.ReasonNone
	}
	if r := w.fault[a]; r != 0 {
		return snsd.Inactive, r
	}
	return snsd.Active, snsd.ReasonNone
}

func (w *world) Share(a, b netip.Addr) bool {
	if !w.Known(a) || !w.Known(b) {
		return false
	}
	for _, z := range w.zones {
		if z[a] && z[b] {
			return true
		}
	}
	return false
}

func (w *world) Peers(a netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, b := range w.sorted() {
			if b != a && w.Share(a, b) && !yield(b) {
				return
			}
		}
	}
}

func (w *world) sorted() []netip.Addr {
	var all []netip.Addr
	for a := range w.hosts {
		all = append(all, a)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

func (w *world) join(z string, addrs ...netip.Addr) {
	if w.zones[z] == nil {
		w.zones[z] = map[netip.Addr]bool{}
	}
	for _, a := range addrs {
		w.zones[z][a] = true
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func mac(i int) fabric.MAC {
	return fabric.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// put makes a host known; its MAC follows from its address unless m is given.
func (w *world) put(a netip.Addr, m ...fabric.MAC) *zone.Host {
	b := a.As16()
	h := &zone.Host{HostKey: zone.HostKey{Addr: a}, MAC: mac(int(b[13])<<16 | int(b[14])<<8 | int(b[15]))}
	if len(m) > 0 {
		h.MAC = m[0]
	}
	h.Service = snsd.Service{Role: snsd.RoleBoth, Protocol: snsd.ProtocolRoCE, Port: 4420}
	w.hosts[a] = h
	return h
}

// rig is a Notifier with its world, a clock, and everything that was put on the wire.
type rig struct {
	sending time.Duration // from Poll to the frame handed over
	t       testing.TB
	w       *world
	n       *Notifier
	now     time.Time
	wire    []spoken
	raw     []Out
}

// spoken is one notice seen on the wire.
type spoken struct {
	At   time.Duration
	Port string
	snsd.Notice
}

func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{t: t, w: newWorld(), now: epoch}
	r.n = New(cfg, r.w)
	r.n.SetSynced(true)
	return r
}

// local makes a host known and subscribed on the port, which is up.
func (r *rig) local(port string, addrs ...string) {
	for _, s := range addrs {
		h := r.w.put(ip(s))
		r.n.PortUp(port, mac(9), r.now)
		r.n.Subscribe(h.Addr, port, h.MAC, r.now)
	}
}

func (r *rig) changed(why snsd.Reason, addrs ...string) {
	var c zone.Changes
	for _, s := range addrs {
		c = append(c, zone.Change{Addr: ip(s), Why: why})
	}
	r.n.Changed(c, r.now, r.now)
}

func (r *rig) fault(a string, why snsd.Reason) {
	if why == 0 {
		delete(r.w.fault, ip(a))
	} else {
		r.w.fault[ip(a)] = why
	}
	r.changed(why, a)
}

func (r *rig) withdraw(a string, why snsd.Reason) {
	delete(r.w.hosts, ip(a))
	r.changed(why, a)
}

// poll sends what is due and returns the notices in it.
func (r *rig) poll() []spoken {
	r.t.Helper()
	var got []spoken
	for _, o := range r.n.Poll(r.now) {
		r.raw = append(r.raw, Out{Port: o.Port, Frame: slices.Clone(o.Frame)})
		r.n.Handed(o, r.now.Add(r.sending))
		for _, n := range parse(r.t, o.Frame).Notices {
			got = append(got, spoken{r.now.Sub(epoch), o.Port, n})
		}
	}
	r.wire = append(r.wire, got...)
	return got
}

// failer is a testing.TB or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func parse(t failer, frame []byte) snsd.Packet {
	t.Helper()
	if len(frame) >= 1514 || len(frame) <= fabric.EthernetHeaderLen {
		t.Fatalf("frame of %d bytes", len(frame))
	}
	if fabric.MAC(frame[:6]) != fabric.MACNTS || frame[12] != 0x88 || frame[13] != 0xa7 {
		t.Fatalf("Ethernet header % x", frame[:14])
	}
	p, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:])
	if err != nil {
		t.Fatalf("own frame does not parse: %v", err)
	}
	return p
}

func (r *rig) ack(ts ...spoken) {
	for _, x := range ts {
		r.n.Ack(x.Port, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}, r.now)
	}
}

// settle polls and acks everything until nothing is expected any more (for at most a
// minute of fake time) and returns what was told.
func (r *rig) settle() []spoken {
	r.t.Helper()
	var all []spoken
	end := r.now.Add(time.Minute)
	for {
		got := r.poll()
		all = append(all, got...)
		r.ack(got...)
		next := r.n.Next()
		if next.IsZero() || next.After(end) {
			return all
		}
		if next.After(r.now) {
			r.now = next
		} else if len(got) == 0 {
			r.t.Fatalf("Next is due at %v, but Poll has nothing", next.Sub(epoch))
		}
	}
}

func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

// says is the short form in which tests compare notices.
func says(ts []spoken) []string {
	out := []string{}
	for _, x := range ts {
		s := x.Host.String() + ": " + x.Subject.String() + " " + x.State.String()
		if x.State == snsd.Inactive {
			s += " " + x.Reason.String()
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}
