package bfd

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// MemoryNet is a network in memory that joins any number of Conns, for tests and for
// many devices in one process. It waits on channels and timers only, so it works in a
// testing/synctest bubble.
type MemoryNet struct {
	mu    sync.Mutex
	conns map[netip.Addr]*memoryConn
	drop  func(from, to netip.Addr, payload []byte) bool
}

// memoryQueue is how many packets wait for a device; more are lost, as in a socket.
const memoryQueue = 4096

// NewMemoryNet makes a network without devices.
func NewMemoryNet() *MemoryNet { return &MemoryNet{conns: make(map[netip.Addr]*memoryConn)} }

// Drop has packets lost for which fn says so; nil: none. fn is called by the
// goroutines of the senders, one at a time.
func (n *MemoryNet) Drop(fn func(from, to netip.Addr, payload []byte) bool) {
	n.mu.Lock()
	n.drop = fn
	n.mu.Unlock()
}

// Conn gives the Conn of a device with these addresses.
func (n *MemoryNet) Conn(addrs ...netip.Addr) Conn {
	return &memoryConn{net: n, addrs: addrs, wake: make(chan struct{}, 1)}
}

type memoryConn struct {
	net   *MemoryNet
	addrs []netip.Addr
	wake  chan struct{}

	// Of the network's lock.
	queue    []Received
	overflow uint64

	batch []Received // of the reader
}

func (c *memoryConn) Start() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for _, a := range c.addrs {
		if c.net.conns[a] != nil {
			return fmt.Errorf("address %v is taken", a)
		}
	}
	for _, a := range c.addrs {
		c.net.conns[a] = c
	}
	return nil
}

func (c *memoryConn) Wait(deadline time.Time) error {
	if deadline.IsZero() {
		<-c.wake
		return nil
	}
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-c.wake:
	case <-t.C:
	}
	return nil
}

func (c *memoryConn) Read(time.Time) ([]Received, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.batch, c.queue = c.queue, c.batch[:0]
	return c.batch, nil
}

func (c *memoryConn) Send(s *Send) error {
	from := s.Local
	if !from.IsValid() {
		from = c.addrs[0]
	}
	a := Arrival{Src: from, Dst: s.Peer, Interface: s.Interface, Multihop: s.Multihop, TTL: 255, At: time.Now()}
	data := slices.Clone(s.Data())
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	to := c.net.conns[s.Peer]
	if to == nil || c.net.drop != nil && c.net.drop(from, s.Peer, data) {
		return nil // lost, which a sender does not learn
	}
	if len(to.queue) >= memoryQueue {
		to.overflow++
		return nil
	}
	to.queue = append(to.queue, Received{Arrival: a, Data: data})
	to.Wake()
	return nil
}

// ReturnEcho does nothing: nobody sends echo packets here.
func (c *memoryConn) ReturnEcho(*Received) error { return nil }

func (c *memoryConn) Release(uint32) {}

func (c *memoryConn) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *memoryConn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for _, a := range c.addrs {
		if c.net.conns[a] == c {
			delete(c.net.conns, a)
		}
	}
	return nil
}

func (c *memoryConn) count(t *TransportCounters) {
	c.net.mu.Lock()
	t.RxOverflow = c.overflow
	c.net.mu.Unlock()
}
