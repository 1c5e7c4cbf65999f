package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) showBFDCmd() *cobra.Command {
	c := &cobra.Command{Use: "bfd [DEVICE]", Short: "Paths to other devices, as BFD sees them, or all about one"}
	return show(a, c, 1, func(ctx context.Context, cl *api.Client, args []string) (api.BFD, error) {
		b, err := cl.BFD(ctx)
		if err != nil || len(args) == 0 {
			return b, err
		}
		dev, err := netip.ParseAddr(args[0])
		if err != nil {
			return b, usageError{fmt.Errorf("%q is not the id of a device", args[0])}
		}
		b.Sessions = only(b.Sessions, func(s api.BFDSession) bool { return s.Device == dev })
		if len(b.Sessions) == 0 {
			err = fmt.Errorf("no path to device %s is watched", dev)
		}
		return b, err
	}, func(w io.Writer, b api.BFD, args []string) {
		if len(args) == 1 {
			for i := range b.Sessions {
				a.bfdDetails(w, &b.Sessions[i])
			}
			return
		}
		a.bfdTable(w, &b)
	})
}

// bfdHead says in one line whether paths are watched at all.
func (a *app) bfdHead(b *api.BFD) string {
	p := &b.Process
	switch {
	case b.Off:
		return "off by this device's configuration: sessions are held in AdminDown"
	case !b.Enabled:
		return "off: the reflectors do not ask for it"
	case !p.Connected && p.Needed:
		return "no BFD process: " + p.LastError
	case !p.Connected:
		return "on, nothing to watch"
	case p.Failure != "":
		return fmt.Sprintf("process %d cannot work: %s", p.PID, p.Failure)
	case p.Started == nil:
		return fmt.Sprintf("process %d: %s", p.PID, p.LastError)
	}
	return fmt.Sprintf("on, process %d running for %s, %s", p.PID, a.agePtr(p.Started), p.Priority)
}

func (a *app) bfdTable(w io.Writer, b *api.BFD) {
	fmt.Fprintln(w, "BFD: "+query.Printable(a.bfdHead(b)))
	rows := [][]string{}
	for i := range b.Sessions {
		s := &b.Sessions[i]
		rows = append(rows, []string{addr(s.Device), s.State, bfdPath(s), a.agePtr(s.Since), timers(&s.Configured), negotiated(s),
			bfdDiag(s), count(s.Flaps), a.agePtr(s.LastDown), held(s), count(s.PacketsIn), count(s.PacketsOut), count(s.TxLate)})
	}
	query.Table(w, "DEVICE STATE PATH FOR CONFIGURED TX/DETECT DIAGNOSTIC FLAPS LAST-DOWN HELD-UP IN OUT LATE", rows)
}

// bfdPath is what follows from a session.
func bfdPath(s *api.BFDSession) string {
	switch {
	case s.Fault:
		return "failed"
	case s.Retiring:
		return "leaving"
	case s.Report == "unknown":
		return "never-up"
	}
	return s.Report
}

// bfdDiag is the reason of the last change, the other side's where that says more.
func bfdDiag(s *api.BFDSession) string {
	switch {
	case s.Diag == "none":
		return ""
	case s.RemoteDiag != "" && s.RemoteDiag != "none" && s.State != "Up":
		return s.Diag + " (" + s.RemoteDiag + ")"
	}
	return s.Diag
}

func timers(t *api.BFDTimers) string {
	if t.DetectMult == 0 {
		return ""
	}
	return fmt.Sprintf("%sx%d", query.Human(time.Duration(t.MinTx)), t.DetectMult)
}

func negotiated(s *api.BFDSession) string {
	if s.DetectTime == 0 {
		return ""
	}
	return query.Human(time.Duration(s.TxInterval)) + "/" + query.Human(time.Duration(s.DetectTime))
}

// held is how long a change is held back still.
func held(s *api.BFDSession) string {
	switch {
	case s.HoldLeft > 0:
		return query.Human(time.Duration(s.HoldLeft))
	case s.DownLeft > 0:
		return "down in " + query.Human(time.Duration(s.DownLeft))
	}
	return ""
}

// bfdAuth is the type, and whether there are keys.
func bfdAuth(s *api.BFDSession) string {
	switch {
	case s.Keyless:
		return s.Auth + ", waits for a key"
	case s.Keys > 0:
		return fmt.Sprintf("%s, keys: %d", s.Auth, s.Keys)
	}
	return s.Auth
}

func (a *app) bfdDetails(w io.Writer, s *api.BFDSession) {
	remote := ""
	if s.Remote != nil {
		remote = timers(s.Remote)
	}
	hops := "one"
	if s.Multihop {
		hops = "many (RFC 5883)"
	}
	pairs(w, [][2]string{
		{"Device", addr(s.Device)},
		{"Local address", addr(s.Local)},
		{"Hops", hops},
		{"State", s.State},
		{"State of the device", s.RemoteState},
		{"Path", bfdPath(s)},
		{"In this state for", a.agePtr(s.Since)},
		{"Diagnostic", s.Diag},
		{"Diagnostic of the device", s.RemoteDiag},
		{"Configured", timers(&s.Configured)},
		{"Asked for by the device", remote},
		{"Interval sent at", query.Human(time.Duration(s.TxInterval))},
		{"Detection time", query.Human(time.Duration(s.DetectTime))},
		{"Authentication", bfdAuth(s)},
		{"Last heard", a.agePtr(s.LastHeard)},
		{"Last down", a.agePtr(s.LastDown)},
		{"Flaps", count(s.Flaps)},
		{"Hold-up time", query.Human(time.Duration(s.HoldUp))},
		{"Held back", held(s)},
		{"Discriminators", fmt.Sprintf("%d here, %d there", s.LocalDiscr, s.RemoteDiscr)},
		{"Packets", fmt.Sprintf("%d in, %d out, %d late", s.PacketsIn, s.PacketsOut, s.TxLate)},
	})
}
