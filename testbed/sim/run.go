package sim

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Run runs one seed. The error is a *Failure.
func Run(cfg Config) (Result, error) {
	w := newWorld(cfg)
	w.build()
	w.story()
	if w.quorum != nil {
		w.quorum.close()
	}
	res := Result{
		Seed: cfg.Seed, Devices: len(w.devices), Reflectors: len(w.reflectors), Hosts: len(w.hosts), Virtual: w.now, Events: w.done,
		Faults: w.faults, Notices: w.notices, Checks: w.checks, Excused: w.excused, Hash: w.hash,
	}
	if len(w.fails) > 0 {
		return res, &Failure{Config: cfg, At: w.now, What: w.fails}
	}
	return res, nil
}

// story is what happens: everything starts, then rounds of chaos and rest, a last
// long rest, and silence that must have no consequences.
func (w *world) story() {
	for _, d := range w.all {
		w.after(w.short(3*time.Second), d.start)
	}
	for _, h := range w.hosts {
		w.after(w.short(20*time.Second), h.boot)
	}
	if !w.run(20*time.Second) || !w.checked() {
		return
	}
	rounds := w.cfg.Rounds
	if rounds == 0 {
		rounds = 1 + w.rng.IntN(3)
	}
	for range rounds {
		if !w.chaos(w.between(20*time.Second, 150*time.Second)) || !w.checked() {
			return
		}
	}
	w.unify()
	w.wakeAll()
	if !w.run(400*time.Second) || !w.checked() {
		return
	}
	w.rest()
	if len(w.fails) > 0 {
		return
	}
	w.unnoticed()
}

// checked brings the fabric to rest and compares it with the truth.
func (w *world) checked() bool {
	if !w.becomeCalm() {
		return false
	}
	w.compare()
	w.rests = append(w.rests, w.now)
	return len(w.fails) == 0
}

// wakeAll has every host speak, so that afterwards nothing ages out.
func (w *world) wakeAll() {
	w.tracef("every host speaks")
	for _, h := range w.hosts {
		if h.silent {
			h.setSilent(false)
		}
		if !h.on {
			h.boot()
		}
		if h.link != nil && h.link.pulled {
			h.link.pulled = false
			h.link.refresh()
		}
	}
}

// unnoticed breaks sessions and restarts processes whose state is saved: no host may
// notice.
func (w *world) unnoticed() {
	w.tracef("from here on nothing may be told")
	for range 6 {
		d, r := pick(w, w.devices), pick(w, w.reflectors)
		away := w.short(30 * time.Second)
		kinds := 6
		if w.quorum != nil {
			kinds = 9
		}
		switch w.rng.IntN(kinds) {
		case 6:
			if m := w.quorum.someMember((*member).leads); m != nil {
				w.hush = fmt.Sprintf("the crash of %s for %v, which leads", m.d.name, away)
				w.restart(m.d, false, away)
			}
		case 7:
			w.hush = "members of the cluster are apart"
			w.partMembers()
		case 8:
			w.hush = "a member is removed from the cluster, and added again"
			w.dismissMember()
		case 4:
			w.hush = fmt.Sprintf("the crash of %s for %v, its state lost", d.name, away)
			w.restart(d, false, away)
			d.lose()
		case 0:
			w.hush = fmt.Sprintf("the crash of %s for %v", r.name, away)
			w.restart(r, false, away)
		case 1:
			w.hush = fmt.Sprintf("an orderly restart of %s for %v", r.name, away)
			w.restart(r, true, away)
		case 2:
			w.hush = fmt.Sprintf("the crash of %s for %v", d.name, away)
			w.restart(d, false, away)
		case 3:
			w.hush = fmt.Sprintf("an orderly restart of %s for %v", d.name, away)
			w.restart(d, true, away)
		default:
			w.hush = "a cut of " + d.name
			d.blocked[r.id] = w.now + away
			if c := d.connOf(r.id); c != nil {
				c.sever(w.chance(0.5))
			}
		}
		w.faults++
		w.tracef("unnoticed: %s", w.hush)
		if !w.run(away + w.between(0, 60*time.Second)) {
			return
		}
	}
	// A session that has just come back may bring a dispute of reflectors, which lasts 2 s.
	if w.run(w.calm()) && w.checked() {
		w.run(200 * time.Second)
	}
	w.hush = ""
}

