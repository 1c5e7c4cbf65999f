package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Time is a moment or a span of virtual time in picoseconds; 64 bits hold 106 days.
type Time int64

// Units of virtual time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// never is later than every event.
const never Time = math.MaxInt64

// Seconds gives t as a floating-point number of seconds, for display.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Duration gives t rounded down to whole nanoseconds.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// FromDuration turns a duration into virtual time.
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// String prints t with the largest unit that leaves at least one whole digit.
func (t Time) String() string {
	abs := t
	if abs < 0 {
		abs = -abs
	}
	switch {
	case t == never:
		return "never"
	case abs >= Second:
		return trimUnit(float64(t)/float64(Second), "s")
	case abs >= Millisecond:
		return trimUnit(float64(t)/float64(Millisecond), "ms")
	case abs >= Microsecond:
		return trimUnit(float64(t)/float64(Microsecond), "us")
	case abs >= Nanosecond:
		return trimUnit(float64(t)/float64(Nanosecond), "ns")
	}
	return strconv.FormatInt(int64(t), 10) + "ps"
}

func trimUnit(v float64, unit string) string {
	return strconv.FormatFloat(v, 'g', 6, 64) + unit
}

// timeUnits lists suffixes so that the longer ones are tried first.
var timeUnits = []struct {
	suffix string
	unit   Time
}{{"ps", Picosecond}, {"ns", Nanosecond}, {"us", Microsecond}, {"µs", Microsecond}, {"ms", Millisecond}, {"s", Second}}

// ParseTime reads "1us", "2.5 ms", "300ns"; a bare "0" needs no unit.
func ParseTime(s string) (Time, error) {
	t := strings.TrimSpace(s)
	if t == "0" {
		return 0, nil
	}
	for _, u := range timeUnits {
		num, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil {
			continue // "ms" also ends in "s"
		}
		v *= float64(u.unit)
		if math.IsNaN(v) || v < 0 || v > float64(math.MaxInt64/2) {
			return 0, fmt.Errorf("time %q is out of range", s)
		}
		return Time(math.Round(v)), nil
	}
	return 0, fmt.Errorf("time %q: want a number and one of ps, ns, us, ms, s", s)
}

// Rate is a link or flow speed in bits per second.
type Rate int64

// Units of speed.
const (
	Kbps Rate = 1000
	Mbps      = 1000 * Kbps
	Gbps      = 1000 * Mbps
)

// String prints r in the largest unit that leaves at least one whole digit.
func (r Rate) String() string {
	switch {
	case r >= Gbps:
		return trimUnit(float64(r)/float64(Gbps), "G")
	case r >= Mbps:
		return trimUnit(float64(r)/float64(Mbps), "M")
	case r >= Kbps:
		return trimUnit(float64(r)/float64(Kbps), "K")
	}
	return strconv.FormatInt(int64(r), 10)
}

// ParseRate reads "100G", "40Gb/s", "25 Gbps", "200M".
func ParseRate(s string) (Rate, error) {
	t := strings.TrimSpace(s)
	for _, suffix := range []string{"bit/s", "b/s", "bps"} {
		t = strings.TrimSuffix(t, suffix)
	}
	unit := Rate(1)
	for _, u := range []struct {
		suffix string
		unit   Rate
	}{{"T", 1000 * Gbps}, {"G", Gbps}, {"M", Mbps}, {"K", Kbps}, {"k", Kbps}} {
		if rest, ok := strings.CutSuffix(t, u.suffix); ok {
			t, unit = rest, u.unit
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
	v *= float64(unit)
	if err != nil || !(v > 0) || v > 1e15 {
		return 0, fmt.Errorf("rate %q: want a positive number with K, M, G or T", s)
	}
	return Rate(math.Round(v)), nil
}

// Bytes gives how many whole bytes the rate carries in t.
func (r Rate) Bytes(t Time) int64 {
	return int64(math.Floor(float64(r) / 8 * t.Seconds()))
}

// serBits is the number of fractional bits of a serialisation cost in ps per byte.
const serBits = 20

// perByte gives the cost of one byte at rate r, in ps with serBits fractional bits.
func (r Rate) perByte() uint64 {
	return (8e12<<serBits + uint64(r)/2) / uint64(r)
}

// Size is a number of bytes.
type Size int64

// ParseSize reads "4096", "32MiB", "10 KB" (1000), "12k" (1000), "64KiB" (1024).
func ParseSize(s string) (int64, error) {
	t := strings.TrimSpace(s)
	unit := 1.0
	for _, u := range []struct {
		suffix string
		unit   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
		{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(t, u.suffix); ok {
			t, unit = rest, u.unit
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
	v *= unit
	if err != nil || !(v >= 0) || v > 1e15 {
		return 0, fmt.Errorf("size %q: want a number with B, KB, MB, GB, KiB, MiB or GiB", s)
	}
	return int64(math.Round(v)), nil
}
