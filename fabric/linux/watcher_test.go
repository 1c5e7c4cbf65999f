package linux

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What a watcher asks is heard by the kernel, and by no other program that listens for
// links.
func TestTheQuestionsOfAWatcherAreForTheKernelAlone(t *testing.T) {
	sp := newSpace(t)
	var w *watcher
	var other *nl.NetlinkSocket
	sp.do(func() (err error) {
		if other, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK); err != nil {
			return err
		}
		w, err = openWatcher()
		return err
	})
	defer other.Close()
	defer w.close()
	if err := w.requestDump(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := w.ask(1); err != nil {
		t.Fatal(err)
	}
	timeout := unix.NsecToTimeval(int64(200 * time.Millisecond))
	if err := other.SetReceiveTimeout(&timeout); err != nil {
		t.Fatal(err)
	}
	if msgs, from, err := other.Receive(); err == nil {
		t.Errorf("another program heard %d message(s) from port %d", len(msgs), from.Pid)
	}
	done := false
	for !done { // and the kernel answers
		if err := w.receive(handlers{link: func(link, bool, linkSource, time.Time) {}, done: func(time.Time) { done = true }, bad: func(err error) { t.Error(err) }}); err != nil {
			t.Fatal(err)
		}
	}
}
