package testbed

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const noContainer = "no effect without containers"

// Keys of containerlab files that are accepted, reported, and do nothing here.
var (
	ignoredTop = map[string]string{
		"prefix":   "names of namespaces and processes come from the lab's name",
		"mgmt":     "there is no management network; use lab exec",
		"settings": noContainer,
		"debug":    noContainer,
	}
	ignoredNode = map[string]string{
		"type":                    "the kind says all",
		"binds":                   "nodes share the file system of this machine",
		"startup-delay":           "nodes start when the one before is ready",
		"enforce-startup-config":  "the startup-config is always used",
		"suppress-startup-config": "the startup-config is always used",
		"mgmt-ipv4":               "there is no management network; use lab exec",
		"mgmt-ipv6":               "there is no management network; use lab exec",
		"mgmt-net":                "there is no management network; use lab exec",
		"mgmt_ipv4":               "there is no management network; use lab exec",
		"mgmt_ipv6":               "there is no management network; use lab exec",
		"ports":                   "nothing is published; use lab exec",
		"publish":                 "nothing is published; use lab exec",
		"position":                "drawing tools only",
		"network-mode":            "every node has its own network namespace",
		"hostname":                "nodes share the host name of this machine",
		"volumes":                 "nodes share the file system of this machine",
		"image":                   noContainer,
		"image-pull-policy":       noContainer,
		"auto-remove":             noContainer,
		"restart-policy":          noContainer,
		"config":                  noContainer,
		"license":                 noContainer,
		"entrypoint":              noContainer,
		"cmd":                     noContainer,
		"devices":                 noContainer,
		"cap-add":                 noContainer,
		"shm-size":                noContainer,
		"env-files":               noContainer,
		"user":                    noContainer,
		"cpu":                     noContainer,
		"cpu-set":                 noContainer,
		"memory":                  noContainer,
		"sandbox":                 noContainer,
		"kernel":                  noContainer,
		"runtime":                 noContainer,
		"extras":                  noContainer,
		"stages":                  noContainer,
		"dns":                     noContainer,
		"certificate":             noContainer,
		"healthcheck":             noContainer,
		"aliases":                 noContainer,
		"components":              noContainer,
		"SANs":                    noContainer,
		"credentials":             noContainer,
		"wait-for":                noContainer,
		"cgroupns-mode":           noContainer,
		"cgroup-parent":           noContainer,
		"pid-mode":                noContainer,
		"privileged":              noContainer,
		"security-opts":           noContainer,
		"tmpfs":                   noContainer,
		"ulimits":                 noContainer,
		"link-apply-mode":         "links are made before anything starts",
	}
	ignoredLink = map[string]string{
		"labels": noContainer,
		"vars":   noContainer,
		"ipv4":   "give addresses with exec lines (ip addr add ...)",
		"ipv6":   "give addresses with exec lines (ip addr add ...)",
	}
)

var nodeKeys = []string{"kind", "group", "startup-config", "exec", "env", "labels", "sysctls"}

// otherKey files a key that has no meaning here: known to containerlab (noted) or
// not known at all (refused).
func (w *walker) otherKey(p pair, path string, ignored map[string]string, known []string) {
	at := join(path, p.key)
	if why, ok := ignored[p.key]; ok {
		w.ignored = append(w.ignored, Ignored{Line: p.kNode.Line, Path: at, Why: why})
		return
	}
	w.errorf(p.kNode, at, "unknown key, want one of %s", strings.Join(known, ", "))
}

// nodeDef is what defaults, a kind, a group or a node says.
type nodeDef struct {
	kind, group, startup located
	image, cmd           located
	binds                []located
	exec                 []string
	labels, env, sysctls map[string]located
	container            []Ignored // what means nothing here unless the image is ours
}

func newNodeDef() *nodeDef { return &nodeDef{} }

