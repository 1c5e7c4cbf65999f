package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/testbed/fence/round"
)

// strikeAfter is how long after A was sent the fault strikes, at least.
const strikeAfter = 50 * time.Millisecond

// game is one round under way.
type game struct {
	spec   round.Spec
	res    round.Result
	plane  int
	device string
	a, b   string // tags
	id     int    // of the array's controller of the path that A takes
	kernel *kernelLog
	mu     sync.Mutex
	steps  map[string]time.Time // of the writer
	notes  []string
	over   chan error
	healed func() // ends the fault
}

func play(s round.Spec) round.Result {
	g := &game{spec: s, steps: map[string]time.Time{}, over: make(chan error, 1)}
	if err := g.play(); err != nil {
		g.res.Error = err.Error()
	}
	if g.healed != nil {
		g.healed()
	}
	mend()
	g.res.Log = append(g.res.Log, g.notes...)
	if s.Trace && s.Case == 0 {
		g.res.Log = append(g.res.Log, outputs()...)
	}
	return g.res
}

func (g *game) play() error {
	mend()
	stamp := strconv.FormatInt(time.Now().UnixMicro(), 36)
	g.a, g.b = tag("A", stamp), tag("B", stamp)
	if err := g.prepare(); err != nil {
		return err
	}
	names, _ := filepath.Glob("/dev/nvme*n1")
	if len(names) != 1 {
		return fmt.Errorf("disks: %v", names)
	}
	g.device = names[0]
	var err error
	if g.plane, err = probe(g.device, tag("P", stamp)); err != nil {
		return err
	}
	g.res.Plane = g.plane
	g.id = paths()[g.plane].id
	if g.kernel, err = openKernelLog(); err != nil {
		return err
	}
	defer g.kernel.close()
	if err := g.hold(); err != nil {
		return err
	}
	if g.spec.Trace && g.spec.Case != 0 {
		defer g.capture()()
	}
	if err := g.write(); err != nil {
		return err
	}
	if err := await(20*time.Second, "a copy that waits", func() error {
		if time.Since(g.at("sentA")) < strikeAfter || !g.waiting() {
			return fmt.Errorf("none, %v after A was sent", time.Since(g.at("sentA")))
		}
		return nil
	}); err != nil {
		return err
	}
	g.res.Held = true
	g.res.Struck = time.Since(g.at("sentA"))
	if err := g.strike(); err != nil {
		return err
	}
	g.settle()
	if g.spec.Case == 0 {
		g.res.Other = g.otherWorks()
		if err := g.report(); err != nil {
			return err
		}
	}
	return g.judge()
}

func tag(kind, stamp string) string { return fmt.Sprintf("%-*s", tagSize, kind+stamp) }

// capture notes the frames that reach the array's card, until the returned function is called.
func (g *game) capture() func() {
	c := exec.Command("nsenter", "--net=/run/netns/"+target, "tcpdump", "-Z", "root", "-tt", "-n", "-q", "-i", targetCard(g.plane))
	var out strings.Builder
	c.Stdout = &out
	if err := c.Start(); err != nil {
		return func() {}
	}
	time.Sleep(time.Second)
	return func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		for line := range strings.Lines(out.String()) {
			g.res.Log = append(g.res.Log, strings.TrimSpace(line))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for what, at := range g.steps {
			g.res.Log = append(g.res.Log, fmt.Sprintf("%d.%06d %s", at.Unix(), at.Nanosecond()/1000, what))
		}
	}
}

