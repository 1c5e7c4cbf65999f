package linux

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// Reading the totals of many ports. A question for one link costs 7 us, most of it for
// what else the kernel says of the link. RTM_GETSTATS gives the totals of all links at
// once for less than 1 us each (6.18), so one answer serves all ports of a round.

const (
	// totalsAge is how old totals may be: as old as a round over all ports takes.
	totalsAge = 5 * time.Millisecond
	// totalsShare is how many links there may be for each port that is read: with more of
	// them single questions are cheaper.
	totalsShare = 4

	statsMsg     = 12 // struct if_stats_msg
	statsLink64  = 1  // IFLA_STATS_LINK_64
	statsFilter  = 1 << (statsLink64 - 1)
	statsRequest = nlHeader + statsMsg
)

// totals are those of one link.
type totals struct {
	fabric.Counters // without CarrierChanges
	multicast       uint64
}

// totalsOf gives the totals of a link, which may be totalsAge old; false when they are
// better asked for with the link. ports is how many are read.
func (a *asker) totalsOf(index, ports int) (t totals, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	fresh := a.totalsAt
	if fresh.IsZero() || now.Sub(fresh) >= totalsAge {
		if now.Before(a.totalsNot) {
			return t, false
		}
		if err := a.askTotals(); err != nil || len(a.totals) > totalsShare*ports {
			a.totalsAt, a.totalsNot = time.Time{}, now.Add(time.Minute)
			return t, false
		}
		a.totalsAt = now
	}
	t, ok = a.totals[index]
	return t, ok
}

// askTotals reads the totals of all links.
func (a *asker) askTotals() error {
	var b [statsRequest]byte
	a.seq++
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETSTATS)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(b[8:], a.seq)
	binary.NativeEndian.PutUint32(b[nlHeader+8:], statsFilter)
	clear(a.totals)
	return a.dump(b[:], a.seq, func(data []byte) error {
		index, t, err := parseTotals(data)
		if err == nil {
			a.totals[index] = t
		}
		return err
	})
}

// parseTotals reads the struct if_stats_msg and attributes of an RTM_NEWSTATS message.
func parseTotals(b []byte) (index int, t totals, err error) {
	if len(b) < statsMsg {
		return 0, t, fmt.Errorf("statistics message has %d bytes, want at least %d", len(b), statsMsg)
	}
	index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	for rest := b[statsMsg:]; len(rest) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < unix.SizeofRtAttr || n > len(rest) {
			return 0, t, fmt.Errorf("statistics message of index %d: attribute of %d bytes, have %d", index, n, len(rest))
		}
		if binary.NativeEndian.Uint16(rest[2:]) == statsLink64 {
			t.Counters, t.multicast = parseStats64(rest[unix.SizeofRtAttr:n])
			return index, t, nil
		}
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	return 0, t, fmt.Errorf("statistics message of index %d has no totals", index)
}
