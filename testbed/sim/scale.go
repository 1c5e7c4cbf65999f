package sim

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/openinof/inof/zone"
)

// Step is one part of a scale run.
type Step struct {
	Name    string
	Wall    time.Duration
	CPU     time.Duration // of this process, the simulator's own part included
	Virtual time.Duration
	Events  uint64
	Notices uint64
	Heap    uint64 // bytes in use after it, everything in the fabric together
}

func (s Step) String() string {
	return fmt.Sprintf("%-40s %8v CPU %8v wall %8v virtual %9d events %8d notices %6d MiB heap",
		s.Name, s.CPU.Round(time.Millisecond), s.Wall.Round(time.Millisecond), s.Virtual.Round(time.Second), s.Events, s.Notices, s.Heap>>20)
}

// membersPerZone is how many hosts a zone of a scale run has.
const membersPerZone = 16

// Scale starts a large fabric, restarts its first reflector and pulls every tenth
// cable, each time until all is at rest and true. Wall-clock time holds the whole
// fabric and the comparison with the truth. The error is a *Failure.
func Scale(cfg Config) ([]Step, error) {
	cfg.NoSave, cfg.NoWatch = true, true
	w := newWorld(cfg)
	w.build()
	w.zones = history{w.scaleZones(cfg.Zones)}
	var steps []Step
	step := func(name string, do func()) {
		began, cpu, at, events, notices := time.Now(), cpuTime(), w.now, w.done, w.notices
		do()
		s := Step{Name: name, Virtual: w.now - at, Events: w.done - events, Notices: w.notices - notices, Wall: time.Since(began), CPU: cpuTime() - cpu}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		s.Heap = m.HeapAlloc
		steps = append(steps, s)
	}
	step("all devices start, all hosts register", func() {
		for _, d := range w.all {
			w.after(w.short(3*time.Second), d.start)
		}
		for _, h := range w.hosts {
			w.after(w.between(5*time.Second, 20*time.Second), h.boot)
		}
		_ = w.run(20*time.Second) && w.becomeCalm()
	})
	step("the truth is compared", w.compare)
	step("the reflector restarts, full sync", func() {
		w.restart(w.reflectors[0], true, time.Second)
		told := w.notices
		_ = w.run(2*time.Second) && w.becomeCalm()
		if n := w.notices - told; n > 0 {
			w.failf("the restart of a reflector told hosts %d things, want none", n)
		}
	})
	step("every tenth cable is pulled", func() {
		for i := 0; i < len(w.hosts); i += 10 {
			if l := w.hosts[i].link; l != nil {
				l.pulled = true
				l.refresh()
			}
		}
		_ = w.becomeCalm()
	})
	step("the truth is compared again", w.compare)
	if len(w.fails) > 0 {
		return steps, &Failure{Config: cfg, At: w.now, What: w.fails}
	}
	return steps, nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (w *world) scaleZones(n int) zone.Set {
	var set zone.Set
	for i := range n {
		z := zone.Zone{Name: fmt.Sprintf("zone-%d", i)}
		for range membersPerZone {
			z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: pick(w, w.hosts).addrs[0]})
		}
		set.Zones = append(set.Zones, z)
	}
	return set.Canonical()
}
