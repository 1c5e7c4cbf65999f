package workload

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/model"
)

// Measurement is the speed of one reference workload.
type Measurement struct {
	Hops  uint64
	SetUp time.Duration
	CPU   time.Duration // processor time of the run
	Speed float64       // frame-hops a second of processor time
	Peak  int64         // resident memory of the process at most, in bytes; 0 = unknown
}

// Measure runs a workload n times with DCQCN and gives the run of median speed. Time
// is processor time of the process, because other programs may share the machine. done is called
// after each run.
func Measure(r Reference, n int, done func()) (Measurement, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var all []Measurement
	for range max(1, n) {
		debug.FreeOSMemory()
		resetPeak()
		var m Measurement
		t := time.Now()
		s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
		if err != nil {
			return m, err
		}
		m.SetUp = time.Since(t)
		cpu := cpuTime()
		if err := s.Run(r.Until); err != nil {
			return m, err
		}
		m.CPU = cpuTime() - cpu
		m.Hops = s.Totals().FrameHops
		m.Speed = float64(m.Hops) / m.CPU.Seconds()
		m.Peak = peakMemory()
		all = append(all, m)
		done()
	}
	slices.SortFunc(all, func(a, b Measurement) int { return int(a.CPU - b.CPU) })
	return all[len(all)/2], nil
}

// Wall gives the time on the wall and the processor time of one run on a number of cores.
func Wall(r Reference, cores int) (wall, cpu time.Duration, err error) {
	s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
	if err != nil {
		return 0, 0, err
	}
	t, c := time.Now(), cpuTime()
	err = s.RunOn(cores, r.Until)
	return time.Since(t), cpuTime() - c, err
}

// Split runs a workload in the shards of a number of cores, one after the other, and gives
// how the work falls, and how many times as fast that number of cores would be if
// they did not disturb each other. It counts processor time of the thread, so it holds
// on a busy machine too.
func Split(r Reference, cores int) (model.Balance, float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
	if err != nil {
		return model.Balance{}, 0, err
	}
	begun := threadTime()
	if err := s.Run(r.Until); err != nil {
		return model.Balance{}, 0, err
	}
	one := threadTime() - begun
	if s, _, err = r.Build(model.Options{Seed: 1}, model.CX4()); err != nil {
		return model.Balance{}, 0, err
	}
	b, err := s.MeasureShards(cores, r.Until, threadTime)
	return b, one.Seconds() / (b.Longest + b.Together).Seconds(), err
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resetPeak makes the kernel forget the peak of earlier runs (proc(5), clear_refs).
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func peakMemory() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var kb int64
		if _, err := fmt.Sscanf(sc.Text(), "VmHWM: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}
