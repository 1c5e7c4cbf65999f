package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
)

// giant is longer than the MTU of any port here: the kernel counts such frames as dropped where they
// arrive.
const giant = 2000

// flood has the array's card send frames of a size until its switch shuts the port, or for a while.
func flood(size int) func(g *game) error {
	return func(g *game) error {
		if err := lines("ip -n %s link set %s mtu 3000", target, targetCard(g.plane)); err != nil {
			return err
		}
		return exec.Command("ip", "netns", "exec", target, self(), "flood", targetCard(g.plane), fmt.Sprint(size)).Start()
	}
}

// sendFlood is the process of flood.
func sendFlood(card, length string) error {
	size, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	index, err := unix.NewIfreq(card)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, index); err != nil {
		return err
	}
	frame := make([]byte, size)
	copy(frame, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}) // from nobody to nobody, for experiments (IEEE 802)
	to := &unix.SockaddrLinklayer{Ifindex: int(index.Uint32())}
	// 1,500 a second, for an emulated machine has other things to do, until the switch has shut its port.
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && text("/sys/class/net/"+card+"/carrier") == "1"; time.Sleep(10 * time.Millisecond) {
		for range 15 {
			// That the other end drops a frame comes back as ENOBUFS.
			if err := unix.Sendto(fd, frame, 0, to); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
	}
	return nil
}

// countFrames has the kernel count the frames that a veth card receives, which it does only with GRO here and
// without TSO at the other end: it is called in the namespace of each end.
func countFrames(card string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Change(card, map[string]bool{"rx-gro": true, "tx-tcp-segmentation": false, "tx-tcp6-segmentation": false,
		"tx-tcp-ecn-segmentation": false, "tx-tcp-mangleid-segmentation": false})
}

// recoverPort opens the array's port, which its switch has shut.
func recoverPort(g *game) error {
	return await(20*time.Second, "the port to open", func() error {
		c := api.NewClient(socketOf(arraySwitch(g.plane)))
		defer c.Close()
		err := api.RecoverPort.Do(context.Background(), c, api.PortName{Port: accessPort})
		return errors.Join(err, lines("ip -n %s link set %s mtu 1500", target, targetCard(g.plane)))
	})
}
