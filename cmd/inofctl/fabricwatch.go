package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/scenario"
)

// liveEvery is how often --live shows a run.
const liveEvery = 500 * time.Millisecond

// liveView shows a run while it runs: on a terminal always in the same place, else one block after
// the other.
type liveView struct {
	w        io.Writer
	terminal bool
	clock    func() time.Time
	begun    time.Time
	last     time.Time
	before   scenario.Look
	lines    int // of the last block
}

func newLiveView(w io.Writer, clock func() time.Time) *liveView {
	v := &liveView{w: w, clock: clock, begun: clock()}
	v.last = v.begun
	to := w
	if o, ok := w.(*output); ok {
		to = o.Writer
	}
	if f, ok := to.(*os.File); ok {
		st, err := f.Stat()
		v.terminal = err == nil && st.Mode()&os.ModeCharDevice != 0
	}
	return v
}

// see is a scenario.Progress that may look.
func (v *liveView) see(look func() scenario.Look) {
	t := v.clock()
	if t.Sub(v.last) < liveEvery {
		return
	}
	l := look()
	text := v.text(l, t)
	if v.terminal && v.lines > 0 {
		fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.lines)
	}
	v.lines = strings.Count(text, "\n")
	io.WriteString(v.w, text)
	v.last, v.before = t, l
}

// barWidth is the length of the bar of progress.
const barWidth = 30

func (v *liveView) text(l scenario.Look, t time.Time) string {
	var b strings.Builder
	spent, since := t.Sub(v.begun), t.Sub(v.last).Seconds()
	share := float64(l.Now) / float64(max(1, l.End))
	full := min(barWidth, int(share*barWidth))
	fmt.Fprintf(&b, "[%s%s] %v of %v", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), l.Now, l.End)
	if l.Now > 0 {
		fmt.Fprintf(&b, ", %v gone, about %v left", spent.Round(time.Second), time.Duration(float64(spent)*(1/share-1)).Round(time.Second))
	}
	fmt.Fprintf(&b, "\n%.2f M events/s, %.2f M frame-hops/s, a second here is %v of virtual time\n",
		float64(l.Events-v.before.Events)/since/1e6, float64(l.Hops-v.before.Hops)/since/1e6, (model.Time(float64(l.Now-v.before.Now)/since) / model.Microsecond * model.Microsecond))
	fmt.Fprintf(&b, "flows: %d at work, %d done; XOFF %d, marks %d, dropped %d, on lossless queues %d\n", l.Active, l.Done, l.Xoff, l.Marks, l.Drops, l.Lossless)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "fullest queues\tKB now\tat most\t\t\n")
	for _, q := range l.Worst {
		paused := ""
		if q.Paused {
			paused = "paused"
		}
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%s\t\n", q.Name, float64(q.Bytes)/1e3, float64(q.Peak)/1e3, paused)
	}
	tw.Flush() // into memory
	return b.String()
}
