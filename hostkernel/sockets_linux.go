package hostkernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Sockets are the TCP sockets of one path: from a source to a target's address and port.
type Sockets struct {
	Source netip.Addr
	Target netip.AddrPort
}

// diagRequest is struct inet_diag_req_v2 (linux/inet_diag.h): 56 bytes.
type diagRequest [56]byte

// openStates are all TCP states but LISTEN and TIME_WAIT, which hold no I/O, as bits.
const openStates = 0xfff &^ (1<<10 | 1<<6)

// request asks for one family's TCP sockets towards a port, or, with an id of a socket from an
// answer, names that socket.
func request(family uint8, port uint16, id []byte) *diagRequest {
	r := new(diagRequest)
	r[0], r[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(r[4:], openStates)
	if id != nil {
		copy(r[8:], id)
		return r
	}
	binary.BigEndian.PutUint16(r[10:], port)
	for i := 48; i < 56; i++ {
		r[i] = 0xff // no cookie
	}
	return r
}

func (r *diagRequest) Len() int          { return len(r) }
func (r *diagRequest) Serialize() []byte { return r[:] }

// idLen is struct inet_diag_sockid: ports, addresses, interface, cookie.
const idLen = 48

// idOffset is where it lies in struct inet_diag_msg, after family, state, timer, retransmits.
const idOffset = 4

// matches reports whether a socket of an answer lies on the path. IPv4 may be in a socket of
// IPv6, as ::ffff:a.b.c.d.
func (s Sockets) matches(family uint8, id []byte) bool {
	addr := func(b []byte) netip.Addr {
		if family == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16([16]byte(b)).Unmap()
	}
	return binary.BigEndian.Uint16(id[2:]) == s.Target.Port() && addr(id[4:20]) == s.Source && addr(id[20:36]) == s.Target.Addr()
}

// ErrNoDestroy means that the kernel cannot destroy sockets (INET_DIAG_DESTROY).
var ErrNoDestroy = errors.New("this kernel cannot destroy sockets (INET_DIAG_DESTROY)")

// DestroySockets ends the sockets of a path as if the peer had answered with a reset, and gives how
// many. I/O in flight on them fails over at once. Nothing else is touched. A socket that goes by
// itself meanwhile is no error: the first that is destroyed has the kernel end the others of its
// controller. CAP_NET_ADMIN is needed, in the network namespace of the sockets.
func DestroySockets(s Sockets) (n int, err error) {
	families := []uint8{unix.AF_INET6}
	if s.Source.Is4() {
		families = []uint8{unix.AF_INET, unix.AF_INET6}
	}
	var errs []error
	for _, family := range families {
		dump := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
		dump.AddData(request(family, s.Target.Port(), nil))
		answers, err := dump.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue // no sockets of this family at all
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("list TCP sockets: %w", err))
			continue
		}
		for _, a := range answers {
			if len(a) < idOffset+idLen || !s.matches(family, a[idOffset:]) {
				continue
			}
			kill := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
			kill.AddData(request(family, 0, a[idOffset:idOffset+idLen]))
			switch _, err := kill.Execute(unix.NETLINK_INET_DIAG, 0); {
			case err == nil:
				n++
			case errors.Is(err, unix.ENOENT): // it went meanwhile
			case errors.Is(err, unix.EOPNOTSUPP):
				return n, ErrNoDestroy
			default:
				errs = append(errs, fmt.Errorf("destroy a socket from %v to %v: %w", s.Source, s.Target, err))
			}
		}
	}
	return n, errors.Join(errs...)
}

// CanDestroy reports, by nil, whether this process may destroy sockets with this kernel. It asks
// for one that is not there.
func CanDestroy() error {
	none := make([]byte, idLen)
	kill := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	kill.AddData(request(unix.AF_INET, 0, none))
	switch _, err := kill.Execute(unix.NETLINK_INET_DIAG, 0); {
	case err == nil, errors.Is(err, unix.ENOENT) && diagLoaded():
		return nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return ErrNoDestroy
	default:
		return fmt.Errorf("%w (root, or CAP_NET_ADMIN, is needed; modprobe tcp_diag)", err)
	}
}

// diagLoaded reports whether TCP sockets can be listed: without tcp_diag that is ENOENT too.
func diagLoaded() bool {
	dump := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	dump.AddData(request(unix.AF_INET, 0, nil))
	_, err := dump.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	return err == nil
}
