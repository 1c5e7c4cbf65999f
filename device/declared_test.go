package device

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
)

// arrays are the machines behind the ports of a device. They send no LLDP and answer for
// their addresses.
type arrays struct {
	*bareCore
	on     map[string][]string // by port: ADDRESS or ADDRESS/MACHINE
	asked  map[string]int      // questions by port
	queue  []fabric.Frame      // answers under way
	events []api.Event
}

func (*arrays) ToReflectors([]wire.Delivery) {}
func (*arrays) ToClients([]wire.Delivery)    {}
func (*arrays) SetAdmin(string, bool)        {}
func (*arrays) WatchPaths([]bfd.Peer)        {}
func (a *arrays) Event(e api.Event)          { a.events = append(a.events, e) }

func (a *arrays) SendFrame(port string, b []byte) {
	if et := uint16(b[12])<<8 | uint16(b[13]); et != fabric.EtherTypeARP && et != fabric.EtherTypeIPv6 {
		return
	}
	a.asked[port]++
	for _, text := range a.on[port] {
		addr, name, _ := strings.Cut(text, "/")
		has := func(x netip.Addr) bool { return x == netip.MustParseAddr(addr) }
		if f := presence.Reply(b, hostMAC("array"+name), has); f != nil {
			a.queue = append(a.queue, fabric.Frame{Port: port, Dst: fabric.MAC(f), Src: fabric.MAC(f[6:]), EtherType: uint16(f[12])<<8 | uint16(f[13]), Payload: f[14:]})
		}
	}
}

// pass lets time pass: everything that is due happens, and machines answer within 1 ms.
func (a *arrays) pass(d time.Duration) {
	a.t.Helper()
	for end := a.now.Add(d); ; {
		for len(a.queue) > 0 {
			f := a.queue[0]
			a.queue = a.queue[1:]
			a.now = a.now.Add(time.Millisecond)
			f.At = a.now
			a.Frame(f, a.now)
		}
		next := a.Next()
		if next.IsZero() || next.After(end) {
			if end.After(a.now) {
				a.now = end
			}
			a.Tick(a.now)
			if len(a.queue) == 0 {
				return
			}
			continue
		}
		if next.After(a.now) {
			a.now = next
		}
		a.Tick(a.now)
	}
}

// declare makes a declaration of a target.
func declare(addr string, ports ...string) Declaration {
	names, err := fabric.ParseNames(ports)
	if err != nil {
		panic(err)
	}
	return Declaration{netip.MustParseAddr(addr), names, snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, Port: 4420, NQN: "nqn.2026-11.test:array"}}
}

// newArrays is a device with three ports that are up.
func newArrays(t *testing.T, list ...Declaration) *arrays {
	a := &arrays{bareCore: bareMachine(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), on: map[string][]string{}, asked: map[string]int{}}
	a.bareCore.actions, a.hosts.Declared = a, list
	a.start(true, State{})
	for _, p := range []string{"eth1", "eth2", "eth3"} {
		a.carrier(p, true, fabric.PortAdded)
	}
	a.Start(a.now)
	return a
}

// at says on which ports a host is, and its state.
func (a *arrays) at(addr string) string {
	var ports []string
	for _, h := range a.Directory().Attachments(netip.MustParseAddr(addr)) {
		ports = append(ports, h.HostKey.Port)
	}
	if len(ports) == 0 {
		return "nowhere"
	}
	return strings.Join(ports, " ") + " " + a.state(addr)
}

func (a *arrays) is(addr, want string) {
	a.t.Helper()
	if got := a.at(addr); got != want {
		a.t.Fatalf("%s is %s, want %s", addr, got, want)
	}
}

// said reports whether an event has all these words.
func (a *arrays) said(words ...string) bool {
	return slices.ContainsFunc(a.events, func(e api.Event) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Text, w) })
	})
}

func (a *arrays) facts() []health.Declared {
	var f health.Facts
	a.Facts(&f, a.now)
	return f.Declared
}

