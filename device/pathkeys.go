package device

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
)

// pathKeys are the keys of the paths to other devices that reflectors have handed out. They
// outlive the sessions: a reflector that is gone for a while hands out the same again.
type pathKeys struct {
	asked map[netip.Addr]map[netip.Addr]bool        // by reflector with a session: the devices
	keys  map[netip.Addr]map[netip.Addr]bfd.AuthKey // by device, by reflector
	auths map[netip.Addr]*bfd.Auth                  // by device: what is made of keys
}

func newPathKeys() pathKeys {
	return pathKeys{map[netip.Addr]map[netip.Addr]bool{}, map[netip.Addr]map[netip.Addr]bfd.AuthKey{}, map[netip.Addr]*bfd.Auth{}}
}

// auth is what BFD uses on the path to a device: the keys in order of their reflectors.
// Without any the path waits for one.
func (p *pathKeys) auth(dev netip.Addr) *bfd.Auth {
	if a := p.auths[dev]; a != nil {
		return a
	}
	a := &bfd.Auth{Type: bfd.AuthMeticulousSHA1, Handed: true}
	for _, r := range slices.SortedFunc(maps.Keys(p.keys[dev]), netip.Addr.Compare) {
		a.Keys = append(a.Keys, p.keys[dev][r])
	}
	p.auths[dev] = a
	return a
}

// retain forgets devices to which no path is watched, and calls forgot for each that had keys.
func (p *pathKeys) retain(watched func(netip.Addr) bool, forgot func(netip.Addr)) {
	gone := func(dev netip.Addr) bool { return !watched(dev) }
	for _, dev := range slices.SortedFunc(maps.Keys(p.keys), netip.Addr.Compare) {
		if gone(dev) {
			delete(p.keys, dev)
			forgot(dev)
		}
	}
	maps.DeleteFunc(p.auths, func(dev netip.Addr, _ *bfd.Auth) bool { return gone(dev) })
	for _, devs := range p.asked {
		maps.DeleteFunc(devs, func(dev netip.Addr, _ bool) bool { return gone(dev) })
	}
}

// ask gives the devices of which a reflector is to be asked, and notes that it is.
func (p *pathKeys) ask(refl netip.Addr, watched []netip.Addr) (list []netip.Addr) {
	for _, dev := range watched {
		if !p.asked[refl][dev] {
			p.asked[refl][dev] = true
			list = append(list, dev)
		}
	}
	return list
}

// take notes what a reflector has handed out, and gives the devices of which that is news.
func (p *pathKeys) take(refl netip.Addr, m *wire.PathKeys) (news []netip.Addr) {
	for i := range m.Keys {
		k := &m.Keys[i]
		if !p.asked[refl][k.Device] {
			continue
		}
		was, had := p.keys[k.Device][refl]
		if had && was.ID == k.ID && string(was.Secret) == string(k.Secret[:]) {
			continue
		}
		if p.keys[k.Device] == nil {
			p.keys[k.Device] = map[netip.Addr]bfd.AuthKey{}
		}
		p.keys[k.Device][refl] = bfd.AuthKey{ID: k.ID, Secret: slices.Clone(k.Secret[:])}
		delete(p.auths, k.Device)
		news = append(news, k.Device)
	}
	return news
}

// handed reports whether the path to a device is authenticated with keys that are handed out.
func (m *mesh) handed(dev netip.Addr) bool {
	return m.cfg.Handed && !slices.ContainsFunc(m.cfg.Plain, func(p netip.Prefix) bool { return p.Contains(dev) })
}

// auth is that of the path to a device.
func (m *mesh) auth(dev netip.Addr) *bfd.Auth {
	switch {
	case m.handed(dev):
		return m.handout.auth(dev)
	case m.cfg.Handed:
		return nil
	}
	return m.cfg.Auth
}

// askPathKeys asks each reflector with a session for the keys of watched paths that it has
// not been asked for in that session.
func (c *Core) askPathKeys() {
	m := &c.mesh
	watched := slices.SortedFunc(maps.Keys(m.watched), netip.Addr.Compare)
	watched = slices.DeleteFunc(watched, func(dev netip.Addr) bool { return !m.handed(dev) })
	if m.told || len(watched) > 0 { // else those of before the start are still needed
		m.handout.retain(func(dev netip.Addr) bool { return m.watched[dev] && m.handed(dev) }, c.savePath)
	}
	for _, refl := range slices.SortedFunc(maps.Keys(m.handout.asked), netip.Addr.Compare) {
		for devs := range slices.Chunk(m.handout.ask(refl, watched), wire.MaxPathKeys) {
			q := &wire.PathKeys{Asked: devs}
			if refl == c.self {
				c.takePathKeys(c.self, c.cfg.PathSecret.Answer(c.self, q))
			} else {
				c.out.ToReflectors([]wire.Delivery{{To: []netip.Addr{refl}, Msg: q}})
			}
		}
	}
}

// pathSession says that a session with a reflector has begun, or ended.
func (c *Core) pathSession(refl netip.Addr, up bool) {
	if !up {
		delete(c.mesh.handout.asked, refl)
		return
	}
	c.mesh.handout.asked[refl] = map[netip.Addr]bool{}
	c.askPathKeys()
}

// takePathKeys takes keys of a reflector into use, together with others that come now.
func (c *Core) takePathKeys(refl netip.Addr, m *wire.PathKeys) {
	if news := c.mesh.handout.take(refl, m); len(news) > 0 {
		c.mesh.counters.KeysTaken++
		c.mesh.changed = true
		for _, dev := range news {
			c.savePath(dev)
		}
	}
}

// answerPathKeys hands out keys to a client.
func (c *Core) answerPathKeys(dev netip.Addr, q *wire.PathKeys) {
	if c.cfg.PathSecret == (reflector.PathSecret{}) {
		return
	}
	if a := c.cfg.PathSecret.Answer(dev, q); len(a.Keys) > 0 {
		c.counters.PathKeysGiven += uint64(len(a.Keys))
		c.out.ToClients([]wire.Delivery{{To: []netip.Addr{dev}, Msg: a}})
	}
}
