package device

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// MeshConfig is what a device itself says about BFD; whether there is any, and with
// which timers, its reflectors say.
type MeshConfig struct {
	// Off holds all sessions in AdminDown, which the other devices see, and believes
	// nothing of the paths. It is for an emergency.
	Off  bool
	Auth *bfd.Auth // nil: none
	// Handed says that the reflectors hand out the keys; towards devices in Plain there is
	// no authentication then.
	Handed bool
	Plain  []netip.Prefix
	// MaxHops is how many routers may be between two devices; what came over more is
	// not of a device (RFC 5883 section 5). 0: any number.
	MaxHops uint8
}

// Timers of the mesh: what reflectors ask for is brought into these ranges.
const (
	MeshMinInterval = 3 * time.Millisecond
	MeshMaxInterval = time.Second
	MeshMinMult     = 3
	MeshMaxMult     = 50
)

const (
	// meshDelay is how long changes of who shares a zone with whom are gathered: a
	// sync brings in many devices one by one.
	meshDelay = 50 * time.Millisecond
	// pathMemory is how long a failed path is watched, and its fault kept, after the
	// device has no host in common zones any more. Should it come back meanwhile, its
	// hosts are not taken for reachable before the path is.
	pathMemory = 10 * time.Minute
)

// MeshCounters count what becomes of the paths.
type MeshCounters struct {
	Changes     uint64 `json:"changes"`     // times the devices to be watched, or how, were told
	PathsDown   uint64 `json:"paths_down"`  // reports of a path that fails
	PathsUp     uint64 `json:"paths_up"`    // reports of one that works again
	Foreign     uint64 `json:"foreign"`     // reports about a device that is not watched
	Unwatchable uint64 `json:"unwatchable"` // devices of another address family than ours, each time they come
	Clamped     uint64 `json:"clamped"`     // settings whose timers were out of range
	KeysTaken   uint64 `json:"keys_taken"`  // times reflectors handed out keys that are news
	Forgotten   uint64 `json:"forgotten"`   // faults given up because the device had been gone for too long
}

// mesh is the part of a Core that says which paths are watched and what is known of
// them.
type mesh struct {
	cfg      MeshConfig
	settings wire.BFDSettings
	known    bool // settings were told
	changed  bool // settings or configuration changed since the devices were told
	seen     uint64
	due      time.Time // when the devices are told
	forget   time.Time // not after the next time a path is forgotten
	told     bool      // they were, since the start
	watched  map[netip.Addr]bool
	up       map[netip.Addr]bool // of these, that BFD reported as working, maybe before the start
	handout  pathKeys
	peers    []bfd.Peer // as told last
	paths    map[netip.Addr]*path
	counters MeshCounters
}

// path is what is known of the way to one device.
type path struct {
	down  bool
	since time.Time // of down, or of its opposite
	left  time.Time // when a device with a failed path ceased to share a zone; zero: it has not
}

// configure is for the beginning.
func (m *mesh) configure(cfg MeshConfig) {
	m.cfg, m.handout = cfg, newPathKeys()
	m.watched, m.paths, m.up = make(map[netip.Addr]bool), make(map[netip.Addr]*path), make(map[netip.Addr]bool)
}

// next is when tickMesh has something to do.
func (m *mesh) next() time.Time { return sooner(m.due, m.forget) }

// on reports whether the paths count.
func (m *mesh) on() bool { return !m.cfg.Off && (!m.known || m.settings.Enabled) }

// notePartners looks whether other devices are to be watched than before. It is
// called after every event and compares two numbers.
func (c *Core) notePartners(now time.Time) {
	m := &c.mesh
	if c.client == nil || !m.due.IsZero() || !m.known || !m.changed && m.seen == c.dir.PartnersRevision() {
		return
	}
	// Before the first sync is complete hosts are missing that this device watched
	// the paths to before it was started again, unless it knows those of the last one.
	if c.client.Synced() || c.client.Recalling() {
		m.due = now.Add(meshDelay)
	}
}

// meshSettings takes what the reflectors say about BFD. When it is off nothing is
// known of the paths any more.
func (c *Core) meshSettings(s wire.BFDSettings, now time.Time) zone.Changes {
	m := &c.mesh
	if m.known && m.settings == s {
		return nil
	}
	if t := timersOf(s); s.Enabled && s.Interval != 0 && (t.MinTx != s.Interval || t.DetectMult != s.DetectMult) {
		m.counters.Clamped++
	}
	m.settings, m.known, m.changed = s, true, true
	return c.liftPaths(now)
}

// liftPaths ends all faults when paths do not count any more.
func (c *Core) liftPaths(now time.Time) zone.Changes {
	if c.mesh.on() {
		return nil
	}
	var changes zone.Changes
	for _, dev := range slices.SortedFunc(maps.Keys(c.mesh.paths), netip.Addr.Compare) {
		if c.mesh.paths[dev].down {
			changes = append(changes, c.dir.SetDeviceFault(dev, snsd.ReasonNone)...)
			c.forgetPath(dev)
			c.pathEvent(dev, "is not watched any more: its hosts count as reachable", "unknown", nil, now)
		}
		delete(c.mesh.paths, dev)
	}
	return changes
}

