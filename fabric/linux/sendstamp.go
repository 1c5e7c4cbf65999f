package linux

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamps reads when frames left (Documentation/networking/timestamping.rst). A driver
// stamps a frame while it takes it, which for most is before the write returns: veth and
// drivers without a queueing discipline that holds frames back. The stamp is then in the
// socket's error queue already, and one more system call, which never waits, gets it.
type stamps struct {
	on  bool
	oob [128]byte // of the one that sends now
	one [1]byte   // an empty buffer would cost another system call
}

// stampSends asks for the stamps of what is sent from now on; without the kernel's consent
// there are none.
func (s *Socket) stampSends() {
	const flags = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_TSONLY
	_ = s.raw.Control(func(fd uintptr) {
		s.stamps.on = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags) == nil
	})
}

// mostStale is how many stamps of earlier frames are read at once to get to the newest.
const mostStale = 16

// read returns the stamp of a frame whose write began before and has returned; zero: there
// is none yet. A stamp of an earlier frame that comes late lies before the write.
func (t *stamps) read(fd int, before time.Time) (left time.Time) {
	for range mostStale {
		_, oobn, _, _, err := unix.Recvmsg(fd, t.one[:], t.oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return left // EAGAIN: all are read
		}
		if at, ok := kernelStamp(t.oob[:oobn], time.Now()); ok && !at.Before(before) {
			left = at
		}
	}
	return left
}

// kernelStamp finds the kernel's time stamp in control messages and expresses it with
// now's monotonic reading. One in the future or more than maxStampAge old says that the
// clock was set meanwhile.
func kernelStamp(oob []byte, now time.Time) (time.Time, bool) {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		// SCM_TIMESTAMPING begins with the software stamp, of the same form.
		if h.Level == unix.SOL_SOCKET && (h.Type == unix.SCM_TIMESTAMPNS || h.Type == unix.SCM_TIMESTAMPING) && len(data) >= 16 {
			age := now.Sub(time.Unix(nativeInt64(data), nativeInt64(data[8:])))
			if age < 0 || age > maxStampAge {
				break
			}
			return now.Add(-age), true
		}
		oob = rest
	}
	return time.Time{}, false
}
