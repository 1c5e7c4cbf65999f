package lldp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
)

// A neighbour is kept over a restart as one row. Its key is the port and the MSAP identifier (IEEE
// 802.1AB: chassis id and port id); its value holds what Restore cannot read from the LLDPDU again.

// ErrRow says that a row cannot be read.
var ErrRow = errors.New("not a row of an LLDP neighbour")

// RowKey appends the key of the neighbour's row.
func (n *Neighbour) RowKey(b []byte) []byte {
	b = append(append(b, n.Port...), 0)
	return append(b, n.LLDPDU[:peekMSAP(n.LLDPDU)]...)
}

// AppendRow appends the neighbour's row:
//
//	MAC(6) first heard(8) last heard(8) addresses(2), then for each length(1) address since(8), then the LLDPDU
//
// With rowMAC in the length a MAC(6) follows since: its host is known by another one than the LLDPDU says.
// Times are nanoseconds of Unix time. Confirmed is not in it: the loss of
// one carrier would change the rows of all hosts behind it.
func (n *Neighbour) AppendRow(b []byte) []byte {
	b = append(b, n.MAC[:]...)
	for _, t := range []time.Time{n.FirstHeard, n.LastHeard} {
		b = binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(n.Known)))
	for i := range n.Known {
		a := n.Known[i].Addr.AsSlice()
		mac := n.Known[i].MAC
		other := !mac.IsZero() && mac != machineOf(n.MAC, n.LLDPDU)
		size := byte(len(a))
		if other {
			size |= rowMAC
		}
		b = append(append(b, size), a...)
		b = binary.BigEndian.AppendUint64(b, uint64(n.Known[i].Since.UnixNano()))
		if other {
			b = append(b, mac[:]...)
		}
	}
	return append(b, n.LLDPDU...)
}

const rowMAC = 0x80

// rowHead is the length of a row's fixed part.
const rowHead = 6 + 2*8 + 2

// ParseRow reads a row for Restore, which reads the rest from the LLDPDU. The error wraps ErrRow.
func ParseRow(key, row []byte) (Neighbour, error) {
	var n Neighbour
	for i, c := range key {
		if c == 0 {
			n.Port = string(key[:i])
			break
		}
	}
	if n.Port == "" || len(n.Port) > fabric.MaxPortName || len(row) < rowHead {
		return Neighbour{}, fmt.Errorf("key %.40q, %d bytes: %w", key, len(row), ErrRow)
	}
	at := func(i int) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(row[i:]))) }
	n.MAC = fabric.MAC(row)
	n.FirstHeard, n.LastHeard = at(6), at(14)
	count, rest := int(binary.BigEndian.Uint16(row[22:])), row[rowHead:]
	for range count {
		size, tail := 0, 8
		if len(rest) > 0 {
			size = int(rest[0] &^ rowMAC)
		}
		if len(rest) > 0 && rest[0]&rowMAC != 0 {
			tail += len(n.MAC)
		}
		if len(rest) < 1+size+tail {
			return Neighbour{}, fmt.Errorf("port %s: %d addresses: %w", n.Port, count, ErrRow)
		}
		a, ok := netip.AddrFromSlice(rest[1 : 1+size])
		if !ok {
			return Neighbour{}, fmt.Errorf("port %s: an address of %d bytes: %w", n.Port, size, ErrRow)
		}
		h := HostInfo{Addr: a, Since: time.Unix(0, int64(binary.BigEndian.Uint64(rest[1+size:])))}
		if tail > 8 {
			if h.MAC = fabric.MAC(rest[1+size+8:]); h.MAC.IsZero() {
				return Neighbour{}, fmt.Errorf("port %s: no MAC address: %w", n.Port, ErrRow)
			}
		}
		n.Known = append(n.Known, h)
		rest = rest[1+size+tail:]
	}
	n.LLDPDU = rest
	for _, h := range n.Known {
		if h.MAC == machineOf(n.MAC, rest) {
			return Neighbour{}, fmt.Errorf("port %s: MAC address %s is said twice: %w", n.Port, h.MAC, ErrRow)
		}
	}
	return n, nil
}