// watch works out the devices to be watched and tells them.
func (c *Core) watch(now time.Time) {
	m := &c.mesh
	near := make(map[netip.Addr]bool)
	if m.settings.Enabled {
		for _, dev := range c.dir.Partners(m.settings.MeshAll) {
			near[dev] = true
		}
	}
	for dev, p := range m.paths {
		switch {
		case near[dev]:
			p.left = time.Time{}
		case p.down && p.left.IsZero():
			p.left = now
			m.forget = sooner(m.forget, now.Add(pathMemory))
		case !p.down:
			delete(m.paths, dev)
		}
		if p.down { // its end must be seen
			near[dev] = true
		}
	}
	peers := make([]bfd.Peer, 0, len(near))
	clear(m.watched)
	for _, dev := range slices.SortedFunc(maps.Keys(near), netip.Addr.Compare) {
		p := bfd.Peer{Key: bfd.Key{Peer: dev, Local: c.self, Multihop: true}, Timers: timersOf(m.settings), AdminDown: m.cfg.Off, Auth: m.auth(dev)}
		if m.cfg.MaxHops > 0 {
			p.MinTTL = bfd.MaxTTL - m.cfg.MaxHops
		}
		if err := p.Validate(); err != nil {
			m.counters.Unwatchable++
			c.Complain(now, "bfd", dev.String(), fmt.Errorf("the path to device %s cannot be watched: %w", dev, err))
			continue
		}
		peers = append(peers, p)
		m.watched[dev] = true
	}
	for dev := range m.up {
		c.pathIsUp(dev, m.watched[dev])
	}
	c.askPathKeys()
	if m.told && slices.Equal(peers, m.peers) {
		return
	}
	first := !m.told
	m.told, m.peers = true, peers
	m.counters.Changes++
	list := slices.Clone(peers)
	for i := range list {
		if first && m.up[list[i].Peer] { // it must be seen to work
			list[i].Last = bfd.ReportUp
		}
	}
	c.out.WatchPaths(list)
}

// pathIsUp notes whether BFD reports a path as working.
func (c *Core) pathIsUp(dev netip.Addr, is bool) {
	if m := &c.mesh; m.up[dev] != is {
		if m.up[dev] = true; !is {
			delete(m.up, dev)
		}
		c.savePath(dev)
	}
}

// timersOf brings what reflectors ask for into the ranges of the mesh.
func timersOf(s wire.BFDSettings) bfd.Timers {
	d := bfd.DefaultTimers()
	iv := min(max(cmp.Or(s.Interval, d.MinTx), MeshMinInterval), MeshMaxInterval)
	mult := min(max(cmp.Or(s.DetectMult, d.DetectMult), MeshMinMult), MeshMaxMult)
	return bfd.Timers{MinTx: iv, MinRx: iv, DetectMult: mult}
}

// diagOf says why a session is down: the other side's word where it has one.
func diagOf(ev bfd.Event) string {
	if ev.Diag == bfd.DiagNeighborDown && ev.RemoteDiag != bfd.DiagNone {
		return fmt.Sprintf("the other device: %s", ev.RemoteDiag)
	}
	return ev.Diag.String()
}

func (c *Core) pathEvent(dev netip.Addr, text, state string, ev *bfd.Event, at time.Time) {
	fields := map[string]string{"state": state}
	if ev != nil {
		fields["diag"], fields["flaps"] = diagOf(*ev), fmt.Sprint(ev.Flaps)
		if !ev.Heard.IsZero() {
			fields["last_heard"] = ev.Heard.Format(time.RFC3339Nano)
		}
	}
	c.event(api.Event{Time: at, Kind: "path", Device: dev.String(), Text: fmt.Sprintf("path to device %s %s", dev, text), Fields: fields})
}

// save gives the failed paths, by device.
func (m *mesh) save() []SavedPath {
	var out []SavedPath
	for dev, p := range m.paths {
		if p.down {
			out = append(out, SavedPath{dev, p.since.Round(0)})
		}
	}
	slices.SortFunc(out, func(a, b SavedPath) int { return a.Device.Compare(b.Device) })
	return out
}

// maxSavedPaths bounds what is taken of what was kept.
const maxSavedPaths = bfd.DefaultMaxSessions

// restorePaths puts failed paths back before any host is known, so that none looks
// reachable until BFD has spoken.
func (c *Core) restorePaths(list []SavedPath) {
	for i, s := range list {
		if dev := s.Device.Unmap(); i < maxSavedPaths && dev.IsValid() && dev != c.self && dev.Zone() == "" && !c.mesh.cfg.Off {
			c.mesh.paths[dev] = &path{down: true, since: s.Since}
			c.dir.SetDeviceFault(dev, snsd.ReasonBFDDown)
		}
	}
}

// Mesh reports whether reflectors ask for BFD, whether this device holds it off, and the
// paths that are watched.
func (c *Core) Mesh() (enabled, off bool, peers []bfd.Peer) {
	return c.mesh.settings.Enabled, c.mesh.cfg.Off, slices.Clone(c.mesh.peers)
}

// FailedPaths lists the devices that cannot be reached from here, sorted.
func (c *Core) FailedPaths() []netip.Addr {
	var out []netip.Addr
	for _, s := range c.mesh.save() {
		out = append(out, s.Device)
	}
	return out
}

// WatchedPaths is how many paths are watched.
func (c *Core) WatchedPaths() int { return len(c.mesh.watched) }
