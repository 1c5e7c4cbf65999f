package reflector

import (
	"net/netip"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// view is what one reflector's tables say that a device is to hold, worked out anew.
type view struct {
	zones map[string][]zone.Member
	hosts map[zone.HostKey]zone.Host
}

func viewAt(r *Reflector, dev netip.Addr) view {
	v := view{map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}}
	for name, z := range r.interest.zones {
		v.zones[name] = z.members.Unpack()
	}
	for addr, e := range r.interest.addrs {
		for _, h := range e.atts {
			if h.Device != dev && r.interest.knows(dev, addr) {
				v.hosts[h.HostKey] = h
			}
		}
	}
	return v
}

func (n *network) check(dev netip.Addr) {
	n.t.Helper()
	c := n.clients[dev]
	hosts, zones := map[zone.HostKey]zone.Host{}, map[string][]zone.Member{}
	differ, claims := map[string]bool{}, map[zone.HostKey][]zone.Claim{}
	for i, id := range n.ids {
		r := n.refls[id]
		if len(r.devices[dev].hosts) != len(c.Hosts()) {
			n.t.Fatalf("device %v has %d hosts, reflector %v knows %d", dev, len(c.Hosts()), id, len(r.devices[dev].hosts))
		}
		for k := range r.devices[dev].hosts {
			at, _ := findAtt(r.interest.at(k.Addr).atts, k)
			if is := r.interest.at(k.Addr).atts[at]; !ptr(unclaimed(is)).Same(ptr(unclaimed(c.Hosts()[k]))) {
				n.t.Fatalf("reflector %v has an old %v", id, k)
			}
		}
		v := viewAt(r, dev)
		for k, h := range v.hosts {
			claims[k] = append(claims[k], h.Claim)
			hosts[k] = h
		}
		for name, ms := range v.zones {
			old, had := zones[name]
			switch {
			case i == 0:
				zones[name] = ms
			case !had:
				differ[name] = true
				if n.agree[dev] == client.AgreeUnion {
					zones[name] = ms
				}
			case !slices.Equal(old, ms):
				differ[name] = true
				if n.agree[dev] == client.AgreeUnion {
					zones[name] = zone.Zone{Members: slices.Concat(old, ms)}.Canonical().Members
				} else {
					zones[name] = slices.DeleteFunc(slices.Clone(old), func(m zone.Member) bool { return !slices.Contains(ms, m) })
				}
			}
		}
		if i > 0 {
			for name := range zones {
				if _, ok := v.zones[name]; !ok {
					differ[name] = true
					if n.agree[dev] == client.AgreeIdentical {
						delete(zones, name)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(zones, n.zones[dev], inoftest.CmpOpts); diff != "" {
		n.t.Fatalf("zones at %v (-want +got):\n%s", dev, diff)
	}
	for k, said := range claims { // one voice for all, or nothing is decided until it lasts
		h := hosts[k]
		switch {
		case slices.Max(said) != slices.Min(said) && n.decided:
			h.Claim = said[0]
		case slices.Max(said) != slices.Min(said), h.Claim == zone.ClaimHolder && len(said) < len(n.ids):
			h.Claim = zone.ClaimOpen
		}
		hosts[k] = h
	}
	if diff := cmp.Diff(hosts, n.hosts[dev], inoftest.CmpOpts); diff != "" {
		n.t.Fatalf("hosts at %v (-want +got):\n%s", dev, diff)
	}
	fences := map[zone.HostKey][]wire.FencePeer{}
	for k := range hosts {
		if f := n.clients[k.Device].Fences()[k]; len(f) > 0 {
			fences[k] = f
		}
	}
	if diff := cmp.Diff(fences, c.Fenced(), inoftest.CmpOpts); diff != "" {
		n.t.Fatalf("fences at %v (-want +got):\n%s", dev, diff)
	}
	if got := c.Differing(); len(got) != len(differ) {
		n.t.Fatalf("%v finds differences in %v, want %v", dev, got, differ)
	}
	if !c.Synced() {
		n.t.Fatalf("%v is not synced", dev)
	}
}

func ptr[T any](v T) *T { return &v }

func unclaimed(h zone.Host) zone.Host {
	h.Claim = zone.ClaimHolder
	return h
}
