package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	schedIdle = 5 // SCHED_IDLE of sched(7)
	// unitPriority is CPUSchedulingPriority of the units of inofd and snsd, whose policy is rr. A
	// kernel that does not preempt itself lets others wait for the processor up to a tick, also for
	// one of who has the least priority; who has this does not.
	unitPriority = 20
	// packagedTimeslice is that of dist/systemd/inofd.sysctl.
	packagedTimeslice = "4"
)

// everyThread does something to all threads of the process; those that begin later are as who began
// them.
func everyThread(do func(tid int) error) error {
	for range 2 { // the second time: those that have begun meanwhile
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			id, _ := strconv.Atoi(t.Name())
			if err := do(id); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

func schedule(tid int, policy, priority uint32) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}, 0)
}

// asUnit gives the process the priority that the unit of a daemon has, or says why not.
func asUnit() (with string, err error) { return realtime(unitPriority) }

// asElsewhere gives the process one above that: what stands for other machines does not wait until
// the daemon leaves it a processor, which with one priority may take 0.1 s.
func asElsewhere() (with string, err error) { return realtime(unitPriority + 1) }

func realtime(priority uint32) (with string, err error) {
	err = everyThread(func(tid int) error { return schedule(tid, unix.SCHED_RR, priority) })
	if errors.Is(err, unix.EPERM) {
		return "without the priority of its unit, which takes root", nil
	}
	return "with the priority of its unit", err
}

// timeslice is after how many milliseconds threads of one real-time priority give way to each other.
// The package of inofd sets it.
const timeslice = "/proc/sys/kernel/sched_rr_timeslice_ms"

// asPackaged gives it the value that the package does, where that is allowed, and tells what it is
// now. It is the whole machine's: restore has to be called.
func asPackaged() (ms string, restore func(), err error) {
	was, err := os.ReadFile(timeslice)
	if err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(timeslice, []byte(packagedTimeslice), 0); err != nil {
		return strings.TrimSpace(string(was)), func() {}, nil // it takes root
	}
	return packagedTimeslice, func() { _ = os.WriteFile(timeslice, was, 0) }, nil
}

// asOthers takes it back.
func asOthers() error {
	return everyThread(func(tid int) error { return schedule(tid, unix.SCHED_NORMAL, 0) })
}

// stepAside lets the process run when nobody else wants the processor, on the last one where there
// are several.
func stepAside() (where string, err error) {
	where = "in a process of idle priority"
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return "", fmt.Errorf("processors of this process: %w", err)
	}
	last := -1
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			last = i
		}
	}
	if set.Count() > 1 {
		set.Zero()
		set.Set(last)
		where += fmt.Sprintf(", on processor %d alone", last)
	}
	runtime.GOMAXPROCS(1)
	err = everyThread(func(tid int) error {
		return errors.Join(unix.SchedSetaffinity(tid, &set), schedule(tid, schedIdle, 0))
	})
	if err != nil {
		return "", fmt.Errorf("priority of who floods: %w", err)
	}
	return where, nil
}
