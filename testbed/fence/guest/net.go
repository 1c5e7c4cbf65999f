package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Plane p has the host's card hP in the first namespace, the host's switch in the namespace hsP, the
// array's in asP, and the array's card tP in the namespace tgt; a switch is a bridge whose port eth1
// leads to its host, and eth49 to the other switch.
const (
	target           = "tgt"
	reflector        = "refl"
	reflectorAddress = "10.9.0.1"
	subsystem        = "nqn.2026-01.net.example:array1"
	hostNQN          = "nqn.2014-08.org.nvmexpress:uuid:6f8ff1a5-5a0e-4d5f-9b5e-000000000001"
	hostID           = "6f8ff1a5-5a0e-4d5f-9b5e-000000000001"
	servicePort      = 4420
	accessPort       = "eth1"
	uplink           = "eth49"
	nvmet            = "/sys/kernel/config/nvmet"
)

func hostCard(plane int) string    { return fmt.Sprintf("h%d", plane) }
func targetCard(plane int) string  { return fmt.Sprintf("t%d", plane) }
func arraySwitch(plane int) string { return fmt.Sprintf("as%d", plane) }
func hostSwitch(plane int) string  { return fmt.Sprintf("hs%d", plane) }
func address(plane, last int) string {
	return fmt.Sprintf("10.%d.0.%d", plane, last)
}
func hostAddress(plane int) string   { return address(plane, 11) }
func targetAddress(plane int) string { return address(plane, 21) }

