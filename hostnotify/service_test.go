package hostnotify

import (
	"testing"

	"github.com/openinof/inof/snsd"
)

// provide gives a host another service.
func (r *rig) provide(addr string, svc snsd.Service) {
	r.w.hosts[ip(addr)].Service = svc
	r.changed(0, addr)
}

var (
	oldService = snsd.Service{Role: snsd.RoleBoth, Protocol: snsd.ProtocolRoCE, Port: 4420} // of world.put
	newService = snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4421}
)

func TestAnotherServiceIsToldAfterTheOldOneWasTakenBack(t *testing.T) {
	for name, svc := range map[string]snsd.Service{
		"port":     newService,
		"protocol": {Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, Port: 4420},
		"role":     {Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE, Port: 4420},
	} {
		t.Run(name, func(t *testing.T) {
			r := twoHosts(t)
			r.provide(farT, svc)
			got := r.poll()
			expect(t, got, hostA+": "+farT+" inactive ip-changed", hostB+": "+farT+" inactive ip-changed")
			for _, x := range got {
				if x.Service != oldService {
					t.Errorf("inactive is told of %+v", x.Service)
				}
			}
			expect(t, r.poll()) // nothing before the acks
			r.ack(got...)
			got = r.settle()
			expect(t, got, hostA+": "+farT+" active", hostB+": "+farT+" active")
			for _, x := range got {
				if x.Service != svc {
					t.Errorf("active is told of %+v", x.Service)
				}
			}
		})
	}
}

