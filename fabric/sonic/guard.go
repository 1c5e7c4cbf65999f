package sonic

import (
	"context"
	"fmt"
	"sync"

	"github.com/openinof/inof/fabric"
)

// Guard keeps LLDP and SNSD frames on their link in the ASIC: two rules at the ingress of access
// ports drop them, whatever their destination. SAI's DROP ends the forwarding alone, a frame that
// is trapped goes on to the processor (saiswitch.h: DENY is what cancels the copy as well). SONiC's
// tables cannot match a destination MAC, so the rules match frames for the switch too, and what was
// dropped of others is not known by itself: nothing is counted.
type Guard struct {
	aclDB
	stop context.CancelFunc

	mu    sync.Mutex
	ports []fabric.GuardedPort
}

var _ fabric.PortGuard = (*Guard)(nil)

const (
	guardTable    = "INOF_" + "GUARD"
	guardPolicy   = "iNOF: LLDP and SNSD stay on their link"
	guardPriority = 9400
)

var guardRules = []aclRule{
	{table: guardTable, priority: guardPriority, drop: true, etype: uint16(fabric.EtherTypeLLDP)},
	{table: guardTable, priority: guardPriority, drop: true, etype: uint16(fabric.EtherTypeNTS)},
}

// OpenGuard opens the guard of a switch; nothing is guarded before SetPorts.
func OpenGuard(address string) (*Guard, error) {
	g := &Guard{aclDB: newACLDB(address)}
	if err := g.able("ingress"); err != nil {
		g.aclDB.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	go func() {
		_ = g.watch(ctx, func() { g.mu.Lock(); defer g.mu.Unlock(); _ = g.place() }, "ACL_TABLE|INOF_GUARD*", "ACL_RULE|INOF_GUARD*")
	}()
	return g, nil
}

// RemoveGuard ends the guard of a process that is gone.
func RemoveGuard(address string) error {
	a := newACLDB(address)
	defer a.Close()
	return a.dropTables(guardTable)
}

// SetPorts implements fabric.PortGuard.
func (g *Guard) SetPorts(ports []fabric.GuardedPort) []fabric.GuardState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ports = ports
	states := make([]fabric.GuardState, len(ports))
	err := g.place()
	if err == nil && len(ports) > 0 {
		st, takenErr := g.await(guardRules, aclWait)
		switch {
		case takenErr != nil:
			err = takenErr
		case len(st.why) > 0:
			err = fmt.Errorf("the ASIC has not taken it: %s", st.why[0])
		case len(st.unseen) > 0:
			err = fmt.Errorf("SONiC's orchagent has not taken the rules within %s", aclWait)
		}
	}
	for i, p := range ports {
		states[i] = fabric.GuardState{Port: p.Name, Way: "asic", Err: err}
	}
	return states
}

// place writes what is not there. With its table a rule is lost in the ASIC too.
func (g *Guard) place() error {
	if len(g.ports) == 0 {
		return g.dropTables(guardTable)
	}
	if err := g.readTrunks(); err != nil {
		return err
	}
	names := make([]string, len(g.ports))
	for i, p := range g.ports {
		names[i] = p.Name
	}
	have, err := g.config.hashes([]string{"ACL_TABLE|" + guardTable, guardRules[0].key(), guardRules[1].key()})
	if err != nil {
		return err
	}
	if err := g.putTables([]aclTable{{guardTable, "ETHER_TYPE", "ingress", guardPolicy, g.trunks.points(names)}}); err != nil {
		return err
	}
	for _, r := range guardRules {
		if len(have["ACL_TABLE|"+guardTable]) == 0 || !same(r.fields(), have[r.key()]) {
			if err := g.put([]aclRule{r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forbidden implements fabric.PortGuard.
func (g *Guard) Forbidden() (map[string]fabric.ForbiddenFrames, error) { return nil, nil }

// Close implements fabric.PortGuard: the rules stay.
func (g *Guard) Close() error {
	g.stop()
	return g.aclDB.Close()
}