// command runs a program with words, and returns what it wrote.
func command(words ...string) (string, error) {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// lines runs command lines, words apart by spaces, up to the first that fails.
func lines(format string, args ...any) error {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		if words := strings.Fields(line); len(words) > 0 {
			if _, err := command(words...); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryLines runs them all, whatever fails.
func tryLines(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		if words := strings.Fields(line); len(words) > 0 {
			_, _ = command(words...)
		}
	}
}

func put(file, value string) error { return os.WriteFile(file, []byte(value), 0o644) }

// setup builds all of it, once.
func setup() error {
	if err := lines(`modprobe -a nvme-tcp nvmet-tcp tcp_diag veth bridge nbd ifb sch_netem sch_ingress cls_matchall act_gact act_mirred
		ip netns add %s
		ip -n %[1]s link set lo up`, target); err != nil {
		return err
	}
	for p := 1; p <= 2; p++ {
		for _, sw := range []string{hostSwitch(p), arraySwitch(p)} {
			if err := lines(`ip netns add %[1]s
				ip -n %[1]s link set lo up
				ip -n %[1]s link add br0 type bridge stp_state 0 forward_delay 0
				ip -n %[1]s link set br0 up`, sw); err != nil {
				return err
			}
		}
		if err := lines(`ip link add %[2]s type veth peer name eth1 netns %[3]s
			ip -n %[5]s link add %[4]s type veth peer name eth1 netns %[6]s
			ip -n %[3]s link add eth49 type veth peer name eth49 netns %[6]s
			ip addr add %[7]s/24 dev %[2]s
			ip -n %[5]s addr add %[8]s/24 dev %[4]s
			ip link set %[2]s up
			ip -n %[5]s link set %[4]s up
			ip -n %[3]s addr add %[9]s/24 dev br0
			ip -n %[6]s addr add %[10]s/24 dev br0`, p, hostCard(p), hostSwitch(p), targetCard(p), target, arraySwitch(p),
			hostAddress(p), targetAddress(p), address(p, 2), address(p, 3)); err != nil {
			return err
		}
		for _, sw := range []string{hostSwitch(p), arraySwitch(p)} {
			for _, port := range []string{accessPort, uplink} {
				if err := lines("ip -n %[1]s link set %[2]s master br0\nip -n %[1]s link set %[2]s up", sw, port); err != nil {
					return err
				}
			}
		}
		if err := lines("ip netns exec %[1]s %[2]s count %[3]s\nip netns exec %[4]s %[2]s count %[5]s", arraySwitch(p), self(), accessPort, target, targetCard(p)); err != nil {
			return err
		}
		// The array's receive queue: what comes in goes over this card.
		if err := lines("ip -n %[1]s link add ifb%[2]d type ifb\nip -n %[1]s link set ifb%[2]d up", target, p); err != nil {
			return err
		}
	}
	if err := setupReflector(); err != nil {
		return err
	}
	if err := start("/run/disk.out", "", self(), "disk"); err != nil {
		return err
	}
	if err := await(10*time.Second, "the disk", func() error { _, err := askDisk(Order{}); return err }); err != nil {
		return err
	}
	if err := setupWatch(); err != nil {
		return err
	}
	s := nvmet + "/subsystems/" + subsystem
	for _, dir := range []string{s, s + "/namespaces/1"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, f := range [][2]string{{s + "/attr_allow_any_host", "1"}, {s + "/namespaces/1/device_path", diskDevice}, {s + "/namespaces/1/enable", "1"}} {
		if err := put(f[0], f[1]); err != nil {
			return err
		}
	}
	_ = put("/sys/block/nbd0/queue/scheduler", "none")
	for p := 1; p <= 2; p++ {
		port := fmt.Sprintf("%s/ports/%d", nvmet, p)
		if err := os.Mkdir(port, 0o755); err != nil {
			return err
		}
		for _, f := range [][2]string{{"addr_trtype", "tcp"}, {"addr_adrfam", "ipv4"}, {"addr_traddr", targetAddress(p)}, {"addr_trsvcid", fmt.Sprint(servicePort)}} {
			if err := put(filepath.Join(port, f[0]), f[1]); err != nil {
				return err
			}
		}
		// The listener lives in the namespace of the process that links.
		if err := lines("nsenter --net=/run/netns/%s ln -s %s %s/subsystems/%s", target, s, port, subsystem); err != nil {
			return err
		}
	}
	return put("/sys/kernel/debug/dynamic_debug/control", "func nvmet_stop_keep_alive_timer +p")
}

// setupReflector joins the reflector, in a namespace of its own, to all switches by a management network.
// One fabric has both planes: a switch that knows of one path alone takes it for the last, and never
// blocks it.
func setupReflector() error {
	if err := lines(`ip netns add %[1]s
		ip -n %[1]s link set lo up
		ip -n %[1]s link add br0 type bridge stp_state 0 forward_delay 0
		ip -n %[1]s addr add %[2]s/24 dev br0
		ip -n %[1]s link set br0 up`, reflector, reflectorAddress); err != nil {
		return err
	}
	for p := 1; p <= 2; p++ {
		for last, sw := range map[int]string{2: hostSwitch(p), 3: arraySwitch(p)} {
			if err := lines(`ip -n %[1]s link add mgmt type veth peer name %[1]s netns %[2]s
				ip -n %[2]s link set %[1]s master br0
				ip -n %[2]s link set %[1]s up
				ip -n %[1]s addr add 10.9.0.%[3]d%[4]d/24 dev mgmt
				ip -n %[1]s link set mgmt up
				ip -n %[2]s route add %[5]s/32 via 10.9.0.%[3]d%[4]d`, sw, reflector, p, last, address(p, last)); err != nil {
				return err
			}
		}
	}
	return nil
}

func self() string {
	name, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return name
}

// start runs a program in the background, in a namespace if one is named.
func start(out, namespace string, words ...string) error {
	if namespace != "" {
		words = append([]string{"ip", "netns", "exec", namespace}, words...)
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	c := exec.Command(words[0], words[1:]...)
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return c.Start()
}

// await waits until cond returns nil.
func await(most time.Duration, what string, cond func() error) error {
	end := time.Now().Add(most)
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s: %w", most, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// queue returns how many bytes wait in the root queue of a card, ns "" being the first namespace.
func queue(ns, card string) (int, error) {
	args := []string{"tc", "-s", "-j", "qdisc", "show", "dev", card}
	if ns != "" {
		args = append([]string{"tc", "-n", ns}, args[1:]...)
	}
	out, err := command(args...)
	if err != nil {
		return 0, err
	}
	var q []struct {
		Backlog int `json:"backlog"`
	}
	if err := json.Unmarshal([]byte(out), &q); err != nil || len(q) == 0 {
		return 0, fmt.Errorf("tc says %q: %w", out, err)
	}
	most := 0
	for _, one := range q {
		most = max(most, one.Backlog)
	}
	return most, nil
}

// slow has a card keep each frame for some time; whole takes that away, with all that is kept.
func slow(ns, card string, d time.Duration) error {
	return lines("tc%s qdisc replace dev %s root netem delay %dms limit 10000", within(ns), card, d.Milliseconds())
}

func within(ns string) string {
	if ns == "" {
		return ""
	}
	return " -n " + ns
}

// drop has a card drop all frames that come in ("ingress") or leave ("egress"). What leaves is dropped
// before the card's queue. It tries again: tc was seen to find no qdisc where it had just added one.
func drop(ns, card string, hooks ...string) error {
	return await(time.Second, "what drops", func() error { return tryDrop(ns, card, hooks...) })
}

func tryDrop(ns, card string, hooks ...string) error {
	if err := lines("tc%s qdisc replace dev %s clsact", within(ns), card); err != nil {
		return err
	}
	for _, hook := range hooks {
		if err := lines("tc%s filter add dev %s %s pref 1 matchall action drop", within(ns), card, hook); err != nil {
			return err
		}
	}
	return nil
}

func pass(ns, card string) error { return lines("tc%s qdisc del dev %s clsact", within(ns), card) }

// mend takes everything away that a round did to the network.
func mend() {
	for p := 1; p <= 2; p++ {
		tryLines(`tc qdisc del dev %[1]s root
			tc qdisc del dev %[1]s clsact
			tc -n %[2]s qdisc del dev eth1 root
			tc -n %[2]s qdisc del dev eth1 clsact
			tc -n %[2]s qdisc del dev eth49 clsact
			tc -n %[3]s qdisc del dev %[4]s clsact
			tc -n %[3]s qdisc del dev ifb%[5]d root
			ip -n %[2]s link set eth1 up
			ip -n %[6]s link set eth1 up`, hostCard(p), arraySwitch(p), target, targetCard(p), p, hostSwitch(p))
	}
}
