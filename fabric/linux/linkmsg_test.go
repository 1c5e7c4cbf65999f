package linux

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// linkMessage builds a struct ifinfomsg with attributes.
func linkMessage(family uint8, typ uint16, index int32, flags uint32, attrs ...[]byte) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	b[0] = family
	binary.NativeEndian.PutUint16(b[2:], typ)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	for _, a := range attrs {
		b = append(b, a...)
	}
	return b
}

func attr(typ uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func TestParseLink(t *testing.T) {
	name, mac := attr(unix.IFLA_IFNAME, 'p', '0', 0), attr(unix.IFLA_ADDRESS, 2, 0, 0, 0, 0, 9)
	stats := make([]byte, 24*8)
	for i := range 24 {
		binary.NativeEndian.PutUint64(stats[8*i:], uint64(i+1))
	}
	for _, c := range []struct {
		name string
		msg  []byte
		want link
		err  string
	}{
		{name: "up", msg: linkMessage(0, unix.ARPHRD_ETHER, 7, unix.IFF_UP|unix.IFF_LOWER_UP, name, mac,
			attr(unix.IFLA_MTU, u32(9000)...), attr(unix.IFLA_CARRIER_CHANGES, u32(3)...), attr(unix.IFLA_STATS64, stats...)),
			want: link{index: 7, name: "p0", mac: fabric.MAC{2, 0, 0, 0, 0, 9}, mtu: 9000, adminUp: true, carrier: true, changes: 3, ethernet: true,
				counters: fabric.Counters{RxFrames: 1, TxFrames: 2, RxBytes: 3, TxBytes: 4, RxErrors: 5, RxDrops: 7, TxDrops: 8, TxErrors: 6, RxCRC: 13}, multicast: 9}},
		{name: "running without lower up is no carrier", msg: linkMessage(0, unix.ARPHRD_ETHER, 7, unix.IFF_UP|unix.IFF_RUNNING, name),
			want: link{index: 7, name: "p0", adminUp: true, ethernet: true}},
		{name: "other hardware", msg: linkMessage(0, unix.ARPHRD_LOOPBACK, 1, unix.IFF_UP, attr(unix.IFLA_IFNAME, 'l', 'o', 0)),
			want: link{index: 1, name: "lo", adminUp: true}},
		{name: "short values of old kernels", msg: linkMessage(0, unix.ARPHRD_ETHER, 7, 0, name, attr(unix.IFLA_STATS64, stats[:10]...),
			attr(unix.IFLA_MTU, 1), attr(unix.IFLA_ADDRESS, 1, 2, 3, 4)),
			want: link{index: 7, name: "p0", ethernet: true, counters: fabric.Counters{RxFrames: 1}}},
		{name: "bridge", msg: linkMessage(unix.AF_BRIDGE, unix.ARPHRD_ETHER, 7, unix.IFF_UP, name), err: errNotLink.Error()},
		{name: "empty", err: "0 bytes"},
		{name: "no name", msg: linkMessage(0, unix.ARPHRD_ETHER, 7, 0, mac), err: "index 7 and name"},
		{name: "no index", msg: linkMessage(0, unix.ARPHRD_ETHER, -1, 0, name), err: "index -1"},
		{name: "attribute longer than the message", msg: append(linkMessage(0, unix.ARPHRD_ETHER, 7, 0), 200, 0, 3, 0), err: "attribute of 200 bytes"},
		{name: "attribute of length 0", msg: append(linkMessage(0, unix.ARPHRD_ETHER, 7, 0), 0, 0, 3, 0), err: "attribute of 0 bytes"},
	} {
		got, err := parseLink(c.msg)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error is %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(link{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(linkMessage(0, unix.ARPHRD_ETHER, 7, unix.IFF_UP, attr(unix.IFLA_IFNAME, 'p', '0', 0), attr(unix.IFLA_STATS64, 1, 2, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLink(b)
		if err == nil && (l.index < 1 || l.name == "" || strings.IndexByte(l.name, 0) >= 0) {
			t.Errorf("accepted %+v", l)
		}
		if err != nil && !errors.Is(err, errNotLink) && l != (link{}) {
			t.Errorf("error %v with %+v", err, l)
		}
	})
}

func TestBucket(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBucket(1000, now)
	for i := range 1000 {
		if w := b.take(now); w != 0 {
			t.Fatalf("frame %d of the burst has to wait %v", i, w)
		}
	}
	w := b.take(now)
	if w != 11*time.Millisecond {
		t.Errorf("the first one above the burst waits %v, want 11ms: itself and ten more", w)
	}
	now = now.Add(w)
	n := 0
	for ; b.take(now) == 0; n++ {
	}
	if n != 10 {
		t.Errorf("%d more frames after the wait, want 10", n)
	}
	now = now.Add(time.Hour)
	for n = 0; b.take(now) == 0; n++ {
	}
	if n != 1000 {
		t.Errorf("%d frames after an hour, want a burst of 1000", n)
	}
}

func TestPollInterval(t *testing.T) {
	const base = 10 * time.Millisecond
	for _, c := range []struct {
		cost  time.Duration
		alert bool
		want  time.Duration
	}{
		{0, false, 11 * time.Millisecond},
		{100 * time.Microsecond, false, 22 * time.Millisecond},
		{100 * time.Microsecond, true, time.Millisecond},
		{300 * time.Microsecond, false, 44 * time.Millisecond},
		{300 * time.Microsecond, true, 3 * time.Millisecond},
	} {
		if got := pollInterval(base, c.cost, c.alert); got != c.want {
			t.Errorf("rounds of %v, alert %t: every %v, want %v", c.cost, c.alert, got, c.want)
		}
	}
	if got := pollInterval(time.Second, time.Microsecond, false); got != time.Second {
		t.Errorf("polls every %v, want the second asked for", got)
	}
}

func TestFilterLimits(t *testing.T) {
	many := make([]uint16, maxFilterValues+1)
	if _, err := filter(many, []fabric.MAC{{}}); err == nil {
		t.Error("too many EtherTypes gave no error")
	}
	if _, err := filter(many[:1], nil); err == nil {
		t.Error("no address gave no error")
	}
	if _, err := filter(many[:maxFilterValues], make([]fabric.MAC, maxFilterValues)); err != nil {
		t.Errorf("the largest filter: %v", err)
	}
}
