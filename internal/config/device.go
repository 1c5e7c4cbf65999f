package config

import (
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
)

func (c *Config) deviceItem() item {
	d := &c.Device
	const roles = "reflector, client (an empty list: standalone)"
	keys := values(
		// Before the addresses: it decides which of them are right.
		setting.Bool("allow-loopback", &d.AllowLoopback, false,
			"A lab on one machine has nothing but loopback addresses. Never on a switch.").Fixed(),
		c.address("id", &d.ID,
			"The device's service address, normally that of its loopback interface. Other devices and zones name it by this, so it must be unique in "+
				"the fabric.").Fixed().Required("every device needs its own service address").
			Documented("required", "an IPv4 or IPv6 unicast address; not loopback, link-local, multicast or unspecified"),
		setting.Text("name", &d.Name, "", allowedName, "For people: LLDP system name, status.", nameOf(MaxDeviceName)).Fixed().Documented("host name", ""),
	)
	return part("device", append(keys, words("roles", roles,
		"An access switch is a client, a spine or server that passes on is a reflector, a small fabric's switch can be both. A standalone device "+
			"serves its own hosts alone.", func() string { return join(d.Roles.Names()) }, d.Roles.take).
		fixed().documented("", "a list of `reflector`, `client`; empty is standalone")),
		func(*section) {
			if d.Name == "" {
				d.Name = hostname()
			}
		})
}

// take adds a role by its name. One that is nearly right counts as what was meant, so that
// the rest is checked for that role.
func (r *Roles) take(v string) string {
	near := setting.Nearest(v, []string{"reflector", "client"})
	if near == "" && v != "reflector" && v != "client" {
		return "is not a role"
	}
	r.Reflector = r.Reflector || v == "reflector" || near == "reflector"
	r.Client = r.Client || v == "client" || near == "client"
	if v != "reflector" && v != "client" {
		return fmt.Sprintf("is not a role, did you mean %q?", near)
	}
	return ""
}

// hostname is the default of device.name.
func hostname() string {
	if h, err := os.Hostname(); err == nil && checkName(h, MaxDeviceName) == "" {
		return h
	}
	return "inof"
}

var allowedName = fmt.Sprintf("1..%d printable bytes", MaxDeviceName)

func nameOf(most int) func(string) string {
	return func(v string) string { return checkName(v, most) }
}

func checkName(v string, most int) string {
	switch {
	case v == "":
		return "is empty"
	case len(v) > most:
		return fmt.Sprintf("has %d bytes", len(v))
	case !utf8.ValidString(v):
		return "is not valid UTF-8"
	case strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character that cannot be printed"
	}
	return ""
}

// modelItem is what belongs to dataplane: model alone.
func (c *Config) modelItem() item {
	m := &c.Model
	allowed := "the name of a switch, " + allowedName
	return part("model", values(
		setting.Text("device", &m.Device, "", allowed, "The switch of the fabric that this device is; one daemon a switch.", nameOf(MaxDeviceName)).
			Fixed().Documented("required", allowedName),
		setting.Text("socket", &m.Socket, DefaultFabric, allowedPath, "Where `inofctl fabric serve` listens.", checkPath).Fixed(),
	), func(s *section) {
		switch {
		case c.Dataplane == "model" && m.Device == "" && c.Device.Roles.Access():
			s.problem("device", "is missing: dataplane model needs to know which switch of the simulated fabric this is", allowed)
		case c.Dataplane != "model" && s.written():
			s.problem(s.order[0], "is of no use without dataplane: model", "no section model")
		}
		if c.Dataplane != "model" || m.Device == "" {
			*m = Model{}
		}
	})
}

// allowedPorts is what errors about names of ports say.
var allowedPorts = fmt.Sprintf("port names, ranges (Ethernet0-12) or globs (* ? [a-z]) of 1..%d bytes without / or spaces, ! before one to leave ports out", fabric.MaxPortName)

// asPorts is what the document says of lists of ports but the first.
const asPorts = "names, ranges or globs, as in `ports.access`"

