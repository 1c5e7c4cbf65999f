package reflector

import (
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// keyKind is what a key of the feed is about.
type keyKind uint8

const (
	keySettings keyKind = iota
	keyZone             // by name
	keyHost             // of another device
	keyTaken            // a host of the device itself, repeated to it
	keyDown             // whether a host of another device is down
	keyRefused          // how many hosts of the device itself are refused
	keyFence            // which hosts an array's switch keeps from an address of another device
	keyArea             // the device has come to a large zone: all hosts that it knows
)

// keyKinds has all there is about each.
var keyKinds = [...]struct {
	// rank is when its news are told, gone when those that it goes are.
	rank, gone rank
	// loss reports whether others wait for the news; nil: they never do.
	loss func(n *news) bool
	// say adds the state of a key as a device sees it; nil: see take.
	say func(r *Reflector, d *device, n news, t *taking)
}{
	keySettings: {rank: rankSettings, gone: rankSettings, say: (*Reflector).saySettings},
	keyZone:     {rank: rankZone, gone: rankZone, say: (*Reflector).sayZone},
	keyHost:     {rank: rankHost, gone: rankGone, say: (*Reflector).sayHost, loss: func(n *news) bool { return n.gone }},
	keyTaken:    {rank: rankRest, gone: rankRest, say: (*Reflector).sayTaken},
	keyDown:     {rank: rankDown, gone: rankDown, say: (*Reflector).sayDown, loss: func(n *news) bool { return !n.gone }},
	keyFence:    {rank: rankDown, gone: rankDown, say: (*Reflector).sayFence},
	keyRefused:  {rank: rankSettings, gone: rankSettings, say: (*Reflector).sayRefused},
	keyArea:     {rank: rankHost, gone: rankHost},
}

// feedKey is one of them.
type feedKey struct {
	kind keyKind
	host zone.HostKey // of a zone: its name as Port
}

func zoneKey(name string) feedKey { return feedKey{keyZone, zone.HostKey{Port: name}} }

func (r *Reflector) saySettings(_ *device, _ news, t *taking) {
	t.Settings = r.settings()
}

func (r *Reflector) settings() *wire.Settings {
	return &wire.Settings{AutoJoin: r.dir.AutoJoin(), Hard: r.dir.Hard(), BFD: r.cfg.BFD, Halt: r.halt}
}

func (r *Reflector) sayZone(_ *device, n news, t *taking) {
	rec := wire.ZoneRecord{Op: wire.Withdraw}
	rec.Zone.Name = n.host.Port
	if z, there := r.interest.zones[n.host.Port]; there {
		rec = z.record()
	}
	t.zone(rec)
}

func (r *Reflector) sayHost(d *device, n news, t *taking) {
	h, there := r.host(n.host)
	switch {
	case there && r.interest.knows(d.id, n.host.Addr):
		t.host(wire.HostRecord{Op: wire.Put, Host: *h})
		t.fenceWith(r, n.host)
		return
	case there:
		n.why = snsd.ReasonZoneChanged
	}
	t.host(wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: n.host}, Why: n.why})
}

func (r *Reflector) sayTaken(_ *device, n news, t *taking) {
	if h, there := r.host(n.host); there {
		t.host(wire.HostRecord{Op: wire.Put, Host: *h})
	}
}

func (r *Reflector) sayDown(d *device, n news, t *taking) {
	if h, there := r.host(n.host); there && r.interest.knows(d.id, n.host.Addr) {
		t.down(n.host, h.Down)
	}
}

func (r *Reflector) sayFence(d *device, n news, t *taking) {
	if r.interest.knows(d.id, n.host.Addr) {
		t.fence(r.fenceOf(n.host))
	}
}

func (r *Reflector) sayRefused(d *device, _ news, t *taking) {
	t.refused = &wire.Refusal{Hosts: uint32(len(d.refused)), Limit: uint32(d.limit), Again: d.again == askAgain, Outside: uint32(len(d.outside)), Named: d.outsideNamed()}
	if d.again == askAgain {
		d.again = saysAgain
	}
}

// host is what is known of one.
func (r *Reflector) host(k zone.HostKey) (h *zone.Host, there bool) {
	e := r.interest.at(k.Addr)
	i, there := findAtt(e.atts, k)
	if !there {
		return nil, false
	}
	return &e.atts[i], true
}
