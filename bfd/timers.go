package bfd

import (
	"fmt"
	"time"
)

const (
	// MinInterval and MaxInterval bound the intervals of a session.
	MinInterval = time.Millisecond
	MaxInterval = 60 * time.Second
	// SlowInterval is the least Desired Min TX Interval of a session that is not
	// Up (RFC 5880 section 6.8.3).
	SlowInterval = time.Second
)

// Timers are what one side asks for. Zero values of MinTx, MinRx and DetectMult stand
// for the defaults: 100 ms, 100 ms and 3.
type Timers struct {
	MinTx      time.Duration `json:"min_tx_ns"` // Desired Min TX Interval, 1 ms..60 s
	MinRx      time.Duration `json:"min_rx_ns"` // Required Min RX Interval, 1 ms..60 s
	DetectMult uint8         `json:"detect_mult"`
	// MinEchoRx is the least interval of echo packets that are returned; zero: the
	// peer is asked to send none. Single-hop sessions only (RFC 5883 section 3).
	MinEchoRx time.Duration `json:"min_echo_rx_ns"`
}

// DefaultTimers are 100 ms x 3, without echo.
func DefaultTimers() Timers {
	return Timers{MinTx: 100 * time.Millisecond, MinRx: 100 * time.Millisecond, DetectMult: 3}
}

func (t Timers) withDefaults() Timers {
	d := DefaultTimers()
	if t.MinTx == 0 {
		t.MinTx = d.MinTx
	}
	if t.MinRx == 0 {
		t.MinRx = d.MinRx
	}
	if t.DetectMult == 0 {
		t.DetectMult = d.DetectMult
	}
	return t
}

// Larger takes the larger value of each field: what counts when two reflectors ask
// for different timers.
func (t Timers) Larger(o Timers) Timers {
	return Timers{
		MinTx: max(t.MinTx, o.MinTx), MinRx: max(t.MinRx, o.MinRx),
		DetectMult: max(t.DetectMult, o.DetectMult), MinEchoRx: max(t.MinEchoRx, o.MinEchoRx),
	}
}

// Validate checks the ranges; zero values that stand for defaults are allowed.
func (t Timers) Validate() error {
	for _, f := range [...]struct {
		name string
		d    time.Duration
	}{{"MinTx", t.MinTx}, {"MinRx", t.MinRx}, {"MinEchoRx", t.MinEchoRx}} {
		if f.d != 0 && (f.d < MinInterval || f.d > MaxInterval) {
			return &ConfigError{f.name, f.d.String(), fmt.Sprintf("%v..%v", MinInterval, MaxInterval)}
		}
	}
	return nil
}

// instant is a moment in nanoseconds since shortly before the Manager was made; zero
// stands for never.
type instant int64

const never instant = 0

// span gives the length of an interval in microseconds.
func span(us uint32) instant { return instant(us) * 1000 }

// micros rounds a valid interval to the wire's microseconds.
func micros(d time.Duration) uint32 { return uint32(d / time.Microsecond) }
