package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// held is what a device holds that does all that Applied says.
type held struct {
	zones    map[string][]zone.Member
	hosts    map[zone.HostKey]zone.Host
	settings *wire.Settings
}

func newHeld() *held {
	return &held{map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}, nil}
}

func (x *held) apply(t inoftest.Failer, dev netip.Addr, a client.Applied) {
	t.Helper()
	if a.Settings != nil {
		x.settings = a.Settings
	}
	for _, z := range a.Zones {
		if z.Op == wire.Put {
			x.zones[z.Zone.Name] = z.Zone.Members
		} else {
			delete(x.zones, z.Zone.Name)
		}
	}
	for _, h := range a.Hosts {
		_, had := x.hosts[h.Host.HostKey]
		if h.Op == wire.Put {
			x.hosts[h.Host.HostKey] = h.Host
		} else if delete(x.hosts, h.Host.HostKey); !had {
			t.Fatalf("%v: a host that is not there is withdrawn: %+v", dev, h)
		}
	}
	for _, h := range a.Claims {
		if _, had := x.hosts[h.HostKey]; !had {
			t.Fatalf("%v: news of the claim of a host that is not there: %+v", dev, h)
		}
		x.hosts[h.HostKey] = h
	}
	for i := range a.Downs {
		d := &a.Downs[i]
		for _, addr := range d.Addrs {
			h, had := x.hosts[d.Key(addr)]
			if !had {
				t.Fatalf("%v: whether a host is down that is not there: %+v", dev, d)
			}
			h.Down = d.Down
			x.hosts[d.Key(addr)] = h
		}
	}
}

// setDown has just these hosts at a port of a client be down.
func setDown(c interface {
	Hosts() map[zone.HostKey]zone.Host
	SetDown(port string, addrs []netip.Addr, down zone.Down)
}, port string, down zone.Down, addrs ...netip.Addr) {
	var up []netip.Addr
	for k := range c.Hosts() {
		if k.Port == port && !slices.Contains(addrs, k.Addr) {
			up = append(up, k.Addr)
		}
	}
	c.SetDown(port, up, zone.Down{})
	c.SetDown(port, addrs, down)
}

// down are the hosts that a device holds as down.
func (n *network) down(dev netip.Addr) (list []zone.HostKey) {
	for k, h := range n.hosts[dev] {
		if h.Down.Is() {
			list = append(list, k)
		}
	}
	return list
}
