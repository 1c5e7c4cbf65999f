package hostagent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/snsd"
)

// Limits of the existing agent's file.
const (
	existingFile = 8192 // bytes, below it
	existingLine = 1023
	existingItem = 127
)

// readExisting reads /etc/nvme/snsd.conf of the existing agent (1.00.029): sections [BASE], [SW]
// and [DC], a line is an entry of `key = value` joined by `|`. What is done otherwise here is
// noted.
func (c *Config) readExisting(file string, b []byte) (notes []string, err error) {
	if len(b) >= existingFile {
		return nil, fmt.Errorf("%s: %d bytes, below %d", file, len(b), existingFile)
	}
	r := &existing{c: c, seen: map[string]bool{}, addrs: map[netip.Addr]bool{}, base: &OptionsConfig{}}
	section := ""
	var errs []error
	for i, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, ";")
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "":
			continue
		case len(line) > existingLine:
			err = fmt.Errorf("%d characters, at most %d", len(line), existingLine)
		case line[0] == '[':
			section = line
			if r.seen[section] || section != "[BASE]" && section != "[SW]" && section != "[DC]" {
				err = fmt.Errorf("section %s: want [BASE], [SW] and [DC], each once", section)
			}
			r.seen[section] = true
		default:
			err = r.entry(section, line)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, i+1, err))
		}
	}
	for _, s := range []string{"[BASE]", "[SW]", "[DC]"} {
		if !r.seen[s] {
			errs = append(errs, fmt.Errorf("%s: section %s is missing (it may be empty)", file, s))
		}
	}
	r.finish()
	return r.notes, errors.Join(errs...)
}

type existing struct {
	c     *Config
	seen  map[string]bool
	addrs map[netip.Addr]bool
	any   bool
	base  *OptionsConfig
	notes []string
	own   []*OptionsConfig // of the entries, completed by the base at the end
}

func (r *existing) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

// entry reads one line of a section.
func (r *existing) entry(section, line string) error {
	values := map[string]string{}
	var order []string
	for item := range strings.SplitSeq(line, "|") {
		k, v, _ := strings.Cut(item, "=")
		k, v = strings.TrimLeft(strings.TrimSpace(k), "-"), strings.TrimSpace(v)
		if len(strings.TrimSpace(item)) > existingItem {
			return fmt.Errorf("%q: at most %d characters", k, existingItem)
		}
		if k == "" {
			continue
		}
		if _, twice := values[k]; twice {
			return fmt.Errorf("%s stands twice in a line", k)
		}
		values[k] = v
		order = append(order, k)
	}
	o := &OptionsConfig{}
	if section == "[BASE]" {
		o = r.base
	}
	for _, k := range order {
		if err := r.value(section, o, k, values[k]); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	switch section {
	case "[BASE]":
		return nil
	case "[SW]", "[DC]":
		return r.connection(section == "[DC]", o, values)
	}
	return errors.New("before the first section")
}

// value reads what all sections have.
func (r *existing) value(section string, o *OptionsConfig, key, v string) error {
	number := func(to **int, lo, hi int) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("%q: want %d..%d", v, lo, hi)
		}
		*to = &n
		return nil
	}
	switch key {
	case "host-traddr", "traddr", "protocol":
		if section == "[BASE]" {
			return errors.New("not in [BASE]")
		}
		return nil
	case "restrain-time":
		var n *int
		if err := number(&n, 0, 3600); err != nil || section != "[BASE]" {
			return errors.Join(err, map[bool]error{true: nil, false: errors.New("only in [BASE]")}[section == "[BASE]"])
		}
		if *n > 0 {
			r.c.Delete.Restraint, r.c.Connect.Restraint = time.Duration(*n)*time.Second, 0
		}
		return nil
	case "trsvcid":
		n, err := strconv.ParseUint(v, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q: want 1..65535", v)
		}
		o.Port = uint16(n)
		return nil
	case "hostnqn", "hostid":
		if section != "[BASE]" {
			r.note("%s of an entry is taken for the whole host: one host has one name", key)
		}
		if key == "hostnqn" {
			r.c.Host.NQN = v
		} else {
			r.c.Host.ID = v
		}
		return nil
	case "nr-io-queues":
		return number(&o.IOQueues, 1, 4096)
	case "nr-write-queues":
		return number(&o.WriteQueues, 1, 4096)
	case "nr-poll-queues":
		return number(&o.PollQueues, 1, 4096)
	case "queue-size":
		return number(&o.QueueSize, 16, 1024)
	case "keep-alive-tmo":
		return number(&o.KeepAlive, 0, 600)
	case "reconnect-delay":
		return number(&o.ReconnectDelay, 1, 3600)
	case "ctrl-loss-tmo":
		return number(&o.CtrlLoss, -1, 1<<30)
	case "duplicate_connect", "disable_sqflow":
		if v == "" || v == "1" || v == "true" {
			o.Flags = append(o.Flags, key)
		}
		return nil
	case "hdr_digest", "data_digest", "nqn", "protol_role":
		return errors.New("the existing agent refuses this key; leave it out")
	}
	return errors.New("is not known")
}

