package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
)

// The programs run where the machine's first process copied them.
const (
	bin        = "/run/bin/"
	hostSocket = "/run/host.sock"
	fencePort  = 4424
	secretFile = "/run/secret"
)

// daemon is a program that outlives a round; its process id is in a file, for the next one.
type daemon struct{ name string }

// arrayLine starts the array's agent. configfs is in the first namespace's files alone: nsenter changes
// the network, and no files.
const (
	arrayFile = "/run/array.yaml"
	arrayLine = "exec nsenter --net=/run/netns/" + target + " " + bin + "snsd run -c " + arrayFile + " --existing ''"
)

// arrayConfig is that of the array's agent, which hosts may ask or not.
func arrayConfig(fences bool) string {
	array := "target: {nvmet: true, interfaces: [t1, t2]}\nregister: {interval: 1s, ttl: 10s}\nconnect: {enabled: false}\nsocket: /run/array.sock\n"
	if fences {
		array += fmt.Sprintf("fence-service:\n  listen: [\"%[1]s:%[2]d\", \"%[3]s:%[2]d\"]\n  hosts: [{key-file: %[4]s, addresses: [%[5]s, %[6]s]}]\n",
			targetAddress(1), fencePort, targetAddress(2), secretFile, hostAddress(1), hostAddress(2))
	}
	return array
}

// setupWatch has the array's agent begin to watch connections before there are any, as a boot does: one that
// begins later fences nothing for half a minute. The watch outlives it.
func setupWatch() error {
	if err := lines("cp /lab/bin/inofd /lab/bin/snsd %s", bin); err != nil {
		return err
	}
	if err := errors.Join(put(secretFile, "0123456789abcdef0123456789abcdef\n"), os.Chmod(secretFile, 0o600), put(arrayFile, arrayConfig(true))); err != nil {
		return err
	}
	if err := agentOfArray().start("", arrayLine); err != nil {
		return err
	}
	if err := await(30*time.Second, "the watch of the array's agent", func() error {
		if names, _ := filepath.Glob("/sys/fs/bpf/snsd-target*/link*"); len(names) == 0 {
			return fmt.Errorf("there is none: %s", text(agentOfArray().outFile()))
		}
		return nil
	}); err != nil {
		return err
	}
	return agentOfArray().end(unix.SIGTERM)
}

func (d daemon) pidFile() string { return "/run/" + d.name + ".pid" }
func (d daemon) outFile() string { return "/lab/node/" + d.name + ".out" }
func (d daemon) pid() int        { n, _ := strconv.Atoi(text(d.pidFile())); return n }
func (d daemon) alive() bool     { return alive(d.pid()) }

func alive(pid int) bool {
	state := text(fmt.Sprintf("/proc/%d/stat", pid))
	return pid > 0 && state != "" && !strings.Contains(state, ") Z ")
}

