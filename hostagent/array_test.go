package hostagent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// heard is an Array that notes what it is notified of.
type heard struct{ list []string }

func (h *heard) HostLost(host, array netip.Addr) {
	h.list = append(h.list, fmt.Sprint("host ", host, " ", array))
}
func (h *heard) PortLost(arrays []netip.Addr) { h.list = append(h.list, fmt.Sprint("port ", arrays)) }

// An array hears of hosts that cannot be reached, and of its own port; not of hosts that are active,
// leave in order or have errors only, and not of other arrays.
func TestAnArrayHearsOfLostHosts(t *testing.T) {
	h := &heard{}
	a := &Agent{say: func(Line) error { return nil }, now: time.Now, ports: map[string]*port{}}
	p := newPort(Port{AgentConfig: snsd.AgentConfig{Interface: "eth1", Addrs: []netip.Addr{self1}}})
	p.up = true
	a.ports["eth1"] = p
	a.Serve(h)
	for _, c := range []struct {
		kind   snsd.AgentEventKind
		role   snsd.Role
		state  snsd.State
		reason snsd.Reason
	}{
		{snsd.AgentIgnored, snsd.RoleInitiator, snsd.Inactive, snsd.ReasonBFDDown},
		{snsd.AgentIgnored, snsd.RoleInitiator, snsd.Inactive, snsd.ReasonLinkDown},
		{snsd.AgentIgnored, snsd.RoleInitiator, snsd.Inactive, snsd.ReasonZoneChanged},
		{snsd.AgentIgnored, snsd.RoleInitiator, snsd.Inactive, snsd.ReasonPacketError},
		{snsd.AgentIgnored, snsd.RoleInitiator, snsd.Active, snsd.ReasonLinkDown},
		{snsd.AgentIgnored, snsd.RoleTarget, snsd.Inactive, snsd.ReasonLinkDown},
	} {
		a.act(p, &snsd.AgentEvent{Kind: c.kind, Notice: snsd.Notice{Host: self1, Subject: self2, State: c.state, Reason: c.reason, Service: snsd.Service{Role: c.role}}})
	}
	a.link(p, time.Now(), false, "down")
	want := fmt.Sprintf("host %v %v|host %v %v|port [%v]", self2, self1, self2, self1, self1)
	if got := strings.Join(h.list, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What is wrong with a fence-service is said by its key and with the remedy; the good ones are taken.
func TestFenceServiceIsChecked(t *testing.T) {
	def := func(edit func(*FenceServiceConfig)) FenceServiceConfig {
		c := Default().FenceService
		edit(&c)
		return c
	}
	listen := []netip.AddrPort{netip.MustParseAddrPort("[::]:4424")}
	hosts := func(addrs ...string) (list []FenceHostConfig) {
		for _, a := range addrs {
			list = append(list, FenceHostConfig{KeyFile: "/etc/snsd/h", Addresses: []netip.Addr{netip.MustParseAddr(a)}})
		}
		return list
	}
	for want, c := range map[string]FenceServiceConfig{
		"":                        def(func(*FenceServiceConfig) {}),
		"-secret":                 def(func(c *FenceServiceConfig) { c.KeyFile = "/etc/snsd/secret" }),
		"-array":                  def(func(c *FenceServiceConfig) { c.Listen, c.Hosts = listen, hosts("10.1.1.1", "10.1.2.1") }),
		"-certs":                  def(func(c *FenceServiceConfig) { c.Listen, c.Certificate, c.Key, c.CA = listen, "a", "b", "c" }),
		"all three":               def(func(c *FenceServiceConfig) { c.Certificate = "a" }),
		"one of them":             def(func(c *FenceServiceConfig) { c.Certificate, c.Key, c.CA, c.KeyFile = "a", "b", "c", "d" }),
		"or hosts, beside it":     def(func(c *FenceServiceConfig) { c.Listen = listen }),
		"fence-service.port":      def(func(c *FenceServiceConfig) { c.Port = 0 }),
		"fence-service.hold":      def(func(c *FenceServiceConfig) { c.Hold = 0 }),
		"fence-service.listen[0]": def(func(c *FenceServiceConfig) { c.Listen, c.Hosts = []netip.AddrPort{{}}, hosts("10.1.1.1") }),
		"each address once":       def(func(c *FenceServiceConfig) { c.Hosts = hosts("10.1.1.1", "10.1.1.1") }),
		"unicast addresses":       def(func(c *FenceServiceConfig) { c.Hosts = hosts("224.0.0.1") }),
		"hosts[0].key-file":       def(func(c *FenceServiceConfig) { c.Hosts = []FenceHostConfig{{Addresses: []netip.Addr{self1}}} }),
		"hosts[0].addresses":      def(func(c *FenceServiceConfig) { c.Hosts = []FenceHostConfig{{KeyFile: "x"}} }),
	} {
		var said []string
		c.check(func(key string, value any, want string) {
			said = append(said, fmt.Sprintf("%s: %v: want %s", key, value, want))
		})
		good := want == "" || want[0] == '-'
		if good != (len(said) == 0) || !good && !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q: %v", want, said)
		}
	}
}
