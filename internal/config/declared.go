package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/internal/setting"
)

// items are all keys there are, in the order in which they are read: what a default or a
// check takes from another setting stands behind that.
func (c *Config) items() []item {
	return []item{
		c.deviceItem(),
		{Setting: setting.Choice("mode", &c.Mode, ModeAct, []Mode{ModeAct, ModeObserve},
			"`observe` decides and records everything, but notifies no host, shuts no port and blocks nothing: begin with it, look at "+
				"`inofctl show notice` for a while, then write `act` and reload. `inofctl halt` does the same at once.")},
		{Setting: setting.Choice("dataplane", &c.Dataplane, "linux", []string{"linux", "model"},
			"`linux`: real ports of the Linux kernel. `model`: a switch of a simulated fabric that `inofctl fabric serve` runs ([model.md](model.md)), "+
				"to try things out.").Fixed()},
		c.modelItem(), c.portsItem(), c.lldpItem(), c.hostsItem(), c.hardZoningItem(), c.fenceItem(), c.reflectorItem(), c.clientItem(), c.sessionItem(),
		{Setting: setting.Text("state-directory", &c.State, DefaultState, allowedPath,
			"Where the daemon keeps what must survive a restart.", checkPath).Fixed()},
		c.zonesItem(), c.errorDownItem(), c.notifyItem(), c.managementItem(), c.metricsItem(), c.logItem(),
		c.bfdItem(), // after the management socket, which it stands beside
	}
}

func (c *Config) lldpItem() item {
	l := &c.LLDP
	return part("lldp", values(
		setting.Choice("transmit", &l.Transmit, TransmitAuto, []TransmitMode{TransmitAuto, TransmitOn, TransmitOff},
			"`auto` sends own LLDPDUs unless another LLDP daemon (SONiC, lldpd) speaks on this device. Write `off` or `on` where that guess is "+
				"wrong."),
		setting.Span("interval", &l.Interval, 30*time.Second, time.Second, time.Hour,
			"How often own LLDPDUs are sent. Shorter makes hosts find the switch sooner, for more frames."),
		setting.Span("ttl", &l.TTL, 2*time.Minute, 2*time.Second, 65535*time.Second,
			"How long hosts remember a switch that fell silent. Keep it at three or four intervals. Whole seconds, more than `lldp.interval`."),
		setting.Int("max-neighbours-per-port", &l.MaxNeighboursPerPort, 128, 1, 4096,
			"Neighbours (LLDPDU sources, one per registered address) taken at one port. Raise it for hosts with more addresses, lower it against "+
				"hosts that invent them.").Fixed(),
		setting.Int("max-hosts", &l.MaxHosts, DefaultMaxHost, 8000, DefaultMaxHost,
			"Host addresses taken in all; bounds memory.").Fixed(),
		c.address("management-address", &l.ManagementAddress,
			"Send another address than the device id in own LLDPDUs, for example that of the management network.").Documented("`device.id`", asDeviceID),
	), func(s *section) {
		switch {
		case l.TTL%time.Second != 0:
			s.problem("ttl", "is not a number of whole seconds", "whole seconds")
		case l.TTL <= l.Interval:
			s.problem("ttl", "is not above lldp.interval ("+setting.Duration(l.Interval)+"): neighbours would forget this device between two LLDPDUs", "more than lldp.interval, best four times of it")
		}
		if !l.ManagementAddress.IsValid() {
			l.ManagementAddress = c.Device.ID
		}
	})
}

func (c *Config) fenceItem() item {
	f := &c.Fence
	return part("fence", values(
		setting.Span("hold", &f.Hold, fence.DefaultHold, 5*time.Second, time.Hour,
			"How long a block stands, and an array's port stays closed after it lost its carrier: at least 3 x the longest keep-alive time-out (KATO) of "+
				"the hosts + 2 s, for then the array has ended the connection. Agents with a longer KATO take the path for not fenced. Whole seconds."),
		setting.Choice("other-paths", &f.OtherPaths, PathsKnown, []OtherPaths{PathsKnown, PathsAssumed},
			"A pair of host and array is blocked only if it has another path. `known`: one that this fabric knows. `assumed`: each host reaches each array "+
				"in another fabric too; where that is wrong, a fault cuts a host off for up to `fence.hold`."),
	), func(s *section) {
		if f.Hold%time.Second != 0 {
			s.problem("hold", "is not a number of whole seconds", "whole seconds")
		}
	})
}

