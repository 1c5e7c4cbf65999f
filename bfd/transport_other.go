//go:build !linux

package bfd

import "errors"

func raisePriority(Priority) string {
	return "default priority (this system has no real-time scheduling here)"
}

// NewSockets is for Linux only; elsewhere a Runner works on a MemoryNet.
func NewSockets(SocketConfig) (Conn, error) {
	return nil, errors.New("BFD sockets are for Linux only")
}