// start runs it by a shell line, whose last command replaces the shell.
func (d daemon) start(namespace, line string) error {
	f, err := os.OpenFile(d.outFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	words := []string{"sh", "-c", line}
	if namespace != "" {
		words = append([]string{"ip", "netns", "exec", namespace}, words...)
	}
	c := exec.Command(words[0], words[1:]...)
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	return put(d.pidFile(), fmt.Sprint(c.Process.Pid))
}

// end sends a signal to it and what it started, and waits for its end.
func (d daemon) end(sig unix.Signal) error {
	pid := d.pid()
	if pid == 0 {
		return nil
	}
	_ = unix.Kill(-pid, sig)
	return await(30*time.Second, d.name+" to end", func() error {
		if alive(pid) {
			return errors.New("it runs")
		}
		return nil
	})
}

func switchDaemon(name string) daemon { return daemon{"inofd-" + name} }
func agentOfArray() daemon            { return daemon{"snsd-array"} }
func agentOfHost() daemon             { return daemon{"snsd-host"} }

// stormPorts has a switch take frames that are too long for its port as damaged, and all frames that its
// port receives as PFC frames: a veth pair has neither. No daemon and no write sends so many.
const stormPorts = "ports: {access: [eth1], counters: [{field: crc, name: statistics/rx_dropped}, {field: pause, name: rx_queue_#_xdp_packets}, {field: tx-frames, name: tx_queue_#_xdp_xmit}]}\n" +
	"error-down: {crc: {action: error-down, errors: 50}, pfc-storm: {action: error-down, deadlocks: 2, pause-frames: 300}}\n"

// startSwitch starts the daemon of a namespace: a switch of a plane, or the reflector (plane 0). A path is
// silent for two seconds before it is called so, because an emulated machine is slow. Switches ask for
// the hosts of both planes: with those of their own plane's zone alone each path would be the last.
//
// With the policy "off" the switches do not fence either: what a host sends late must arrive.
func (g *game) startSwitch(name string, plane, last int) error {
	config := "device: {id: " + reflectorAddress + ", name: refl, roles: [reflector]}\nbfd: {interval: 200ms, detect-multiplier: 10}\nzones: {file: /run/zones.yaml}\nreflector: {monitors: [10.0.0.0/8]}\n"
	if plane > 0 {
		config = fmt.Sprintf("device: {id: %[1]s, name: %[2]s, roles: [client]}\n%[5]sclient: {reflectors: [{address: %[3]s}], source: %[1]s, interest: all, fence: %[4]q}\n",
			address(plane, last), name, reflectorAddress, map[bool]string{true: "off", false: "on"}[g.spec.Policy == "off"], stormPorts)
	}
	config += fmt.Sprintf("session: {auth: none, keepalive: 3s, hold: 15s}\nstate-directory: /run/%[1]s\nmanagement: {socket: %[2]s}\n", name, socketOf(name))
	if err := os.MkdirAll("/run/"+name, 0o755); err != nil {
		return err
	}
	d, file := switchDaemon(name), "/run/"+name+".yaml"
	if d.alive() && text(file) == strings.TrimSpace(config) {
		return nil
	}
	if err := put(file, config); err != nil {
		return err
	}
	if d.alive() {
		reads := func() int { return strings.Count(text(d.outFile()), "configuration read again") }
		before := reads()
		if err := unix.Kill(d.pid(), unix.SIGHUP); err != nil {
			return err
		}
		return await(30*time.Second, name+" to read its configuration", func() error {
			if reads() == before {
				return errors.New("it has not")
			}
			return nil
		})
	}
	// The namespace's own file systems hide that of eBPF.
	return d.start(name, "mount -t bpf bpf /sys/fs/bpf; exec "+bin+"inofd run -c "+file)
}

func socketOf(name string) string { return "/run/" + name + "/inofd.sock" }

func (g *game) startSwitches() error {
	if _, err := os.Stat("/run/zones.yaml"); err != nil {
		zones := "zones:\n"
		for p := 1; p <= 2; p++ {
			zones += fmt.Sprintf("  - {name: plane%d, members: [%s, %s]}\n", p, hostAddress(p), targetAddress(p))
		}
		if err := put("/run/zones.yaml", zones); err != nil {
			return err
		}
	}
	if err := g.startSwitch(reflector, 0, 0); err != nil {
		return err
	}
	for p := 1; p <= 2; p++ {
		for last, name := range map[int]string{2: hostSwitch(p), 3: arraySwitch(p)} {
			if err := g.startSwitch(name, p, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// startDaemons starts what the round needs and does not run yet, and what runs otherwise anew.
func (g *game) startDaemons() error {
	if err := g.startSwitches(); err != nil {
		return err
	}
	host := fmt.Sprintf("ports: [{interface: h1, protocol: tcp, nqn: %s}, {interface: h2, protocol: tcp, nqn: %[1]s}]\nregister: {interval: 1s, ttl: 10s}\nhost: {nqn: %[1]s, id: %s}\nconnect: {restraint: 1s, options: {nr-io-queues: 1, reconnect-delay: 2, keep-alive-tmo: %d}}\nfence: %s\nsocket: %s\n",
		hostNQN, hostID, int(g.spec.KATO.Seconds()), g.spec.Policy, hostSocket)
	if g.spec.Policy == "require" { // with the agent's own, longer one
		host = strings.Replace(host, fmt.Sprintf(", keep-alive-tmo: %d", int(g.spec.KATO.Seconds())), "", 1)
	}
	if g.spec.Target {
		host += fmt.Sprintf("fence-service: {port: %d, key-file: %s}\n", fencePort, secretFile)
	}
	for _, a := range []struct {
		d            daemon
		file, config string
		line         string
	}{
		{agentOfArray(), arrayFile, arrayConfig(g.spec.Target), arrayLine},
		{agentOfHost(), "/run/host.yaml", host, "exec " + bin + "snsd run -c /run/host.yaml --existing ''"},
	} {
		if a.d.alive() && text(a.file) == strings.TrimSpace(a.config) {
			continue
		}
		if err := a.d.end(unix.SIGTERM); err != nil {
			return err
		}
		if a.d == agentOfHost() { // what it connected has the options of its old configuration
			if err := disconnect(); err != nil {
				return err
			}
		}
		if err := put(a.file, a.config); err != nil {
			return err
		}
		if err := a.d.start("", a.line); err != nil {
			return err
		}
	}
	if err := await(4*time.Minute, "both paths live", bothLive); err != nil {
		return err
	}
	return await(4*time.Minute, "nothing blocked", func() error {
		st, err := hostStatus()
		if err != nil {
			return err
		}
		active := 0
		for _, p := range st.Ports {
			for _, n := range p.Peers {
				if n.State == "active" {
					active++
				}
			}
		}
		if active < 2 {
			return fmt.Errorf("%d of the array's addresses are active", active)
		}
		return nil
	})
}

// status is the part of `snsd status -o json` that a round needs.
type status struct {
	Ports []struct {
		Peers []struct {
			Subject string `json:"subject"`
			State   string `json:"state"`
		} `json:"peers"`
	} `json:"ports"`
	Actions []struct {
		Kind     string    `json:"kind"`
		Subject  string    `json:"subject"`
		Reason   string    `json:"reason"`
		Received time.Time `json:"received"`
		Begun    time.Time `json:"begun"`
		Done     time.Time `json:"done"`
		Fence    *struct {
			Level string        `json:"level"`
			Way   string        `json:"way"`
			Took  time.Duration `json:"took"`
			Why   string        `json:"why"`
		} `json:"fence"`
		OwnLink bool   `json:"own_link"`
		Error   string `json:"error"`
	} `json:"actions"`
}

func hostStatus() (st status, err error) {
	out, err := exec.Command(bin+"snsd", "status", "--socket", hostSocket, "-o", "json").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return st, fmt.Errorf("snsd status: %w: %s", err, failed.Stderr)
	} else if err != nil {
		return st, err
	}
	return st, json.Unmarshal(out, &st)
}

// report takes over what the agent says about the path that failed.
func (g *game) report() error {
	var st status
	if err := await(20*time.Second, "the agent's status", func() (err error) { st, err = hostStatus(); return err }); err != nil {
		return err
	}
	g.res.Noticed = -1
	struck := g.at("sentA").Add(g.res.Struck)
	for _, a := range st.Actions {
		if a.Subject != targetAddress(g.plane) || a.Received.Before(struck.Add(-100*time.Millisecond)) || a.Kind == "connect" || a.Kind == "confirm" || a.Kind == "hook" {
			continue
		}
		if g.res.Noticed < 0 {
			g.res.Noticed, g.res.Reason = a.Received.Sub(struck), a.Reason
			if a.OwnLink {
				g.res.Reason = "own link"
			}
		}
		line := fmt.Sprintf("%s (%s) received %v, done %v", a.Kind, a.Reason, a.Received.Sub(struck), a.Done.Sub(struck))
		if f := a.Fence; f != nil {
			if g.res.Level == "" || g.res.Level == "none" { // the first that was had counts
				g.res.Level, g.res.Way = f.Level, f.Way
				g.res.Report = fmt.Sprintf("fenced: %s by %s in %v", f.Level, f.Way, f.Took)
				if f.Level == "none" {
					g.res.Report = "not fenced: " + f.Why
				}
			}
			line += fmt.Sprintf(", fence %+v", *f)
		}
		if a.Error != "" {
			line += ", " + a.Error
		}
		g.res.Log = append(g.res.Log, line)
	}
	return nil
}

// cause is one way in which a plane fails, and how it is whole again.
type cause struct {
	strike, heal func(g *game) error
	silent       time.Duration // how long it lasts, at most; 0: to the end of the round
}

func link(ns, card, state string) error { return lines("ip -n %s link set %s %s", ns, card, state) }

func zoneMember(verb api.ZoneDo) func(g *game) error {
	return func(g *game) error {
		c := api.NewClient(socketOf(reflector))
		defer c.Close()
		_, err := c.ChangeZone(context.Background(), api.ZoneOrder{Do: verb, Name: fmt.Sprintf("plane%d", g.plane), Members: []string{targetAddress(g.plane)}})
		return err
	}
}

func retarget(from, to int) func(g *game) error {
	return func(g *game) error {
		return lines("ip -n %s addr del %s/24 dev %s\nip -n %[1]s addr add %[4]s/24 dev %[3]s", target, address(g.plane, from), targetCard(g.plane), address(g.plane, to))
	}
}

var causes = map[string]cause{
	"link-down": {strike: func(g *game) error { return link(target, targetCard(g.plane), "down") }, heal: func(g *game) error { return link(target, targetCard(g.plane), "up") }},
	"bfd-down": {strike: func(g *game) error { return drop(arraySwitch(g.plane), uplink, "ingress", "egress") },
		heal: func(g *game) error { return pass(arraySwitch(g.plane), uplink) }, silent: 3500 * time.Millisecond},
	"zone-changed": {strike: zoneMember(api.MembersRemove), heal: zoneMember(api.MembersAdd)},
	"ip-changed":   {strike: retarget(21, 22), heal: retarget(22, 21)},
	"aged-out": {strike: func(*game) error { return agentOfArray().end(unix.SIGTERM) },
		heal: func(*game) error { return put(arrayFile, "") }}, // it is started for the next round
	"packet-error": {strike: flood(giant), heal: recoverPort},
	"pfc-storm":    {strike: flood(64), heal: recoverPort},
	"own-link":     {strike: func(g *game) error { return link(hostSwitch(g.plane), accessPort, "down") }, heal: func(g *game) error { return link(hostSwitch(g.plane), accessPort, "up") }},
	"tor-killed": {strike: func(g *game) error {
		sw := arraySwitch(g.plane)
		err := switchDaemon(sw).end(unix.SIGKILL)
		return errors.Join(err, link(sw, accessPort, "down"), link(sw, uplink, "down"))
	}, heal: func(g *game) error {
		sw := arraySwitch(g.plane)
		return errors.Join(link(sw, accessPort, "up"), link(sw, uplink, "up"), g.startSwitch(sw, g.plane, 3))
	}},
}

// happen has the cause of the round strike the daemons.
func (g *game) happen() error {
	c, ok := causes[g.spec.Cause]
	if !ok {
		return fmt.Errorf("there is no cause %q", g.spec.Cause)
	}
	heal := func() {
		if err := c.heal(g); err != nil {
			g.note(fmt.Sprintf("heal: %v", err))
		}
	}
	if c.silent > 0 {
		done := make(chan struct{})
		time.AfterFunc(c.silent, func() { heal(); close(done) })
		g.healed = func() { <-done }
	} else {
		g.healed = heal
	}
	return c.strike(g)
}

func (g *game) note(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, line)
}

// otherWorks reports whether I/O goes on without the plane that failed: B was acknowledged, while it failed
// or because it is whole again.
func (g *game) otherWorks() bool {
	other := paths()[3-g.plane]
	return other != nil && other.state == "live" && !g.at("ackedB").IsZero()
}

// outputs are the last lines of what the daemons wrote.
func outputs() (out []string) {
	files, _ := filepath.Glob("/lab/node/*.out")
	for _, f := range files {
		all := strings.Split(text(f), "\n")
		for _, line := range all[max(0, len(all)-15):] {
			out = append(out, filepath.Base(f)+": "+line)
		}
	}
	return out
}