// The values of zones.nqn-binding.
const (
	nqnWarn     = "warn"
	nqnRequired = "required"
)

func (c *Config) zonesItem() item {
	z := &c.Zones
	binding := setting.Choice("nqn-binding", new(string), nqnWarn, []string{nqnWarn, nqnRequired},
		"Any host can say any NQN, so a zone member that is an NQN alone lets in whoever says it; `check` warns of those. `required` refuses "+
			"them: in the zone file, at `inofctl zone`, and at this member of a cluster; a host then is a member by its NQN only at the place that "+
			"the zone names.")
	read := binding.Read
	binding.Read = func(v string) string {
		wrong := read(v)
		z.BoundNQNs = v == nqnRequired
		return wrong
	}
	binding.Text = func() string {
		if z.BoundNQNs {
			return nqnRequired
		}
		return nqnWarn
	}
	return part("zones", values(
		setting.Text("file", &z.File, "", allowedPath,
			"Where the zones are kept. `inofctl zone` changes the file, and so may you, followed by a reload.", checkPath).
			Documented("`zones.yaml` in `state-directory`", ""),
		setting.Bool("default-zone-auto-join", &z.AutoJoin, true,
			"Whether hosts in no configured zone see each other (in the zone `default`). `false` keeps a host silent until somebody zones it."),
		setting.Bool("hard-zoning", &z.Hard, false,
			"Has the access switches forward between those hosts only that share a zone and are not both initiators or both targets; `hard-zoning` says how "+
				"each of them does."),
		binding,
		setting.Int("max-loss", &z.MaxLoss, 10, 0, 100,
			"How many of a hundred pairs of hosts that may exchange traffic `inofctl zone commit` takes apart without `--force`: beyond that it is "+
				"taken for a mistake. `100` lets all pass, `0` none."),
	), func(s *section) {
		if !c.Device.Roles.OwnsZones() {
			s.refuse("a client takes zones and their switches from its reflector; local settings for these are refused")
			*z = Zones{}
		} else if z.File == "" {
			z.File = filepath.Join(c.State, DefaultZones)
		}
	})
}

// The flood guard of existing host agents: at floodFrames frames within
// floodWindow they stop listening for about 10 s.
const (
	floodFrames = 500
	floodWindow = 500 * time.Millisecond
)

func (c *Config) notifyItem() item {
	n := &c.Notify
	return part("notify", values(
		setting.Span("retry-first", &n.RetryFirst, 20*time.Millisecond, time.Millisecond, 10*time.Second,
			"The shortest time without any ack of a host after which its oldest notices are repeated. It is twice the longest pause between its acks "+
				"where that is more, and each further time is twice as long. A notice is repeated at once when one that left later was acked; active "+
				"notices are repeated once, and then every 5 s.").Fixed(),
		setting.Span("retry-max", &n.RetryMax, time.Second, time.Millisecond, time.Minute,
			"The longest such time. Repetitions go on as long as the host is registered. At least `notify.retry-first`.").Fixed(),
		setting.Int("frames-per-window", &n.FramesPerWindow, 100, 1, floodFrames-1,
			"Most frames out of one port within the window. Less than 500 in 500 ms.").Fixed(),
		setting.Span("window", &n.Window, 500*time.Millisecond, 10*time.Millisecond, 10*time.Second,
			"The window of the above.").Fixed(),
		setting.Int("max-in-flight", &n.MaxInFlight, 256, 1, 1000,
			"Most notices to one host that wait for an ack. Agents queue at most 1000.").Fixed(),
		setting.Choice("peers", &n.Peers, PeersByRole, []NotifyPeers{PeersByRole, PeersAll},
			"Of which hosts of its zones a host is told: initiators of targets and targets of initiators, as hard zoning lets them exchange traffic "+
				"(`both` and an unknown role count as either), or all of all. Agents log an error for each notice about an initiator.").Fixed(),
		setting.Int("history", &n.History, 4096, 1, 1_000_000,
			"Notices kept for `inofctl show notice`.").Fixed(),
	), func(s *section) {
		if n.RetryMax < n.RetryFirst {
			s.problem("retry-max", "is shorter than notify.retry-first ("+setting.Duration(n.RetryFirst)+")", "notify.retry-first..1m")
		}
		if windows := int((floodWindow + n.Window - 1) / n.Window); n.FramesPerWindow*windows >= floodFrames {
			s.problem("frames-per-window", fmt.Sprintf("would let %d frames out within %s: host agents go deaf at %d",
				n.FramesPerWindow*windows, setting.Duration(floodWindow), floodFrames), "less, or a longer notify.window")
		}
	})
}

