package load

import (
	"fmt"
	"strings"
	"time"

	"github.com/openinof/inof/internal/progress"
)

// lines gives each line that is written to whom it may concern.
type lines func(string)

func (l lines) Write(b []byte) (int, error) {
	l(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func (o *Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// left begins a step of some units, and takes how many of all are done: where that lasts, Progress
// hears of it, of the rate, and of the time that is left.
func (o *Options) left(unit string) func(done, all int) {
	if o.Progress == nil {
		return func(int, int) {}
	}
	now := o.now
	if now == nil {
		now = time.Now
	}
	return progress.Begin(lines(o.Progress), unit, now)
}
