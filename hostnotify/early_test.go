package hostnotify

import (
	"testing"

	"github.com/openinof/inof/snsd"
)

// Of a host that was not registered when it asked it is not known what it shares: what goes
// is news once that is.
func TestWhatGoesIsNoNewsToAHostBeforeItIsSettled(t *testing.T) {
	r := newRig(t, Config{})
	r.w.put(ip(farT))
	r.w.put(ip(farU))
	h := r.w.put(ip(hostA))
	r.w.join("z", ip(hostA), ip(farT), ip(farU))
	r.n.PortUp("p1", mac(9), r.now)
	r.n.SubscribeAs(h.Addr, "p1", h.MAC, snsd.RoleInitiator, r.now)
	r.n.Query(h.Addr, r.now)
	expect(t, r.settle(), hostA+": "+farT+" active", hostA+": "+farU+" active")
	r.withdraw(farT, snsd.ReasonZoneChanged)
	delete(r.w.zones["z"], ip(farU))
	r.changed(0, farU)
	r.n.Subscribe(h.Addr, "p1", h.MAC, r.now)
	expect(t, r.settle())
	r.w.put(ip(farT))
	r.changed(0, farT)
	r.n.Settle(h.Addr, r.now)
	expect(t, r.settle(), hostA+": "+farU+" inactive zone-changed")
}