func (c *Config) managementItem() item {
	m := &c.Management
	return part("management", values(
		setting.Text("socket", &m.Socket, DefaultSocket, allowedSocket,
			"Several daemons on one machine. `inofctl --socket` takes the same, and `INOF_MANAGEMENT_SOCKET` moves both.", checkSocket).Fixed(),
		setting.Value("mode", &m.Mode, 0o660, "octal permissions 0600..0777 that let the owner read and write",
			"Who may use the API, reading and changing: `0600` for the daemon's user alone.", parseMode,
			func(m fs.FileMode) string { return fmt.Sprintf("%04o", m) }).Fixed().Documented("", "octal, 0600..0777, readable and writable by the owner"),
		setting.Text("group", &m.Group, "", "the name or number of a group, 1..32 bytes",
			"Let the members of a group use the API without being root (`groupadd --system inof-admin`); the daemon's user must be a member too.", checkGroup).
			Fixed().Documented("that of the daemon", ""),
		setting.Int("events", &m.Events, 4096, 16, 1_000_000,
			"Events kept for `inofctl show event` and for a `watch` that was away.").Fixed(),
		listener("http", &m.HTTP.Listen, DefaultHTTP, "The API and `/metrics` over a network, for who has a token. Over TLS 1.2 or later, but on a loopback address."),
		listener("gnmi", &m.GNMI, DefaultGNMI, "gNMI, for who has a token. Over TLS 1.2 or later, but on a loopback address ([operations](operations.md#gnmi))."),
		listener("netconf", &m.Netconf, DefaultNetconf, "NETCONF over SSH, to read everything and to change zones ([operations](operations.md#netconf)). The host key is made "+
			"once and kept in `state-directory`."),
		setting.Text("certificate-file", &m.HTTP.CertificateFile, "", allowedPath,
			"With `management.http` and `gnmi`: the certificate (PEM) that is shown, and after it those of CAs. Read again when the file changes.", checkPath).Fixed(),
		setting.Text("key-file", &m.HTTP.KeyFile, "", allowedPath, "With these: the private key of that certificate (PEM).", checkPath).Fixed(),
		setting.Text("token-file", &m.HTTP.TokenFile, "", allowedPath,
			"With these, and with `netconf`: who may come. A line has a name, a role (`viewer` reads, `operator` changes zones and ports too, `admin` "+
				"everything) and the SHA-256 of the token. Read again when the file changes ([operations](operations.md#over-a-network)).", checkPath).Fixed(),
		setting.Text("user-file", &m.UserFile, "", allowedPath,
			"With any of these: who may come with a password, with a certificate (`http`, `gnmi`) or with an SSH key (`netconf`). A line has a name, a role as in `management.token-file`, and the bcrypt "+
				"hash of a password (`htpasswd -nB NAME`), the word `certificate` or an SSH public key; a user may have several lines. Read again when the file changes.", checkPath).Fixed(),
		setting.Text("client-ca-file", &m.HTTP.ClientCAFile, "", allowedPath,
			"With `management.http` and `gnmi`: the CAs (PEM) whose certificates clients may show in place of a token or password; who one is of is its common name, and has a line "+
				"with `certificate` in `management.user-file`. Read again when the file changes.", checkPath).Fixed(),
	), func(s *section) { c.checkNetwork(s); c.checkNetconf(s) })
}

// checkNetconf sees that somebody may come.
func (c *Config) checkNetconf(s *section) {
	m := &c.Management
	switch {
	case !m.Netconf.IsValid() && (m.GNMI.IsValid() || m.HTTP.Listen.IsValid()):
	case !m.Netconf.IsValid():
		s.foreign("management.netconf is off", "netconf, or leave it out", "user-file")
		m.UserFile = ""
	case m.UserFile == "" && m.HTTP.TokenFile == "":
		s.problem("user-file", "is missing, as token-file is: management.netconf lets nobody in without one", allowedPath)
	}
}

