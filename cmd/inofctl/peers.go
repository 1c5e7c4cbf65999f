package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

// columns is how wide a screen is taken to be.
const columns = 120

// syncText tells how a session began, in and out.
func syncText(p api.Peer) string {
	if p.SyncIn == "" && p.SyncOut == "" {
		return ""
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return dash(p.SyncIn) + "/" + dash(p.SyncOut)
}

// authText is how a session is authenticated, and with which password unless it is the
// one that is meant to be used.
func authText(p api.Peer) string {
	switch p.Password {
	case "", "current":
		return p.Auth
	}
	return p.Auth + " (" + p.Password + ")"
}

// peerTable has what a glance needs, within the width of a screen; what takes words
// comes below it.
func (a *app) peerTable(w io.Writer, list []api.Peer) {
	rows := [][]string{}
	for _, p := range list {
		state := string(p.State)
		if p.Refused {
			state = "Refused"
		}
		rows = append(rows, []string{addr(p.Device), p.Address, p.Role, state, a.age(p.Since), syncText(p),
			count(p.MessagesIn), count(p.MessagesOut), count(p.Reconnects), strings.TrimSuffix(p.Auth, "-sha256")})
	}
	query.Table(w, "DEVICE ADDRESS ROLE STATE FOR SYNC-IN/OUT IN OUT AGAIN AUTH", rows)
	for _, p := range list {
		for _, text := range a.peerNotes(p) {
			if !strings.Contains(text, p.Address) {
				text = p.Address + ": " + text
			}
			wrap(w, query.Printable(text), columns)
		}
	}
}

// peerNotes are sentences about a session that stands out.
func (a *app) peerNotes(p api.Peer) (list []string) {
	if p.LastError != "" {
		when := ""
		if p.LastErrorAt != nil {
			when = " (" + a.age(*p.LastErrorAt) + " ago)"
		}
		list = append(list, p.LastError+when)
	}
	if p.SyncOutWhy != "" {
		list = append(list, "sync out "+p.SyncOut+": "+p.SyncOutWhy)
	}
	if text := authText(p); text != p.Auth {
		list = append(list, "authenticated by "+text)
	}
	return list
}

// wrap writes a text in lines of at most so many columns, where it has blanks; the
// lines after the first are indented.
func wrap(w io.Writer, text string, columns int) {
	line, indent := "", ""
	for _, word := range strings.Fields(text) {
		if line != indent && len(line)+1+len(word) > columns {
			fmt.Fprintln(w, line)
			line, indent = "  ", "  "
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

func (a *app) peerDetails(w io.Writer, list []api.Peer) {
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		expires := ""
		if p.CertificateExpires != nil {
			expires = p.CertificateExpires.Format(time.RFC3339)
		}
		pairs(w, [][2]string{
			{"Device", addr(p.Device)},
			{"Address", p.Address},
			{"Role", p.Role},
			{"State", string(p.State)},
			{"For", a.age(p.Since)},
			{"Sync in/out", syncText(p)},
			{"Messages in", fmt.Sprintf("%d, %d bytes", p.MessagesIn, p.BytesIn)},
			{"Messages out", fmt.Sprintf("%d, %d bytes", p.MessagesOut, p.BytesOut)},
			{"Reconnects", count(p.Reconnects)},
			{"Authentication", authText(p)},
			{"Its certificate", expires},
			{"Keepalive/hold", query.Human(time.Duration(p.Keepalive)) + "/" + query.Human(time.Duration(p.Hold))},
		})
		for _, text := range a.peerNotes(p) {
			wrap(w, query.Printable(text), columns)
		}
	}
}