// hold has the next frames of the plane, or A itself, wait at the place of the round.
func (g *game) hold() error {
	switch g.spec.Place {
	case round.Host:
		return slow("", hostCard(g.plane), g.spec.Hold)
	case round.Network:
		// Where a clsact is added, the kernel empties the card's queue: it is there before the copy.
		if err := lines("tc -n %s qdisc replace dev %s clsact", arraySwitch(g.plane), accessPort); err != nil {
			return err
		}
		return slow(arraySwitch(g.plane), accessPort, g.spec.Hold)
	case round.Receive:
		if err := slow(target, fmt.Sprintf("ifb%d", g.plane), g.spec.Hold); err != nil {
			return err
		}
		return lines(`tc -n %[1]s qdisc replace dev %[2]s clsact
			tc -n %[1]s filter add dev %[2]s ingress pref 9 matchall action mirred egress redirect dev ifb%[3]d`, target, targetCard(g.plane), g.plane)
	case round.Execute:
		_, err := askDisk(Order{Tag: g.a, Hold: g.spec.Hold})
		return err
	}
	return fmt.Errorf("no place %q", g.spec.Place)
}

// waiting reports whether a copy of A waits at the place of the round.
func (g *game) waiting() bool {
	var n int
	switch g.spec.Place {
	case round.Host:
		n, _ = queue("", hostCard(g.plane))
	case round.Network:
		n, _ = queue(arraySwitch(g.plane), accessPort)
	case round.Receive:
		n, _ = queue(target, fmt.Sprintf("ifb%d", g.plane))
	case round.Execute:
		s, err := askDisk(Order{})
		for _, w := range s.Writes {
			if err == nil && w.Tag == g.a && w.Applied.IsZero() {
				return true
			}
		}
	}
	return n > block
}

// write starts the process that writes.
func (g *game) write() error {
	c := exec.Command(self(), "write", g.device, g.a, g.b)
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	var says strings.Builder
	c.Stderr = &says
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			what, ns, _ := strings.Cut(in.Text(), " ")
			n, _ := strconv.ParseInt(ns, 10, 64)
			g.mu.Lock()
			g.steps[what] = time.Unix(0, n)
			g.mu.Unlock()
		}
		err := c.Wait()
		if err != nil {
			err = fmt.Errorf("the writer: %w: %s", err, says.String())
		}
		g.over <- err
	}()
	return await(20*time.Second, "A", func() error {
		if g.at("sentA").IsZero() {
			return fmt.Errorf("not sent")
		}
		return nil
	})
}

func (g *game) at(step string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.steps[step]
}

// patience bounds how long A and B take.
const patience = 100 * time.Second

// settle waits until B is acknowledged and no copy can be under way any longer.
func (g *game) settle() {
	select {
	case err := <-g.over:
		if err != nil {
			g.res.Error = err.Error()
		}
	case <-time.After(patience):
		g.res.Error = fmt.Sprintf("B was not acknowledged within %v", patience)
	}
	end := g.at("sentA").Add(g.spec.Hold + 2*time.Second)
	for time.Now().Before(end) || g.executing() {
		time.Sleep(50 * time.Millisecond)
	}
}

func (g *game) executing() bool {
	s, err := askDisk(Order{})
	for _, w := range s.Writes {
		if err == nil && w.Tag == g.a && w.Applied.IsZero() {
			return true
		}
	}
	return false
}

// judge looks at the disk, which the agent has no part in.
func (g *game) judge() error {
	s, err := askDisk(Order{})
	if err != nil {
		return err
	}
	sent, acked := g.at("sentA"), g.at("ackedB")
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return t.Sub(sent)
	}
	g.res.Acked, g.res.AckedB, g.res.Late = since(g.at("ackedA")), since(acked), -1
	for _, w := range s.Writes {
		if w.Tag != g.a {
			continue
		}
		g.res.Copies++
		if !acked.IsZero() && w.Applied.After(acked) {
			g.res.Late = max(g.res.Late, w.Applied.Sub(acked))
		}
	}
	g.res.Lost = !acked.IsZero() && s.Tag == g.a
	if g.spec.Trace {
		for _, w := range s.Writes {
			if w.Tag == g.a || w.Tag == g.b {
				g.res.Log = append(g.res.Log, fmt.Sprintf("%s arrived %v, executed %v", w.Tag, since(w.Arrived), since(w.Applied)))
			}
		}
	}
	if g.res.Error != "" {
		return fmt.Errorf("%s", g.res.Error)
	}
	return nil
}
