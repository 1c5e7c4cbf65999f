package hardzone

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/internal/setting"
)

// Unlearned is what becomes of frames from or to an address that no host has registered.
type Unlearned string

// The values of hard-zoning.unlearned.
const (
	UnlearnedDrop  Unlearned = "drop"  // they are dropped
	UnlearnedApart Unlearned = "apart" // such addresses may talk with each other, not with hosts
	UnlearnedPass  Unlearned = "pass"  // they are forwarded
)

// Discovery is what becomes of ARP and IPv6 Neighbor Discovery.
type Discovery string

// The values of hard-zoning.discovery.
const (
	DiscoveryPass  Discovery = "pass"  // all of it is forwarded
	DiscoveryPairs Discovery = "pairs" // between those who may talk
)

// Attach is where the filter stands.
type Attach string

// The values of hard-zoning.attach.
const (
	AttachAuto    Attach = "auto"    // the first of these that works
	AttachNative  Attach = "native"  // XDP in the driver
	AttachTC      Attach = "tc"      // the traffic control hook behind it
	AttachGeneric Attach = "generic" // XDP behind the driver
	AttachASIC    Attach = "asic"    // rules of the switch's ASIC (ports.sonic-redis)
)

// Config sets how a switch enforces zones. Whether it does is said for the whole fabric
// (zone.Set.Hard).
type Config struct {
	CloseAfter time.Duration // 0..1 min
	Unlearned  Unlearned
	Discovery  Discovery
	Attach     Attach
	MaxPairs   int           // 1024..16 Mi
	Audit      time.Duration // between comparisons of the kernel's tables with ours, 1 s..24 h
	Samples    int           // dropped frames made known a second, 0..1000
	Pins       string        // directory of a bpf file system, absolute
	Permit     []Permit
}

// DefaultPins is where the kernel's tables outlive the process.
const DefaultPins = "/sys/fs/bpf/inof"

// DefaultPermit is what is not storage and passes everywhere: DHCP.
var DefaultPermit = []string{"udp/67", "udp/68", "udp/546", "udp/547"}

// Default is the configuration without any settings.
func Default() Config {
	c := Config{Pins: DefaultPins}
	for _, s := range c.Settings() {
		s.Reset()
	}
	for _, text := range DefaultPermit {
		p, _ := ParsePermit(text)
		c.Permit = append(c.Permit, p)
	}
	return c
}

// Settings are those of single values.
func (c *Config) Settings() []setting.Setting {
	return []setting.Setting{
		setting.Span("close-after", &c.CloseAfter, 2*time.Second, 0, time.Minute,
			"How long a pair of hosts that may talk no more is still let through while the hosts here have not acked the notice about it. "+
				"Shorter closes sooner, and freezes the I/O of hosts that had no time to disconnect. 0 closes at once."),
		setting.Choice("unlearned", &c.Unlearned, UnlearnedDrop, []Unlearned{UnlearnedDrop, UnlearnedApart, UnlearnedPass},
			"What becomes of frames from or to an address that no host has registered, unless `hard-zoning.permit` names it: `drop`; `apart`: such "+
				"addresses may talk with each other, not with hosts; `pass`: they are not filtered. A switch does not know remote hosts that share no "+
				"zone with a host of its own: with `pass` they are filtered at their own switch only."),
		setting.Choice("discovery", &c.Discovery, DiscoveryPass, []Discovery{DiscoveryPass, DiscoveryPairs},
			"`pairs` has ARP and IPv6 Neighbor Discovery pass between those hosts only that may talk, so that others do not even see them."),
		setting.Choice("attach", &c.Attach, AttachAuto, []Attach{AttachAuto, AttachASIC, AttachNative, AttachTC, AttachGeneric},
			"Where the filter stands: rules of the ASIC (`asic`, with `ports.sonic-redis`), XDP in the driver (`native`), traffic control (`tc`), or XDP "+
				"behind the driver (`generic`). `auto` takes the ASIC on a SONiC switch, else the first of the others that the port has."),
		setting.Int("max-pairs", &c.MaxPairs, 1<<20, 1<<10, 1<<24,
			"Pairs of hosts that may talk for which there is room. What exceeds it is dropped, with a warning. Each takes up to 100 bytes of the "+
				"kernel's memory when it is used.").Fixed(),
		setting.Span("audit", &c.Audit, time.Minute, time.Second, 24*time.Hour,
			"How often the kernel's tables are compared with what they should be, and mended."),
		setting.Int("samples", &c.Samples, 10, 0, 1000,
			"Dropped frames a second that are made known as events; all are counted."),
	}
}

// Permit is what passes whoever sends it.
type Permit struct {
	Prefix   netip.Prefix // from or to these addresses; or
	Protocol uint8        // of this IP protocol
	Port     uint16       // and, of TCP and UDP, to this port, or back from it; 0: any
}

// AllowedPermits says what a Permit looks like, for people.
const AllowedPermits = "a prefix (gateways, management), tcp/PORT, udp/PORT, or protocol/NUMBER"

// ParsePermit reads a Permit.
func ParsePermit(text string) (Permit, error) {
	kind, number, two := strings.Cut(text, "/")
	switch kind {
	case "tcp", "udp":
		n, err := strconv.ParseUint(number, 10, 16)
		if !two || err != nil || n == 0 {
			return Permit{}, fmt.Errorf("%q names no port, 1..65535", text)
		}
		if kind == "tcp" {
			return Permit{Protocol: 6, Port: uint16(n)}, nil
		}
		return Permit{Protocol: 17, Port: uint16(n)}, nil
	case "protocol":
		n, err := strconv.ParseUint(number, 10, 8)
		if !two || err != nil || n == 6 || n == 17 {
			return Permit{}, fmt.Errorf("%q names no IP protocol, 0..255 but 6 and 17", text)
		}
		return Permit{Protocol: uint8(n)}, nil
	}
	pre, err := netip.ParsePrefix(text)
	if err != nil {
		var addr netip.Addr
		if addr, err = netip.ParseAddr(text); err == nil {
			pre = netip.PrefixFrom(addr, addr.BitLen())
		}
	}
	switch {
	case err != nil || pre.Addr().Zone() != "" || pre.Addr().Is4In6():
		return Permit{}, fmt.Errorf("%q is none", text)
	case pre.Masked() != pre:
		return Permit{}, fmt.Errorf("%s has bits beyond its length; %s is meant?", pre, pre.Masked())
	}
	return Permit{Prefix: pre}, nil
}

// Equal reports whether both permit the same.
func (p Permit) Equal(o Permit) bool { return p == o }

// String is the inverse of ParsePermit.
func (p Permit) String() string {
	switch {
	case p.Prefix.IsValid():
		return p.Prefix.String()
	case p.Protocol == 6:
		return fmt.Sprintf("tcp/%d", p.Port)
	case p.Protocol == 17:
		return fmt.Sprintf("udp/%d", p.Port)
	}
	return fmt.Sprintf("protocol/%d", p.Protocol)
}
