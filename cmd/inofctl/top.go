package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

// topRow is what a port did in one interval.
type topRow struct {
	Port   string  `json:"port"`
	State  string  `json:"state"`
	Hosts  int     `json:"hosts"`
	RxRate float64 `json:"rx_bytes_per_s"`
	TxRate float64 `json:"tx_bytes_per_s"`
	Errors uint64  `json:"rx_errors"` // in the interval
	CRC    uint64  `json:"rx_crc_errors"`
	Drops  uint64  `json:"rx_dropped"`
	Flaps  uint64  `json:"flaps"`
}

// topPage is one interval of a device.
type topPage struct {
	Time     time.Time  `json:"time"`
	Seconds  float64    `json:"interval_s"`
	Counts   api.Counts `json:"counts"`
	Warnings int        `json:"warnings"`
	Ports    []topRow   `json:"ports"` // those with most traffic first
}

func (a *app) topCmd() *cobra.Command {
	var every time.Duration
	var times int
	c := &cobra.Command{Use: "top", Short: "Ports by their traffic, with errors and what the device holds, again and again", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return usagef("--interval of %v: at least 100ms", every)
			}
			var before []api.Port
			var at time.Time
			for n := 0; times == 0 || n <= times; n++ {
				ports, st, err := a.portsAndStatus(cmd)
				if err != nil {
					return err
				}
				now := time.Now()
				if before != nil {
					p := pageOf(before, ports, now.Sub(at))
					p.Time, p.Counts, p.Warnings = now, st.Counts, len(st.Warnings)
					if err := a.print(p, func(w io.Writer) { a.topTable(w, p, times != 1) }); err != nil {
						return err
					}
				}
				if before, at = ports, now; n == times && times > 0 {
					return nil
				}
				if !sleep(cmd.Context(), every) {
					return nil
				}
			}
			return nil
		}}
	c.Flags().DurationVar(&every, "interval", 2*time.Second, "how long each look is")
	c.Flags().IntVarP(&times, "times", "n", 0, "so many looks, then end; 0: until it is interrupted")
	return c
}

// portsAndStatus is what top shows of the daemon.
func (a *app) portsAndStatus(cmd *cobra.Command) (ports []api.Port, st api.Status, err error) {
	err = a.call(cmd, func(ctx context.Context, c *api.Client) (err error) {
		if ports, err = api.Ask[[]api.Port](ctx, c, "ports", nil); err == nil {
			st, err = api.Ask[api.Status](ctx, c, "status", nil)
		}
		return err
	})
	return ports, st, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// pageOf compares two readings. A counter that went back began anew: it counts from nothing.
func pageOf(before, now []api.Port, d time.Duration) topPage {
	p := topPage{Seconds: d.Seconds(), Ports: []topRow{}}
	for i := range now {
		r := topRow{Port: now[i].Name, State: now[i].State, Hosts: now[i].Hosts}
		j := slices.IndexFunc(before, func(b api.Port) bool { return b.Name == r.Port })
		if c := now[i].Counters; c != nil && j >= 0 && before[j].Counters != nil {
			b := before[j].Counters
			r.RxRate, r.TxRate = float64(since(b.RxBytes, c.RxBytes))/d.Seconds(), float64(since(b.TxBytes, c.TxBytes))/d.Seconds()
			r.Errors, r.CRC, r.Drops = since(b.RxErrors, c.RxErrors), since(b.RxCRC, c.RxCRC), since(b.RxDrops, c.RxDrops)
		}
		if j >= 0 {
			r.Flaps = since(before[j].Flaps, now[i].Flaps)
		}
		p.Ports = append(p.Ports, r)
	}
	slices.SortStableFunc(p.Ports, func(a, b topRow) int {
		return cmp.Or(cmp.Compare(b.RxRate+b.TxRate, a.RxRate+a.TxRate), api.ComparePorts(a.Port, b.Port))
	})
	return p
}

func since(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func (a *app) topTable(w io.Writer, p topPage, again bool) {
	if again {
		fmt.Fprint(w, "\x1b[H\x1b[2J") // of a terminal, from its upper left corner
	}
	n := p.Counts
	fmt.Fprintf(w, "%s  hosts %d here, %d elsewhere  ports up %d of %d  sessions %d of %d  faults %d  warnings %d\n\n", p.Time.Format(time.TimeOnly),
		n.HostsLocal, n.HostsRemote, n.PortsUp, n.Ports, n.Established, n.Peers, n.Faults, p.Warnings)
	rows := [][]string{}
	for _, r := range p.Ports {
		rows = append(rows, []string{r.Port, r.State, fmt.Sprint(r.Hosts), rate(r.RxRate), rate(r.TxRate), fmt.Sprint(r.Errors), fmt.Sprint(r.CRC), fmt.Sprint(r.Drops), fmt.Sprint(r.Flaps)})
	}
	query.Table(w, "PORT STATE HOSTS RX/S TX/S ERRORS CRC DROPS FLAPS", rows)
}

// rate writes bytes a second as bits a second, as links are measured.
func rate(bytes float64) string {
	bits := bytes * 8
	for _, u := range []struct {
		unit string
		of   float64
	}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}} {
		if bits >= u.of {
			return fmt.Sprintf("%.1f %s", bits/u.of, u.unit)
		}
	}
	return fmt.Sprintf("%.0f bit", bits)
}