// listener is the setting of an address on a network that something of the management listens on.
func listener(name string, at *netip.AddrPort, port uint16, text string) setting.Setting {
	return setting.Value(name, at, netip.AddrPort{}, "off, or an address or address:port", text,
		func(v string) (netip.AddrPort, string) { return parseNetwork(v, port) }, func(a netip.AddrPort) string {
			if !a.IsValid() {
				return "off"
			}
			return a.String()
		}).Fixed().Documented("", fmt.Sprintf("`off`, `ADDRESS` (port %d) or `ADDRESS:PORT`", port))
}

// checkNetwork sees that what listens on a network has what protects it.
func (c *Config) checkNetwork(s *section) {
	h := &c.Management.HTTP
	name, exposed := "", ""
	for _, l := range []struct {
		name string
		at   netip.AddrPort
	}{{"http", h.Listen}, {"gnmi", c.Management.GNMI}} {
		if l.at.IsValid() {
			name = cmp.Or(name, l.name)
			if !l.at.Addr().IsLoopback() {
				exposed = cmp.Or(exposed, l.name)
			}
		}
	}
	if name == "" {
		s.foreign("management.http is off", "http, or leave it out", "certificate-file", "key-file", "client-ca-file")
		if !c.Management.Netconf.IsValid() {
			s.foreign("management.http is off", "http, or leave it out", "token-file")
			h.TokenFile = ""
		}
		*h = HTTP{TokenFile: h.TokenFile}
		return
	}
	if h.TokenFile == "" && c.Management.UserFile == "" {
		s.problem("token-file", "is missing, as user-file is: management."+name+" lets nobody in without one", allowedPath)
	}
	switch {
	case h.ClientCAFile == "":
	case h.CertificateFile == "":
		s.problem("client-ca-file", "is of no use without certificate-file: there is no TLS", "certificate-file and key-file, or leave it out")
	case c.Management.UserFile == "":
		s.problem("client-ca-file", "is of no use without user-file: no certificate has a role", "user-file, or leave it out")
	}
	switch both := h.CertificateFile != "" && h.KeyFile != ""; {
	case !both && (h.CertificateFile != "" || h.KeyFile != ""):
		s.problem("key-file", "and certificate-file are needed together", allowedPath)
	case !both && exposed != "":
		s.problem("certificate-file", "is missing: management."+exposed+" is not on a loopback address, so it takes TLS", "certificate-file and key-file")
	}
}

func parseNetwork(v string, port uint16) (netip.AddrPort, string) {
	if v == "off" {
		return netip.AddrPort{}, ""
	}
	if a, err := netip.ParseAddr(v); err == nil {
		return netip.AddrPortFrom(a.Unmap(), port), ""
	}
	ap, err := netip.ParseAddrPort(v)
	if err != nil || ap.Port() == 0 {
		return netip.AddrPort{}, "is not an address and port"
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), ""
}

func (c *Config) metricsItem() item {
	return part("metrics", values(
		setting.Int("max-series", &c.Metrics.MaxSeries, 20_000, 100, 1_000_000,
			"Series that Prometheus gets at once. Beyond it the detail of priorities is left out, then that of peers, and counted.").Fixed(),
	), nil)
}

func parseMode(v string) (fs.FileMode, string) {
	bits, err := strconv.ParseUint(strings.TrimPrefix(v, "0o"), 8, 32)
	switch {
	case err != nil:
		return 0, "is not an octal number"
	case bits > 0o777 || bits&0o600 != 0o600:
		return 0, "is out of range"
	}
	return fs.FileMode(bits), ""
}

// checkGroup follows what groupadd(8) takes.
func checkGroup(v string) string {
	if v == "" || len(v) > 32 || strings.ContainsFunc(v, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	}) {
		return "is no name of a group"
	}
	return ""
}

func (c *Config) logItem() item {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level := setting.Choice("level", new(string), "info", []string{"debug", "info", "warn", "error"}, "More or less detail.")
	reset, read := level.Reset, level.Read
	level.Reset = func() { reset(); c.Log.Level = slog.LevelInfo }
	level.Read = func(v string) string {
		wrong := read(v)
		c.Log.Level = levels[v]
		return wrong
	}
	level.Text = func() string { return strings.ToLower(c.Log.Level.String()) }
	return part("log", append(values(level,
		setting.Choice("format", &c.Log.Format, "text", []string{"text", "json"}, "`json` for log collectors.").Fixed(),
	), c.syslogItem()), nil)
}
