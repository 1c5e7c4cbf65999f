package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
)

// Parse reads a configuration from data; name is what errors call it, env looks
// up environment variables (nil: none). No file is read: a password from a file
// or credential stays empty (see Load). The error is an *Error with all problems.
func Parse(name string, data []byte, env func(string) string) (*Config, error) {
	c, p := parse(name, data, env)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func parse(name string, data []byte, env func(string) string) (*Config, *parser) {
	if env == nil {
		env = func(string) string { return "" }
	}
	return (&parser{file: name, env: env}).config(name, data)
}

// config reads the whole of a configuration.
func (p *parser) config(name string, data []byte) (*Config, *parser) {
	c := &Config{File: name}
	root := p.section("", p.document(data))
	if len(p.problems) > 0 && !root.written() {
		return c, p // one syntax error, not one for each key it hid
	}
	readDevice(c, root.sub("device"))
	c.Dataplane = readDataplane(root)
	readModel(c, root.sub("model"))
	readPorts(c, root.sub("ports"))
	readLLDP(c, root.sub("lldp"))
	readHosts(c, root.sub("hosts"))
	readReflector(c, root.sub("reflector"))
	readClient(c, root.sub("client"))
	readSession(c, root.sub("session"))
	c.State = root.text("state-directory", DefaultState, allowedPath, checkPath)
	readZones(c, root.sub("zones"))
	readErrorDown(c, root.sub("error-down"))
	readNotify(c, root.sub("notify"))
	readManagement(c, root.sub("management"))
	readLog(c, root.sub("log"))
	readBFD(c, root.sub("bfd")) // after the management socket, which it stands beside
	root.close()
	return c, p
}

func readDevice(c *Config, s *section) {
	defer s.close()
	d := &c.Device
	// Before the addresses: it decides which of them are right.
	d.AllowLoopback = s.boolean("allow-loopback", false)
	d.ID = s.addr("id", "required", d.AllowLoopback)
	if _, ok := s.values["id"]; !ok && s.p.env(s.envName("id")) == "" {
		s.problem("id", "is missing: every device needs its own service address", allowedAddr)
	}
	allowed := fmt.Sprintf("1..%d printable bytes", MaxDeviceName)
	d.Name = s.text("name", "", allowed, func(v string) string { return checkName(v, MaxDeviceName) })
	if d.Name == "" {
		d.Name = hostname()
	}
	const roles = "reflector, client (an empty list: standalone)"
	for _, r := range s.list("roles", "[]", roles, func(v string) string {
		switch near := setting.Nearest(v, []string{"reflector", "client"}); {
		case v == "reflector" || v == "client":
			return ""
		case near != "":
			// Taken for what was meant, so that the rest is checked for that role.
			d.Roles.Reflector = d.Roles.Reflector || near == "reflector"
			d.Roles.Client = d.Roles.Client || near == "client"
			return fmt.Sprintf("is not a role, did you mean %q?", near)
		}
		return "is not a role"
	}) {
		d.Roles.Reflector = d.Roles.Reflector || r == "reflector"
		d.Roles.Client = d.Roles.Client || r == "client"
	}
}

// hostname is the default of device.name.
func hostname() string {
	if h, err := os.Hostname(); err == nil && checkName(h, MaxDeviceName) == "" {
		return h
	}
	return "inof"
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

func readDataplane(root *section) string {
	return root.text("dataplane", "linux", "linux, model", func(v string) string {
		if v != "linux" && v != "model" {
			return "is not a known dataplane"
		}
		return ""
	})
}

// readModel reads what belongs to dataplane: model alone.
func readModel(c *Config, s *section) {
	defer s.close()
	allowed := fmt.Sprintf("the name of a switch, 1..%d printable bytes", MaxDeviceName)
	m := Model{
		Socket: s.text("socket", DefaultFabric, allowedPath, checkPath),
		Device: s.text("device", "", allowed, func(v string) string { return checkName(v, MaxDeviceName) }),
	}
	switch {
	case c.Dataplane == "model" && m.Device == "" && c.Device.Roles.Access():
		s.problem("device", "is missing: dataplane model needs to know which switch of the simulated fabric this is", allowed)
	case c.Dataplane == "model":
		c.Model = m
	case s.written():
		s.problem(s.order[0], "is of no use without dataplane: model", "no section model")
	}
}

// allowedPorts is what errors about names of ports say.
var allowedPorts = fmt.Sprintf("port names, ranges (Ethernet0-12) or globs (* ? [a-z]) of 1..%d bytes without / or spaces, ! before one to leave ports out", fabric.MaxPortName)

func readPorts(c *Config, s *section) {
	defer s.close()
	c.Ports.Access = s.list("access", "required", allowedPorts, checkPort)
	s.read(c.Ports.settings())
	readCounterNames(c, s)
	if r := s.text("sonic-redis", "off", "off, HOST:PORT or an absolute path", checkRedis); r != "off" {
		c.Ports.SONiC = r
	}
	_, written := s.values["access"]
	switch {
	case c.Device.Roles.Access() && !written:
		s.problem("access", "is missing: a "+c.Device.Roles.String()+" device needs to know where its hosts are attached", "a list of: "+allowedPorts)
	case !c.Device.Roles.Access() && len(c.Ports.Access) > 0:
		s.problem("access", "is set on a device that is a reflector only and has no hosts of its own", "add the role client, or no access ports")
	case len(c.Ports.Access) > 0 && !slices.ContainsFunc(c.Ports.Access, func(v string) bool { return v[0] != '!' }):
		s.problem("access", "only leaves ports out and names none", "a list of: "+allowedPorts)
	}
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

func readLLDP(c *Config, s *section) {
	defer s.close()
	l := &c.LLDP
	s.read(l.settings())
	switch {
	case l.TTL%time.Second != 0:
		s.problem("ttl", "is not a number of whole seconds", "whole seconds")
	case l.TTL <= l.Interval:
		s.problem("ttl", "is not above lldp.interval ("+setting.Duration(l.Interval)+"): neighbours would forget this device between two LLDPDUs", "more than lldp.interval, best four times of it")
	}
	l.ManagementAddress = s.addr("management-address", "device.id", c.Device.AllowLoopback)
	if !l.ManagementAddress.IsValid() {
		l.ManagementAddress = c.Device.ID
	}
}

func readReflector(c *Config, s *section) {
	defer s.close()
	r := Reflector{}
	allowed := fmt.Sprintf("address:port with a local address and a port %d..%d", MinPort, MaxPort)
	s.list("listen", "device.id:19516", allowed, func(v string) string {
		ap, what := parseListen(v, c.Device.AllowLoopback)
		if what == "" {
			r.Listen = append(r.Listen, ap)
		}
		return what
	})
	s.read(r.settings())
	r.Clients = readClients(s, c.Device.AllowLoopback)
	r.Monitors = readPrefixes(s, "monitors")
	r.Cluster = readCluster(c, s.sub("cluster"))
	if !c.Device.Roles.Reflector {
		s.refuse("this device is not a reflector (device.roles: " + c.Device.Roles.String() + ")")
		return
	}
	if len(r.Listen) == 0 {
		r.Listen = []netip.AddrPort{netip.AddrPortFrom(c.Device.ID, DefaultPort)}
	}
	c.Reflector = r
}

// refuse reports a section that has no business on this device.
func (s *section) refuse(why string) {
	if s.written() {
		s.p.add(Problem{File: s.p.file, Line: s.node.Line, Column: s.node.Column, Key: s.path, What: "does not apply: " + why, Allowed: "leave the section out"})
	}
}

func parseAddr(v string, loopback bool) (netip.Addr, string) {
	a, err := netip.ParseAddr(v)
	if err != nil {
		return a, "is not an IP address"
	}
	return a, checkAddr(a, loopback)
}

// parseListen takes address:port, and an address alone with the default port.
func parseListen(v string, loopback bool) (netip.AddrPort, string) {
	ap, err := netip.ParseAddrPort(v)
	if err != nil {
		a, err := netip.ParseAddr(v)
		if err != nil {
			return ap, "is not an address and port"
		}
		ap = netip.AddrPortFrom(a, DefaultPort)
	}
	if p := ap.Port(); p < MinPort || p > MaxPort {
		return ap, fmt.Sprintf("has the port %d", p)
	}
	if ap.Addr().IsUnspecified() {
		return ap, "" // all local addresses
	}
	return ap, checkAddr(ap.Addr(), loopback)
}

func readClient(c *Config, s *section) {
	defer s.close()
	roles := c.Device.Roles
	cl := Client{}
	s.sections("reflectors", "required", "address: IP, port: 10000..57999", func(e *section) {
		a := e.addr("address", "required", c.Device.AllowLoopback)
		port := e.number("port", DefaultPort, MinPort, MaxPort)
		if _, ok := e.values["address"]; !ok {
			e.problem("address", "is missing", allowedAddr)
		}
		if a.IsValid() && a == c.Device.ID {
			e.problem("address", "is this device's own id", "the device id of a reflector; a device with both roles uses its own without being told")
			return
		}
		if a.IsValid() {
			cl.Reflectors = append(cl.Reflectors, netip.AddrPortFrom(a, uint16(port)))
		}
	})
	s.read(cl.settings())
	cl.Source = s.addr("source", "the system's choice", c.Device.AllowLoopback)
	if !roles.Client {
		s.refuse("this device is not a client (device.roles: " + roles.String() + ")")
		return
	}
	n := 0
	if l := s.values["reflectors"]; l != nil {
		n = len(l.Content)
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
	c.Client = cl
}

// twice tells whether two reflectors have one address.
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

const allowedPath = "an absolute path"

func checkPath(v string) string {
	switch {
	case !filepath.IsAbs(v):
		return "is not an absolute path"
	case strings.ContainsRune(v, 0):
		return "has a NUL byte"
	}
	return ""
}

// The values of zones.nqn-binding.
const (
	nqnWarn     = "warn"
	nqnRequired = "required"
)

// nqnBinding is the setting as it is written.
func (z *Zones) nqnBinding() string {
	if z.BoundNQNs {
		return nqnRequired
	}
	return nqnWarn
}

func readZones(c *Config, s *section) {
	defer s.close()
	z := Zones{
		File:     s.text("file", "", allowedPath, checkPath),
		AutoJoin: s.boolean("default-zone-auto-join", true),
		Hard:     s.boolean("hard-zoning", false),
	}
	z.BoundNQNs = s.choice("nqn-binding", nqnWarn, nqnWarn, nqnRequired) == nqnRequired
	if !c.Device.Roles.OwnsZones() {
		s.refuse("a client takes zones and their switches from its reflector; local settings for these are refused")
		return
	}
	if z.File == "" {
		z.File = filepath.Join(c.State, DefaultZones)
	}
	c.Zones = z
}

// The flood guard of existing host agents: at floodFrames frames within
// floodWindow they stop listening for about 10 s.
const (
	floodFrames = 500
	floodWindow = 500 * time.Millisecond
)

func readNotify(c *Config, s *section) {
	defer s.close()
	n := &c.Notify
	s.read(n.settings())
	if n.RetryMax < n.RetryFirst {
		s.problem("retry-max", "is shorter than notify.retry-first ("+setting.Duration(n.RetryFirst)+")", "notify.retry-first..1m")
	}
	if windows := int((floodWindow + n.Window - 1) / n.Window); n.FramesPerWindow*windows >= floodFrames {
		s.problem("frames-per-window", fmt.Sprintf("would let %d frames out within %s: host agents go deaf at %d",
			n.FramesPerWindow*windows, setting.Duration(floodWindow), floodFrames), "less, or a longer notify.window")
	}
}

// maxSocketPath is the room for a path in the kernel's sockaddr_un, in bytes.
const maxSocketPath = 107

func readManagement(c *Config, s *section) {
	defer s.close()
	m := &c.Management
	m.Socket = s.text("socket", DefaultSocket, fmt.Sprintf("an absolute path of at most %d bytes", maxSocketPath), func(v string) string {
		if len(v) > maxSocketPath {
			return fmt.Sprintf("has %d bytes", len(v))
		}
		return checkPath(v)
	})
	const allowed = "octal permissions 0600..0777 that let the owner read and write"
	m.Mode = 0o660
	if v, ok := s.scalar("mode", "0660", allowed); ok {
		bits, err := strconv.ParseUint(strings.TrimPrefix(v, "0o"), 8, 32)
		switch {
		case err != nil:
			s.problem("mode", "is not an octal number", allowed)
		case bits > 0o777 || bits&0o600 != 0o600:
			s.problem("mode", "is out of range", allowed)
		default:
			m.Mode = fs.FileMode(bits)
		}
	}
	m.Group = s.text("group", "that of the daemon", allowedGroup, checkGroup)
	if m.Group == "that of the daemon" {
		m.Group = ""
	}
	s.read(m.settings())
}

const allowedGroup = "the name or number of a group, 1..32 bytes"

// checkGroup follows what groupadd(8) takes.
func checkGroup(v string) string {
	if v == "" || len(v) > 32 || strings.ContainsFunc(v, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	}) {
		return "is no name of a group"
	}
	return ""
}

func readLog(c *Config, s *section) {
	defer s.close()
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	c.Log.Level = levels[s.choice("level", "info", "debug", "info", "warn", "error")]
	c.Log.Format = s.choice("format", "text", "text", "json")
}
