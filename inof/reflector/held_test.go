package reflector

import (
	"net/netip"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// held is what a device holds that does all that Applied says.
type held struct {
	zones    map[string][]zone.Member
	hosts    map[zone.HostKey]zone.Host
	faults   map[wire.PortKey]wire.FaultRecord
	settings *wire.Settings
}

func newHeld() *held {
	return &held{map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}, map[wire.PortKey]wire.FaultRecord{}, nil}
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
	for _, f := range a.Faults {
		if f.Op == wire.Put {
			x.faults[wire.PortKey{Device: f.Device, Port: f.Port}] = f
		} else {
			delete(x.faults, wire.PortKey{Device: f.Device, Port: f.Port})
		}
	}
}
