package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// acts are the raw mechanisms, without a daemon: what is done about the notice, by the number of the
// case. A block that is lifted by time is lifted in the background.
var acts = map[int]func(g *game) error{
	1:  func(g *game) error { return g.hostDestroys() },
	2:  func(g *game) error { return g.blockThenDestroy(g.spec.Hold + time.Second) },
	3:  func(g *game) error { return g.blockThenDestroy(g.spec.Hold + time.Second) },
	4:  func(g *game) error { return g.blockThenDestroy(g.spec.Hold / 2) },
	5:  func(g *game) error { return g.blockThenDestroy(12 * time.Second) },
	6:  func(g *game) error { return g.hostDestroys() },
	7:  func(g *game) error { return g.blockBefore(g.spec.Hold + time.Second) },
	8:  func(g *game) error { return g.blockAndEmpty(g.spec.Hold + time.Second) },
	9:  func(g *game) error { return g.shutPort(g.spec.Hold + time.Second) },
	10: func(g *game) error { return g.targetDestroys() },
	11: func(g *game) error { return g.hostDestroys() },
	12: func(g *game) error { return g.blockThenDestroy(g.spec.Hold + time.Second) },
	13: func(g *game) error { return errors.Join(g.targetDestroys(), g.hostDestroys()) },
	14: func(g *game) error { return g.targetWaits(false, false) },
	15: func(g *game) error { return g.targetWaits(true, false) },
	16: func(g *game) error { return g.targetWaits(false, true) },
	17: func(g *game) error { return g.targetWaits(true, false) },
	18: func(g *game) error { return g.targetWaits(true, false) },
	19: func(g *game) error { return drop(arraySwitch(g.plane), accessPort, "egress", "ingress") },
	20: func(*game) error { return nil },
}

// strike does what the case says, or has the cause of the round happen to the daemons.
func (g *game) strike() error {
	if g.spec.Case == 0 {
		return g.happen()
	}
	act := acts[g.spec.Case]
	if act == nil {
		return fmt.Errorf("there is no case %d", g.spec.Case)
	}
	return act(g)
}

// prepare has the agent connect the host, or connects it anew without one. The kernel leaves a path when a command took this long, too.
func (g *game) prepare() error {
	if g.spec.Case == 0 {
		return g.startDaemons()
	}
	if err := put("/sys/module/nvme_core/parameters/io_timeout", fmt.Sprint(max(30, int(g.spec.KATO.Seconds())))); err != nil {
		return err
	}
	return connect(g.spec.KATO)
}

func (g *game) hostDestroys() error {
	_, err := command("ss", "-K", "-t", "dst", targetAddress(g.plane), "dport", "=", fmt.Sprint(servicePort))
	return err
}

func (g *game) targetDestroys() error {
	_, err := command("ss", "-N", target, "-K", "-t", "src", targetAddress(g.plane), "sport", "=", fmt.Sprint(servicePort), "dst", hostAddress(g.plane))
	return err
}

// errLate is the error of an act that came when the copy waited no longer: the round says nothing.
var errLate = errors.New("the machine is too busy: the copy went on before the act was done")

// block drops at both sides of the port to the array until a time has passed.
func (g *game) block(d time.Duration) error {
	sw := arraySwitch(g.plane)
	if err := drop(sw, accessPort, "egress", "ingress"); err != nil {
		return err
	}
	time.AfterFunc(d, func() { _ = pass(sw, accessPort) })
	if !g.waiting() {
		n, err := queue(sw, accessPort)
		return fmt.Errorf("%w, %v after A was sent; %d bytes wait at the switch, %v", errLate, time.Since(g.at("sentA")), n, err)
	}
	return nil
}

func (g *game) blockThenDestroy(d time.Duration) error {
	if err := g.block(d); err != nil {
		return err
	}
	return g.hostDestroys()
}

// blockBefore drops where frames enter the array's switch, which is before the queue.
func (g *game) blockBefore(d time.Duration) error {
	sw := arraySwitch(g.plane)
	if err := drop(sw, uplink, "ingress"); err != nil {
		return err
	}
	time.AfterFunc(d, func() { _ = pass(sw, uplink) })
	return g.hostDestroys()
}

func (g *game) blockAndEmpty(d time.Duration) error {
	if err := g.block(d); err != nil {
		return err
	}
	if err := lines("tc -n %s qdisc replace dev %s root pfifo limit 1000", arraySwitch(g.plane), accessPort); err != nil {
		return err
	}
	return g.hostDestroys()
}

func (g *game) shutPort(d time.Duration) error {
	sw := arraySwitch(g.plane)
	if err := lines("ip -n %s link set %s down", sw, accessPort); err != nil {
		return err
	}
	time.AfterFunc(d, func() { tryLines("ip -n %s link set %s up", sw, accessPort) })
	return g.hostDestroys()
}

// targetWaits is the array's way: it drops what the host sends and what it sends itself, or the switch
// does, or neither; destroys its sockets; waits until its controller is gone; then the host leaves.
func (g *game) targetWaits(drops, switchDrops bool) error {
	card := targetCard(g.plane)
	if drops {
		if err := drop(target, card, "egress", "ingress"); err != nil {
			return err
		}
	}
	if switchDrops {
		if err := drop(arraySwitch(g.plane), accessPort, "egress", "ingress"); err != nil {
			return err
		}
	}
	if err := g.targetDestroys(); err != nil {
		return err
	}
	if err := g.kernel.await(fmt.Sprintf("ctrl %d stop keep-alive", g.id), g.spec.Hold+60*time.Second); err != nil {
		return err
	}
	if err := g.hostDestroys(); err != nil {
		return err
	}
	if drops {
		return pass(target, card)
	}
	if switchDrops {
		return pass(arraySwitch(g.plane), accessPort)
	}
	return nil
}

// kernelLog is what the kernel says from when it was opened.
type kernelLog struct {
	fd   int
	said strings.Builder
}

func openKernelLog() (*kernelLog, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_, err = unix.Seek(fd, 0, unix.SEEK_END)
	return &kernelLog{fd: fd}, err
}

func (k *kernelLog) close() { unix.Close(k.fd) }

// await waits until the kernel has said some text.
func (k *kernelLog) await(what string, most time.Duration) error {
	buf := make([]byte, 8192)
	return await(most, "the kernel to say "+what, func() error {
		for {
			n, err := unix.Read(k.fd, buf) // one message each
			if n > 0 {
				k.said.Write(buf[:n])
			} else if !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.EINTR) { // some were overwritten
				break
			}
		}
		if !strings.Contains(k.said.String(), what) {
			return errors.New("it has not")
		}
		return nil
	})
}
