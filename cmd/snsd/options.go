package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/snsd"
)

// options are the command line.
type options struct {
	ifname      string
	addresses   []string
	role        string
	protocol    string
	servicePort uint16
	nqn         string
	interval    time.Duration
	ttl         uint16
	restraint   time.Duration
	subscribe   bool
	noAck       bool
	silent      bool
	loseAcks    float64
	likeAgent   bool
	legacy      bool
	output      string
	lasts       time.Duration
	shutdownPDU bool
	failOver    bool
	fence       string
	switches    []string

	netns string // of tests: the namespace of the interface
}

// minInterval keeps a mistyped interval from flooding the switch.
const minInterval = 100 * time.Millisecond

// agent makes the agent's configuration, without the MAC. An error names the flag,
// its value and what is allowed.
func (o *options) agent() (snsd.AgentConfig, error) {
	c := snsd.AgentConfig{
		Interface: o.ifname, Subscribes: o.subscribe,
		Service:  snsd.Service{Port: o.servicePort, NQN: o.nqn},
		Interval: o.interval, TTL: o.ttl, Restraint: o.restraint,
		Extensions: snsd.ExtFence, Legacy: o.legacy, LoseAcks: o.loseAcks, Rand: rand.Float64, Silent: o.silent,
	}
	switch o.role {
	case "target", "initiator", "both":
		_ = c.Service.Role.UnmarshalText([]byte(o.role))
	default:
		return c, fmt.Errorf("--role %q: want target, initiator or both", o.role)
	}
	switch o.protocol {
	case "roce", "tcp", "iscsi":
		_ = c.Service.Protocol.UnmarshalText([]byte(o.protocol))
	default:
		return c, fmt.Errorf("--protocol %q: want roce, tcp or iscsi", o.protocol)
	}
	if o.interval < minInterval {
		return c, fmt.Errorf("--interval %v: want at least %v", o.interval, minInterval)
	}
	if o.ttl == 0 {
		return c, fmt.Errorf("--ttl 0: want 1..65535 seconds; 0 would withdraw what it registers")
	}
	if ttl := time.Duration(o.ttl) * time.Second; ttl < o.interval {
		return c, fmt.Errorf("--ttl %d: want no less than --interval (%v), or the switch forgets the host between two registrations", o.ttl, o.interval)
	}
	if o.lasts < 0 {
		return c, fmt.Errorf("--for %v: want 0 or more", o.lasts)
	}
	if o.loseAcks < 0 || o.loseAcks > 1 {
		return c, fmt.Errorf("--lose-acks %v: want 0..1", o.loseAcks)
	}
	if o.noAck {
		c.LoseAcks = 1
	}
	for _, s := range o.addresses {
		a, err := netip.ParseAddr(strings.TrimSpace(s))
		if err != nil {
			return c, fmt.Errorf("--address %q: want an IPv4 or IPv6 address without a prefix length", s)
		}
		c.Addrs = append(c.Addrs, a.Unmap())
	}
	if o.likeAgent && o.shutdownPDU {
		return c, errors.New("--shutdown-pdu: the existing agent sends none; leave out one of it and --like-agent")
	}
	_, err := (&hostagent.Port{AgentConfig: c, Like: o.likeAgent}).Machine() // so that a bad value is told before the interface is there
	return c, err
}

// trusted are the switches that are named.
func (o *options) trusted() (list []fabric.MAC, err error) {
	for _, s := range o.switches {
		m, err := fabric.ParseMAC(s)
		if err != nil {
			return nil, fmt.Errorf("--switch %q: %w", s, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// policy is what is done with --fail-over.
func (o *options) policy() (hostagent.Policy, error) {
	p := hostagent.DefaultPolicy()
	if err := p.Fence.UnmarshalText([]byte(o.fence)); err != nil {
		return p, fmt.Errorf("--fence %w", err)
	}
	if o.likeAgent {
		p = hostagent.ExistingPolicy()
	}
	return p, nil
}

// checkInterface tells which interfaces there are when the one wanted is not, and
// refuses those that carry no Ethernet frames.
func checkInterface(name string) error {
	if ifi, err := net.InterfaceByName(name); err == nil {
		if len(ifi.HardwareAddr) != len(fabric.MAC{}) {
			return fmt.Errorf("--interface %q: its address %q is no Ethernet address", name, ifi.HardwareAddr)
		}
		return nil
	}
	var have []string
	all, _ := net.Interfaces()
	for _, i := range all {
		have = append(have, i.Name)
	}
	return fmt.Errorf("--interface %q: %w; there are %s", name, fabric.ErrNoPort, strings.Join(have, ", "))
}
