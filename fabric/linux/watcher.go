package linux

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// linkBuffer is the receive buffer of the link socket in bytes: about a thousand
	// messages of 2 KB, more than one for each port of a large switch at a time.
	linkBuffer = 2 << 20
	// dumpTimeout is after what time an unfinished dump is asked for again.
	dumpTimeout = 5 * time.Second
	// extSkipStats is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h.
	extSkipStats = 1 << 3
)

// linkSource tells by which way a link message came.
type linkSource uint8

const (
	fromNotice linkSource = iota
	fromPoll              // the answer to the poller's question
	fromDump
)

// watcher is the rtnetlink socket that notifications and answers come in on. One
// goroutine calls receive; ask and requestDump may be called by any.
type watcher struct {
	s *nl.NetlinkSocket

	mu        sync.Mutex
	dumpSeq   uint32 // of the running dump, 0 when there is none
	dumpStart time.Time
	again     bool // the running dump does not count any more
}

// openWatcher must be called in the ports' network namespace.
func openWatcher() (*watcher, error) {
	// The group is joined apart: named to Subscribe, nl sends each of our questions to the
	// whole group too, and every other program that listens for links hears them.
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err == nil {
		if err = unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_LINK); err != nil {
			s.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket for link notifications: %w", err)
	}
	if s.SetReceiveBufferSize(linkBuffer, true) != nil {
		// Without CAP_NET_ADMIN it is limited by net.core.rmem_max.
		_ = s.SetReceiveBufferSize(linkBuffer, false)
	}
	return &watcher{s: s}, nil
}

// requestDump asks for all links. While a dump runs, another one follows it: the
// kernel takes only one at a time from a socket.
func (w *watcher) requestDump(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dumpSeq != 0 && now.Sub(w.dumpStart) < dumpTimeout {
		w.again = true
		return nil
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extSkipStats)))
	w.dumpSeq, w.dumpStart, w.again = req.Seq, now, false
	if err := w.s.Send(req); err != nil {
		w.dumpSeq = 0
		return fmt.Errorf("ask for all links: %w", err)
	}
	return nil
}

// ask asks for one link; the answer comes through receive.
func (w *watcher) ask(index int) error { return w.s.Send(getLink(index, extSkipStats)) }

// handlers are what receive calls, in the order in which the kernel spoke.
type handlers struct {
	link func(l link, gone bool, from linkSource, at time.Time)
	done func(at time.Time) // a complete and consistent dump has been read
	bad  func(err error)
}

// receive reads one batch. An error that wraps unix.ENOBUFS means that messages
// were lost, and the socket goes on; after any other it has to be replaced.
func (w *watcher) receive(h handlers) error {
	msgs, from, err := w.s.Receive()
	at := time.Now()
	if err != nil {
		return err
	}
	if from.Pid != nl.PidKernel {
		h.bad(fmt.Errorf("link message from port %d, want the kernel", from.Pid))
		return nil
	}
	for _, m := range msgs {
		source := w.source(m.Header.Seq, m.Header.Flags)
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			l, err := parseLink(m.Data)
			switch {
			case errors.Is(err, errNotLink):
			case err != nil:
				h.bad(err)
			default:
				h.link(l, m.Header.Type == unix.RTM_DELLINK, source, at)
			}
		case unix.NLMSG_DONE:
			if err := w.finish(source); err != nil {
				return err
			} else if source == fromDump && !w.running() {
				h.done(at)
			}
		case unix.NLMSG_ERROR:
			err := errnoOf(m.Data)
			if source == fromDump {
				return fmt.Errorf("dump of links: %w", err)
			}
			if !errors.Is(err, unix.ENODEV) { // which a notification tells as well
				h.bad(fmt.Errorf("question about a link: %w", err))
			}
		}
	}
	return nil
}

// source tells what a message answers, and notes when the kernel says that the
// links changed during the dump.
func (w *watcher) source(seq uint32, flags uint16) linkSource {
	if seq == 0 {
		return fromNotice
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if seq != w.dumpSeq {
		return fromPoll
	}
	if flags&unix.NLM_F_DUMP_INTR != 0 {
		w.again = true
	}
	return fromDump
}

// finish ends the running dump and starts the next one when it is wanted.
func (w *watcher) finish(source linkSource) error {
	if source != fromDump {
		return nil
	}
	w.mu.Lock()
	w.dumpSeq = 0
	again := w.again
	w.mu.Unlock()
	if again {
		return w.requestDump(time.Now())
	}
	return nil
}

func (w *watcher) running() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dumpSeq != 0
}

func (w *watcher) close() { w.s.Close() }
