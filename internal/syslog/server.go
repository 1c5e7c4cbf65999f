package syslog

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Ports where servers listen if nothing else is said (RFC 5426 section 3.3, RFC 5425 section
// 4.1; TCP has no port of its own, servers use that of UDP).
const (
	portPlain = 514
	portTLS   = 6514
)

// Allowed says how a server is written.
const Allowed = "udp://HOST, tcp://HOST or tls://HOST, with a :PORT or without"

// Server is where messages go.
type Server struct {
	Network string // udp, tcp or tls
	Host    string // a name or an address
	Port    uint16
}

// ParseServer reads what Allowed says, or tells what is wrong with it.
func ParseServer(text string) (s Server, wrong string) {
	network, rest, ok := strings.Cut(text, "://")
	if !ok || network != "udp" && network != "tcp" && network != "tls" {
		return s, fmt.Sprintf("does not begin with udp://, tcp:// or tls://: %q", text)
	}
	s = Server{Network: network, Host: rest, Port: portPlain}
	if network == "tls" {
		s.Port = portTLS
	}
	if a, err := netip.ParseAddr(strings.Trim(rest, "[]")); err == nil {
		s.Host = a.String()
		return s, ""
	}
	if host, port, err := net.SplitHostPort(rest); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return s, fmt.Sprintf("has the port %q, which is none of 1..65535", port)
		}
		s.Host, s.Port = host, uint16(n)
	}
	if _, err := netip.ParseAddr(s.Host); err == nil {
		return s, ""
	}
	if s.Host == "" || len(s.Host) > 253 || strings.ContainsAny(s.Host, "/ :@?#[]%") {
		return s, fmt.Sprintf("names no host: %q", text)
	}
	return s, ""
}

// String is the server as it is written.
func (s Server) String() string {
	return s.Network + "://" + s.address()
}

func (s Server) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port))) }
