package config

import (
	"fmt"
	"math"
	"net"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
)

// Action is what a fault of a port leads to.
type Action string

// The values of the keys named action.
const (
	ActionNone      Action = "none"       // count and show only
	ActionNotify    Action = "notify"     // tell the hosts, leave the port alone
	ActionErrorDown Action = "error-down" // tell the hosts and shut the port
)

// ErrorDown sets the faults of access ports.
type ErrorDown struct {
	Causes              // of ports that no entry of Ports names
	Ports  []PortCauses // exceptions; the first that names a port counts
}

// PortCauses are the causes of some ports.
type PortCauses struct {
	Names []string // names or globs
	Causes
}

// Causes are everything that can be wrong with a port.
type Causes struct {
	LinkFlap     LinkFlap
	LinkDown     LinkDown
	PFCStorm     PFCStorm
	CRC          CRC
	LowPower     LowPower
	StormControl StormControl
}

// LinkFlap trips when a port's carrier changes Changes times within Window.
type LinkFlap struct {
	Changes  int           // 2..1000
	Window   time.Duration // 1 s..1 h
	Action   Action
	Recovery time.Duration // 0: by hand only; else 30 s..24 h
}

// LinkDown is the loss of carrier; it always trips at once.
type LinkDown struct {
	HoldUp time.Duration // how long the carrier must be back before the port counts as up, 0..1 min
}

// Reaction is what a measured fault leads to and how it ends.
type Reaction struct {
	Action       Action
	Recovery     time.Duration // of a port that was shut; 0: by hand only; else 30 s..24 h
	HoldUp       time.Duration // how long all must be well before a fault that was only notified is over, 1 s..24 h
	ClearPercent int           // of the threshold, below which all is well, 1..100; 0 where there is none
}

// CRC trips at Errors damaged frames within Window.
type CRC struct {
	Errors     int           // 1..1,000,000
	Window     time.Duration // 1 s..1 h
	PerMillion int           // frames must be damaged too; 0: not asked for
	Reaction
}

// PFCStorm trips when one priority has been in a deadlock Deadlocks times within Window.
type PFCStorm struct {
	Detect      time.Duration // 10 ms..15 s
	Recover     time.Duration // 10 ms..31 s
	Deadlocks   int           // 1..300
	Window      time.Duration // 1 s..1 h
	PauseFrames int           // a second, for drivers that do not measure the time
	Reaction
}

// LowPower trips when a module has received less than Below for Window.
type LowPower struct {
	Below      int           // 1/1000 dBm
	Hysteresis int           // 1/1000 dB
	Window     time.Duration // 1 s..1 h
	Reaction
}

// StormControl trips when more frames arrive, all through Window.
type StormControl struct {
	Broadcast int // a second; 0: no limit
	Multicast int
	Window    time.Duration // 1 s..1 h
	Reaction
}

const maxRate = 1_000_000_000 // a second

// defaultCauses are the vendor's where there are any. Nothing is done about any of
// them unless the operator says so.
var defaultCauses = Causes{
	LinkFlap:     LinkFlap{Changes: 5, Window: 10 * time.Second, Action: ActionNone},
	PFCStorm:     PFCStorm{100 * time.Millisecond, 100 * time.Millisecond, 30, 20 * time.Second, 1000, defaultReaction},
	CRC:          CRC{3, 10 * time.Second, 0, defaultReaction},
	LowPower:     LowPower{-14_000, 1_000, 30 * time.Second, Reaction{Action: ActionNone, HoldUp: 10 * time.Second}},
	StormControl: StormControl{0, 0, 5 * time.Second, defaultReaction},
}

var defaultReaction = Reaction{Action: ActionNone, HoldUp: 10 * time.Second, ClearPercent: 50}

