package hostagent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Where the configuration is.
const (
	DefaultFile   = "/etc/snsd/snsd.yaml"
	ExistingFile  = "/etc/nvme/snsd.conf" // of the existing agent
	DefaultSocket = "/run/snsd/snsd.sock"
	maxConfig     = 1 << 20 // bytes
)

// Config is the service's configuration, docs/hosts.md.
type Config struct {
	Ports        []PortConfig       `yaml:"ports"`
	Direct       []DirectConfig     `yaml:"direct"`
	Register     RegisterConfig     `yaml:"register"`
	Host         HostConfig         `yaml:"host"`
	Connect      ConnectConfig      `yaml:"connect"`
	Leave        LeaveConfig        `yaml:"leave"`
	Delete       DeleteConfig       `yaml:"delete"`
	Hooks        HooksConfig        `yaml:"hooks"`
	Target       TargetConfig       `yaml:"target"`
	Mode         Mode               `yaml:"mode"`
	Fence        FenceMode          `yaml:"fence"`
	FenceWait    time.Duration      `yaml:"fence-wait"`
	Arrays       []ArrayConfig      `yaml:"arrays"`
	FenceService FenceServiceConfig `yaml:"fence-service"`
	Socket       string             `yaml:"socket"`  // of `snsd status`
	Metrics      string             `yaml:"metrics"` // address of the Prometheus page, empty: none
}

// Mode is whether the agent acts.
type Mode string

// The modes.
const (
	ModeAct     Mode = "act"
	ModeObserve Mode = "observe" // it registers and acks, and reports what it would do
)

// ArrayConfig is what the operator says of an array: one of NQN and address names it.
type ArrayConfig struct {
	NQN     string         `yaml:"nqn"`
	Address netip.Addr     `yaml:"address"`
	Settle  *time.Duration `yaml:"settle"` // a write that reached it is executed within that time, or never
}

// MACs is one MAC address, or a list of them.
type MACs []fabric.MAC

// UnmarshalYAML reads either.
func (m *MACs) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*m = MACs{{}}
		return n.Decode(&(*m)[0])
	}
	return n.Decode((*[]fabric.MAC)(m))
}

// PortConfig is an interface, or some addresses, and what is registered of them.
type PortConfig struct {
	Interface   string         `yaml:"interface"` // may be left out where addresses are given
	Addresses   []netip.Addr   `yaml:"addresses"` // none: all of the interface
	Role        snsd.Role      `yaml:"role"`
	Protocol    snsd.Protocol  `yaml:"protocol"`
	ServicePort uint16         `yaml:"service-port"`
	NQN         string         `yaml:"nqn"`
	Switch      MACs           `yaml:"switch"`  // whose notices count; none: the one that LLDP shows
	Options     *OptionsConfig `yaml:"options"` // instead of connect.options
}

// DirectConfig is a target that is connected without a switch that says so.
type DirectConfig struct {
	Host     netip.Addr     `yaml:"host"`
	Target   netip.Addr     `yaml:"target"`
	Protocol snsd.Protocol  `yaml:"protocol"`
	Port     uint16         `yaml:"port"`
	NQN      string         `yaml:"nqn"`
	Options  *OptionsConfig `yaml:"options"`
}

// RegisterConfig is how often and for how long.
type RegisterConfig struct {
	Interval time.Duration `yaml:"interval"`
	TTL      time.Duration `yaml:"ttl"`
	Farewell bool          `yaml:"farewell"` // withdraw at the end
}

// HostConfig is who the host is to subsystems; empty: /etc/nvme.
type HostConfig struct {
	NQN string `yaml:"nqn"`
	ID  string `yaml:"id"`
}

// ConnectConfig is about new controllers.
type ConnectConfig struct {
	Enabled   bool          `yaml:"enabled"`
	Restraint time.Duration `yaml:"restraint"`
	Options   OptionsConfig `yaml:"options"`
}