func TestADeclaredHostIsAHostOnceItAnswers(t *testing.T) {
	for _, addr := range []string{t1, "2001:db8::51"} {
		a := newArrays(t, declare(addr, "eth1"))
		a.pass(time.Minute)
		a.is(addr, "nowhere")
		a.on["eth1"] = []string{addr}
		a.pass(35 * time.Second) // it starts long after its port
		a.is(addr, "eth1 active none")
		list := a.AppendHosts(nil, netip.MustParseAddr(addr))
		h := list[0]
		if h.Source != api.SourceConfigured || h.Role != snsd.RoleTarget || h.Protocol != snsd.ProtocolTCP || h.ServicePort != 4420 || h.Subscribes || h.MAC != hostMAC("array") || h.NQN == "" {
			t.Errorf("it is shown as %+v", h)
		}
		if !a.said(addr, "registered on port eth1") {
			t.Errorf("events %+v", a.events)
		}
		if c := a.Counters()["declared"].(DeclaredCounters); c.Answered == 0 || c.Unanswered == 0 {
			t.Errorf("counters %+v", c)
		}
		if n := a.table.Counters(); n.FramesIn != 0 || n.NoPrefix != 0 {
			t.Errorf("it counts as LLDP: %+v", n)
		}
	}
}

// An array's port comes up and the array answers at once: no time is lost.
func TestADeclaredHostIsThereWithItsPort(t *testing.T) {
	a := newArrays(t, declare(t1, "eth4"))
	a.on["eth4"] = []string{t1}
	a.carrier("eth4", true, fabric.PortAdded)
	a.pass(10 * time.Millisecond)
	a.is(t1, "eth4 active none")
}

func TestADeclaredHostIsRefusedOnOtherPorts(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1", "eth2"))
	a.on["eth3"] = []string{t1}
	a.carrier("eth3", false, fabric.PortChanged)
	a.carrier("eth3", true, fabric.PortChanged)
	a.pass(time.Second)
	a.is(t1, "nowhere")
	if f := a.facts(); len(f) != 1 || f[0].Stray != "eth3" || f[0].Host.String() != t1 || f[0].Second != "" {
		t.Errorf("facts %+v", f)
	}
	if a.declared.count.Misplaced == 0 || !a.said(t1, "answers on port eth3", "eth1,eth2 only", "refused") {
		t.Errorf("counted %d, events %+v", a.declared.count.Misplaced, a.events)
	}
	for range 2 {
		a.carrier("eth3", false, fabric.PortChanged)
		if f := a.facts(); len(f) != 0 {
			t.Errorf("facts %+v", f)
		}
		a.carrier("eth3", true, fabric.PortChanged)
		if a.pass(time.Second); len(a.facts()) != 1 {
			t.Errorf("facts %+v", a.facts())
		}
	}
	delete(a.on, "eth3")
	if a.pass(strayRest + time.Second); len(a.facts()) != 0 {
		t.Errorf("facts %+v", a.facts())
	}
	before := a.asked["eth3"]
	if a.pass(time.Hour); a.asked["eth3"]-before > 3*12 {
		t.Errorf("%d questions in an hour on a port that is not named", a.asked["eth3"]-before)
	}
	// The cable goes where it belongs.
	a.on["eth1"] = []string{t1}
	a.pass(time.Minute)
	a.is(t1, "eth1 active none")
	if f := a.facts(); len(f) != 0 {
		t.Errorf("facts %+v", f)
	}
	asked := a.asked["eth3"]
	if a.pass(10 * time.Minute); a.asked["eth3"] != asked {
		t.Error("it is asked for elsewhere although it is there")
	}
}

