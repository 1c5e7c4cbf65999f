package query

import (
	"cmp"
	"context"
	"fmt"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

var ports = list[api.Port]{
	name: "port", path: "ports", short: "Access ports with state and counters",
	read: func(ctx context.Context, src Source, _ Asked) ([]api.Port, error) { return src.Ports(ctx) },
	order: func(a, b api.Port) int {
		return cmp.Or(api.ComparePorts(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	},
	arg:  nameArg("NAME", PortNames, func(p *api.Port) string { return p.Name }),
	none: "no access port %q on this device",
	columns: []column[api.Port]{
		{"PORT", func(r *api.Port, _ *Page) string { return r.Name }},
		{"STATE", func(r *api.Port, p *Page) string { return cmp.Or(removal(r.Removal, p), r.State) }},
		{"ADMIN", func(r *api.Port, _ *Page) string { return UpDown(r.AdminUp) }},
		{"CARRIER", func(r *api.Port, _ *Page) string { return UpDown(r.Carrier) }},
		{"MTU", func(r *api.Port, _ *Page) string { return Count(r.MTU) }},
		{"NEIGHBOURS", func(r *api.Port, _ *Page) string { return Count(r.Neighbours) }},
		{"HOSTS", func(r *api.Port, _ *Page) string { return Count(r.Hosts) }},
		{"FLAPS", func(r *api.Port, _ *Page) string { return Count(r.Flaps) }},
		{"LAST-FLAP", func(r *api.Port, p *Page) string { return p.Ago(r.LastFlap) }},
		{"RX-FRAMES", counted(func(c *fabric.Counters) uint64 { return c.RxFrames })},
		{"TX-FRAMES", counted(func(c *fabric.Counters) uint64 { return c.TxFrames })},
		{"RX-CRC", counted(func(c *fabric.Counters) uint64 { return c.RxCRC })},
		{"RX-ERRORS", counted(func(c *fabric.Counters) uint64 { return c.RxErrors })},
		{"RX-DROPS", counted(func(c *fabric.Counters) uint64 { return c.RxDrops })},
		{"TX-DROPS", counted(func(c *fabric.Counters) uint64 { return c.TxDrops })},
		{"FORBIDDEN", func(r *api.Port, _ *Page) string {
			if r.Forbidden == nil {
				return ""
			}
			return Count(r.Forbidden.In + r.Forbidden.Out)
		}},
	},
	details: portDetails,
}.query()

// counted is a counter of a port; nothing where the dataplane could not say.
func counted(of func(*fabric.Counters) uint64) func(*api.Port, *Page) string {
	return func(r *api.Port, _ *Page) string {
		if r.Counters == nil {
			return ""
		}
		return Count(of(r.Counters))
	}
}

func portDetails(p *Page, r *api.Port) {
	flap, mac := "", ""
	if r.LastFlap != nil {
		flap = p.Ago(r.LastFlap) + " ago"
	}
	if !r.MAC.IsZero() {
		mac = r.MAC.String()
	}
	rows := [][2]string{
		{"Port", r.Name},
		{"State", r.State},
		{"Administrative", UpDown(r.AdminUp)},
		{"Carrier", UpDown(r.Carrier)},
		{"Index", Count(r.Index)},
		{"MAC", mac},
		{"MTU", Count(r.MTU)},
		{"LLDP neighbours", Count(r.Neighbours)},
		{"Hosts", Count(r.Hosts)},
		{"Flaps", Count(r.Flaps)},
		{"Last flap", flap},
	}
	if r.Removal != nil {
		rows = append(rows, [2]string{"Its hosts", removal(r.Removal, p)})
	}
	if r.Guard != "" {
		rows = append(rows, [2]string{"Guarded by", r.Guard})
	}
	if f := r.Forbidden; f != nil {
		rows = append(rows, [2]string{"Forbidden", fmt.Sprintf("%d LLDP or SNSD frames from its host to others, %d from others to its host: all were dropped", f.In, f.Out)})
	}
	if c := r.Counters; c != nil {
		rows = append(rows,
			[2]string{"Received", fmt.Sprintf("%d frames, %d bytes, %d errors, %d CRC errors, %d dropped", c.RxFrames, c.RxBytes, c.RxErrors, c.RxCRC, c.RxDrops)},
			[2]string{"Sent", fmt.Sprintf("%d frames, %d bytes, %d dropped", c.TxFrames, c.TxBytes, c.TxDrops)},
			[2]string{"Carrier changes", Count(c.CarrierChanges)})
	}
	p.Pairs(rows)
}
