package linux

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// asker puts single questions to rtnetlink and waits for the answer, on a socket
// of its own that the notifications do not pass. The Go runtime does not watch that
// socket: the answer is there when the question's system call returns, and a thread
// woken for each would cost more than the question.
type asker struct {
	file *os.File // a question that hangs keeps the socket open, as in ethtool
	raw  syscall.RawConn

	mu  sync.Mutex
	seq uint32 // of the last question
	// Memory of the system calls, and these themselves: put writes what, take reads into buf.
	ask       [nlHeader + unix.SizeofIfInfomsg]byte
	what, buf []byte
	n         int
	err       error
	put, take func(fd uintptr)

	// The totals of all links by index, when they were asked for, and until when they are
	// better not.
	totals              map[int]totals
	totalsAt, totalsNot time.Time
}

const (
	// answerBuffer is more than the kernel says of one link.
	answerBuffer = 64 << 10
	// nlHeader is the length of a struct nlmsghdr.
	nlHeader = unix.SizeofNlMsghdr
)

// answerTimeout bounds waiting for the kernel's answer, which it normally has
// ready when the question's system call returns.
var answerTimeout = unix.Timeval{Sec: 2}

func newAsker() (*asker, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket: %w", err)
	}
	a := &asker{file: os.NewFile(uintptr(fd), "rtnetlink"), buf: make([]byte, answerBuffer), totals: make(map[int]totals)}
	a.put = func(fd uintptr) { _, a.err = unix.Write(int(fd), a.what) }
	a.take = func(fd uintptr) { a.n, a.err = unix.Read(int(fd), a.buf) }
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &answerTimeout)
	if err == nil { // then nobody but the kernel can answer
		err = unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err == nil {
		a.raw, err = a.file.SyscallConn()
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	return a, nil
}

func (a *asker) close() { _ = a.file.Close() }

// link asks for the state and totals of one interface.
func (a *asker) link(index int) (l link, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.ask[:])
	a.seq++
	binary.NativeEndian.PutUint32(a.ask[0:], uint32(len(a.ask)))
	binary.NativeEndian.PutUint16(a.ask[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(a.ask[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(a.ask[8:], a.seq)
	binary.NativeEndian.PutUint32(a.ask[nlHeader+4:], uint32(index))
	data, err := a.answer(a.ask[:], a.seq)
	if err != nil {
		return l, err
	}
	return parseLink(data)
}

// setUp sets or clears IFF_UP.
func (a *asker) setUp(index int, up bool) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index, msg.Change = int32(index), unix.IFF_UP
	if up {
		msg.Flags = unix.IFF_UP
	}
	req.AddData(msg)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	req.Seq = a.seq
	_, err := a.answer(req.Serialize(), req.Seq)
	return err
}

// getLink is a question for one interface.
func getLink(index int, extMask uint32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	if extMask != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extMask)))
	}
	return req
}

// answer puts a question and gives the answer, which is good until the next one.
func (a *asker) answer(question []byte, seq uint32) (answer []byte, err error) {
	err = a.exchange(question, seq, func(kind uint16, data []byte) (bool, error) {
		if kind == unix.NLMSG_ERROR {
			return true, linkError(errnoOf(data))
		}
		answer = data
		return true, nil
	})
	return answer, err
}

// dump puts a question that has many answers.
func (a *asker) dump(question []byte, seq uint32, each func(data []byte) error) error {
	var bad error
	err := a.exchange(question, seq, func(kind uint16, data []byte) (bool, error) {
		switch kind {
		case unix.NLMSG_ERROR:
			return true, linkError(errnoOf(data))
		case unix.NLMSG_DONE:
			return true, nil
		}
		if err := each(data); err != nil { // the rest is read all the same, or it would be in the way
			bad = err
		}
		return false, nil
	})
	return cmp.Or(err, bad)
}

// exchange puts a question and hands over the messages that answer it until take says
// that it is done.
func (a *asker) exchange(question []byte, seq uint32, take func(kind uint16, data []byte) (done bool, err error)) error {
	a.what = question
	if err := a.call(a.put); err != nil {
		return err
	}
	for {
		if err := a.call(a.take); err != nil {
			return err
		}
		for rest := a.buf[:a.n]; len(rest) >= nlHeader; {
			n := int(binary.NativeEndian.Uint32(rest))
			if n < nlHeader || n > len(rest) {
				return fmt.Errorf("rtnetlink answer of %d bytes, have %d: %w", n, len(rest), unix.EBADMSG)
			}
			kind, of, data := binary.NativeEndian.Uint16(rest[4:]), binary.NativeEndian.Uint32(rest[8:]), rest[nlHeader:n]
			rest = rest[min((n+3)&^3, len(rest)):]
			if of != seq { // a late answer to a question that was given up
				continue
			}
			if done, err := take(kind, data); done || err != nil {
				return err
			}
		}
	}
}

// call makes a system call, again if a signal ended it.
func (a *asker) call(do func(fd uintptr)) error {
	for {
		if err := a.raw.Control(do); err != nil {
			return linkError(err)
		}
		if a.err != unix.EINTR {
			return linkError(a.err)
		}
	}
}

// errnoOf reads an NLMSG_ERROR; number 0 is the acknowledgement, nil.
func errnoOf(data []byte) error {
	if len(data) < 4 {
		return unix.EBADMSG
	}
	if n := int32(binary.NativeEndian.Uint32(data)); n < 0 {
		return unix.Errno(-n)
	}
	return nil
}

func linkError(err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w (%w)", fabric.ErrNoPort, err)
	}
	return err
}