func TestADeclaredHostOnTwoPortsStaysOnTheFirst(t *testing.T) {
	a := newArrays(t, declare(t1, "eth[12]"))
	a.on["eth1"] = []string{t1}
	a.pass(time.Minute)
	a.on["eth2"] = []string{t1 + "/2"}
	a.pass(time.Minute)
	a.is(t1, "eth1 active none")
	if f := a.facts(); len(f) != 1 || f[0].First != "eth1" || f[0].Second != "eth2" || f[0].Stray != "" {
		t.Errorf("facts %+v", f)
	}
	if a.declared.count.TwoPorts == 0 || !a.said(t1, "answers on ports eth1 and eth2") {
		t.Errorf("counted %d, events %+v", a.declared.count.TwoPorts, a.events)
	}
	a.carrier("eth2", false, fabric.PortChanged)
	if f := a.facts(); len(f) != 0 {
		t.Errorf("facts %+v", f)
	}
	a.carrier("eth2", true, fabric.PortChanged)
	if a.pass(time.Minute); len(a.facts()) != 1 {
		t.Errorf("facts %+v", a.facts())
	}
	delete(a.on, "eth2")
	a.pass(time.Minute)
	a.is(t1, "eth1 active none")
	if f := a.facts(); len(f) != 0 {
		t.Errorf("facts %+v", f)
	}
}

// Another machine on the port answers too: the first one stays while it answers.
func TestADeclaredHostIsTheMachineThatAnsweredFirst(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.pass(time.Minute)
	a.on["eth1"] = []string{t1 + "/2", t1}
	a.pass(5 * time.Minute)
	mac := func() fabric.MAC { return a.Directory().Attachments(netip.MustParseAddr(t1))[0].MAC }
	if mac() != hostMAC("array") || a.declared.count.OtherMACs == 0 {
		t.Errorf("it is %s, %d counted", mac(), a.declared.count.OtherMACs)
	}
	a.on["eth1"] = []string{t1 + "/2"} // its card was replaced
	a.pass(time.Minute)
	if a.is(t1, "eth1 active none"); mac() != hostMAC("array2") {
		t.Errorf("it is %s", mac())
	}
	a.on["eth1"] = []string{t1} // once more, and the carrier went with it
	a.carrier("eth1", false, fabric.PortChanged)
	a.carrier("eth1", true, fabric.PortChanged)
	a.pass(10 * time.Millisecond)
	if a.is(t1, "eth1 active none"); mac() != hostMAC("array") {
		t.Errorf("it is %s", mac())
	}
}

func TestADeclaredHostFailsWithItsPort(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.register("h2", "eth2", i2)
	a.pass(time.Second)
	before := len(a.notify.Notices())
	a.carrier("eth1", false, fabric.PortChanged)
	a.Tick(a.now)
	a.is(t1, "eth1 inactive link-down")
	list := a.notify.Notices()[before:]
	if len(list) != 1 || list[0].Host.String() != i2 || list[0].Subject.String() != t1 || list[0].Reason != snsd.ReasonLinkDown {
		t.Errorf("notices %+v", list)
	}
	delete(a.on, "eth1") // it is still starting
	a.carrier("eth1", true, fabric.PortChanged)
	a.pass(5 * time.Second)
	a.is(t1, "eth1 inactive link-down")
	a.on["eth1"] = []string{t1}
	a.pass(5 * time.Second)
	a.is(t1, "eth1 active none")
}

// Silence takes nothing away before the time to live is over.
func TestADeclaredHostAges(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.pass(time.Hour)
	a.is(t1, "eth1 active none")
	delete(a.on, "eth1")
	a.pass(lldp.DeclaredTTL - 31*time.Second)
	a.is(t1, "eth1 active none")
	a.pass(31 * time.Second)
	a.is(t1, "nowhere")
	if !a.said(t1, "left port eth1", "aged-out") {
		t.Errorf("events %+v", a.events)
	}
	a.on["eth1"] = []string{t1}
	a.pass(31 * time.Second)
	a.is(t1, "eth1 active none")
}

