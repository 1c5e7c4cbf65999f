package load

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// bare is the bound: a loop that writes what comes on one socket to many others, each
// in one write. Whoever connects says first what it is: 0, a receiver, or how many
// of the receivers get what it will send.
type bare struct {
	l  net.Listener
	mu sync.Mutex
	to []net.Conn
}

func newBare() (*bare, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bare{l: l}
	go b.accept()
	return b, nil
}

func (b *bare) accept() {
	for {
		nc, err := b.l.Accept()
		if err != nil {
			return
		}
		go b.serve(nc)
	}
}

func (b *bare) serve(nc net.Conn) {
	var what [4]byte
	if _, err := io.ReadFull(nc, what[:]); err != nil {
		nc.Close()
		return
	}
	n := binary.BigEndian.Uint32(what[:])
	if n == 0 {
		b.mu.Lock()
		b.to = append(b.to, nc)
		b.mu.Unlock()
		_, _ = nc.Write([]byte{1}) // it counts
		return
	}
	defer nc.Close()
	b.mu.Lock()
	to := b.to[:min(int(n), len(b.to))]
	b.mu.Unlock()
	_, _ = nc.Write([]byte{1})
	buf := make([]byte, 64<<10)
	for {
		got, err := nc.Read(buf)
		if err != nil {
			return
		}
		for _, c := range to {
			_, _ = c.Write(buf[:got])
		}
	}
}

// send gives so many bytes to one receiver as fast as it takes them: the bound of a
// full sync.
func (b *bare) send(bytes uint64) {
	b.mu.Lock()
	c := b.to[len(b.to)-1]
	b.mu.Unlock()
	buf := make([]byte, 64<<10)
	for bytes > 0 {
		n := min(bytes, uint64(len(buf)))
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
		bytes -= n
	}
}

func (b *bare) close() {
	b.l.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.to {
		c.Close()
	}
	b.to = nil
}

// dialBare connects; n is what serve reads first.
func dialBare(addr string, n int) (net.Conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := nc.Write(binary.BigEndian.AppendUint32(nil, uint32(n))); err != nil {
		return nil, err
	}
	var ok [1]byte
	_, err = io.ReadFull(nc, ok[:])
	return nc, err
}
