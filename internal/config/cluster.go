package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/internal/setting"
)

// Limits of a cluster.
const (
	DefaultClusterPort = 19517
	MaxClusterMembers  = 7
	MaxReflectors      = 5 // of a client, itself included on a device that is a reflector too
)

// Cluster is the reflector's cluster; without members there is none.
type Cluster struct {
	// Members are those of the first start, this device included; later the cluster
	// itself knows who its members are.
	Members []ClusterMember
	Listen  netip.AddrPort // the own address in Members unless configured

	Heartbeat        time.Duration // 50 ms..1 min
	Election         time.Duration // 50 ms..1 min
	SnapshotEntries  int           // 16..1,000,000
	SnapshotInterval time.Duration // 1 s..24 h
	KeepEntries      int           // behind a snapshot, 0..1,000,000
}

// ClusterMember is where a device's member is reached.
type ClusterMember struct {
	Device  netip.Addr
	Address netip.AddrPort
}

// Enabled tells whether the reflector is a member of a cluster.
func (c *Cluster) Enabled() bool { return len(c.Members) > 0 }

// String gives DEVICE at ADDRESS.
func (m ClusterMember) String() string { return fmt.Sprintf("%s at %s", m.Device, m.Address) }

// readCluster reads reflector.cluster.
func readCluster(c *Config, s *section) (out Cluster) {
	defer s.close()
	loopback := c.Device.AllowLoopback
	allowed := fmt.Sprintf("address:port with a port %d..%d", MinPort, MaxPort)
	seen := map[netip.Addr]bool{}
	s.sections("members", "[]", "device: device id, address: IP:port", func(e *section) {
		m := ClusterMember{Device: e.addr("device", "required", loopback)}
		e.text("address", fmt.Sprintf("the device id:%d", DefaultClusterPort), allowed, func(v string) (what string) {
			m.Address, what = parseMemberAddress(v, loopback)
			return what
		})
		switch {
		case !m.Device.IsValid():
			if _, ok := e.values["device"]; !ok {
				e.problem("device", "is missing", allowedAddr)
			}
			return
		case seen[m.Device]:
			e.problem("device", "is listed twice", "each member once")
			return
		case !m.Address.IsValid():
			if _, ok := e.values["address"]; ok {
				return // said already
			}
			m.Address = netip.AddrPortFrom(m.Device, DefaultClusterPort)
		}
		seen[m.Device] = true
		out.Members = append(out.Members, m)
	})
	s.text("listen", "the own address in members", allowed, func(v string) (what string) {
		out.Listen, what = parseListen(v, loopback)
		if !strings.HasSuffix(v, fmt.Sprint(":", out.Listen.Port())) && what == "" {
			what = "has no port"
		}
		return what
	})
	out.Heartbeat = s.duration("heartbeat", time.Second, 50*time.Millisecond, time.Minute, false)
	out.Election = s.duration("election", time.Second, 50*time.Millisecond, time.Minute, false)
	out.SnapshotEntries = s.number("snapshot-entries", 8192, 16, 1_000_000)
	out.SnapshotInterval = s.duration("snapshot-interval", 2*time.Minute, time.Second, 24*time.Hour, false)
	out.KeepEntries = s.number("keep-entries", 10240, 0, 1_000_000)
	if !s.written() {
		return out
	}
	switch n := len(out.Members); {
	case n == 0 && s.values["members"] == nil:
		s.problem("members", "is missing: a cluster needs to know its first members", fmt.Sprintf("1..%d entries, this device among them", MaxClusterMembers))
	case n > MaxClusterMembers:
		s.problem("members", fmt.Sprintf("has %d entries", n), fmt.Sprintf("1..%d, of which three or five are usual", MaxClusterMembers))
	case n > 0 && !seen[c.Device.ID]:
		s.problem("members", "does not hold this device ("+addrText(c.Device.ID)+")", "an entry for this device too")
	}
	if !out.Listen.IsValid() {
		for _, m := range out.Members {
			if m.Device == c.Device.ID {
				out.Listen = m.Address
			}
		}
	}
	return out
}

func parseMemberAddress(v string, loopback bool) (netip.AddrPort, string) {
	ap, err := netip.ParseAddrPort(v)
	if err != nil {
		return ap, "is not address:port"
	}
	if ap.Port() < MinPort || ap.Port() > MaxPort {
		return netip.AddrPort{}, fmt.Sprintf("has port %d", ap.Port())
	}
	if what := checkAddr(ap.Addr(), loopback); what != "" {
		return netip.AddrPort{}, what
	}
	return ap, ""
}

// settings lists the cluster's settings.
func (c *Cluster) settings() []Setting {
	fixed := func(key string, value any) Setting {
		return Setting{Key: "reflector.cluster." + key, Value: fmt.Sprint(value), Restart: true}
	}
	listen := ""
	if c.Listen.IsValid() {
		listen = c.Listen.String()
	}
	return []Setting{
		fixed("members", join(c.Members)),
		fixed("listen", listen),
		fixed("heartbeat", setting.Duration(c.Heartbeat)),
		fixed("election", setting.Duration(c.Election)),
		fixed("snapshot-entries", c.SnapshotEntries),
		fixed("snapshot-interval", setting.Duration(c.SnapshotInterval)),
		fixed("keep-entries", c.KeepEntries),
	}
}
