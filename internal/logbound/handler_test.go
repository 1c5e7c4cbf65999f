package logbound

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// text is a log to look at.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

// take gives the lines since the last call.
func (x *text) take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(x.b.String(), "\n"), "\n")
	x.b.Reset()
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}

func bounded() (*slog.Logger, *Handler, *text) {
	out := &text{}
	h := New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return slog.New(h), h, out
}

func flap(log *slog.Logger, port string, n int) {
	for i := range n {
		log.Info(fmt.Sprintf("link-down on port %s: %d host address(es) unreachable", port, i), "kind", "fault", "port", port)
	}
}

// A port that flaps ten thousand times a second for half a minute, as one did that wrote
// 18 MB in 28 s, writes some hundred lines, and says exactly how many it left out.
func TestAFlappingPortWritesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, h, out := bounded()
		const each = 1000
		for range 280 {
			flap(log, "eth1", each)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(Window)
		synctest.Wait()
		lines := out.take()
		size, told := 0, 0
		for _, l := range lines {
			size += len(l) + 1
			if _, n, ok := strings.Cut(l, " left_out="); ok {
				more := 0
				fmt.Sscan(n, &more)
				told += more - 1 // the line itself repeats one of them
			}
			told++
		}
		if len(lines) > 3*(PerSource+1) || size > 20_000 {
			t.Errorf("%d lines, %d bytes", len(lines), size)
		}
		if told != 280*each {
			t.Errorf("the log tells of %d lines of %d", told, 280*each)
		}
		if c := h.Counters(); c.Written+c.LeftOut != 280*each || c.Written != 3*PerSource {
			t.Errorf("%+v", c)
		}
	})
}

// What one port writes takes nothing from another port, from another text, or from the same
// text with a higher priority.
func TestAFloodTakesNothingFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, out := bounded()
		flap(log, "eth1", 1000)
		out.take()
		flap(log, "eth2", 1)
		log.Warn("link-down on port eth1: 3 host address(es) unreachable", "kind", "fault", "port", "eth1")
		log.Info("port eth1 is down", "port", "eth1")
		if lines := out.take(); len(lines) != 3 || !strings.Contains(lines[1], "level=WARN") {
			t.Errorf("%q", lines)
		}
		time.Sleep(Window)
		synctest.Wait()
		lines := out.take()
		if len(lines) != 1 || !strings.Contains(lines[0], "level=INFO") || !strings.Contains(lines[0], "port=eth1") || !strings.Contains(lines[0], "left_out=968") {
			t.Errorf("%q", lines)
		}
		flap(log, "eth1", 1)
		if lines := out.take(); len(lines) != 1 {
			t.Errorf("in the next window: %q", lines)
		}
		time.Sleep(Window)
		synctest.Wait()
		if lines := out.take(); lines != nil {
			t.Errorf("nothing was left out: %q", lines)
		}
	})
}

func (h *Handler) remembered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.kinds)
}

// Many ports together are bounded too, and so is what one peer says from many ports.
func TestManySourcesAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, h, out := bounded()
		for i := range 5000 {
			flap(log, fmt.Sprintf("eth%d", i), 3)
		}
		if n := len(out.take()); n != PerKind {
			t.Errorf("%d lines of many ports", n)
		}
		if n := h.remembered(); n > maxKinds+10 {
			t.Errorf("%d kinds are remembered", n)
		}
		time.Sleep(Window)
		synctest.Wait()
		if lines := out.take(); len(lines) != 1 || !strings.Contains(lines[0], "left_out=14500") {
			t.Errorf("%q", lines)
		}
		if n := h.remembered(); n != 0 {
			t.Errorf("%d kinds are remembered", n)
		}
		for i := range 1000 {
			log.Info("session ended", "peer", fmt.Sprintf("192.0.2.1:%d", i))
		}
		if n := len(out.take()); n != PerSource {
			t.Errorf("%d lines of one peer", n)
		}
	})
}

// Attributes and groups of a logger are kept, and its port counts.
func TestALoggersOwnAttributesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, out := bounded()
		one, two := log.With("port", "eth1"), log.With("port", "eth2").WithGroup("g")
		for range 100 {
			one.Info("busy")
		}
		two.Info("busy", "x", 1)
		lines := out.take()
		if len(lines) != PerSource+1 || !strings.Contains(lines[PerSource], "port=eth2 g.x=1") {
			t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
		}
		if log.Enabled(t.Context(), slog.LevelDebug-1) {
			t.Error("the level of the next handler does not count")
		}
		time.Sleep(Window)
	})
}
