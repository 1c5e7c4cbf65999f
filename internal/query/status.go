package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
)

var status = object[api.Status, api.Warning]{
	name: "status", short: "The device at a glance, with what needs attention",
	long: "The device at a glance, with what needs attention and what to do about it (docs/warnings.md has all\n" +
		"warnings). With --check the exit code is 3 while there is a warning, for scripts and monitors.",
	read: func(ctx context.Context, src Source, _ Asked) (api.Status, error) { return src.Status(ctx) },
	whole: func(s *api.Status) {
		api.Some(&s.Roles)
		api.Some((*[]api.Warning)(&s.Warnings))
	},
	flags: []Flag{{Name: "check", Usage: "exit with 3 if there is a warning", Finding: func(answer []byte) string {
		var s api.Status
		if json.Unmarshal(answer, &s) != nil || len(s.Warnings) == 0 {
			return ""
		}
		return "there are warnings"
	}}},
	show: func(p *Page, s *api.Status, _ Asked) { showStatus(p, s) },
}.query()

func showStatus(p *Page, s *api.Status) {
	roles := strings.Join(s.Roles, ", ")
	if roles == "" {
		roles = "standalone"
	}
	c := s.Counts
	pairs := [][2]string{
		{"Device", fmt.Sprintf("%s (%s)", Addr(s.Device), s.Name)},
		{"Roles", roles},
		{"Version", s.Version},
		{"Running for", fmt.Sprintf("%s, process %d", Human(time.Duration(s.Uptime)), s.PID)},
		{"Mode", s.Mode.String()},
		{"Synchronized", YesNo(s.Synced)},
		{"Hosts", fmt.Sprintf("%d local, %d remote, %d in conflict", c.HostsLocal, c.HostsRemote, c.Conflicts)},
		{"Zones", Count(c.Zones)},
		{"Peers", fmt.Sprintf("%d of %d established", c.Established, c.Peers)},
		{"Ports", fmt.Sprintf("%d of %d up, %d LLDP neighbours", c.PortsUp, c.Ports, c.Neighbours)},
		{"Paths", fmt.Sprintf("%d watched, %d failed", c.Paths.Watched, c.Paths.Failed)},
		{"Faults", Count(c.Faults)},
	}
	if s.Carrier != nil {
		pairs = append(pairs, [2]string{"Carrier", s.Carrier.Heard()})
	}
	p.Pairs(pairs)
	if s.LastSync != nil {
		fmt.Fprintf(p, "Decides by:    what was known at %s: not synchronized since, no reflector has answered\n", p.Stamp(*s.LastSync))
	}
	if s.HeldBack != nil {
		fmt.Fprintf(p, "Held back:     until %s: started without its state, no host it had told its reflectors is taken back before\n", p.Stamp(*s.HeldBack))
	}
	if len(s.Warnings) == 0 {
		fmt.Fprintln(p, "Health:        good")
	}
	p.Warnings(s.Warnings)
	counterLines(p, s.Counters)
}

// Warnings writes each warning with what to do about it.
func (p *Page) Warnings(list api.Warnings) {
	for _, x := range list {
		text := x.Text
		if x.Last != nil {
			text += fmt.Sprintf(" (%s ago", p.Ago(x.Last))
			if x.Count > 1 {
				text += fmt.Sprintf(", %d times", x.Count)
			}
			text += ")"
		}
		fmt.Fprintln(p, "Warning:       "+Printable(text))
		fmt.Fprintln(p, "               "+Printable(x.Do))
	}
}

// counterLines lists the counters that are not zero, a room a line.
func counterLines(p *Page, rooms map[string]any) {
	list, _ := Counters(rooms) // it was JSON a moment ago
	slices.SortFunc(list, func(a, b api.Counter) int { return strings.Compare(a.Room+" "+a.Name, b.Room+" "+b.Name) })
	lines := map[string][]string{}
	var order []string
	for _, c := range list {
		if c.Value == 0 || strings.Contains(c.Name, ".") {
			continue
		}
		if lines[c.Room] == nil {
			order = append(order, c.Room)
		}
		lines[c.Room] = append(lines[c.Room], c.Name+"="+strconv.FormatFloat(c.Value, 'f', -1, 64))
	}
	for _, room := range order {
		fmt.Fprintf(p, "Counters of %s: %s\n", Printable(room), Printable(strings.Join(lines[room], " ")))
	}
}
