package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/openinof/inof/internal/setting"
)

func (c *Config) reflectorItem() item {
	r := &c.Reflector
	keys := []item{words("listen", fmt.Sprintf("address:port with a local address and a port %d..%d", MinPort, MaxPort),
		"Another port, more addresses, or all of them.", joined(&r.Listen), func(v string) string {
			ap, what := parseListen(v, c.Device.AllowLoopback)
			if what == "" {
				r.Listen = append(r.Listen, ap)
			}
			return what
		}).fixed().documented(fmt.Sprintf("`device.id:%d`", DefaultPort),
		fmt.Sprintf("a list of `address:port` or `address`, port %d..%d; `0.0.0.0` and `[::]` mean all", MinPort, MaxPort))}
	keys = append(keys, values(
		setting.Span("grace", &r.Grace, 2*time.Minute, time.Second, 24*time.Hour,
			"How long the records of a device that left stay in force, so that a restart or a short outage is not told to hosts as their peers' "+
				"loss. Longer than the longest restart of a switch daemon.").Fixed(),
		setting.Int("max-clients", &r.MaxClients, 4096, 1, 4096,
			"Bounds memory and sockets. Places are kept for a day for devices that had hosts.").Fixed(),
		setting.Int("max-clients-per-address", &r.MaxClientsPerAddress, 16, 1, 4096,
			"Device ids that may have sessions from one address (an IPv6 /64) without a certificate or an entry in `reflector.clients`: a password "+
				"proves no id, so a machine that has it could take all places.").Fixed(),
		setting.Int("max-hosts-per-device", &r.MaxHostsPerDevice, 20_000, 100, 80_000,
			"Host addresses of one device, a quarter of all. Besides, the last fifth of the table is for devices with less than their fair share of "+
				"it. What does not fit is refused, shown on both sides, never told as gone, and asked for again when there is room.").Fixed(),
		setting.Int("records-per-second", &r.RecordsPerSecond, 2000, 100, 1_000_000,
			"Records (hosts, or 4 addresses of a fault) that one device may send a second in the long run; then what is no loss waits, others "+
				"do not wait for it, and a warning names it. More, if one device has tens of thousands of hosts that change all the time."),
		setting.Int("records-burst", &r.RecordsBurst, 20_000, 1000, 1_000_000,
			"Records that a device may send beyond that, in four seconds, as in a full sync."),
	)...)
	keys = append(keys, c.boundClients(), c.declaredHosts(),
		prefixes("monitors", "These may ask for all hosts (`client.interest: all`); others that do are refused, with the reason on both sides.", &r.Monitors).
			documented("", "a list of device ids and prefixes of them"),
		c.clusterItem())
	return part("reflector", keys, func(s *section) {
		if !c.Device.Roles.Reflector {
			s.refuse("this device is not a reflector (device.roles: " + c.Device.Roles.String() + ")")
			*r = Reflector{}
		} else if len(r.Listen) == 0 {
			r.Listen = []netip.AddrPort{netip.AddrPortFrom(c.Device.ID, DefaultPort)}
		}
	})
}

func (c *Config) clientItem() item {
	cl, n := &c.Client, 0 // entries written, right or wrong
	keys := []item{c.reflectors(&n)}
	keys = append(keys, values(
		setting.Choice("zone-agreement", &cl.Agreement, AgreeIdentical, []Agreement{AgreeIdentical, AgreeUnion},
			"Where the zones of two reflectors differ: with `identical` a zone member takes effect when both name it, with `union` when one does. "+
				"What differs is in `inofctl show zone --inconsistent`.").Fixed(),
		setting.Span("reflector-wait", &cl.ReflectorWait, 10*time.Second, 0, 10*time.Minute,
			"How long after the first sync since the start a reflector that was never heard is waited for. Then the other one decides alone. Longer "+
				"where one is slow to be reached; new hosts wait meanwhile.").Fixed(),
		setting.Choice("interest", &cl.Interest, InterestConcerned, []Interest{InterestConcerned, InterestAll},
			"`all` asks for all hosts, not only for those in zones with a member here: for a device that monitors; `reflector.monitors` "+
				"must name it. Costs memory.").Fixed(),
		setting.Choice("fence", &cl.Fence, FenceOn, []FenceMode{FenceOn, FenceOff},
			"When a host loses a path to an array here, drop what is still under way on it, so that an old copy of a write cannot overwrite a newer one. `off` "+
				"lifts all blocks; agents then hear `not fenced`."),
		c.address("source", &cl.Source, "The local address of sessions, where a firewall wants a particular one.").Fixed().
			Documented("the system's choice", asDeviceID),
	)...)
	return part("client", keys, func(s *section) {
		roles := c.Device.Roles
		if !roles.Client {
			s.refuse("this device is not a client (device.roles: " + roles.String() + ")")
			*cl = Client{}
			return
		}
		switch {
		case roles.Reflector && n > MaxReflectors-1:
			s.problem("reflectors", fmt.Sprintf("has %d entries, and this device is a reflector itself", n), fmt.Sprintf("at most %d entries on a device with both roles", MaxReflectors-1))
		case !roles.Reflector && n == 0:
			s.problem("reflectors", "is missing: a client needs a reflector", fmt.Sprintf("1..%d entries", MaxReflectors))
		case n > MaxReflectors:
			s.problem("reflectors", fmt.Sprintf("has %d entries", n), fmt.Sprintf("1..%d entries", MaxReflectors))
		case twice(cl.Reflectors):
			s.problem("reflectors", "names one reflector twice", "different ones")
		}
	})
}

// reflectors is client.reflectors; entries are counted in n. One may be written as ADDRESS or
// ADDRESS:PORT, as the environment has it.
func (c *Config) reflectors(n *int) item {
	type entry struct {
		addr netip.Addr
		port int
	}
	into := &c.Client.Reflectors
	it := entries("reflectors", "address: IP, port: 10000..57999",
		"Where zones and remote hosts come from. Two back each other up; of a cluster name two or more members.", joined(into),
		func(r *entry) []item {
			return values(
				c.address("address", &r.addr, "The reflector's address.").Required("").Documented("required", asDeviceID+", not the own id"),
				setting.Int("port", &r.port, DefaultPort, MinPort, MaxPort, "The port in its `reflector.listen`."))
		}, func(e *section, r *entry) {
			*n++
			if r.addr.IsValid() && r.addr == c.Device.ID {
				e.problem("address", "is this device's own id", "the device id of a reflector; a device with both roles uses its own without being told")
			} else if r.addr.IsValid() {
				*into = append(*into, netip.AddrPortFrom(r.addr, uint16(r.port)))
			}
		}).fixed().documented("required", "a list of 1..5 different entries, or `ADDRESS`, `ADDRESS:PORT`; at most 4 on a device that is a reflector too, which uses its own as well")
	it.short = func(v string) []string {
		if ap, err := netip.ParseAddrPort(v); err == nil {
			return []string{"address", ap.Addr().String(), "port", strconv.Itoa(int(ap.Port()))}
		}
		return []string{"address", v}
	}
	return it
}

// twice reports whether two reflectors have one address.
func twice(list []netip.AddrPort) bool {
	for i := range list {
		for j := range i {
			if list[i].Addr() == list[j].Addr() {
				return true
			}
		}
	}
	return false
}