// OptionsConfig are the numbers of new controllers; what is not set is left to the kernel.
type OptionsConfig struct {
	Port           uint16   `yaml:"port"` // where a target names none
	KeepAlive      *int     `yaml:"keep-alive-tmo"`
	ReconnectDelay *int     `yaml:"reconnect-delay"`
	CtrlLoss       *int     `yaml:"ctrl-loss-tmo"`
	FastIOFail     *int     `yaml:"fast-io-fail-tmo"`
	IOQueues       *int     `yaml:"nr-io-queues"`
	WriteQueues    *int     `yaml:"nr-write-queues"`
	PollQueues     *int     `yaml:"nr-poll-queues"`
	QueueSize      *int     `yaml:"queue-size"`
	ToS            *int     `yaml:"tos"`
	Flags          []string `yaml:"flags"`
}

// LeaveConfig is what is done about dead paths.
type LeaveConfig struct {
	LinkDown    Measure   `yaml:"link-down"`
	PFCStorm    Measure   `yaml:"pfc-storm"`
	PacketError Measure   `yaml:"packet-error"`
	BFDDown     Measure   `yaml:"bfd-down"`
	OwnLink     Measure   `yaml:"own-link"`
	Foreign     bool      `yaml:"fail-over-foreign"`
	Quiesce     yaml.Node `yaml:"quiesce"` // gone
}

// DeleteConfig is what is done about what must be forgotten.
type DeleteConfig struct {
	ZoneChanged Measure       `yaml:"zone-changed"`
	IPChanged   Measure       `yaml:"ip-changed"`
	AgedOut     Measure       `yaml:"aged-out"`
	Restraint   time.Duration `yaml:"restraint"`
	LastPath    bool          `yaml:"remove-last-path"`
	Subsystems  []string      `yaml:"subsystems"` // whose controllers may be deleted though they are not ours
}

// HooksConfig names programs.
type HooksConfig struct {
	OnActive   []string `yaml:"on-active"`
	OnInactive []string `yaml:"on-inactive"`
}

// TargetConfig is the role of an array.
type TargetConfig struct {
	Nvmet      bool     `yaml:"nvmet"`      // register what this kernel's nvmet serves
	Interfaces []string `yaml:"interfaces"` // there alone; empty: wherever it serves
}

// Default is the configuration without a file.
func Default() Config {
	return Config{
		Register: RegisterConfig{Interval: snsd.DefaultRegisterInterval, TTL: snsd.DefaultRegisterTTL * time.Second, Farewell: true},
		Connect:  ConnectConfig{Enabled: true, Restraint: snsd.DefaultRestraint},
		Leave:    LeaveConfig{LinkDown: Destroy, PFCStorm: Destroy, PacketError: Probe, BFDDown: Destroy, OwnLink: Destroy, Foreign: true},
		Delete:   DeleteConfig{ZoneChanged: Forget, IPChanged: Forget, AgedOut: Forget},
		Mode:     ModeAct, FenceWait: DefaultFenceWait,
		FenceService: FenceServiceConfig{Port: DefaultFencePort, Hold: DefaultFenceHold},
		Socket:       DefaultSocket,
	}
}

// Load reads the YAML file and, before it, the existing agent's file: where both say something,
// YAML wins. One of them must be there. notes are what of the existing file is taken otherwise.
func Load(file, existing string) (c Config, notes []string, err error) {
	c = Default()
	found := false
	if existing != "" {
		b, err := read(existing)
		switch {
		case err == nil:
			if notes, err = c.readExisting(existing, b); err != nil {
				return c, notes, err
			}
			found = true
		case !errors.Is(err, fs.ErrNotExist):
			return c, nil, err
		}
	}
	b, err := read(file)
	switch {
	case err == nil:
		d := yaml.NewDecoder(bytes.NewReader(b))
		d.KnownFields(true)
		if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
			return c, notes, fmt.Errorf("%s: %w", file, err)
		}
	case !found || !errors.Is(err, fs.ErrNotExist):
		return c, notes, err
	}
	if err := c.check(); err != nil {
		return c, notes, fmt.Errorf("%s: %w", file, err)
	}
	return c, notes, nil
}

