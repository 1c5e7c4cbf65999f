package query

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
)

var peers = list[api.Peer]{
	name: "peer", path: "peers", short: "Sessions to reflectors and clients, or all about those of one device",
	read: func(ctx context.Context, src Source, _ Asked) ([]api.Peer, error) { return src.Peers(ctx) },
	order: func(a, b api.Peer) int {
		return cmp.Or(a.Device.Compare(b.Device), cmp.Compare(a.Address, b.Address))
	},
	arg:  &filter[api.Peer]{Filter{Name: "device", Word: "DEVICE", Kind: Address}, ofDevice},
	none: "there is no session with device %s, and no attempt at one",
	// A glance must fit a screen; what takes words comes below it.
	show: func(p *Page, rows *[]api.Peer, _ Asked) {
		p.rows(tableOf(p, *rows, peerColumns))
		for i := range *rows {
			for _, text := range peerNotes(p, &(*rows)[i]) {
				if at := (*rows)[i].Address; !strings.Contains(text, at) {
					text = at + ": " + text
				}
				p.Wrap(text)
			}
		}
	},
	details: peerDetails,
}.query()

var peerColumns = []column[api.Peer]{
	{"DEVICE", func(r *api.Peer, _ *Page) string { return Addr(r.Device) }},
	{"ADDRESS", func(r *api.Peer, _ *Page) string { return r.Address }},
	{"ROLE", func(r *api.Peer, _ *Page) string { return r.Role }},
	{"STATE", func(r *api.Peer, _ *Page) string {
		if r.Refused {
			return "Refused"
		}
		return string(r.State)
	}},
	{"FOR", func(r *api.Peer, p *Page) string { return p.Age(r.Since) }},
	{"SYNC-IN/OUT", func(r *api.Peer, _ *Page) string { return syncText(r) }},
	{"IN", func(r *api.Peer, _ *Page) string { return Count(r.MessagesIn) }},
	{"OUT", func(r *api.Peer, _ *Page) string { return Count(r.MessagesOut) }},
	{"AGAIN", func(r *api.Peer, _ *Page) string { return Count(r.Reconnects) }},
	{"AUTH", func(r *api.Peer, _ *Page) string { return strings.TrimSuffix(r.Auth, "-sha256") }},
}

// ofDevice is for sessions with a device, and for attempts at one by its address.
func ofDevice(want string) func(*api.Peer) bool {
	dev, _ := netip.ParseAddr(want)
	dev = dev.Unmap()
	return func(r *api.Peer) bool {
		at, err := netip.ParseAddrPort(r.Address)
		return r.Device == dev || !r.Device.IsValid() && err == nil && at.Addr().Unmap() == dev
	}
}

// syncText tells how a session began, in and out.
func syncText(r *api.Peer) string {
	if r.SyncIn == "" && r.SyncOut == "" {
		return ""
	}
	return cmp.Or(r.SyncIn, None) + "/" + cmp.Or(r.SyncOut, None)
}

// authText is how a session is authenticated, and with which password unless it is the
// one that is meant to be used.
func authText(r *api.Peer) string {
	switch r.Password {
	case "", "current":
		return r.Auth
	}
	return r.Auth + " (" + r.Password + ")"
}

// peerNotes are sentences about a session that stands out.
func peerNotes(p *Page, r *api.Peer) (list []string) {
	if r.LastError != "" {
		when := ""
		if r.LastErrorAt != nil {
			when = " (" + p.Ago(r.LastErrorAt) + " ago)"
		}
		list = append(list, r.LastError+when)
	}
	if r.SyncOutWhy != "" {
		list = append(list, "sync out "+r.SyncOut+": "+r.SyncOutWhy)
	}
	if text := authText(r); text != r.Auth {
		list = append(list, "authenticated by "+text)
	}
	if r.SlowedSince != nil {
		list = append(list, "it sends more records than a device may, and has been read slower for "+p.Ago(r.SlowedSince))
	}
	return list
}

func peerDetails(p *Page, r *api.Peer) {
	expires := ""
	if r.CertificateExpires != nil {
		expires = r.CertificateExpires.Format(time.RFC3339)
	}
	p.Pairs([][2]string{
		{"Device", Addr(r.Device)},
		{"Address", r.Address},
		{"Role", r.Role},
		{"State", string(r.State)},
		{"For", p.Age(r.Since)},
		{"Sync in/out", syncText(r)},
		{"Messages in", fmt.Sprintf("%d, %d bytes", r.MessagesIn, r.BytesIn)},
		{"Messages out", fmt.Sprintf("%d, %d bytes", r.MessagesOut, r.BytesOut)},
		{"Reconnects", Count(r.Reconnects)},
		{"Authentication", authText(r)},
		{"Its certificate", expires},
		{"Keepalive/hold", Human(time.Duration(r.Keepalive)) + "/" + Human(time.Duration(r.Hold))},
	})
	for _, text := range peerNotes(p, r) {
		p.Wrap(text)
	}
}