// build makes the fabric, which does not run yet.
func (w *world) build() {
	cfg := &w.cfg
	size := func(given, least, most int) int {
		if given != 0 {
			return given
		}
		return least + w.rng.IntN(most-least+1)
	}
	if cfg.Cluster && cfg.Reflectors == 0 {
		cfg.Reflectors = 3
	}
	devices, reflectors := size(cfg.Devices, 1, 8), size(cfg.Reflectors, 1, 1)
	hosts, zones := size(cfg.Hosts, 2, 3*devices+2), size(cfg.Zones, 0, 8)
	merged := w.chance(0.2) // one device is reflector and switch at once
	for i := range reflectors {
		if i == 0 && merged {
			continue
		}
		w.add(&device{name: fmt.Sprintf("spine%d", i+1), id: netip.AddrFrom4([4]byte{10, 255, byte(i >> 8), byte(i + 1)}), reflects: true})
	}
	for i := range devices {
		d := &device{name: fmt.Sprintf("tor%d", i+1), id: netip.AddrFrom4([4]byte{10, 0, byte((i + 1) >> 8), byte(i + 1)}), reflects: i == 0 && merged}
		w.add(d)
		for p := range hosts/devices + 2 {
			l := &cable{w: w, dev: d, port: fmt.Sprintf("eth%d", p+1), index: p + 1, mac: fabric.MAC{2, 0xd0, byte(i >> 8), byte(i), 0, byte(p)}}
			d.ports = append(d.ports, l)
			w.links = append(w.links, l)
		}
		w.devices = append(w.devices, d)
	}
	for i := range hosts {
		w.addHost(i)
	}
	w.admitBad()
	set := zone.Set{AutoJoin: w.chance(0.5)}
	for i := range zones {
		set.Zones = append(set.Zones, zone.Zone{Name: fmt.Sprintf("a%d", i), Members: w.members(2 + w.rng.IntN(5))})
	}
	w.zones = history{set.Canonical()}
	for _, r := range w.reflectors {
		r.had = []int{0}
	}
	switch {
	case cfg.Cluster:
		w.quorum = newQuorum(w)
	case len(w.reflectors) > 1 && w.chance(0.3):
		w.agree = client.AgreeUnion
	}
}

func (w *world) add(d *device) {
	d.w, d.held, d.blocked, d.ever = w, map[netip.Addr]int{}, map[netip.Addr]time.Duration{}, map[netip.Addr]bool{}
	w.all = append(w.all, d)
	if d.reflects {
		w.reflectors = append(w.reflectors, d)
	}
}

// mostAddrs is how many addresses a host may have.
const mostAddrs = 4

func (w *world) addHost(i int) {
	h := &host{w: w, name: fmt.Sprintf("h%d", i+1), mac: fabric.MAC{2, 0xaa, 0, byte(i >> 16), byte(i >> 8), byte(i)}}
	h.svc = snsd.Service{Role: role(i), Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-11.sim:" + h.name}
	six := w.chance(0.15)
	h.addrs = []netip.Addr{w.freshAddr(six)}
	for w.chance(0.2) && len(h.addrs) < mostAddrs {
		h.addrs = append(h.addrs, w.freshAddr(w.chance(0.5)))
	}
	h.forget()
	w.hosts = append(w.hosts, h)
	if l := w.freePort(); l != nil {
		h.link, l.host, l.carrier, l.seen = l, h, true, true
	}
}
