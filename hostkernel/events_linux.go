package hostkernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Event is what the kernel says of a controller (a uevent of subsystem nvme).
type Event struct {
	Action string            // add, remove, change
	Name   string            // nvmeN
	Fields map[string]string // NVME_EVENT, NVME_AEN, NVME_TRADDR, SEQNUM ...
}

// maxEvent is how much of a uevent is read: the kernel's own buffer has 2,048 bytes.
const maxEvent = 8192

// Events gives what the kernel says of NVMe controllers until ctx ends; then the channel is closed.
// An empty Event says that some were lost: all is to be looked at anew.
func Events(ctx context.Context) (<-chan Event, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevents: %w", err)
	}
	f := os.NewFile(uintptr(fd), "uevents")
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		f.Close()
		return nil, fmt.Errorf("uevents: %w", err)
	}
	out := make(chan Event, 256)
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	go func() {
		defer close(out)
		defer f.Close()
		defer stop()
		buf := make([]byte, maxEvent)
		for {
			n, err := f.Read(buf)
			var e Event
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, unix.ENOBUFS):
			case err != nil:
				return
			default:
				var ok bool
				if e, ok = parseEvent(buf[:n]); !ok {
					continue
				}
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// parseEvent reads `action@devpath` and KEY=value lines, each ended by a zero byte, and reports
// whether it is about an NVMe controller. Those of udev, which begin otherwise, are not.
func parseEvent(b []byte) (Event, bool) {
	head, rest, ok := bytes.Cut(b, []byte{0})
	action, _, at := bytes.Cut(head, []byte{'@'})
	if !ok || !at {
		return Event{}, false
	}
	e := Event{Action: string(action), Fields: map[string]string{}}
	for _, line := range bytes.Split(rest, []byte{0}) {
		if k, v, ok := bytes.Cut(line, []byte{'='}); ok {
			e.Fields[string(k)] = string(v)
		}
	}
	e.Name = e.Fields["DEVNAME"]
	return e, e.Fields["SUBSYSTEM"] == "nvme" && e.Name != ""
}