func TestADeclaredHostMoves(t *testing.T) {
	for _, c := range []struct {
		name   string
		within time.Duration
		move   func(a *arrays)
	}{
		{"the first port is down", 10 * time.Millisecond, func(a *arrays) { a.carrier("eth1", false, fabric.PortChanged) }},
		{"the first port stays up", 31 * time.Second, func(*arrays) {}},
		{"the second port comes up", 2 * time.Second, func(a *arrays) {
			a.carrier("eth2", false, fabric.PortChanged)
			a.carrier("eth2", true, fabric.PortChanged)
		}},
		{"the first port is gone", 10 * time.Millisecond, func(a *arrays) { a.carrier("eth1", false, fabric.PortRemoved) }},
	} {
		for _, machine := range []string{"", "/2"} {
			t.Run(c.name+machine, func(t *testing.T) {
				a := newArrays(t, declare(t1, "eth1", "eth2"))
				a.on["eth1"] = []string{t1}
				a.register("h3", "eth3", i2)
				a.pass(5*time.Minute + 5*time.Second)
				a.is(t1, "eth1 active none")
				before := len(a.notify.Notices())
				delete(a.on, "eth1")
				a.on["eth2"] = []string{t1 + machine}
				c.move(a)
				a.pass(c.within)
				a.is(t1, "eth2 active none")
				if a.declared.count.Moved != 1 || !a.said(t1, "moved from port eth1", "to port eth2") {
					t.Errorf("%d moved, events %+v", a.declared.count.Moved, a.events)
				}
				for _, n := range a.notify.Notices()[before:] { // another machine is another host, the same one is not
					if n.Reason.Disconnects() && machine == "" {
						t.Errorf("notice %+v", n)
					}
				}
				if f := a.facts(); len(f) != 0 {
					t.Errorf("facts %+v", f)
				}
			})
		}
	}
}

// A reload touches only what it changes.
func TestAReloadOfDeclarations(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"), declare(t2, "eth2"))
	a.on["eth1"], a.on["eth2"], a.on["eth3"] = []string{t1}, []string{t2}, []string{t3}
	a.pass(time.Second)
	before := len(a.events)
	next := a.hosts
	next.Declared = []Declaration{declare(t1, "eth1"), declare(t3, "eth3")}
	if losing := fmt.Sprint(a.LosingByHosts(next)); losing != "[{eth2 ["+t2+"]}]" {
		t.Errorf("it would lose %s", losing)
	}
	a.SetHosts(next, a.now)
	a.pass(time.Second)
	a.is(t1, "eth1 active none")
	a.is(t2, "nowhere")
	a.is(t3, "eth3 active none")
	if !a.said(t2, "leaves port eth2", "not declared") {
		t.Errorf("events %+v", a.events)
	}
	for _, e := range a.events[before:] {
		if e.Addr == t1 {
			t.Errorf("event %+v", e)
		}
	}
	next.Declared = slices.Clone(next.Declared)
	next.Declared[0].Service.Port = 4421
	next.Declared[1] = declare(t3, "eth1")
	a.SetHosts(next, a.now)
	a.pass(2 * time.Second)
	if h := a.Directory().Attachments(netip.MustParseAddr(t1)); len(h) != 1 || h[0].Service.Port != 4421 {
		t.Errorf("its service is %+v", h)
	}
	a.is(t3, "nowhere") // its port is not named any longer
	next.Declared = nil
	a.SetHosts(next, a.now)
	a.is(t1, "nowhere")
	if !a.declared.asker.Next().IsZero() {
		t.Error("somebody is still asked")
	}
}

