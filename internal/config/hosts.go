package config

import (
	"time"
)

// Conflict says what becomes of a local host's address when another host claims it.
type Conflict string

// The values of hosts.conflict.
const (
	ConflictProbe  Conflict = "probe"  // the host is asked, and keeps the address if it answers
	ConflictNewest Conflict = "newest" // the new claim takes it
	ConflictFirst  Conflict = "first"  // the host keeps it
)

// MultiPort says on which ports one host may be with one address and count as one.
type MultiPort string

// The values of hosts.multi-port.
const (
	MultiPortNever  MultiPort = "never"
	MultiPortDevice MultiPort = "device"
	MultiPortFabric MultiPort = "fabric"
)

// Hosts sets what is believed of hosts.
type Hosts struct {
	Conflict  Conflict
	MultiPort MultiPort
	MaxTTL    time.Duration // longest LLDP time to live taken, whole seconds, 10 s..65,535 s
}

func readHosts(c *Config, s *section) {
	defer s.close()
	h := &c.Hosts
	s.read(h.settings())
	if h.MaxTTL%time.Second != 0 {
		s.problem("max-ttl", "is not a number of whole seconds", "whole seconds")
	}
}
