package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/snsd"
)

// addr leaves an address that is not known empty.
func addr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// service gives protocol and port in one word.
func service(h api.Host) string {
	if h.ServicePort == 0 {
		return h.Protocol.String()
	}
	return fmt.Sprintf("%s:%d", h.Protocol, h.ServicePort)
}

func (a *app) hostTable(w io.Writer, list []api.Host) {
	rows := [][]string{}
	for _, h := range list {
		state := h.State.String()
		switch {
		case len(h.Refused) > 0:
			state = "refused"
		case h.Conflict:
			state = "conflict"
		}
		rows = append(rows, []string{addr(h.Addr), string(h.Type), h.Role.String(), service(h), addr(h.Device), h.Port,
			state, a.whyState(h), query.FewText(h.Zones, 3), string(h.Hard), h.LearnedFrom, a.age(h.Since)})
	}
	query.Table(w, "ADDRESS TYPE ROLE SERVICE DEVICE PORT STATE REASON ZONES HARD-ZONING LEARNED-FROM KNOWN-FOR", rows)
}

// whyState is the reason of a host's state, or what is about to become of it.
func (a *app) whyState(h api.Host) string {
	if h.Removal != nil && h.Reason == snsd.ReasonNone {
		return a.removal(h.Removal)
	}
	return query.Because(h.Reason)
}

// removal says what becomes of hosts whose port is no longer looked after.
func (a *app) removal(r *api.Removal) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s; told at %s", r.Why, a.stamp(r.ToldAt))
}

func (a *app) hostDetails(w io.Writer, list []api.Host) {
	for i, h := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		expires := ""
		if h.Expires != nil {
			expires = query.Human(h.Expires.Sub(a.now()))
		}
		conflict := "no"
		if h.Conflict {
			conflict = "yes: another host claimed the address earlier, this one is ignored"
		}
		pairs(w, [][2]string{
			{"Address", addr(h.Addr)},
			{"Type", string(h.Type)},
			{"State", h.State.String()},
			{"Reason", query.Because(h.Reason)},
			{"Role", h.Role.String()},
			{"Service", service(h)},
			{"NQN", h.NQN},
			{"Access device", addr(h.Device)},
			{"Access port", h.Port},
			{"MAC", macText(h.MAC.IsZero(), h.MAC.String())},
			{"Wants notices", query.YesNo(h.Subscribes)},
			{"Zones", strings.Join(h.Zones, ", ")},
			{"Hard zoning", string(h.Hard)},
			{"Learned from", h.LearnedFrom},
			{"Known for", a.age(h.Since)},
			{"Expires in", expires},
			{"Conflict", conflict},
		})
		if h.Removal != nil {
			pairs(w, [][2]string{{"Its port", a.removal(h.Removal)}})
		}
		if h.Doubt {
			pairs(w, [][2]string{{"In doubt", "its LLDP frames come from another MAC address than they say (hosts.frame-source)"}})
		}
		for _, why := range h.Refused {
			pairs(w, [][2]string{{"Refused", why}})
		}
	}
}

func macText(zero bool, text string) string {
	if zero {
		return ""
	}
	return text
}

func zoneTable(w io.Writer, list []api.Zone) {
	rows := [][]string{}
	for _, z := range list {
		rows = append(rows, []string{z.Name, count(len(z.Members)), count(len(z.Hosts)), z.LearnedFrom, query.FewText(z.Members, 3)})
	}
	query.Table(w, "ZONE MEMBERS HOSTS LEARNED-FROM CONFIGURED", rows)
}

// inconsistentTable shows beside what is in force what each reflector says.
func inconsistentTable(w io.Writer, list []api.Zone) {
	rows := [][]string{}
	for _, z := range list {
		for _, r := range z.Words {
			says := "no such zone here"
			if r.Said {
				says = query.FewText(r.Members, 8)
			}
			rows = append(rows, []string{z.Name, query.FewText(z.Members, 4), r.Reflector.String(), says})
		}
	}
	query.Table(w, "ZONE IN-FORCE REFLECTOR SAYS", rows)
}

func zoneDetails(w io.Writer, z api.Zone) {
	pairs(w, [][2]string{{"Zone", z.Name}, {"Learned from", z.LearnedFrom}})
	fmt.Fprintf(w, "Members (%d):\n", len(z.Members))
	for _, m := range z.Members {
		fmt.Fprintln(w, "  "+query.Printable(m))
	}
	for _, r := range z.Words {
		fmt.Fprintf(w, "Reflector %s says (%d):\n", r.Reflector, len(r.Members))
		for _, m := range r.Members {
			fmt.Fprintln(w, "  "+query.Printable(m))
		}
	}
	fmt.Fprintf(w, "Hosts (%d):\n", len(z.Hosts))
	for _, h := range z.Hosts {
		fmt.Fprintln(w, "  "+h.String())
	}
}