func (c *Config) portsItem() item {
	p := &c.Ports
	keys := []item{
		words("access", allowedPorts,
			"Name the ports storage hosts are plugged into, and not the uplinks. Ports that appear later join by themselves. `inofd check` on the "+
				"switch lists the ports that are named, and the entries that name none. Name the "+
				"ports of a bridge, not the bridge, and no VLAN: LLDP reaches neither.", joined(&p.Access), appending(&p.Access, checkPort)).
			documented("required", "names, ranges (`Ethernet0-12`: every port from `Ethernet0` to `Ethernet12` that there is) or globs (`*`, `?`, `[a-z]`) of 1..63 "+
				"bytes; with `!` before it (in quotes: `\"!Ethernet48\"`) an entry leaves ports out, wherever it stands"),
		counterNames(&p.Counters),
	}
	keys = append(keys, values(
		setting.Text("sonic-redis", &p.SONiC, "off", "off, HOST:PORT or an absolute path",
			"On a SONiC switch the counters of ports are in its Redis databases and the kernel's know little of the traffic: write "+
				"`/var/run/redis/redis.sock` there. Read are the ASIC's port counters, the PFC watchdog, the received power and the state of ports; "+
				"written are the administrative state of ports, and the rules of hard zoning and fencing.", checkRedis).
			Fixed().Documented("", "`off`, `HOST:PORT`, an absolute path"),
		setting.Bool("sonic-guard", &p.SONiCGuard, true,
			"With `sonic-redis`: whether rules of the ASIC drop LLDP and SNSD frames of access ports that would be forwarded. Write `false` if hosts are not heard any longer "+
				"with it: this ASIC then drops what goes to the processor too, which SAI does not allow.").Fixed(),
		setting.Choice("carrier-source", &p.Carrier, fabric.CarrierAuto, fabric.CarrierSources(),
			"By what the loss of carrier is heard before netlink, which stays beside it, tells it: that is some tenths of a millisecond later, and "+
				"up to a second where the kernel holds it back. `auto` takes the first of the functions of the kernel that kernel and rights allow; "+
				"`netlink` none, where no program may stand in the kernel.").Fixed(),
		setting.Span("removal-hold", &p.RemovalHold, 2*time.Minute, 0, 24*time.Hour,
			"How long the hosts of a port that `ports.access` does not name any more stay what they are, before they count as gone (reason "+
				"`aged-out`): the time in which a mistake can be corrected without any host hearing of it."),
		setting.Int("max", &p.Max, 1024, 1, 65536,
			"Bounds what a runaway glob (`*` on a machine with thousands of virtual ports) can cost.").Fixed(),
	)...)
	return part("ports", keys, func(s *section) {
		if p.SONiC == "off" {
			p.SONiC = ""
		}
		roles := c.Device.Roles
		switch {
		case roles.Access() && !s.has("access"):
			s.problem("access", "is missing: a "+roles.String()+" device needs to know where its hosts are attached", "a list of: "+allowedPorts)
		case !roles.Access() && len(p.Access) > 0:
			s.problem("access", "is set on a device that is a reflector only and has no hosts of its own", "add the role client, or no access ports")
		case len(p.Access) > 0 && !slices.ContainsFunc(p.Access, func(v string) bool { return v[0] != '!' }):
			s.problem("access", "only leaves ports out and names none", "a list of: "+allowedPorts)
		}
	})
}

func checkPort(v string) string {
	name := strings.TrimPrefix(v, "!")
	switch {
	case name == "":
		return "names no port"
	case len(name) > fabric.MaxPortName:
		return fmt.Sprintf("has %d bytes", len(name))
	case strings.ContainsFunc(v, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) || unicode.IsSpace(r) }):
		return "has a character that no port name has"
	}
	if _, err := fabric.ParseNames([]string{v}); err != nil {
		return "is not a valid glob"
	}
	return ""
}

func checkRedis(v string) string {
	if _, _, err := net.SplitHostPort(v); v == "off" || err == nil || filepath.IsAbs(v) && len(v) <= maxSocketPath {
		return ""
	}
	return "is no address of a Redis server"
}

// maxCounterName is the longest name a driver's counter can have in bytes.
const maxCounterName = 31

// counterNames is ports.counters.
func counterNames(into *[]fabric.CounterName) item {
	type entry struct {
		fabric.CounterName
		field string
	}
	fields := []string{"crc", "broadcast", "multicast", "pause", "pause-time", "tx-frames"}
	return entries("counters", "field: crc, broadcast, multicast, pause, pause-time or tx-frames, name: a driver's name for it",
		"Counters of drivers that are not known yet. Known are those of mlx5, mlx4, mlxsw, ice, i40e, ixgbe, bnxt, cxgb4, qede, hns3 and the "+
			"kernel's common names; names given here are tried first.", joined(into),
		func(n *entry) []item {
			return values(
				setting.Text("driver", &n.Driver, "*", "a driver's name or glob", "Two drivers use one name for different things.", func(v string) string {
					if _, err := path.Match(v, ""); err != nil {
						return "is not a valid glob"
					}
					return ""
				}).Documented("", "a driver's name (`ethtool -i PORT`) or a glob"),
				setting.Choice("field", &n.field, "", fields, "What the counter counts.").Required("a driver's counter and what it counts").
					Documented("required", "`crc`, `broadcast`, `multicast`, `pause` (PFC frames received), `pause-time` (microseconds for which PFC kept a priority from "+
						"being sent), `tx-frames` (of a priority)"),
				setting.Text("name", &n.Name, "", fmt.Sprintf("1..%d bytes, # for the priority", maxCounterName),
					"Its name in `ethtool -S PORT`. For `crc` also `statistics/rx_errors` or `statistics/rx_dropped`, the kernel's own statistics of the "+
						"link, where a driver counts damaged frames nowhere else.", nameOf(maxCounterName)).Required("a driver's counter and what it counts").
					Documented("required", fmt.Sprintf("1..%d printable bytes; `#` stands for the priority in `pause`, `pause-time` and `tx-frames`", maxCounterName)),
			)
		}, func(e *section, n *entry) {
			f, err := fabric.ParseField(n.field)
			if err != nil || n.Name == "" {
				return // reported
			}
			if prio := f&fabric.FieldsOfPFC != 0; prio != strings.Contains(n.Name, "#") {
				e.problem("name", "does not fit the field "+n.field, "exactly one # for counters by priority, none for others")
				return
			}
			if strings.HasPrefix(n.Name, fabric.KernelCounter) && (f != fabric.FieldCRC || n.Name != fabric.KernelRxErrors && n.Name != fabric.KernelRxDropped) {
				e.problem("name", "is no link statistic that can stand for "+n.field, fabric.KernelRxErrors+" or "+fabric.KernelRxDropped+" for crc, or a driver's counter")
				return
			}
			n.Field = f
			*into = append(*into, n.CounterName)
		}).fixed().documented("", "a list")
}
