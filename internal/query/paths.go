package query

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
)

var paths = object[api.BFD, api.BFDSession]{
	name: "bfd", short: "Paths to other devices, as BFD sees them, or all about one",
	read: func(ctx context.Context, src Source, _ Asked) (api.BFD, error) { return src.BFD(ctx) },
	rows: func(b *api.BFD) *[]api.BFDSession { return &b.Sessions },
	arg: func() *filter[api.BFDSession] {
		f := at(Filter{Name: "device", Word: "DEVICE"}, func(s *api.BFDSession) netip.Addr { return s.Device })
		return &f
	}(),
	none: "no path to device %s is watched",
	show: func(p *Page, b *api.BFD, _ Asked) {
		fmt.Fprintln(p, "BFD: "+Printable(bfdHead(p, b)))
		p.rows(tableOf(p, b.Sessions, bfdColumns))
	},
	details: bfdDetails,
}.query()

var bfdColumns = []column[api.BFDSession]{
	{"DEVICE", func(s *api.BFDSession, _ *Page) string { return Addr(s.Device) }},
	{"STATE", func(s *api.BFDSession, _ *Page) string { return s.State }},
	{"PATH", func(s *api.BFDSession, _ *Page) string { return bfdPath(s) }},
	{"FOR", func(s *api.BFDSession, p *Page) string { return p.Ago(s.Since) }},
	{"CONFIGURED", func(s *api.BFDSession, _ *Page) string { return timers(&s.Configured) }},
	{"TX/DETECT", func(s *api.BFDSession, _ *Page) string { return negotiated(s) }},
	{"DIAGNOSTIC", func(s *api.BFDSession, _ *Page) string { return bfdDiag(s) }},
	{"FLAPS", func(s *api.BFDSession, _ *Page) string { return Count(s.Flaps) }},
	{"LAST-DOWN", func(s *api.BFDSession, p *Page) string { return p.Ago(s.LastDown) }},
	{"HELD-UP", func(s *api.BFDSession, _ *Page) string { return held(s) }},
	{"IN", func(s *api.BFDSession, _ *Page) string { return Count(s.PacketsIn) }},
	{"OUT", func(s *api.BFDSession, _ *Page) string { return Count(s.PacketsOut) }},
	{"LATE", func(s *api.BFDSession, _ *Page) string { return Count(s.TxLate) }},
}

// bfdHead says in one line whether paths are watched at all.
func bfdHead(p *Page, b *api.BFD) string {
	proc := &b.Process
	switch {
	case b.Off:
		return "off by this device's configuration: sessions are held in AdminDown"
	case !b.Enabled:
		return "off: the reflectors do not ask for it"
	case !proc.Connected && proc.Needed:
		return "no BFD process: " + proc.LastError
	case !proc.Connected:
		return "on, nothing to watch"
	case proc.Failure != "":
		return fmt.Sprintf("process %d cannot work: %s", proc.PID, proc.Failure)
	case proc.Started == nil:
		return fmt.Sprintf("process %d: %s", proc.PID, proc.LastError)
	}
	return fmt.Sprintf("on, process %d running for %s, %s", proc.PID, p.Ago(proc.Started), proc.Priority)
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
	return fmt.Sprintf("%sx%d", Human(time.Duration(t.MinTx)), t.DetectMult)
}

func negotiated(s *api.BFDSession) string {
	if s.DetectTime == 0 {
		return ""
	}
	return Human(time.Duration(s.TxInterval)) + "/" + Human(time.Duration(s.DetectTime))
}

// held is how long a change is held back still.
func held(s *api.BFDSession) string {
	switch {
	case s.HoldLeft > 0:
		return Human(time.Duration(s.HoldLeft))
	case s.DownLeft > 0:
		return "down in " + Human(time.Duration(s.DownLeft))
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

func bfdDetails(p *Page, s *api.BFDSession) {
	remote := ""
	if s.Remote != nil {
		remote = timers(s.Remote)
	}
	hops := "one"
	if s.Multihop {
		hops = "many (RFC 5883)"
	}
	p.Pairs([][2]string{
		{"Device", Addr(s.Device)},
		{"Local address", Addr(s.Local)},
		{"Hops", hops},
		{"State", s.State},
		{"State of the device", s.RemoteState},
		{"Path", bfdPath(s)},
		{"In this state for", p.Ago(s.Since)},
		{"Diagnostic", s.Diag},
		{"Diagnostic of the device", s.RemoteDiag},
		{"Configured", timers(&s.Configured)},
		{"Asked for by the device", remote},
		{"Interval sent at", Human(time.Duration(s.TxInterval))},
		{"Detection time", Human(time.Duration(s.DetectTime))},
		{"Authentication", bfdAuth(s)},
		{"Last heard", p.Ago(s.LastHeard)},
		{"Last down", p.Ago(s.LastDown)},
		{"Flaps", Count(s.Flaps)},
		{"Hold-up time", Human(time.Duration(s.HoldUp))},
		{"Held back", held(s)},
		{"Discriminators", fmt.Sprintf("%d here, %d there", s.LocalDiscr, s.RemoteDiscr)},
		{"Packets", fmt.Sprintf("%d in, %d out, %d late", s.PacketsIn, s.PacketsOut, s.TxLate)},
	})
}