func TestWhatWasUnknownOfAServiceIsNoOtherOne(t *testing.T) {
	r := twoHosts(t)
	for _, svc := range []snsd.Service{
		{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE},
		{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-11.net.example:a"},
	} {
		r.provide(farT, svc)
		expect(t, r.settle(), hostA+": "+farT+" active", hostB+": "+farT+" active")
	}
	svc := r.w.hosts[ip(farT)].Service
	svc.NQN = "nqn.2026-11.net.example:b"
	r.provide(farT, svc)
	expect(t, r.settle(), hostA+": "+farT+" active", hostA+": "+farT+" inactive ip-changed", hostB+": "+farT+" active", hostB+": "+farT+" inactive ip-changed")
}

// A host that was told to keep trying has its old controller still.
func TestAServiceThatChangedDuringAFaultIsTakenBackWhenTheSubjectIsThereAgain(t *testing.T) {
	r := twoHosts(t)
	r.fault(farT, snsd.ReasonLinkDown)
	r.settle()
	r.provide(farT, newService)
	expect(t, r.settle())
	r.fault(farT, 0)
	expect(t, r.poll(), hostA+": "+farT+" inactive ip-changed", hostB+": "+farT+" inactive ip-changed")
	r.fault(farT, snsd.ReasonLinkDown)
	r.fault(farT, 0)
	expect(t, r.settle()[2:], hostA+": "+farT+" active", hostB+": "+farT+" active")
}

func TestAServiceThatChangesAndChangesBackIsNoNews(t *testing.T) {
	r := twoHosts(t)
	r.provide(farT, newService)
	r.provide(farT, oldService)
	expect(t, r.settle())
}

func TestAChangeOfServiceSurvivesARestartBetweenItsTwoNotices(t *testing.T) {
	for _, acked := range []bool{false, true} {
		r := twoHosts(t)
		r.provide(farT, newService)
		got := r.poll()
		if acked {
			r.ack(got...)
		}
		s := r.n.Snapshot()
		r.n = New(Config{FirstSeq: 1}, r.w)
		if err := r.n.Restore(s, r.now); err != nil {
			t.Fatal(err)
		}
		for a, p := range map[string]string{hostA: "p1", hostB: "p2"} {
			r.n.PortUp(p, mac(9), r.now)
			r.n.Subscribe(ip(a), p, r.w.hosts[ip(a)].MAC, r.now)
		}
		r.n.SetSynced(true)
		want := []string{hostA + ": " + farT + " active", hostA + ": " + farT + " inactive ip-changed", hostB + ": " + farT + " active", hostB + ": " + farT + " inactive ip-changed"}
		if acked {
			want = []string{want[0], want[2]}
		}
		again := r.settle()
		expect(t, again, want...)
		for _, x := range again {
			if want := map[snsd.State]snsd.Service{snsd.Active: newService, snsd.Inactive: oldService}[x.State]; x.Service != want {
				t.Errorf("%v %v is told of %+v", x.Subject, x.State, x.Service)
			}
		}
	}
}

func TestRowsKeepWhatEachHostWasToldOfAServiceThatChanged(t *testing.T) {
	r := newRig(t, Config{Keep: true})
	r.populate()
	r.settle()
	rows := shelf{}
	r.n.Rows(rows.put)
	r.provide(farT, newService)
	got := r.poll()
	r.ack(got[0]) // one host is told of the new service, the other one not yet
	for _, o := range r.n.Poll(r.now) {
		r.n.RowsOf(o, rows.put) // what a kill right after that frame leaves
	}
	for _, h := range rows.kept(t).Hosts {
		for _, x := range h.Told {
			if x.Subject != ip(farT) {
				continue
			}
			svc := newService
			if x.Service != nil {
				svc = *x.Service
			}
			if want := map[snsd.State]snsd.Service{snsd.Active: newService, snsd.Inactive: oldService}[x.State]; svc != want {
				t.Errorf("%v was told %v of %+v", h.Addr, x.State, svc)
			}
		}
	}
}

// roles is a rig in which a local initiator and a local target share a zone with a
// remote initiator and a remote target.
func roles(t *testing.T, cfg Config) *rig {
	r := newRig(t, cfg)
	for a, role := range map[string]snsd.Role{hostA: snsd.RoleInitiator, hostB: snsd.RoleTarget, farT: snsd.RoleTarget, farU: snsd.RoleInitiator} {
		r.w.put(ip(a)).Role = role
		r.w.join("z", ip(a))
	}
	for a, p := range map[string]string{hostA: "p1", hostB: "p2"} {
		r.n.PortUp(p, mac(9), r.now)
		r.n.Subscribe(ip(a), p, r.w.hosts[ip(a)].MAC, r.now)
	}
	return r
}

func TestInitiatorsAreToldOfTargetsAndTargetsOfInitiators(t *testing.T) {
	r := roles(t, Config{})
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active", hostB+": "+hostA+" active", hostB+": "+farU+" active")
	for _, a := range []string{hostA, hostB, farT, farU} {
		r.fault(a, snsd.ReasonLinkDown)
	}
	expect(t, r.settle(), hostA+": "+hostB+" inactive link-down", hostA+": "+farT+" inactive link-down",
		hostB+": "+hostA+" inactive link-down", hostB+": "+farU+" inactive link-down")
}

func TestAnUnknownRoleIsToldOfAllAndToAll(t *testing.T) {
	r := roles(t, Config{})
	r.settle()
	r.provide(farU, snsd.Service{})
	// The initiator that it was is nothing to let go of.
	expect(t, r.settle(), hostA+": "+farU+" active", hostB+": "+farU+" active")
	r = roles(t, Config{})
	r.w.hosts[ip(hostA)].Role = snsd.RoleUnknown
	r.changed(0, hostA)
	expect(t, r.settle(), hostA+": "+hostB+" active", hostA+": "+farT+" active", hostA+": "+farU+" active", hostB+": "+hostA+" active", hostB+": "+farU+" active")
}

func TestOneSwitchTellsAllRoles(t *testing.T) {
	r := roles(t, Config{AllRoles: true})
	if got := r.settle(); len(got) != 6 {
		t.Errorf("told %v, want 6 notices", says(got))
	}
}

// The agent drops what it is told of an initiator: what it must let go of was a target.
func TestATargetThatBecomesAnInitiatorIsTakenBackAsTheTargetItWas(t *testing.T) {
	r := roles(t, Config{})
	r.settle()
	r.provide(farT, snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE, Port: 4420})
	got := r.settle()
	expect(t, got, hostA+": "+farT+" inactive ip-changed", hostB+": "+farT+" active")
	for _, x := range got {
		if want := map[snsd.State]snsd.Role{snsd.Active: snsd.RoleInitiator, snsd.Inactive: snsd.RoleTarget}[x.State]; x.Service.Role != want {
			t.Errorf("%s: told with role %v", says([]spoken{x}), x.Service.Role)
		}
	}
}

func TestAHostWhoseOwnRoleChangesIsToldOfItsNewPeers(t *testing.T) {
	r := roles(t, Config{})
	r.settle()
	r.w.hosts[ip(hostA)].Role = snsd.RoleTarget
	r.changed(0, hostA)
	expect(t, r.settle(), hostA+": "+hostB+" inactive ip-changed", hostA+": "+farT+" inactive ip-changed", hostA+": "+farU+" active", hostB+": "+hostA+" inactive ip-changed")
}