// A host that registers itself has its address, and what it registers counts.
func TestARegistrationComesBeforeADeclaration(t *testing.T) {
	for _, port := range []string{"eth1", "eth2"} {
		a := newArrays(t, declare(t1, "eth1", "eth2"))
		a.on["eth1"] = []string{t1}
		a.pass(time.Second)
		delete(a.on, "eth1")
		a.on[port] = []string{t1}
		a.register("array", port, t1)
		a.is(t1, port+" active none")
		h := a.AppendHosts(nil, netip.MustParseAddr(t1))[0]
		if h.Source != api.SourceLLDP || h.NQN != "nqn.2026-11.test:array" || h.Protocol != snsd.ProtocolRoCE || !h.Subscribes {
			t.Errorf("it is %+v", h)
		}
		if !a.said(t1, "leaves port eth1", "registers itself") {
			t.Errorf("events %+v", a.events)
		}
		asked := a.asked[port]
		if a.pass(100 * time.Second); a.asked[port] != asked {
			t.Errorf("it is asked for")
		}
		a.pass(100 * time.Second) // its registration ends, and it answers
		a.is(t1, port+" active none")
		if h := a.AppendHosts(nil, netip.MustParseAddr(t1))[0]; h.Source != api.SourceConfigured {
			t.Errorf("it is %+v", h)
		}
	}
}

// A binding may have the MAC address, too.
func TestADeclaredHostOfAnotherMachineIsRefused(t *testing.T) {
	a := newArrays(t)
	next := HostsConfig{Declared: []Declaration{declare(t1, "eth1")}}
	next.Beliefs.Bindings = []lldp.Binding{{Addrs: netip.MustParsePrefix(t1 + "/32"), Ports: next.Declared[0].Ports, MAC: hostMAC("array")}}
	a.SetHosts(next, a.now)
	a.on["eth1"] = []string{t1 + "/2"}
	a.pass(time.Minute)
	if a.is(t1, "nowhere"); a.declared.count.Refused == 0 || !a.said(t1, "on port eth1 is refused", "bound to other") || a.table.Count("eth1") != 0 {
		t.Errorf("%d refused, events %+v", a.declared.count.Refused, a.events)
	}
	a.on["eth1"] = []string{t1}
	a.pass(time.Minute)
	a.is(t1, "eth1 active none")
}

// Where the declaration of this device binds the address too, a registration elsewhere is refused.
func TestARegistrationOnAPortThatIsNotNamedIsRefused(t *testing.T) {
	a := newArrays(t)
	next := HostsConfig{Declared: []Declaration{declare(t1, "eth1")}}
	next.Beliefs.Bindings = []lldp.Binding{{Addrs: netip.MustParsePrefix(t1 + "/32"), Ports: next.Declared[0].Ports}}
	a.SetHosts(next, a.now)
	a.on["eth1"] = []string{t1}
	a.pass(time.Second)
	a.register("array", "eth2", t1)
	a.is(t1, "eth1 active none")
}

// A reflector's declaration binds nothing. Who registers the address elsewhere gets it only once the
// declared host does not answer.
func TestARegistrationElsewhereTakesNothingFromADeclaredHost(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.pass(time.Second)
	holder := func() string {
		for _, h := range a.Directory().Attachments(netip.MustParseAddr(t1)) {
			if a.Directory().Holds(h.HostKey) {
				return h.HostKey.Port
			}
		}
		return "nobody"
	}
	for range 3 {
		a.register("thief", "eth2", t1)
		if a.pass(time.Minute); holder() != "eth1" {
			t.Fatalf("%s has it", holder())
		}
	}
	delete(a.on, "eth1")
	a.register("thief", "eth2", t1)
	if a.pass(time.Minute + time.Second); holder() != "eth2" {
		t.Errorf("%s has it", holder())
	}
}

// An answer to no question, and one from before the loss of the carrier, is no evidence.
func TestAnswersThatProveNothing(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	question := presence.Question(fabric.MAC{2}, netip.MustParseAddr(t1))
	b := presence.Reply(question, hostMAC("array"), func(netip.Addr) bool { return true })
	answer := func(at time.Time) {
		a.Frame(fabric.Frame{Port: "eth1", Dst: fabric.MAC(b), Src: fabric.MAC(b[6:]), EtherType: fabric.EtherTypeARP, Payload: b[14:], At: at}, a.now)
	}
	a.pass(600 * time.Millisecond) // the first questions are over, the next ones are not due
	answer(a.now)
	a.is(t1, "nowhere")
	early := a.now
	a.now = a.now.Add(10 * time.Millisecond)
	a.carrier("eth1", false, fabric.PortChanged)
	a.carrier("eth1", true, fabric.PortChanged)
	a.Tick(a.now)
	answer(early)
	a.is(t1, "nowhere")
	answer(a.now)
	a.is(t1, "eth1 active none")
}

