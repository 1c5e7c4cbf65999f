package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// asker puts single questions to rtnetlink and waits for the answer, on a socket
// of its own that the notifications do not pass.
type asker struct {
	mu sync.Mutex
	s  *nl.NetlinkSocket
}

// answerTimeout bounds waiting for the kernel's answer, which it normally has
// ready when the question's system call returns.
var answerTimeout = unix.Timeval{Sec: 2}

func newAsker() (*asker, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket: %w", err)
	}
	if err := s.SetReceiveTimeout(&answerTimeout); err != nil {
		s.Close()
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	return &asker{s: s}, nil
}

func (a *asker) close() { a.s.Close() }

// link asks for the state and totals of one interface.
func (a *asker) link(index int) (link, error) {
	var l link
	err := a.do(getLink(index, 0), func(data []byte) (err error) {
		l, err = parseLink(data)
		return err
	})
	return l, err
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
	return a.do(req, func([]byte) error { return nil })
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

func (a *asker) do(req *nl.NetlinkRequest, answer func(data []byte) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.s.Send(req); err != nil {
		return linkError(err)
	}
	for {
		msgs, from, err := a.s.Receive()
		if err != nil {
			return linkError(err)
		}
		for _, m := range msgs {
			if from.Pid != nl.PidKernel || m.Header.Seq != req.Seq {
				continue // a late answer to a question that was given up
			}
			if m.Header.Type == unix.NLMSG_ERROR {
				return linkError(errnoOf(m.Data))
			}
			return answer(m.Data)
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
