package hostkernel

import (
	"os"
	"strconv"
	"sync"
)

const (
	ioTimeoutFile    = "sys/module/nvme_core/parameters/io_timeout"
	defaultIOTimeout = 30 // s, of Linux
)

// lengthened counts who needs a longer io_timeout at present: the parameter is one of the whole
// kernel, and a controller keeps what it was when its queues were made.
var lengthened struct {
	sync.Mutex
	users int
}

// lengthenIO sets the io_timeout of controllers that are made until undo is called. One that is not
// the kernel's default is the operator's, and stays. Where it cannot be written, controllers have
// the default.
func (t Tree) lengthenIO(seconds int) (undo func()) {
	lengthened.Lock()
	defer lengthened.Unlock()
	if lengthened.users == 0 {
		if v, err := t.read(ioTimeoutFile); err != nil || v != strconv.Itoa(defaultIOTimeout) {
			return func() {}
		}
		if err := t.setIOTimeout(seconds); err != nil {
			return func() {}
		}
	}
	lengthened.users++
	return func() {
		lengthened.Lock()
		defer lengthened.Unlock()
		if lengthened.users--; lengthened.users == 0 {
			_ = t.setIOTimeout(defaultIOTimeout)
		}
	}
}

func (t Tree) setIOTimeout(seconds int) error {
	return os.WriteFile(t.path(ioTimeoutFile), []byte(strconv.Itoa(seconds)), 0)
}