func readErrorDown(c *Config, s *section) {
	defer s.close()
	c.ErrorDown.Causes = readCauses(s, defaultCauses)
	s.sections("ports", "[]", "names: [...] and any of the sections of error-down", func(e *section) {
		allowed := "names, ranges or globs, as in ports.access"
		names := e.list("names", "required", allowed, checkPort)
		if _, ok := e.values["names"]; !ok {
			e.problem("names", "is missing", "a list of: "+allowed)
		}
		// The keys of an exception are those of the section, where they are documented.
		keys := len(s.p.keys)
		c.ErrorDown.Ports = append(c.ErrorDown.Ports, PortCauses{names, readCauses(e, c.ErrorDown.Causes)})
		s.p.keys = s.p.keys[:keys]
	})
}

// readCauses reads what differs from the defaults.
func readCauses(s *section, def Causes) Causes {
	return Causes{
		LinkFlap:     readLinkFlap(s.sub("link-flap"), def.LinkFlap),
		LinkDown:     readLinkDown(s.sub("link-down"), def.LinkDown),
		PFCStorm:     readPFCStorm(s.sub("pfc-storm"), def.PFCStorm),
		CRC:          readCRC(s.sub("crc"), def.CRC),
		LowPower:     readLowPower(s.sub("low-receive-power"), def.LowPower),
		StormControl: readStormControl(s.sub("storm-control"), def.StormControl),
	}
}

func readLinkFlap(s *section, def LinkFlap) LinkFlap {
	defer s.close()
	return LinkFlap{
		Changes:  s.number("changes", def.Changes, 2, 1000),
		Window:   s.duration("window", def.Window, time.Second, time.Hour, false),
		Action:   s.action(def.Action),
		Recovery: s.duration("recovery", def.Recovery, 30*time.Second, 24*time.Hour, true),
	}
}

func readLinkDown(s *section, def LinkDown) LinkDown {
	defer s.close()
	return LinkDown{HoldUp: s.duration("hold-up", def.HoldUp, 0, time.Minute, false)}
}

func (s *section) action(def Action) Action {
	return Action(s.choice("action", string(def), string(ActionNone), string(ActionNotify), string(ActionErrorDown)))
}

func (s *section) reaction(def Reaction) Reaction {
	r := Reaction{
		Action:   s.action(def.Action),
		Recovery: s.duration("recovery", def.Recovery, 30*time.Second, 24*time.Hour, true),
		HoldUp:   s.duration("hold-up", def.HoldUp, time.Second, 24*time.Hour, false),
	}
	if def.ClearPercent > 0 {
		r.ClearPercent = s.number("clear-percent", def.ClearPercent, 1, 100)
	}
	return r
}

func readCRC(s *section, def CRC) CRC {
	defer s.close()
	return CRC{
		Errors:     s.number("errors", def.Errors, 1, 1_000_000),
		Window:     s.duration("window", def.Window, time.Second, time.Hour, false),
		PerMillion: s.number("per-million", def.PerMillion, 0, 1_000_000),
		Reaction:   s.reaction(def.Reaction),
	}
}

func readPFCStorm(s *section, def PFCStorm) PFCStorm {
	defer s.close()
	p := PFCStorm{
		Detect:      s.duration("detect", def.Detect, 10*time.Millisecond, 15*time.Second, false),
		Recover:     s.duration("recover", def.Recover, 10*time.Millisecond, 31*time.Second, false),
		Deadlocks:   s.number("deadlocks", def.Deadlocks, 1, 300),
		Window:      s.duration("window", def.Window, time.Second, time.Hour, false),
		PauseFrames: s.number("pause-frames", def.PauseFrames, 1, maxRate),
		Reaction:    s.reaction(def.Reaction),
	}
	if most := int((p.Window + p.Recover) / (p.Detect + p.Recover)); p.Deadlocks > most {
		s.problem("deadlocks", fmt.Sprintf("is never reached: there are at most %d within the window", most),
			"fewer, a longer window, or shorter detect and recover")
	}
	return p
}

