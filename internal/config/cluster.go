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

// Enabled reports whether the reflector is a member of a cluster.
func (c *Cluster) Enabled() bool { return len(c.Members) > 0 }

// String gives DEVICE at ADDRESS.
func (m ClusterMember) String() string { return fmt.Sprintf("%s at %s", m.Device, m.Address) }

// clusterItem is reflector.cluster.
func (c *Config) clusterItem() item {
	cl := &c.Reflector.Cluster
	port := fmt.Sprintf("address:port with a port %d..%d", MinPort, MaxPort)
	docPort := fmt.Sprintf("`address:port`, port %d..%d", MinPort, MaxPort)
	seen := map[netip.Addr]bool{}
	keys := []item{entries("members", "device: device id, address: IP:port",
		"The members of the first start; three survive the loss of one, five of two. Later members are added and removed with `inofctl cluster`.",
		joined(&cl.Members), func(m *ClusterMember) []item {
			return values(
				c.address("device", &m.Device, "The member's device id.").Required("").Documented("required", asDeviceID),
				setting.Value("address", &m.Address, netip.AddrPort{}, port, "Where the other members reach it.", func(v string) (netip.AddrPort, string) {
					return parseMemberAddress(v, c.Device.AllowLoopback)
				}, addrPortText).Documented(fmt.Sprintf("the device id:%d", DefaultClusterPort), docPort))
		}, func(e *section, m *ClusterMember) {
			switch {
			case !m.Device.IsValid(): // reported
			case seen[m.Device]:
				e.problem("device", "is listed twice", "each member once")
			case !m.Address.IsValid() && e.has("address"): // reported
			default:
				if !m.Address.IsValid() {
					m.Address = netip.AddrPortFrom(m.Device, DefaultClusterPort)
				}
				seen[m.Device] = true
				cl.Members = append(cl.Members, *m)
			}
		}).fixed().documented("", fmt.Sprintf("a list of 1..%d entries, the same at all members, this device among them", MaxClusterMembers))}
	keys = append(keys, values(
		setting.Value("listen", &cl.Listen, netip.AddrPort{}, port, "Listen on another address, or on all.", func(v string) (netip.AddrPort, string) {
			ap, what := parseListen(v, c.Device.AllowLoopback)
			if !strings.HasSuffix(v, fmt.Sprint(":", ap.Port())) && what == "" {
				what = "has no port"
			}
			return ap, what
		}, addrPortText).Fixed().Documented("the own address in members", "`address:port`"),
		setting.Span("heartbeat", &cl.Heartbeat, time.Second, 50*time.Millisecond, time.Minute,
			"How long a member hears nothing of the leader before it asks for an election. Shorter: a lost leader is replaced sooner, and a busy "+
				"disk or network is taken for a loss sooner.").Fixed(),
		setting.Span("election", &cl.Election, time.Second, 50*time.Millisecond, time.Minute,
			"How long an election without outcome lasts before the next.").Fixed(),
		setting.Int("snapshot-entries", &cl.SnapshotEntries, 8192, 16, 1_000_000,
			"After how many changes the log is replaced by a snapshot.").Fixed(),
		setting.Span("snapshot-interval", &cl.SnapshotInterval, 2*time.Minute, time.Second, 24*time.Hour,
			"How often that is looked at.").Fixed(),
		setting.Int("keep-entries", &cl.KeepEntries, 10240, 0, 1_000_000,
			"How many changes are kept behind a snapshot, so that a member that was away needs only these.").Fixed(),
	)...)
	return part("cluster", keys, func(s *section) { c.checkCluster(s, seen) })
}

// checkCluster looks at the cluster as a whole, of which these devices are members.
func (c *Config) checkCluster(s *section, members map[netip.Addr]bool) {
	cl := &c.Reflector.Cluster
	switch n := len(cl.Members); {
	case n == 0 && s.written() && !s.has("members"):
		s.problem("members", "is missing: a cluster needs to know its first members", fmt.Sprintf("1..%d entries, this device among them", MaxClusterMembers))
	case n > MaxClusterMembers:
		s.problem("members", fmt.Sprintf("has %d entries", n), fmt.Sprintf("1..%d, of which three or five are usual", MaxClusterMembers))
	case n > 0 && !members[c.Device.ID]:
		s.problem("members", "does not hold this device ("+addrText(c.Device.ID)+")", "an entry for this device too")
	}
	for _, m := range cl.Members {
		if m.Device == c.Device.ID && !cl.Listen.IsValid() {
			cl.Listen = m.Address
		}
	}
}

func addrPortText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
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
