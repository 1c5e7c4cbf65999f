package bfd

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Real-time priorities: low ones are enough to be above all ordinary threads.
const (
	fifoPriority = 10 // of the BFD thread
	restPriority = 1  // of the other threads with PriorityProcess
	niceValue    = -20
)

// raisePriority gives the calling thread what the kernel allows: SCHED_FIFO or else
// a nice value of -20, timers without slack, and memory that is not swapped. The
// other threads of the process get the nice value, or SCHED_RR as well. It tells in
// words what it got.
func raisePriority(p Priority) string {
	if p == PriorityNormal {
		return "default priority"
	}
	rest := raiseOthers(p)
	// Timers of an ordinary thread may be 50 us late by default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	got := fmt.Sprintf("SCHED_FIFO %d", fifoPriority)
	if err := realtime(0, unix.SCHED_FIFO, fifoPriority); err != nil {
		got = "nice -20 (SCHED_FIFO: " + err.Error() + ")"
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceValue); err != nil {
			got = "default priority (SCHED_FIFO and nice: " + err.Error() + ")"
		}
	}
	got += rest
	if err := lockMemory(); err != nil {
		return got + ", memory not locked (" + err.Error() + ")"
	}
	return got + ", memory locked"
}

func realtime(tid int, policy, priority uint32) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}
	return unix.SchedSetAttr(tid, &attr, 0)
}

// raiseOthers raises all threads there are; those to come inherit it.
func raiseOthers(p Priority) string {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return ""
	}
	raised := 0
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, niceValue)
		if p == PriorityProcess && realtime(tid, unix.SCHED_RR, restPriority) == nil {
			raised++
		}
	}
	if raised > 0 {
		return fmt.Sprintf(", other threads SCHED_RR %d", restPriority)
	}
	return ""
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

// mayLock reports whether the limit does not count for us (CAP_IPC_LOCK).
func mayLock() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}
