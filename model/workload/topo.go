package workload

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// Fabric is a network with its parts by role.
type Fabric struct {
	Net   *model.Network
	Hosts []model.NodeID
	Edge  []model.NodeID // switches with hosts
	Mid   []model.NodeID // spines, or aggregation switches
	Core  []model.NodeID
	Links []model.LinkID
	err   error
}

// Profiles are what nodes are made of.
type Profiles struct {
	Switch model.SwitchProfile
	NIC    model.NICProfile
}

func (f *Fabric) host(name string, p Profiles) model.NodeID {
	id := f.Net.AddHost(name, p.NIC)
	f.Hosts = append(f.Hosts, id)
	return id
}

func (f *Fabric) link(a, b model.NodeID, l model.LinkSpec) {
	id, err := f.Net.Connect(a, b, l)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.Links = append(f.Links, id)
}

// Star is n hosts on one switch.
func Star(n int, l model.LinkSpec, p Profiles) (*Fabric, error) {
	f := &Fabric{Net: &model.Network{}}
	sw := f.Net.AddSwitch("s0", p.Switch)
	f.Edge = append(f.Edge, sw)
	for i := range n {
		f.link(f.host(fmt.Sprintf("h%d", i), p), sw, l)
	}
	return f, f.err
}

// LeafSpine joins leaves of hosts each with every spine.
func LeafSpine(leaves, hosts, spines int, edge, up model.LinkSpec, p Profiles) (*Fabric, error) {
	f := &Fabric{Net: &model.Network{}}
	for i := range leaves {
		f.Edge = append(f.Edge, f.Net.AddSwitch(fmt.Sprintf("leaf%d", i), p.Switch))
	}
	for i := range spines {
		f.Mid = append(f.Mid, f.Net.AddSwitch(fmt.Sprintf("spine%d", i), p.Switch))
	}
	for i, leaf := range f.Edge {
		for k := range hosts {
			f.link(f.host(fmt.Sprintf("h%d", i*hosts+k), p), leaf, edge)
		}
		for _, sp := range f.Mid {
			f.link(leaf, sp, up)
		}
	}
	return f, f.err
}

// Clos is three tiers: pods of tors and aggs in full mesh; agg k of each pod meets
// the k-th share of the cores.
func Clos(pods, tors, hosts, aggs, cores int, edge, up model.LinkSpec, p Profiles) (*Fabric, error) {
	if cores%aggs != 0 {
		return nil, fmt.Errorf("%w: %d cores cannot be shared by %d aggregation switches a pod", model.ErrTopology, cores, aggs)
	}
	f := &Fabric{Net: &model.Network{}}
	for i := range cores {
		f.Core = append(f.Core, f.Net.AddSwitch(fmt.Sprintf("core%d", i), p.Switch))
	}
	for pod := range pods {
		mid := len(f.Mid)
		for k := range aggs {
			agg := f.Net.AddSwitch(fmt.Sprintf("agg%d", pod*aggs+k), p.Switch)
			f.Mid = append(f.Mid, agg)
			share := cores / aggs
			for _, c := range f.Core[k*share : (k+1)*share] {
				f.link(agg, c, up)
			}
		}
		for t := range tors {
			tor := f.Net.AddSwitch(fmt.Sprintf("tor%d", pod*tors+t), p.Switch)
			f.Edge = append(f.Edge, tor)
			for range hosts {
				f.link(f.host(fmt.Sprintf("h%d", len(f.Hosts)), p), tor, edge)
			}
			for _, agg := range f.Mid[mid:] {
				f.link(tor, agg, up)
			}
		}
	}
	return f, f.err
}

// Ring is n switches in a circle with hosts on each.
func Ring(n, hosts int, edge, around model.LinkSpec, p Profiles) (*Fabric, error) {
	f := &Fabric{Net: &model.Network{}}
	for i := range n {
		f.Edge = append(f.Edge, f.Net.AddSwitch(fmt.Sprintf("s%d", i), p.Switch))
	}
	for i, sw := range f.Edge {
		for k := range hosts {
			f.link(f.host(fmt.Sprintf("h%d", i*hosts+k), p), sw, edge)
		}
	}
	for i := range n {
		f.link(f.Edge[i], f.Edge[(i+1)%n], around)
	}
	return f, f.err
}

// TwoSites is two switches with hosts each, joined by one long link.
func TwoSites(hosts int, edge, long model.LinkSpec, p Profiles) (*Fabric, error) {
	f := &Fabric{Net: &model.Network{}}
	for i := range 2 {
		sw := f.Net.AddSwitch(fmt.Sprintf("site%d", i), p.Switch)
		f.Edge = append(f.Edge, sw)
		for k := range hosts {
			f.link(f.host(fmt.Sprintf("h%d", i*hosts+k), p), sw, edge)
		}
	}
	f.link(f.Edge[0], f.Edge[1], long)
	return f, f.err
}
