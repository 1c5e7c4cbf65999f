package reflector

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// line is one session between a client and a reflector with what is on its way.
type line struct {
	up               bool
	toClient, toRefl []wire.Message
}

// network is some reflectors and clients; messages take their time, are lost with
// their session, and the sessions resume.
type network struct {
	t       inoftest.Failer
	now     time.Time
	ids     []netip.Addr
	refls   map[netip.Addr]*Reflector
	clients map[netip.Addr]*client.Client
	links   map[[2]netip.Addr]*line
	resumed int
	full    int
	trimmed int // sessions that began with everything because the client's log was trimmed
	ownLog  int // records that are gone in a client's log
	agree   map[netip.Addr]client.Agreement
	decided bool // settle lets reflectors that name different holders do so until one decides
	// what a device would hold that does all that Applied says
	zones    map[netip.Addr]map[string][]zone.Member
	hosts    map[netip.Addr]map[zone.HostKey]zone.Host
	settings map[netip.Addr]*wire.Settings
}

func newNetwork(t inoftest.Failer, nRefl, nDev int, agree client.Agreement, cfg Config) *network {
	n := &network{t: t, now: inoftest.T0, ownLog: 8192, agree: map[netip.Addr]client.Agreement{}, settings: map[netip.Addr]*wire.Settings{}, refls: map[netip.Addr]*Reflector{}, clients: map[netip.Addr]*client.Client{}, links: map[[2]netip.Addr]*line{},
		zones: map[netip.Addr]map[string][]zone.Member{}, hosts: map[netip.Addr]map[zone.HostKey]zone.Host{}}
	for i := range nRefl {
		id := netip.AddrFrom4([4]byte{192, 0, 2, byte(250 + i)})
		n.ids = append(n.ids, id)
		r, err := New(id, 2, zone.Set{AutoJoin: true}, cfg, n.now)
		if err != nil {
			t.Fatal(err)
		}
		n.refls[id] = r
	}
	for i := range nDev {
		n.newClient(inoftest.DevID(i), 7, agree)
		for _, r := range n.ids {
			n.links[[2]netip.Addr{inoftest.DevID(i), r}] = &line{}
		}
	}
	return n
}

func (n *network) newClient(dev netip.Addr, epoch uint64, agree client.Agreement) {
	c := client.New(dev, epoch)
	c.SetReflectors(len(n.ids), agree, 10*time.Second)
	c.RememberGone(n.ownLog)
	n.clients[dev], n.agree[dev], n.settings[dev] = c, agree, nil
	n.zones[dev], n.hosts[dev] = map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}
}

func (n *network) link(dev, r netip.Addr) *line { return n.links[[2]netip.Addr{dev, r}] }

func (n *network) fromRefl(r netip.Addr, ds []wire.Delivery) {
	for _, d := range ds {
		for _, to := range d.To {
			l := n.link(to, r)
			if !l.up {
				n.t.Fatalf("%v for %v, which has no session", d.Msg.Type(), to)
			}
			if _, bad := d.Msg.(*wire.Notification); bad {
				n.t.Fatalf("%v gets %+v", to, d.Msg)
			}
			l.toClient = append(l.toClient, inoftest.Through(n.t, d.Msg))
		}
	}
}

func (n *network) fromClient(dev netip.Addr, ds []wire.Delivery) {
	for _, d := range ds {
		for _, to := range d.To {
			l := n.link(dev, to)
			if !l.up {
				n.t.Fatalf("%v for %v, which has no session", d.Msg.Type(), to)
			}
			l.toRefl = append(l.toRefl, inoftest.Through(n.t, d.Msg))
		}
	}
}

func (n *network) join(dev, r netip.Addr) {
	l := n.link(dev, r)
	if l.up {
		return
	}
	l.up = true
	seen, offered := n.clients[dev].ResumePoint(r), n.refls[r].ResumePoint(dev)
	n.fromClient(dev, n.clients[dev].Resume(r, offered, n.now))
	n.fromRefl(r, n.refls[r].Resume(dev, seen, offered, n.now))
	switch _, out := n.clients[dev].Sessions(r); {
	case out.Resumed:
		n.resumed++
	case out.Why == "too much has changed since":
		n.trimmed++
	default:
		n.full++
	}
}