func read(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err == nil && st.Size() > maxConfig {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", file, st.Size(), maxConfig)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// written are the addresses as the file has them: of one address ::ffff:a.b.c.d is another form.
func (c *Config) written() (list []*netip.Addr) {
	for i := range c.Ports {
		for j := range c.Ports[i].Addresses {
			list = append(list, &c.Ports[i].Addresses[j])
		}
	}
	for i := range c.Direct {
		list = append(list, &c.Direct[i].Host, &c.Direct[i].Target)
	}
	for i := range c.Arrays {
		list = append(list, &c.Arrays[i].Address)
	}
	return list
}

// check says everything that is wrong at once.
func (c *Config) check() error {
	var errs []error
	bad := func(key string, value any, want string) {
		errs = append(errs, fmt.Errorf("%s: %v: want %s", key, value, want))
	}
	between := func(key string, v, lo, hi time.Duration) {
		if v < lo || v > hi {
			bad(key, v, fmt.Sprintf("%v..%v", lo, hi))
		}
	}
	for _, a := range c.written() {
		*a = a.Unmap()
	}
	if len(c.Ports) == 0 && len(c.Direct) == 0 && !c.Target.Nvmet {
		bad("ports", "[]", "at least one interface")
	}
	seen := map[netip.Addr]bool{}
	for i := range c.Ports {
		p, at := &c.Ports[i], fmt.Sprintf("ports[%d]", i)
		if p.Interface == "" && len(p.Addresses) == 0 {
			bad(at, "neither interface nor addresses", "one of them")
		}
		if p.Role == snsd.RoleUnknown {
			p.Role = snsd.RoleInitiator
		}
		if p.Protocol == snsd.ProtocolUnknown {
			bad(at+".protocol", `""`, "tcp, roce or iscsi")
		}
		if err := snsd.CheckNQN(p.NQN); err != nil {
			bad(at+".nqn", p.NQN, err.Error())
		}
		for _, a := range p.Addresses {
			if err := snsd.CheckAddr(a); err != nil {
				bad(at+".addresses", a, err.Error())
			} else if seen[a] {
				bad(at+".addresses", a, "each address once")
			}
			seen[a] = true
		}
		for _, m := range p.Switch {
			if m.IsZero() || m[0]&1 != 0 {
				bad(at+".switch", m, "the MAC address of the switch's port")
			}
		}
		p.Options.check(at+".options", bad)
	}
	for i := range c.Direct {
		d, at := &c.Direct[i], fmt.Sprintf("direct[%d]", i)
		if !d.Host.IsValid() || !d.Target.IsValid() || d.Host.Is4() != d.Target.Is4() {
			bad(at, fmt.Sprintf("host %v, target %v", d.Host, d.Target), "two addresses of one family")
		}
		if d.Protocol != snsd.ProtocolTCP && d.Protocol != snsd.ProtocolRoCE {
			bad(at+".protocol", d.Protocol, "tcp or roce")
		}
		d.Options.check(at+".options", bad)
	}
	between("register.interval", c.Register.Interval, 100*time.Millisecond, time.Hour)
	between("register.ttl", c.Register.TTL, time.Second, 65535*time.Second)
	if c.Register.TTL < c.Register.Interval {
		bad("register.ttl", c.Register.TTL, "no less than register.interval")
	}
	between("connect.restraint", c.Connect.Restraint, 0, 10*time.Minute)
	between("delete.restraint", c.Delete.Restraint, 0, 10*time.Minute)
	if !c.Leave.Quiesce.IsZero() {
		bad("leave.quiesce", c.Leave.Quiesce.Value, "fence and fence-wait in its place: they wait until no old write can reach the array, where this key waited for a time")
	}
	if c.Mode != ModeAct && c.Mode != ModeObserve {
		bad("mode", fmt.Sprintf("%q", c.Mode), "act or observe")
	}
	between("fence-wait", c.FenceWait, 0, time.Minute)
	for i, a := range c.Arrays {
		a.check(fmt.Sprintf("arrays[%d]", i), bad)
	}
	c.Connect.Options.check("connect.options", bad)
	c.FenceService.check(bad)
	l := &c.Leave
	for key, m := range map[string]Measure{"leave.link-down": l.LinkDown, "leave.pfc-storm": l.PFCStorm, "leave.packet-error": l.PacketError, "leave.bfd-down": l.BFDDown} {
		if m > Avoid {
			bad(key, m, "nothing, destroy, reset, probe, ask or avoid")
		}
	}
	if l.OwnLink != Nothing && l.OwnLink != Destroy && l.OwnLink != Ask {
		bad("leave.own-link", l.OwnLink, "nothing, destroy or ask")
	}
	if (c.Host.NQN == "") != (c.Host.ID == "") {
		bad("host", fmt.Sprintf("nqn %q, id %q", c.Host.NQN, c.Host.ID), "both or none")
	}
	if c.Host.ID != "" {
		if _, err := hostkernel.ParseID(c.Host.ID); err != nil {
			bad("host.id", c.Host.ID, "a UUID")
		}
	}
	return errors.Join(errs...)
}

func (a *ArrayConfig) check(at string, bad func(string, any, string)) {
	if (a.NQN == "") != a.Address.IsValid() {
		bad(at, fmt.Sprintf("nqn %q, address %v", a.NQN, a.Address), "one of nqn and address")
	}
	if err := snsd.CheckNQN(a.NQN); err != nil {
		bad(at+".nqn", a.NQN, err.Error())
	}
	switch {
	case a.Settle == nil:
		bad(at+".settle", "none", "0s..10m0s")
	case *a.Settle < 0 || *a.Settle > 10*time.Minute:
		bad(at+".settle", *a.Settle, "0s..10m0s")
	}
}

func (o *OptionsConfig) check(at string, bad func(string, any, string)) {
	if o == nil {
		return
	}
	for _, n := range []struct {
		key    string
		v      *int
		lo, hi int
	}{
		{"keep-alive-tmo", o.KeepAlive, 0, 600}, {"reconnect-delay", o.ReconnectDelay, 1, 3600}, {"ctrl-loss-tmo", o.CtrlLoss, -1, 1 << 30}, {"fast-io-fail-tmo", o.FastIOFail, -1, 1 << 30},
		{"nr-io-queues", o.IOQueues, 1, 4096}, {"nr-write-queues", o.WriteQueues, 1, 4096}, {"nr-poll-queues", o.PollQueues, 1, 4096}, {"queue-size", o.QueueSize, 16, 1024}, {"tos", o.ToS, 0, 255},
	} {
		if n.v != nil && (*n.v < n.lo || *n.v > n.hi) {
			bad(at+"."+n.key, *n.v, fmt.Sprintf("%d..%d", n.lo, n.hi))
		}
	}
	flags := []string{"duplicate_connect", "disable_sqflow", "hdr_digest", "data_digest"}
	for _, f := range o.Flags {
		if !slices.Contains(flags, f) {
			bad(at+".flags", f, fmt.Sprint(flags))
		}
	}
}

// connect gives the options as the kernel's.
func (o *OptionsConfig) connect(host hostkernel.Identity) hostkernel.Connect {
	return hostkernel.Connect{HostNQN: host.NQN, HostID: host.ID, KeepAlive: o.KeepAlive, ReconnectDelay: o.ReconnectDelay, CtrlLoss: o.CtrlLoss, FastIOFail: o.FastIOFail,
		IOQueues: o.IOQueues, WriteQueues: o.WriteQueues, PollQueues: o.PollQueues, QueueSize: o.QueueSize, ToS: o.ToS, Flags: slices.Clone(o.Flags)}
}

// Policy is what the actor goes by.
func (c *Config) Policy(host hostkernel.Identity) Policy {
	p := DefaultPolicy()
	p.By = map[snsd.Reason]Measure{
		snsd.ReasonLinkDown: c.Leave.LinkDown, snsd.ReasonPFCStorm: c.Leave.PFCStorm, snsd.ReasonPacketError: c.Leave.PacketError, snsd.ReasonBFDDown: c.Leave.BFDDown,
		snsd.ReasonZoneChanged: c.Delete.ZoneChanged, snsd.ReasonIPChanged: c.Delete.IPChanged, snsd.ReasonAgedOut: c.Delete.AgedOut,
	}
	p.OwnLink, p.Foreign = c.Leave.OwnLink, c.Leave.Foreign
	p.Fence, p.FenceWait, p.Observe = c.Fence, c.FenceWait, c.Mode == ModeObserve
	for _, a := range c.Arrays {
		p.Settle = append(p.Settle, Settle{NQN: a.NQN, Addr: a.Address, Time: *a.Settle})
	}
	p.Named, p.RemoveLastPath, p.DeleteAfter = c.Delete.Subsystems, c.Delete.LastPath, c.Delete.Restraint
	p.Connect, p.Restraint, p.Options, p.Port = c.Connect.Enabled, c.Connect.Restraint, c.Connect.Options.connect(host), c.Connect.Options.Port
	p.Of = map[netip.Addr]hostkernel.Connect{}
	own := func(a netip.Addr, o *OptionsConfig) {
		if o != nil {
			p.Of[a] = o.connect(host)
		}
	}
	for _, port := range c.Ports {
		for _, a := range port.Addresses {
			own(a, port.Options)
		}
	}
	for _, d := range c.Direct {
		own(d.Host, d.Options)
	}
	return p
}

// Cables gives what is registered over which cable, given the interfaces that there are, and which
// settings find none.
func (c *Config) Cables(have []hostkernel.Interface) (ports []Port, missing []string) {
	at := map[string]int{}
	for _, p := range c.Ports {
		found := false
		for _, i := range have {
			if p.Interface != "" && p.Interface != i.Name && p.Interface != AnyInterface {
				continue
			}
			addrs := i.Addrs
			if len(p.Addresses) > 0 {
				addrs = slices.DeleteFunc(slices.Clone(p.Addresses), func(a netip.Addr) bool { return !slices.Contains(i.Addrs, a) })
			}
			if (p.Interface == "" || p.Interface == AnyInterface) && len(addrs) == 0 || i.Name == "lo" {
				continue
			}
			found = true
			for _, cable := range i.Ports {
				n, ok := at[cable]
				if !ok {
					n = len(ports)
					at[cable] = n
					ports = append(ports, c.port(cable))
				}
				for _, m := range p.Switch {
					if !slices.Contains(ports[n].Switch, m) {
						ports[n].Switch = append(ports[n].Switch, m)
					}
				}
				for _, a := range addrs {
					if len(ports[n].Addrs) < snsd.MaxAgentAddrs && !slices.Contains(ports[n].Addrs, a) {
						ports[n].Addrs = append(ports[n].Addrs, a)
						ports[n].Services[a] = snsd.Service{Role: p.Role, Protocol: p.Protocol, Port: p.ServicePort, NQN: p.NQN}
					}
				}
			}
		}
		if !found {
			missing = append(missing, p.missing())
		}
	}
	for i := range ports {
		if len(ports[i].Addrs) > 0 {
			ports[i].Service = ports[i].Services[ports[i].Addrs[0]]
		}
	}
	return ports, missing
}

// missing says what a setting does not find.
func (p *PortConfig) missing() string {
	switch {
	case len(p.Addresses) == 0:
		return fmt.Sprintf("there is no interface %s", p.Interface)
	case p.Interface == "" || p.Interface == AnyInterface:
		return fmt.Sprintf("no interface has %v", p.Addresses)
	}
	return fmt.Sprintf("there is no interface %s with %v", p.Interface, p.Addresses)
}

func (c *Config) port(cable string) Port {
	return Port{Farewell: c.Register.Farewell, AgentConfig: snsd.AgentConfig{
		Interface: cable, Subscribes: true, Interval: c.Register.Interval, TTL: uint16(c.Register.TTL / time.Second), Restraint: max(c.Connect.Restraint, time.Nanosecond),
		Extensions: snsd.ExtFence, Services: map[netip.Addr]snsd.Service{}}}
}