func (a *app) portTable(w io.Writer, list []api.Port) {
	rows := [][]string{}
	for _, p := range list {
		rx, tx, crc := "", "", ""
		if c := p.Counters; c != nil {
			rx, tx, crc = count(c.RxFrames), count(c.TxFrames), count(c.RxCRC)
		}
		state := p.State
		if p.Removal != nil {
			state = a.removal(p.Removal)
		}
		rows = append(rows, []string{p.Name, state, upDown(p.AdminUp), upDown(p.Carrier), count(p.MTU),
			count(p.Neighbours), count(p.Hosts), count(p.Flaps), a.agePtr(p.LastFlap), rx, tx, crc})
	}
	query.Table(w, "PORT STATE ADMIN CARRIER MTU NEIGHBOURS HOSTS FLAPS LAST-FLAP RX-FRAMES TX-FRAMES RX-CRC", rows)
}

func (a *app) portDetails(w io.Writer, p api.Port) {
	flap := ""
	if p.LastFlap != nil {
		flap = a.age(*p.LastFlap) + " ago"
	}
	rows := [][2]string{
		{"Port", p.Name},
		{"State", p.State},
		{"Administrative", upDown(p.AdminUp)},
		{"Carrier", upDown(p.Carrier)},
		{"Index", count(p.Index)},
		{"MAC", macText(p.MAC.IsZero(), p.MAC.String())},
		{"MTU", count(p.MTU)},
		{"LLDP neighbours", count(p.Neighbours)},
		{"Hosts", count(p.Hosts)},
		{"Flaps", count(p.Flaps)},
		{"Last flap", flap},
	}
	if p.Removal != nil {
		rows = append(rows, [2]string{"Its hosts", a.removal(p.Removal)})
	}
	if c := p.Counters; c != nil {
		rows = append(rows,
			[2]string{"Received", fmt.Sprintf("%d frames, %d bytes, %d errors, %d CRC errors, %d dropped", c.RxFrames, c.RxBytes, c.RxErrors, c.RxCRC, c.RxDrops)},
			[2]string{"Sent", fmt.Sprintf("%d frames, %d bytes, %d dropped", c.TxFrames, c.TxBytes, c.TxDrops)},
			[2]string{"Carrier changes", count(c.CarrierChanges)})
	}
	pairs(w, rows)
}

func (a *app) noticeTable(w io.Writer, list []api.Notice) {
	rows := [][]string{}
	for _, n := range list {
		when := ""
		if n.Queued != nil {
			when = a.stamp(*n.Queued)
		}
		rows = append(rows, []string{when, count(uint64(n.Seq)), addr(n.Host), addr(n.Subject), n.State.String(), query.Because(n.Reason),
			n.Port, string(n.Status), count(n.Retries), sinceFault(&n, n.FaultToSent), micros(n.SentToAcked)})
	}
	query.Table(w, "QUEUED SEQ HOST SUBJECT STATE REASON PORT STATUS RETRIES FAULT-TO-SENT SENT-TO-ACKED", rows)
}

func (a *app) eventTable(w io.Writer, list []api.Event) {
	rows := [][]string{}
	for _, e := range list {
		rows = append(rows, []string{a.stamp(e.Time), e.Kind, e.Text})
	}
	query.Table(w, "TIME KIND EVENT", rows)
}

func (a *app) statusTable(w io.Writer, s api.Status) {
	roles := strings.Join(s.Roles, ", ")
	if roles == "" {
		roles = "standalone"
	}
	c := s.Counts
	pairs(w, [][2]string{
		{"Device", fmt.Sprintf("%s (%s)", addr(s.Device), s.Name)},
		{"Roles", roles},
		{"Version", s.Version},
		{"Running for", fmt.Sprintf("%s, process %d", query.Human(time.Duration(s.Uptime)), s.PID)},
		{"Synchronized", query.YesNo(s.Synced)},
		{"Hosts", fmt.Sprintf("%d local, %d remote, %d in conflict", c.HostsLocal, c.HostsRemote, c.Conflicts)},
		{"Zones", count(c.Zones)},
		{"Peers", fmt.Sprintf("%d of %d established", c.Established, c.Peers)},
		{"Ports", fmt.Sprintf("%d of %d up, %d LLDP neighbours", c.PortsUp, c.Ports, c.Neighbours)},
		{"Paths", fmt.Sprintf("%d watched, %d failed", c.Paths.Watched, c.Paths.Failed)},
		{"Faults", count(c.Faults)},
	})
	if s.HeldBack != nil {
		fmt.Fprintf(w, "Held back:     until %s: started without its state, no host it had told its reflectors is taken back before\n", a.stamp(*s.HeldBack))
	}
	if len(s.Warnings) == 0 {
		fmt.Fprintln(w, "Health:        good")
	}
	a.warningLines(w, s.Warnings)
	counterLines(w, s.Counters)
}

// counterLines lists the counters that are not zero, room by room.
func counterLines(w io.Writer, rooms map[string]any) {
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		values, ok := rooms[room].(map[string]any)
		if !ok {
			continue
		}
		var line []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if text := counter(values[name]); text != "" {
				line = append(line, name+"="+text)
			}
		}
		if len(line) > 0 {
			fmt.Fprintf(w, "Counters of %s: %s\n", query.Printable(room), query.Printable(strings.Join(line, " ")))
		}
	}
}

// counter gives a counter's digits, nothing for zero and for what is no number.
func counter(v any) string {
	f, ok := v.(float64)
	if !ok || f == 0 {
		return ""
	}
	b, err := json.Marshal(f)
	if err != nil {
		return ""
	}
	return string(b)
}
