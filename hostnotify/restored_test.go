package hostnotify

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func TestARestartCausesNoNoticeWhenNothingChanged(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	un := r.poll()
	r.ack(un[0])
	s := r.n.Snapshot()
	r.n = New(Config{}, r.w)
	if err := r.n.Restore(s, r.now); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, r.n.Snapshot(), keptOptions); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	// The directory fills one host after the other.
	hosts, zones := r.w.hosts, r.w.zones
	r.w.hosts = map[netip.Addr]*zone.Host{}
	r.w.zones = map[string]map[netip.Addr]bool{}
	for _, a := range []string{hostA, hostB} {
		r.w.hosts[ip(a)] = hosts[ip(a)]
		r.n.PortUp(map[string]string{hostA: "p1", hostB: "p2"}[a], mac(9), r.now)
		r.n.Subscribe(ip(a), map[string]string{hostA: "p1", hostB: "p2"}[a], hosts[ip(a)].MAC, r.now)
		r.changed(0, a)
	}
	r.w.zones = zones
	r.changed(0, hostA, hostB)
	r.w.hosts[ip(farT)] = hosts[ip(farT)]
	r.changed(snsd.ReasonLinkDown, farT)
	r.n.SetSynced(true)
	got := r.settle()
	expect(t, got, un[1].Host.String()+": "+farT+" inactive link-down")
	if got[0].Seq != un[1].Seq {
		t.Errorf("retried as %d, want %d", got[0].Seq, un[1].Seq)
	}
}

func TestRestoredHostsThatDoNotRegisterAreForgotten(t *testing.T) {
	r := twoHosts(t)
	s := r.n.Snapshot()
	r.n = New(Config{}, r.w)
	if err := r.n.Restore(s, r.now); err != nil {
		t.Fatal(err)
	}
	h := r.w.hosts[ip(hostA)]
	r.n.PortUp("p1", mac(9), r.now)
	r.n.Subscribe(h.Addr, "p1", h.MAC, r.now)
	if next := r.n.Next(); next.Sub(r.now) != 130*time.Second {
		t.Errorf("next in %v, want 130s", next.Sub(r.now))
	}
	r.pass(130 * time.Second)
	expect(t, r.settle())
	if c := r.n.Counters(); c.Hosts != 1 {
		t.Errorf("hosts %d, want 1", c.Hosts)
	}
}

func TestARestoredHostOnAnotherMachineIsToldEverything(t *testing.T) {
	r := twoHosts(t)
	s := r.n.Snapshot()
	r.n = New(Config{}, r.w)
	if err := r.n.Restore(s, r.now); err != nil {
		t.Fatal(err)
	}
	r.n.SetSynced(true)
	r.n.PortUp("p1", mac(9), r.now)
	r.w.hosts[ip(hostA)].MAC = mac(78)
	r.n.Subscribe(ip(hostA), "p1", mac(78), r.now)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active")
}
