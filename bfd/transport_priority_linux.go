package bfd

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// fifoPriority is low among real-time threads: above all ordinary ones is enough.
const fifoPriority = 10

// niceValue is that of the other threads of the process: the Go scheduler has the
// real-time thread wait for locks which they hold, so they must not be kept from
// running for long either.
const niceValue = -20

// raisePriority gives the calling thread what the kernel allows: SCHED_FIFO or else
// a nice value of -20, timers without slack, and memory that is not swapped; the
// other threads of the process get the nice value. It tells in words what it got.
func raisePriority() string {
	niceAll()
	// Timers of an ordinary thread may be 50 us late by default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	got := fmt.Sprintf("SCHED_FIFO %d", fifoPriority)
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		got = "nice -20 (SCHED_FIFO: " + err.Error() + ")"
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceValue); err != nil {
			got = "default priority (SCHED_FIFO and nice: " + err.Error() + ")"
		}
	}
	if err := lockMemory(); err != nil {
		return got + ", memory not locked (" + err.Error() + ")"
	}
	return got + ", memory locked"
}

// niceAll raises all threads there are; those to come inherit it. What is refused is
// told by the thread that matters.
func niceAll() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, niceValue)
		}
	}
}

// lockMemory keeps pages once they are used. It is for the whole process, and only
// done where no limit can be hit: beyond one, the runtime could get no more memory.
func lockMemory() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return err
	}
	if limit.Cur != math.MaxUint64 && !mayLock() {
		return fmt.Errorf("RLIMIT_MEMLOCK is %d bytes", limit.Cur)
	}
	return unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
}

// mayLock tells whether the limit does not count for us (CAP_IPC_LOCK).
func mayLock() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}
