package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/openinof/inof/model/scenario"
)

// CSV writes series.csv, flows.csv, queues.csv, ports.csv and, with a control plane, control.csv
// into a directory, which is made if it is not there; it gives the names of the files.
func CSV(dir string, r *scenario.Result) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var done []string
	for _, f := range []struct {
		name string
		rows func(*csv.Writer) error
	}{{"series.csv", r2(r, seriesRows)}, {"flows.csv", r2(r, flowRows)}, {"queues.csv", r2(r, queueRows)}, {"ports.csv", r2(r, portRows)}, {"control.csv", r2(r, controlRows)}} {
		if f.name == "control.csv" && r.Control == nil {
			continue
		}
		path := filepath.Join(dir, f.name)
		if err := writeFile(path, func(w io.Writer) error {
			c := csv.NewWriter(w)
			if err := f.rows(c); err != nil {
				return err
			}
			c.Flush()
			return c.Error()
		}); err != nil {
			return done, err
		}
		done = append(done, path)
	}
	return done, nil
}

func r2(r *scenario.Result, f func(*scenario.Result, *csv.Writer) error) func(*csv.Writer) error {
	return func(c *csv.Writer) error { return f(r, c) }
}

func writeFile(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

func seriesRows(r *scenario.Result, c *csv.Writer) error {
	if err := c.Write(append([]string{"ms"}, r.Series.Names...)); err != nil {
		return err
	}
	for i, t := range r.Series.Times {
		row := []string{num(t)}
		for _, v := range r.Series.Values {
			row = append(row, num(v[i]))
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	return nil
}

func flowRows(r *scenario.Result, c *csv.Writer) error {
	if err := c.Write([]string{"traffic", "from", "to", "acked_bytes", "start_ms", "fct_ms", "slowdown", "gbps", "retransmitted"}); err != nil {
		return err
	}
	for _, f := range r.Flows {
		if err := c.Write([]string{f.Group, f.Src, f.Dst, strconv.FormatInt(f.Bytes, 10), num(f.Start), f.FCT.String(), f.Slowdown.String(), num(f.Goodput), strconv.FormatUint(f.Retx, 10)}); err != nil {
			return err
		}
	}
	return nil
}

func queueRows(r *scenario.Result, c *csv.Writer) error {
	if err := c.Write([]string{"port", "queue", "tx_frames", "tx_bytes", "drops", "drop_bytes", "ecn_marks", "peak_bytes", "peak_ingress_bytes", "peak_headroom_bytes", "guaranteed_bytes", "service_bytes", "headroom_bytes", "rx_xoff", "rx_xon", "tx_xoff", "tx_xon", "paused_ms", "deadlocks", "recoveries"}); err != nil {
		return err
	}
	for _, p := range r.Ports {
		s := &p.Stats
		row := []string{p.Port, strconv.Itoa(p.Queue)}
		for _, v := range []uint64{s.TxFrames, s.TxBytes, s.Drops, s.DropBytes, s.Marks, uint64(s.Peak), uint64(s.PeakIngress), uint64(s.PeakHeadroom), uint64(s.Guaranteed), uint64(s.Service), uint64(s.Headroom), s.RxXoff, s.RxXon, s.TxXoff, s.TxXon} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		row = append(row, num(s.Paused.Seconds()*1e3), strconv.FormatUint(s.Deadlocks, 10), strconv.FormatUint(s.Recoveries, 10))
		if err := c.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// controlRows are the steps of the control plane.
func controlRows(r *scenario.Result, c *csv.Writer) error {
	if err := c.Write([]string{"s", "step", "node", "to", "what"}); err != nil {
		return err
	}
	for _, s := range r.Control.Log {
		if err := c.Write([]string{strconv.FormatFloat(s.At.Seconds(), 'f', 9, 64), s.Step, s.Node, s.To, s.What}); err != nil {
			return err
		}
	}
	return nil
}

func portRows(r *scenario.Result, c *csv.Writer) error {
	if err := c.Write([]string{"port", "tx_frames", "tx_bytes", "rx_frames", "rx_bytes", "tx_drops", "rx_drops", "rx_crc_errors", "tx_errors", "ecn_marks", "carrier_changes", "tx_utilisation", "rx_utilisation"}); err != nil {
		return err
	}
	for i := range r.Links {
		l := &r.Links[i]
		row := []string{l.Port}
		for _, v := range []uint64{l.TxFrames, l.TxBytes, l.RxFrames, l.RxBytes, l.TxDrops, l.RxDrops, l.RxCRC, l.TxErrors, l.Marks, l.CarrierChanges} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		if err := c.Write(append(row, num(l.TxUse), num(l.RxUse))); err != nil {
			return err
		}
	}
	return nil
}
