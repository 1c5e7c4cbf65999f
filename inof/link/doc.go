// Package link is a session between two devices: its states, who the peer is, and the
// connection that carries it. What the messages mean it does not know.
//
// Session is pure: bytes and the time go in, bytes and messages come out (session.go, keys.go,
// conceal.go). Sockets, goroutines and clocks are in transport*.go, server.go, dialer.go, conn.go
// and writer.go. Whoever owns the machine behind a Server or Dialer gets events from it, through
// an Inbox where no peer is to hold up another, and hands messages to Peers.
package link
