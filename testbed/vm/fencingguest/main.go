// Command fencingguest is what a test needs inside a virtual machine that is an array and its host: a
// disk that logs each write and holds it for a while, a writer, a host that asks for a fence, and
// scripted controllers that reset each other.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostagent/fencing"
	"github.com/openinof/inof/hostkernel"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "fencingguest:", err)
		os.Exit(1)
	}
}

func run(command string, args []string) error {
	switch command {
	case "disk":
		return serveDisk(args[0])
	case "write":
		return write(args[0], args[1], args[2])
	case "ask":
		return ask(args[0], args[1:])
	case "controllers":
		return serveControllers()
	case "reset":
		return reset()
	}
	return fmt.Errorf("%q: want disk, write, ask, controllers or reset", command)
}

// say prints an event with the machine's clock, in nanoseconds.
func say(format string, args ...any) {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	fmt.Printf("%d %s\n", t.Nano(), fmt.Sprintf(format, args...))
}

// Of a network block device: ioctls (linux/nbd.h), and the protocol (doc/proto.md of NBD).
const (
	nbdSetSock, nbdSetBlockSize, nbdSetSize, nbdDoIt = 0xab00, 0xab01, 0xab02, 0xab03
	nbdReply, nbdRead, nbdWrite                      = 0x67446698, 0, 1
	block, diskSize                                  = 4096, 1 << 20
)

// holds is how long a write is held, by its first byte.
var holds = map[byte]time.Duration{'A': 3 * time.Second, 'B': 500 * time.Millisecond}

// serveDisk serves a disk in memory to the kernel, and logs each write.
func serveDisk(device string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Open(device, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	for _, c := range [][2]int{{nbdSetBlockSize, block}, {nbdSetSize, diskSize}, {nbdSetSock, fds[0]}} {
		if err := unix.IoctlSetInt(fd, uint(c[0]), c[1]); err != nil {
			return fmt.Errorf("%s: ioctl %#x: %w", device, c[0], err)
		}
	}
	go func() { _ = unix.IoctlSetInt(fd, nbdDoIt, 0) }() // until the other end is closed
	conn := os.NewFile(uintptr(fds[1]), "nbd")
	disk := make([]byte, diskSize)
	var mu sync.Mutex
	for {
		var head [28]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		kind, at, n := binary.BigEndian.Uint16(head[6:]), binary.BigEndian.Uint64(head[16:]), uint64(binary.BigEndian.Uint32(head[24:]))
		var data []byte
		if kind == nbdWrite {
			data = make([]byte, n)
			if _, err := io.ReadFull(conn, data); err != nil {
				return err
			}
			say("begin %c %d", data[0], at)
		}
		go func() {
			if data != nil {
				time.Sleep(holds[data[0]])
			}
			mu.Lock()
			defer mu.Unlock()
			answer := binary.BigEndian.AppendUint32(nil, nbdReply)
			answer = append(binary.BigEndian.AppendUint32(answer, 0), head[8:16]...)
			switch kind {
			case nbdWrite:
				copy(disk[at:], data)
				say("end %c %d", data[0], at)
			case nbdRead:
				answer = append(answer, disk[at:at+n]...)
			}
			_, _ = conn.Write(answer)
		}()
	}
}

// write writes a number of blocks at once, past the page cache.
func write(device, tag, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			fd, err := unix.Open(device, unix.O_RDWR|unix.O_DIRECT, 0)
			if err == nil {
				raw := make([]byte, 2*block)
				b := raw[(block-int(uintptr(unsafe.Pointer(&raw[0]))%block))%block:][:block]
				for j := range b {
					b[j] = tag[0]
				}
				_, err = unix.Pwrite(fd, b, int64(i)*block)
			}
			say("written %d: %v", i, err)
		})
	}
	all.Wait()
	return nil
}

// ask has a path fenced, or confirms: HOST ARRAY, then HOST ARRAY of the path that lives, and the
// file of the secret.
func ask(what string, args []string) error {
	creds, err := fencing.NewCredentials(hostagent.FenceServiceConfig{KeyFile: args[4]})
	if err != nil {
		return err
	}
	at := func(host, array string) hostkernel.Controller {
		return hostkernel.Controller{Source: netip.MustParseAddr(host), Target: netip.AddrPortFrom(netip.MustParseAddr(array), 4420)}
	}
	lost := at(args[0], args[1])
	p := hostagent.FencePair{Host: lost.Source, Array: lost.Target.Addr(), Controllers: []hostkernel.Controller{lost}, Living: []hostkernel.Controller{at(args[2], args[3])}}
	asker := &fencing.Asker{Credentials: creds, Port: hostagent.DefaultFencePort, KeepAlive: func(*hostkernel.Controller) time.Duration { return time.Minute }}
	if what == "confirm" {
		return asker.Confirm(context.Background(), p)
	}
	say("asked")
	f, err := asker.Fence(context.Background(), p, func() {})
	say("answered %v by %v in %v: %v", f.Level, f.Way, f.Took.Round(time.Millisecond), err)
	return err
}