func (w *walker) nodeDef(n *yaml.Node, path string) *nodeDef {
	d := newNodeDef()
	for _, p := range w.pairs(n, path) {
		at := join(path, p.key)
		word := func() located {
			s, _ := w.text(p.val, at)
			return located{s, p.kNode.Line}
		}
		switch p.key {
		case "kind":
			d.kind = word()
		case "group":
			d.group = word()
		case "startup-config":
			d.startup = word()
			if err := validStartup(d.startup.s); err != nil {
				w.errorf(p.val, at, "%s", err)
			}
		case "exec":
			for _, l := range w.texts(p.val, at) {
				if _, err := splitCommand(l.s); err != nil {
					w.errs = append(w.errs, &ParseError{File: w.file, Line: l.line, Path: at, Msg: err.Error()})
					continue
				}
				d.exec = append(d.exec, l.s)
			}
		case "labels":
			d.labels = w.textMap(p.val, at)
		case "env":
			d.env = w.textMap(p.val, at)
			w.checkEnv(d.env, at)
		case "sysctls":
			d.sysctls = w.textMap(p.val, at)
			for _, k := range slices.Sorted(maps.Keys(d.sysctls)) {
				if !sysctlRE.MatchString(k) || strings.Contains(k, "..") {
					w.errs = append(w.errs, &ParseError{File: w.file, Line: d.sysctls[k].line, Path: at, Msg: fmt.Sprintf("%q: only net.* belongs to a namespace; the others would change this machine", k)})
				}
			}
		case "image", "cmd", "binds", "entrypoint":
			switch p.key {
			case "image":
				d.image = word()
			case "cmd":
				d.cmd = word()
			case "binds":
				d.binds = w.texts(p.val, at)
			}
			d.container = append(d.container, Ignored{Line: p.kNode.Line, Path: at, Why: ignoredNode[p.key]})
		default:
			w.otherKey(p, path, ignoredNode, nodeKeys)
		}
	}
	return d
}

func (w *walker) checkEnv(env map[string]located, at string) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		if k == "" || strings.ContainsAny(k, "=\x00 ") {
			w.errs = append(w.errs, &ParseError{File: w.file, Line: env[k].line, Path: at, Msg: fmt.Sprintf("%q cannot name an environment variable", k)})
		}
	}
}

// validStartup keeps startup-configs below the topology file or absolute-free, so
// that a lab can be read from any file system.
func validStartup(s string) error {
	if n := strings.Count(s, "\n"); n > 0 {
		return fmt.Errorf("is a text of %d lines: put it into a file beside the topology file, and name that", n)
	}
	if strings.HasPrefix(s, "/") || slices.Contains(strings.Split(s, "/"), "..") {
		return fmt.Errorf("%q: want a file beside or below the topology file", s)
	}
	return nil
}

// labelZones names the zone file of an inof-switch; it is copied to zones.yaml in
// the node's state directory, where the daemon looks for it and may change it.
const labelZones = "inof.zones"

// Labels of an inof-host node. Every other label that begins with "inof." is
// refused, so that a slip of the pen is seen.
const (
	labelRole      = "inof.role"         // initiator, target or both
	labelNQN       = "inof.nqn"          // of the host
	labelInterface = "inof.interface"    // where inof.address is; default eth1
	labelAddress   = "inof.address"      // addresses, separated by commas, of that interface
	labelAddressOf = "inof.address."     // + interface: addresses there; one agent each
	labelTTL       = "inof.ttl"          // seconds, LLDP time to live
	labelInterval  = "inof.interval"     // between registrations
	labelProtocol  = "inof.protocol"     // roce, tcp, iscsi
	labelService   = "inof.service-port" // 0..65535
	labelAgent     = "inof.agent"        // own, or like-existing: with the habits of the existing agent
	labelArgs      = "inof.args"         // further arguments of snsd
)

