package daemon

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/internal/telemetry"
)

// machine reads the load of the machine from proc(5).
type machine struct{ busy, all uint64 } // ticks, at the last reading

// read gives what /proc tells; the share of the processors since the last reading.
func (m *machine) read(now time.Time) telemetry.Machine {
	stat, err := os.ReadFile("/proc/stat")
	mem, memErr := os.ReadFile("/proc/meminfo")
	if err != nil || memErr != nil {
		return telemetry.Machine{}
	}
	out := telemetry.Machine{At: now, Busy: -1}
	line, _, _ := strings.Cut(string(stat), "\n")
	busy, all := ticks(line)
	if m.all > 0 && all > m.all && busy >= m.busy {
		out.Busy = float64(busy-m.busy) / float64(all-m.all)
	}
	m.busy, m.all = busy, all
	if _, rest, ok := strings.Cut(string(stat), "\nbtime "); ok {
		line, _, _ := strings.Cut(rest, "\n")
		if at, err := strconv.ParseInt(line, 10, 64); err == nil {
			out.Boot = time.Unix(at, 0)
		}
	}
	out.Memory, out.Available = kilobytes(string(mem), "MemTotal:"), kilobytes(string(mem), "MemAvailable:")
	return out
}

// ticks reads the line "cpu user nice system idle iowait irq softirq steal guest guest_nice",
// of which the last two are in the first two already.
func ticks(line string) (busy, all uint64) {
	for i, text := range strings.Fields(line) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		if all += n; i != 4 && i != 5 { // idle, iowait
			busy += n
		}
	}
	return busy, all
}

// kilobytes gives the bytes of a line "NAME 123 kB"; 0: there is none.
func kilobytes(text, name string) uint64 {
	_, rest, _ := strings.Cut(text, name)
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(f[0], 10, 54)
	if err != nil {
		return 0
	}
	return n << 10
}
