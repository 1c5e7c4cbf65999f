package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	diskSocket = "/run/disk.sock"
	diskDevice = "/dev/nbd0"
	diskSize   = 1 << 20
	block      = 4096
	tagSize    = 16 // bytes at the begin of a block that name a write
)

// Requests and answers of a network block device (doc/proto.md of NBD).
const (
	nbdRequest = 0x25609513
	nbdReply   = 0x67446698
	nbdRead    = 0
	nbdWrite   = 1
	nbdFlush   = 3

	nbdSetSock       = 0xab00
	nbdSetBlockSize  = 0xab01
	nbdDoIt          = 0xab03
	nbdClearSock     = 0xab04
	nbdSetSizeBlocks = 0xab07
	nbdSetFlags      = 0xab0a
	nbdHasFlags      = 1
)

// Write is one write to block 0. Times are those of the machine's clock.
type Write struct {
	Tag     string    `json:"tag"`
	Arrived time.Time `json:"arrived"`
	Applied time.Time `json:"applied"` // zero: still in execution
}

// Order is what a client asks of the disk: to hold the first write of a tag for some time.
type Order struct {
	Tag  string        `json:"tag,omitempty"`
	Hold time.Duration `json:"hold,omitempty"`
}

// disk is the array's disk: it logs each write to block 0, and holds one when asked to.
type disk struct {
	mu     sync.Mutex
	data   []byte
	writes []Write
	order  Order
}

// serveDisk serves the disk to this machine's kernel until it ends.
func serveDisk() error {
	d := &disk{data: make([]byte, diskSize)}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	device, err := unix.Open(diskDevice, unix.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", diskDevice, err)
	}
	for _, c := range [][2]int{{nbdClearSock, 0}, {nbdSetSock, fds[0]}, {nbdSetBlockSize, block}, {nbdSetSizeBlocks, diskSize / block}, {nbdSetFlags, nbdHasFlags}} {
		if err := unix.IoctlSetInt(device, uint(c[0]), c[1]); err != nil {
			return fmt.Errorf("%s: ioctl %#x: %w", diskDevice, c[0], err)
		}
	}
	file := os.NewFile(uintptr(fds[1]), "nbd")
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- d.answer(conn) }()
	go func() { failed <- d.control() }()
	go func() { failed <- unix.IoctlSetInt(device, nbdDoIt, 0) }()
	return <-failed
}

func (d *disk) answer(conn net.Conn) error {
	var sending sync.Mutex
	reply := func(handle, data []byte) {
		sending.Lock()
		defer sending.Unlock()
		head := binary.BigEndian.AppendUint32(nil, nbdReply)
		head = append(binary.BigEndian.AppendUint32(head, 0), handle...)
		_, _ = conn.Write(append(head, data...))
	}
	for {
		var head [28]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		if m := binary.BigEndian.Uint32(head[:]); m != nbdRequest {
			return fmt.Errorf("a request begins with %#x", m)
		}
		handle, from, length := head[8:16:16], binary.BigEndian.Uint64(head[16:]), uint64(binary.BigEndian.Uint32(head[24:]))
		if from+length > diskSize {
			return fmt.Errorf("a request for %d bytes at %d", length, from)
		}
		switch kind := binary.BigEndian.Uint16(head[6:]); kind {
		case nbdRead:
			d.mu.Lock()
			data := append([]byte(nil), d.data[from:from+length]...)
			d.mu.Unlock()
			reply(handle, data)
		case nbdWrite:
			data := make([]byte, length)
			if _, err := io.ReadFull(conn, data); err != nil {
				return err
			}
			done := d.write(from, data)
			go func() { done(); reply(handle, nil) }()
		case nbdFlush:
			reply(handle, nil)
		default:
			return fmt.Errorf("a request of type %d", kind)
		}
	}
}

// write notes a write in the order of its arrival, and returns the function that executes it.
func (d *disk) write(from uint64, data []byte) func() {
	var hold time.Duration
	entry := -1
	d.mu.Lock()
	defer d.mu.Unlock()
	if from == 0 {
		tag := string(data[:tagSize])
		if d.order.Tag == tag {
			hold, d.order = d.order.Hold, Order{}
		}
		entry = len(d.writes)
		d.writes = append(d.writes, Write{Tag: tag, Arrived: time.Now()})
	}
	return func() {
		if hold > 0 {
			time.Sleep(hold)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		copy(d.data[from:], data)
		if entry >= 0 {
			d.writes[entry].Applied = time.Now()
		}
	}
}

// State is the disk as it is.
type State struct {
	Tag    string  `json:"tag"` // of what block 0 holds
	Writes []Write `json:"writes"`
}

// control answers each connection: an order, and then the state.
func (d *disk) control() error {
	l, err := net.Listen("unix", diskSocket)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		var o Order
		if json.NewDecoder(conn).Decode(&o) == nil {
			d.mu.Lock()
			if o.Tag != "" {
				d.order = o
			}
			s := State{Tag: string(d.data[:tagSize]), Writes: append([]Write{}, d.writes...)}
			_ = json.NewEncoder(conn).Encode(s)
			d.mu.Unlock()
		}
		conn.Close()
	}
}

// askDisk hands an order to the disk, or none, and returns its state.
func askDisk(o Order) (s State, err error) {
	conn, err := net.Dial("unix", diskSocket)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return s, err
	}
	return s, json.NewDecoder(conn).Decode(&s)
}