func readLowPower(s *section, def LowPower) LowPower {
	defer s.close()
	return LowPower{
		Below:      s.decibel("below", "dBm", def.Below, fabric.NoLight+1000, 10_000),
		Hysteresis: s.decibel("hysteresis", "dB", def.Hysteresis, 100, 10_000),
		Window:     s.duration("window", def.Window, time.Second, time.Hour, false),
		Reaction:   s.reaction(def.Reaction),
	}
}

func readStormControl(s *section, def StormControl) StormControl {
	defer s.close()
	c := StormControl{
		Broadcast: s.number("broadcast", def.Broadcast, 0, maxRate),
		Multicast: s.number("multicast", def.Multicast, 0, maxRate),
		Window:    s.duration("window", def.Window, time.Second, time.Hour, false),
		Reaction:  s.reaction(def.Reaction),
	}
	if c.Action != ActionNone && c.Broadcast == 0 && c.Multicast == 0 {
		s.problem("action", "has nothing to act on: there is no limit", "a limit in broadcast or multicast, or the action none")
	}
	return c
}

// decibel reads a number with its unit, in thousandths.
func (s *section) decibel(name, unit string, def, least, most int) int {
	allowed := decibelText(least, unit) + ".." + decibelText(most, unit)
	v, ok := s.scalar(name, decibelText(def, unit), allowed)
	if !ok {
		return def
	}
	digits, unitThere := strings.CutSuffix(v, unit)
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	n := math.Round(f * 1000)
	switch {
	case err != nil || math.IsNaN(f):
		s.problem(name, "is not a number of "+unit, allowed)
	case !unitThere:
		s.problem(name, "has no unit ("+unit+")", allowed)
	case n < float64(least):
		s.problem(name, "is too low", allowed)
	case n > float64(most):
		s.problem(name, "is too high", allowed)
	default:
		return int(n)
	}
	return def
}

// decibelText is the inverse.
func decibelText(v int, unit string) string {
	return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64) + unit
}

func checkRedis(v string) string {
	if _, _, err := net.SplitHostPort(v); v == "off" || err == nil || filepath.IsAbs(v) && len(v) <= maxSocketPath {
		return ""
	}
	return "is no address of a Redis server"
}

// maxCounterName is the longest name a driver's counter can have in bytes.
const maxCounterName = 31

func readCounterNames(c *Config, s *section) {
	const fields = "crc, broadcast, multicast, pause, pause-time or tx-frames"
	s.sections("counters", "[]", "field: "+fields+", name: a driver's name for it", func(e *section) {
		n := fabric.CounterName{Driver: e.text("driver", "*", "a driver's name or glob", func(v string) string {
			if _, err := path.Match(v, ""); err != nil {
				return "is not a valid glob"
			}
			return ""
		})}
		field := e.choice("field", "required", "crc", "broadcast", "multicast", "pause", "pause-time", "tx-frames")
		n.Name = e.text("name", "required", fmt.Sprintf("1..%d bytes, # for the priority", maxCounterName),
			func(v string) string { return checkName(v, maxCounterName) })
		for _, key := range []string{"field", "name"} {
			if _, ok := e.values[key]; !ok {
				e.problem(key, "is missing", "a driver's counter and what it counts")
				return
			}
		}
		f, err := fabric.ParseField(field)
		if err != nil {
			return // reported
		}
		if prio := f&fabric.FieldsOfPFC != 0; prio != strings.Contains(n.Name, "#") {
			e.problem("name", "does not fit the field "+field, "exactly one # for counters by priority, none for others")
			return
		}
		if strings.HasPrefix(n.Name, fabric.KernelCounter) && (f != fabric.FieldCRC || n.Name != fabric.KernelRxErrors && n.Name != fabric.KernelRxDropped) {
			e.problem("name", "is no link statistic that can stand for "+field, fabric.KernelRxErrors+" or "+fabric.KernelRxDropped+" for crc, or a driver's counter")
			return
		}
		n.Field = f
		c.Ports.Counters = append(c.Ports.Counters, n)
	})
}