// The carrier blinks too shortly to be seen as down: the host is asked for again at once.
func TestADeclaredHostIsAskedForAfterABlink(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.pass(5*time.Minute + 5*time.Second)
	a.changes["eth1"]++
	a.carrier("eth1", true, fabric.PortChanged)
	a.is(t1, "eth1 inactive link-down")
	a.pass(10 * time.Millisecond)
	a.is(t1, "eth1 active none")
}

// LLDP without a registration names a host of unknown role; the declaration says what it is.
func TestADeclarationComesBeforePlainLLDP(t *testing.T) {
	for _, mgmt := range []string{t1, "198.51.100.9"} { // of the port itself, and of another subnet
		a := newArrays(t, declare(t1, "eth1"))
		name := "array"
		pdu := lldp.PDU{Chassis: lldp.MACID(lldp.ChassisMAC, hostMAC("array")), Port: lldp.ID{Subtype: lldp.PortLocal, Value: "1"}, TTL: 120, SysName: &name,
			Mgmt: []lldp.MgmtAddr{{Addr: netip.MustParseAddr(mgmt), IfSubtype: 2, IfNumber: 1}}}
		raw, err := pdu.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		say := func() {
			a.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("array"), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: raw}, a.now)
		}
		say()
		a.on["eth1"] = []string{t1}
		a.pass(31 * time.Second)
		say()
		a.is(t1, "eth1 active none")
		h := a.AppendHosts(nil, netip.MustParseAddr(t1))[0]
		if h.Role != snsd.RoleTarget || h.Source != api.SourceConfigured {
			t.Errorf("it is %+v", h)
		}
		a.carrier("eth1", false, fabric.PortChanged)
		a.is(t1, "eth1 inactive link-down")
	}
}

// After a restart a declared host is what it was, before anybody was asked; one that is not
// declared any longer leaves.
func TestADeclaredHostOutlivesARestart(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"), declare(t2, "eth2"))
	a.on["eth1"], a.on["eth2"] = []string{t1}, []string{t2}
	a.pass(time.Second)
	since := a.Directory().Attachments(netip.MustParseAddr(t1))[0].Since
	a.hosts.Declared = a.hosts.Declared[:1]
	on := a.on
	a.on = nil
	a.restart(true, "eth1", "eth2", "eth3")
	a.is(t1, "eth1 active none")
	a.is(t2, "nowhere")
	if h := a.Directory().Attachments(netip.MustParseAddr(t1))[0]; !h.Since.Equal(since) {
		t.Errorf("since %v, want %v", h.Since, since)
	}
	a.on = on
	a.pass(time.Hour)
	a.is(t1, "eth1 active none")
}

// What a reflector declared before the restart stays while it answers, until all reflectors have
// been heard.
func TestAHostThatAReflectorDeclaredOutlivesARestart(t *testing.T) {
	a := newArrays(t)
	a.SetDeclared([]wire.DeclaredHost{{Addr: netip.MustParseAddr(t1), Ports: []string{"eth1"}, Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP}}}, a.now)
	a.on["eth1"] = []string{t1}
	a.pass(time.Second)
	a.is(t1, "eth1 active none")
	a.restart(false, "eth1")
	a.pass(time.Hour)
	a.is(t1, "eth1 active none")
	a.ReflectorUp(bareReflector, a.now)
	a.ReflectorMessage(bareReflector, &wire.Bound{}, a.now)
	a.is(t1, "nowhere")
}

