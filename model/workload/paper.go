package workload

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// Testbed is the fabric of the DCQCN paper (SIGCOMM 2015, figure 2): four ToRs, four
// leaves and two spines at 40G; T1 and T2 meet L1 and L2, T3 and T4 meet L3 and L4,
// and every leaf both spines. hosts[i] hosts hang on ToR i+1.
func Testbed(hosts [4]int, p Profiles) (*Fabric, error) {
	l := model.LinkSpec{Rate: 40 * model.Gbps, Delay: model.Microsecond}
	f := &Fabric{Net: &model.Network{}}
	for i := range 4 {
		f.Edge = append(f.Edge, f.Net.AddSwitch(fmt.Sprintf("T%d", i+1), p.Switch))
	}
	for i := range 4 {
		f.Mid = append(f.Mid, f.Net.AddSwitch(fmt.Sprintf("L%d", i+1), p.Switch))
	}
	for i := range 2 {
		f.Core = append(f.Core, f.Net.AddSwitch(fmt.Sprintf("S%d", i+1), p.Switch))
	}
	for i, n := range hosts {
		for k := range n {
			f.link(f.host(fmt.Sprintf("T%dh%d", i+1, k+1), p), f.Edge[i], l)
		}
	}
	for i, tor := range f.Edge {
		f.link(tor, f.Mid[i/2*2], l)
		f.link(tor, f.Mid[i/2*2+1], l)
	}
	for _, leaf := range f.Mid {
		for _, sp := range f.Core {
			f.link(leaf, sp, l)
		}
	}
	return f, f.err
}