// connection reads an entry of [SW] or [DC].
func (r *existing) connection(direct bool, o *OptionsConfig, values map[string]string) error {
	var protocol snsd.Protocol
	if err := protocol.UnmarshalText([]byte(values["protocol"])); err != nil || protocol == snsd.ProtocolUnknown {
		return fmt.Errorf("protocol %q: want roce, tcp or iscsi", values["protocol"])
	}
	if protocol != snsd.ProtocolRoCE {
		r.note("%s is registered too: the existing agent registers RoCE alone, so that it is told nothing of %s targets", protocol, protocol)
	}
	host := values["host-traddr"]
	r.own = append(r.own, o)
	if host == "any" {
		if direct {
			return errors.New("host-traddr any: not in [DC]")
		}
		if r.any || len(r.addrs) > 0 {
			return errors.New("host-traddr any: it must stand alone")
		}
		r.any = true
		r.c.Ports = append(r.c.Ports, PortConfig{Interface: AnyInterface, Role: snsd.RoleInitiator, Protocol: protocol, Options: o})
		return nil
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("host-traddr %q: want an address", host)
	}
	a = a.Unmap()
	if r.addrs[a] || r.any && !direct {
		return fmt.Errorf("host-traddr %v: each address once", a)
	}
	r.addrs[a] = true
	if !direct {
		r.c.Ports = append(r.c.Ports, PortConfig{Addresses: []netip.Addr{a}, Role: snsd.RoleInitiator, Protocol: protocol, Options: o})
		return nil
	}
	target, err := netip.ParseAddr(values["traddr"])
	if err != nil {
		return fmt.Errorf("traddr %q: want an address", values["traddr"])
	}
	target = target.Unmap()
	r.note("[DC] %v: is connected, and not disconnected when the interface goes down: the kernel connects it again by itself", target)
	r.c.Direct = append(r.c.Direct, DirectConfig{Host: a, Target: target, Protocol: protocol, Port: o.Port, Options: o})
	return nil
}

// AnyInterface as the interface of a port means every one that has an address and a cable.
const AnyInterface = "any"

// finish fills what the entries leave open from [BASE].
func (r *existing) finish() {
	if r.base.CtrlLoss == nil {
		n := 1800 // what the existing agent sends unless it is set
		r.base.CtrlLoss = &n
	}
	r.c.Connect.Options = *r.base
	for _, o := range r.own {
		for _, f := range []struct{ to, from **int }{
			{&o.KeepAlive, &r.base.KeepAlive}, {&o.ReconnectDelay, &r.base.ReconnectDelay}, {&o.CtrlLoss, &r.base.CtrlLoss}, {&o.IOQueues, &r.base.IOQueues},
			{&o.WriteQueues, &r.base.WriteQueues}, {&o.PollQueues, &r.base.PollQueues}, {&o.QueueSize, &r.base.QueueSize},
		} {
			if *f.to == nil {
				*f.to = *f.from
			}
		}
		if o.Port == 0 {
			o.Port = r.base.Port
		}
		for _, flag := range r.base.Flags {
			if !slices.Contains(o.Flags, flag) {
				o.Flags = append(o.Flags, flag)
			}
		}
	}
}