func TestAReflectorDeclaresForAllDevices(t *testing.T) {
	declared := wire.DeclaredHost{Addr: netip.MustParseAddr(t1), Ports: []string{"eth1", "eth2"}, Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP}}
	bad := wire.DeclaredHost{Addr: netip.MustParseAddr(t2), Ports: []string{"eth[", "eth2"}, Service: declared.Service}
	a := &arrays{bareCore: bareMachine(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), on: map[string][]string{"eth2": {t1, t3}}, asked: map[string]int{}}
	a.bareCore.actions, a.hosts.Declared = a, []Declaration{declare(t3, "eth2")}
	a.start(false, State{})
	for _, p := range []string{"eth1", "eth2"} {
		a.carrier(p, true, fabric.PortAdded)
	}
	a.Start(a.now)
	a.ReflectorUp(bareReflector, a.now)
	a.pass(time.Second)
	a.is(t1, "nowhere")
	for _, m := range []*wire.Bound{{Hosts: []wire.DeclaredHost{bad, declared}}, {Hosts: []wire.DeclaredHost{declared, {Addr: netip.MustParseAddr(t3), Ports: []string{"eth1"}}}}} {
		a.ReflectorMessage(bareReflector, m, a.now)
		a.pass(time.Second)
		a.is(t1, "eth2 active none")
		a.is(t3, "eth2 active none") // the device's own declaration comes first
	}
	if !a.said(t2, "is not asked for") || a.declared.count.Refused != 1 {
		t.Errorf("%d refused, events %+v", a.declared.count.Refused, a.events)
	}
	a.ReflectorDown(bareReflector, nil, a.now) // what it said last counts
	a.pass(time.Hour)
	a.is(t1, "eth2 active none")
	a.ReflectorUp(bareReflector, a.now)
	a.ReflectorMessage(bareReflector, &wire.Bound{}, a.now)
	a.pass(time.Second)
	a.is(t1, "nowhere")
	a.is(t3, "eth2 active none")
}

// A frame with the chassis id of declared hosts is forged: it neither makes nor ends one.
func TestAForgedFrameOfADeclaredHostIsRefused(t *testing.T) {
	a := newArrays(t, declare(t1, "eth1"))
	a.on["eth1"] = []string{t1}
	a.pass(time.Second)
	raw := a.table.Neighbours("eth1")[0].LLDPDU
	for _, port := range []string{"eth1", "eth2"} {
		a.Frame(fabric.Frame{Port: port, Src: hostMAC("array"), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: raw}, a.now)
		a.is(t1, "eth1 active none")
	}
	if n := a.table.Counters(); a.counters.LLDPErrors != 2 || n.FramesDiscarded != 2 {
		t.Errorf("%d errors, %+v", a.counters.LLDPErrors, n)
	}
}

// A thousand hosts that are declared at each port are asked for within bounds.
func TestQuestionsForDeclaredHostsAreBounded(t *testing.T) {
	var list []Declaration
	for i := range 1024 {
		list = append(list, declare(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}).String(), "eth*"))
	}
	a := newArrays(t, list...)
	for i := range 30 {
		a.carrier(fmt.Sprint("eth", i+4), true, fabric.PortAdded)
	}
	if n := a.declared.asker.Len(); n != maxDeclaredAsks || a.declared.count.Unasked == 0 {
		t.Errorf("%d are asked for, %d are not", n, a.declared.count.Unasked)
	}
	a.Tick(a.now)
	many := newArrays(t, declare(t1, "eth1")) // ports that are not named take no room from those that are
	next := many.hosts
	for _, d := range list {
		d.Ports = next.Declared[0].Ports
		next.Declared = append(next.Declared, d)
	}
	for i := range 30 {
		many.carrier(fmt.Sprint("eth", i+4), true, fabric.PortAdded)
	}
	many.carrier("eth1", false, fabric.PortChanged)
	many.SetHosts(next, many.now)
	many.carrier("eth1", true, fabric.PortChanged)
	if n := many.declared.asker.Len(); n != maxDeclaredAsks/2+len(next.Declared) {
		t.Errorf("%d are asked for", n)
	}
	n := 0
	for _, asked := range a.asked {
		n += asked
	}
	if n != presence.MostAsked {
		t.Errorf("%d questions at once", n)
	}
}
