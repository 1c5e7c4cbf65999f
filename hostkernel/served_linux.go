package hostkernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Connection is a TCP connection of this machine as the server, and its ends.
type Connection struct {
	Host, Array netip.Addr // remote and local
	Port        uint16     // local

	family uint8
	id     []byte // of the kernel, with its cookie
}

// serverRequest asks for one family's TCP sockets at a local port.
func serverRequest(family uint8, port uint16) *diagRequest {
	r := request(family, 0, nil)
	binary.BigEndian.PutUint16(r[8:], port)
	return r
}

// Connections lists the open TCP connections of this machine's local ports, in the network
// namespace of the calling thread, except those in TIME_WAIT, which have no socket.
func Connections(ports []uint16) (list []Connection, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for _, port := range ports {
			dump := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
			dump.AddData(serverRequest(family, port))
			answers, err := dump.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
			if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOENT) && diagLoaded() {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list TCP sockets: %w (modprobe tcp_diag)", err)
			}
			for _, m := range answers {
				if c, ok := parseConnection(m); ok && c.Port == port {
					list = append(list, c)
				}
			}
		}
	}
	return list, nil
}

func parseConnection(m []byte) (c Connection, ok bool) {
	if len(m) < idOffset+idLen {
		return c, false
	}
	family, id := m[0], m[idOffset:idOffset+idLen]
	addr := func(b []byte) netip.Addr {
		if family == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16([16]byte(b)).Unmap()
	}
	return Connection{Host: addr(id[20:36]), Array: addr(id[4:20]), Port: binary.BigEndian.Uint16(id), family: family, id: id}, true
}

// Abort ends a connection as if the peer had answered with a reset. One that is gone is no error.
func (c *Connection) Abort() error {
	kill := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	kill.AddData(request(c.family, 0, c.id))
	switch _, err := kill.Execute(unix.NETLINK_INET_DIAG, 0); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return ErrNoDestroy
	default:
		return fmt.Errorf("destroy the socket from %v to %v port %d: %w", c.Host, c.Array, c.Port, err)
	}
}
