package linux

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// link is what an RTM_NEWLINK or RTM_DELLINK message says about an interface.
type link struct {
	index    int
	name     string
	mac      fabric.MAC
	mtu      int
	adminUp  bool
	carrier  bool // IFF_LOWER_UP, the driver's carrier right now; IFF_RUNNING follows linkwatch and lags
	changes  uint64
	master   int // the bridge or bond that it belongs to; 0: none
	ethernet bool
	counters fabric.Counters
	// multicast frames received
	multicast uint64
}

func (l link) port() fabric.Port {
	return fabric.Port{Name: l.name, Index: l.index, MAC: l.mac, MTU: l.mtu,
		AdminUp: l.adminUp, Carrier: l.adminUp && l.carrier}
}

// errNotLink marks a message about something else than an interface itself, such
// as a bridge's view of its port: AF_BRIDGE, RTM_DELLINK says that the interface
// left the bridge, not that it is gone.
var errNotLink = errors.New("message of another address family")

// parseLink reads the struct ifinfomsg and attributes of a link message.
func parseLink(b []byte) (link, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return link{}, fmt.Errorf("link message has %d bytes, want at least %d", len(b), unix.SizeofIfInfomsg)
	}
	if b[0] != unix.AF_UNSPEC {
		return link{}, errNotLink
	}
	flags := binary.NativeEndian.Uint32(b[8:])
	l := link{
		index:    int(int32(binary.NativeEndian.Uint32(b[4:]))),
		adminUp:  flags&unix.IFF_UP != 0,
		carrier:  flags&unix.IFF_LOWER_UP != 0,
		ethernet: binary.NativeEndian.Uint16(b[2:]) == unix.ARPHRD_ETHER,
	}
	for rest := b[unix.SizeofIfInfomsg:]; len(rest) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < unix.SizeofRtAttr || n > len(rest) {
			return link{}, fmt.Errorf("link message of index %d: attribute of %d bytes, have %d", l.index, n, len(rest))
		}
		l.attribute(binary.NativeEndian.Uint16(rest[2:]), rest[unix.SizeofRtAttr:n])
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	if l.index < 1 || l.name == "" {
		return link{}, fmt.Errorf("link message has index %d and name %q, want both", l.index, l.name)
	}
	return l, nil
}

func (l *link) attribute(typ uint16, v []byte) {
	switch {
	case typ == unix.IFLA_IFNAME:
		for i, c := range v {
			if c == 0 {
				v = v[:i]
				break
			}
		}
		l.name = string(v)
	case typ == unix.IFLA_ADDRESS && len(v) == len(l.mac):
		l.mac = fabric.MAC(v)
	case typ == unix.IFLA_MTU && len(v) >= 4:
		l.mtu = int(binary.NativeEndian.Uint32(v))
	case typ == unix.IFLA_CARRIER_CHANGES && len(v) >= 4:
		l.changes = uint64(binary.NativeEndian.Uint32(v))
	case typ == unix.IFLA_MASTER && len(v) >= 4:
		l.master = int(int32(binary.NativeEndian.Uint32(v)))
	case typ == unix.IFLA_STATS64:
		l.counters, l.multicast = parseStats64(v)
	}
}

// parseStats64 reads a struct rtnl_link_stats64 (linux/if_link.h), of which older
// kernels send fewer fields.
func parseStats64(v []byte) (c fabric.Counters, multicast uint64) {
	at := func(i int) uint64 {
		if len(v) < 8*(i+1) {
			return 0
		}
		return binary.NativeEndian.Uint64(v[8*i:])
	}
	return fabric.Counters{
		RxFrames: at(0), TxFrames: at(1), RxBytes: at(2), TxBytes: at(3),
		RxErrors: at(4), TxErrors: at(5), RxDrops: at(6), TxDrops: at(7), RxCRC: at(12),
	}, at(8)
}
