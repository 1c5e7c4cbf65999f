package hostagent

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// linkChange is that addresses of this host lost their carrier, or have it again.
type linkChange struct {
	addrs []netip.Addr
	at    time.Time
	up    bool
	hears bool // another port may hear of a fence
}

// LinkDown says that addresses of this host have lost their carrier, and whether a switch at
// another port may say more of the fence of their paths.
func (a *Actor) LinkDown(addrs []netip.Addr, hears bool, at time.Time) {
	a.changeLink(linkChange{slices.Clone(addrs), at, false, hears})
}

// LinkUp says that they have it again.
func (a *Actor) LinkUp(addrs []netip.Addr, at time.Time) {
	a.changeLink(linkChange{slices.Clone(addrs), at, true, false})
}

func (a *Actor) changeLink(l linkChange) {
	a.mu.Lock()
	a.links = append(a.links, l)
	a.mu.Unlock()
	a.poke()
}

// linkDown leaves the paths that begin at addresses without carrier, where there is another one: a
// connection that is alone may outlive a short loss.
func (a *Actor) linkDown(ctx context.Context, l linkChange) {
	policy := a.Policy()
	if policy.OwnLink == Nothing {
		return
	}
	groups := map[path][]hostkernel.Controller{}
	for i := range a.known {
		c := &a.known[i]
		if !slices.Contains(l.addrs, c.Source) || c.Discovery {
			continue
		}
		other := slices.ContainsFunc(a.known, func(o hostkernel.Controller) bool {
			return o.Joins(c) && o.Usable() && !slices.Contains(l.addrs, o.Source)
		})
		if other || policy.OwnLink == Ask {
			p := path{c.Source, c.Target.Addr()}
			groups[p] = append(groups[p], *c)
		}
	}
	a.linkUp(l) // it may have been down before
	for p, cs := range groups {
		var fence *snsd.Fence
		if l.hears {
			fence = new(snsd.Fence)
		}
		lv := a.newLeaver(&policy, job{at: l.at, notice: snsd.Notice{Fence: fence}}, p, l.addrs)
		lv.own = true
		st := &pathState{leaver: lv}
		var own context.Context
		own, st.cancel = context.WithCancel(ctx)
		a.own[p] = st
		go lv.do(own, policy.OwnLink, cs)
	}
}

// linkUp ends what is under way because addresses had no carrier.
func (a *Actor) linkUp(l linkChange) {
	for p, st := range a.own {
		if slices.Contains(l.addrs, p.host) {
			st.stop()
			delete(a.own, p)
		}
	}
}