// restartClient gives a device a new life with the records it has.
func (n *network) restartClient(dev netip.Addr, epoch uint64, agree client.Agreement) {
	for _, r := range n.ids {
		n.cut(dev, r)
	}
	old := n.clients[dev]
	n.newClient(dev, epoch, agree)
	for _, h := range old.Hosts() {
		n.clients[dev].PutHost(h)
	}
	n.clients[dev].Flush(n.now)
}

// cut ends a session; what is on its way is lost.
func (n *network) cut(dev, r netip.Addr) {
	l := n.link(dev, r)
	if !l.up {
		return
	}
	l.up, l.toClient, l.toRefl = false, nil, nil
	a := n.clients[dev].Down(r, n.now)
	gone := func(z wire.ZoneRecord) bool { return z.Op == wire.Withdraw }
	if len(a.Hosts)+len(a.Downs) > 0 || a.Settings != nil || slices.ContainsFunc(a.Zones, gone) {
		n.t.Fatalf("%v: that reflector %v is silent changes %+v", dev, r, a)
	}
	n.apply(dev, a)
	n.fromRefl(r, n.refls[r].Leave(dev, n.now))
}

func (n *network) apply(dev netip.Addr, a client.Applied) {
	n.t.Helper()
	h := held{n.zones[dev], n.hosts[dev], n.settings[dev]}
	h.apply(n.t, dev, a)
	n.settings[dev] = h.settings
}

// coalesced makes one run of the Updates that wait, as a slow receiver's queue does.
func coalesced(t inoftest.Failer, ms []wire.Message) []wire.Message {
	var c wire.Coalescer
	for _, m := range ms {
		c.Add(m)
	}
	var out []wire.Message
	for _, m := range c.Take() {
		out = append(out, inoftest.Through(t, m))
	}
	return out
}

func (n *network) deliverToClient(dev, r netip.Addr) bool {
	l := n.link(dev, r)
	if len(l.toClient) == 0 {
		return false
	}
	m := l.toClient[0]
	l.toClient = l.toClient[1:]
	a, err := n.clients[dev].Receive(r, m, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	n.apply(dev, a)
	return true
}

func (n *network) deliverToRefl(dev, r netip.Addr) bool {
	l := n.link(dev, r)
	if len(l.toRefl) == 0 {
		return false
	}
	m := l.toRefl[0]
	l.toRefl = l.toRefl[1:]
	out, err := n.refls[r].Receive(dev, m, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	n.fromRefl(r, out)
	return true
}

// pull gives what waits to the devices that are ready, nil: to all.
func (n *network) pull(r netip.Addr, ready func(netip.Addr) bool) bool {
	x := n.refls[r]
	if ready == nil {
		x.Drained()
	}
	if !x.Waiting() && !x.Owing() {
		return false
	}
	n.fromRefl(r, x.Pull(ready, n.now))
	n.fromRefl(r, x.Step(ready, n.now))
	return true
}

func (n *network) devices() []netip.Addr {
	return slices.SortedFunc(maps.Keys(n.clients), netip.Addr.Compare)
}

func (n *network) deliverAll() {
	for again := true; again; {
		again = false
		for _, dev := range n.devices() {
			for _, r := range n.ids {
				for n.deliverToRefl(dev, r) || n.deliverToClient(dev, r) || n.pull(r, nil) {
					again = true
				}
			}
		}
	}
}

// settle brings every session up, delivers everything and compares with the truth.
func (n *network) settle() {
	for _, dev := range n.devices() {
		n.fromClient(dev, n.clients[dev].Flush(n.now))
		for _, r := range n.ids {
			n.join(dev, r)
		}
	}
	n.deliverAll()
	for _, r := range n.ids { // nobody is awaited any more
		n.fromRefl(r, n.refls[r].Tick(n.now))
	}
	n.deliverAll()
	if n.decided {
		n.now = n.now.Add(2 * time.Second)
	}
	for _, dev := range n.devices() {
		if n.decided {
			n.apply(dev, n.clients[dev].Tick(n.now))
		}
		n.check(dev)
	}
}