// agents turns the labels of an inof-host into command lines of snsd.
func (w *walker) agents(n *Node, labels map[string]located, at string) {
	bad := func(key, format string, args ...any) {
		w.errs = append(w.errs, &ParseError{File: w.file, Line: labels[key].line, Path: at + ".labels." + key, Msg: fmt.Sprintf(format, args...)})
	}
	common, addrs, ok := []string{}, map[string][]string{}, true
	port := "eth1"
	if p := n.Labels[labelInterface]; p != "" {
		port = p
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !strings.HasPrefix(key, "inof.") {
			continue
		}
		v := n.Labels[key]
		if n.Kind == KindSwitch && key == labelZones {
			n.Zones = v
			if err := validStartup(v); err != nil {
				bad(key, "%s", err)
			}
			continue
		}
		if n.Kind == KindVM && (key == labelMemory || key == labelCPUs) {
			if err := vmLabel(n.VM, key, v); err != nil {
				bad(key, "%s", err)
			}
			continue
		}
		if n.Kind != KindHost {
			bad(key, "no such label for this kind: an %s has %s, a %s has %s and %s, an %s has inof.role, inof.address and others",
				KindSwitch, labelZones, KindVM, labelMemory, labelCPUs, KindHost)
			ok = false
			continue
		}
		args, err := agentLabel(key, v, port, addrs)
		if err != nil {
			bad(key, "%s", err)
			ok = false
		}
		common = append(common, args...)
	}
	if n.Kind != KindHost || n.Container || !ok {
		return
	}
	if len(addrs) == 0 {
		w.errs = append(w.errs, &ParseError{File: w.file, Line: n.Line, Path: at + ".labels", Msg: fmt.Sprintf("an %s has no address: want label %s or %sINTERFACE", KindHost, labelAddress, labelAddressOf)})
		return
	}
	for _, p := range slices.Sorted(maps.Keys(addrs)) {
		args := []string{"--interface", p}
		for _, a := range addrs[p] {
			args = append(args, "--address", a)
		}
		n.Agents = append(n.Agents, Agent{Port: p, Args: slices.Concat(args, []string{"--output", "json"}, common)})
	}
}

// agentLabel checks one label and gives the arguments it stands for.
func agentLabel(key, v, port string, addrs map[string][]string) ([]string, error) {
	switch key {
	case labelRole:
		if !slices.Contains([]string{"initiator", "target", "both"}, v) {
			return nil, fmt.Errorf("%q, want initiator, target or both", v)
		}
		return []string{"--role", v}, nil
	case labelNQN:
		if len(v) == 0 || len(v) > 223 { // NVM Express Base 2.0, 4.5: at most 223 bytes
			return nil, fmt.Errorf("an NQN of %d bytes, want 1..223", len(v))
		}
		return []string{"--nqn", v}, nil
	case labelInterface:
		return nil, validIfName(v)
	case labelTTL:
		return []string{"--ttl", v}, wantNumber(v, 1, 65535)
	case labelInterval:
		if d, err := time.ParseDuration(v); err != nil || d <= 0 {
			return nil, fmt.Errorf("%q, want a duration such as 1s", v)
		}
		return []string{"--interval", v}, nil
	case labelProtocol:
		if !slices.Contains([]string{"roce", "tcp", "iscsi"}, v) {
			return nil, fmt.Errorf("%q, want roce, tcp or iscsi", v)
		}
		return []string{"--protocol", v}, nil
	case labelService:
		return []string{"--service-port", v}, wantNumber(v, 0, 65535)
	case labelAgent:
		switch v {
		case "own":
			return nil, nil
		case "like-existing":
			return []string{"--like-agent"}, nil
		}
		return nil, fmt.Errorf("%q, want own or like-existing", v)
	case labelArgs:
		return splitCommandOrNone(v)
	}
	if key == labelAddress {
		key += "." + port
	}
	p, ok := strings.CutPrefix(key, labelAddressOf)
	if !ok {
		return nil, fmt.Errorf("unknown label; labels that begin with inof. are role, nqn, address, address.INTERFACE, interface, ttl, interval, protocol, service-port, agent, args")
	}
	if err := validIfName(p); err != nil {
		return nil, err
	}
	for s := range strings.SplitSeq(v, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(s))
		if err != nil || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IP address", s)
		}
		addrs[p] = append(addrs[p], a.String())
	}
	return nil, nil
}

func wantNumber(s string, lo, hi int) error {
	var v int
	if _, err := fmt.Sscanf(s, "%d", &v); err != nil || fmt.Sprint(v) != s || v < lo || v > hi {
		return fmt.Errorf("%q, want a number from %d to %d", s, lo, hi)
	}
	return nil
}
