package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/report"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/model/workload"
)

// newFabricCmd runs the embedded dataplane: scenarios, sizing, speed.
func newFabricCmd() *cobra.Command {
	c := group("fabric", "Simulate lossless fabrics frame by frame", fabricRunCmd(), fabricCheckCmd(), fabricCompareCmd(), fabricSweepCmd(), fabricListCmd(), fabricHeadroomCmd(), fabricTrainCmd(), fabricBenchCmd(),
		fabricServeCmd(), fabricStatusCmd(), fabricFaultCmd())
	c.Long = `Simulates lossless Ethernet fabrics frame by frame: switches with shared buffers, PFC,
ECN and deadlock watchdogs, links, and RDMA NICs with DCQCN. See docs/model.md.`
	return c
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// runScenario loads and runs one file with progress on stderr.
func runScenario(cmd *cobra.Command, path string, seed uint64, cores int, quiet, live, film bool) (*scenario.Result, error) {
	f, err := scenario.Load(path)
	if err != nil {
		return nil, err
	}
	if seed != 0 {
		f.Seed = seed
	}
	f.Cores, f.Film = cores, film
	var p scenario.Progress
	if live {
		f.Live = newLiveView(cmd.ErrOrStderr(), time.Now).see
	} else if !quiet {
		p = progressTo(cmd.ErrOrStderr(), time.Now)
	}
	return f.Run(cmd.Context(), p)
}

// progressTo prints how far a run is and how long it will still take, once a second.
func progressTo(w io.Writer, clock func() time.Time) scenario.Progress {
	begun := clock()
	last := begun
	return func(now, end model.Time, events uint64) {
		t := clock()
		if t.Sub(last) < time.Second || now == 0 {
			return
		}
		last = t
		spent := t.Sub(begun)
		left := time.Duration(float64(spent) * (float64(end)/float64(now) - 1))
		fmt.Fprintf(w, "%v of %v, %.1f M events, about %v left\n", now, end, float64(events)/1e6, left.Round(time.Second))
	}
}

func fabricRunCmd() *cobra.Command {
	var csvDir, plotDir, format, record string
	var seed uint64
	var quiet, live bool
	var cores int
	c := &cobra.Command{Use: "run FILE", Short: "Run a scenario and check what it expects", Args: arguments(1, 1),
		Long: `Runs a scenario file and prints throughput, completion times, pauses, queue peaks and
losses. Ends with an error when an expectation of the file is not met.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if live && quiet {
				return usagef("--live shows a run, --quiet does not")
			}
			res, err := runScenario(cmd, args[0], seed, cores, quiet, live, record != "")
			if res == nil {
				return err
			}
			if asJSON(cmd) {
				if e := printJSON(cmd.OutOrStdout(), res); e != nil {
					return e
				}
			} else if e := report.Summary(cmd.OutOrStdout(), res); e != nil {
				return e
			}
			if err != nil {
				return err
			}
			if err := writeResult(cmd.ErrOrStderr(), res, csvDir, plotDir, format); err != nil {
				return err
			}
			if record != "" {
				if err := writeFilm(cmd.ErrOrStderr(), res.Film, record); err != nil {
					return err
				}
			}
			if res.Totals.Lossless > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "inofctl: %d frames were lost on lossless queues\n", res.Totals.Lossless)
			}
			return res.Check()
		}}
	c.Flags().StringVar(&csvDir, "csv", "", "directory for series.csv, flows.csv, queues.csv, ports.csv and control.csv")
	c.Flags().StringVar(&plotDir, "plot", "", "directory for pictures of the recorded series")
	c.Flags().StringVar(&record, "record", "", "file to record the run in, for the dashboard's --record")
	c.Flags().Var(&oneOf{value: &format, options: []string{"svg", "png"}}, "plot-format", "form of the pictures")
	format = "svg"
	c.Flags().Uint64Var(&seed, "seed", 0, "seed instead of the file's")
	c.Flags().IntVar(&cores, "cores", 1, "cores to use where the scenario has no faults and no storage; the result is the same")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress")
	c.Flags().BoolVar(&live, "live", false, "show progress, rate and the fullest queues while it runs")
	return c
}

// writeFilm writes a recorded run.
func writeFilm(w io.Writer, film *scenario.Film, path string) error {
	data, err := json.Marshal(film)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(w, "wrote %s: %d frames; look at it with: inofctl dashboard --record %s\n", path, len(film.Frames), path)
	return nil
}

func writeResult(w io.Writer, res *scenario.Result, csvDir, plotDir, format string) error {
	var files []string
	if csvDir != "" {
		done, err := report.CSV(csvDir, res)
		if err != nil {
			return err
		}
		files = append(files, done...)
	}
	if plotDir != "" {
		done, err := report.Plots(plotDir, format, res)
		if err != nil {
			return err
		}
		files = append(files, done...)
	}
	for _, f := range files {
		fmt.Fprintln(w, "wrote", f)
	}
	return nil
}

func fabricCheckCmd() *cobra.Command {
	return &cobra.Command{Use: "check FILE...", Short: "Read scenarios without running them", Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				f, err := scenario.Load(path)
				if err == nil {
					err = f.Check()
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", path, f.About)
			}
			return nil
		}}
}

func fabricHeadroomCmd() *cobra.Command {
	var rate, reaction, period string
	var km, metres float64
	var mtu int
	var proof bool
	c := &cobra.Command{Use: "headroom --rate RATE --km KM", Short: "Compute the buffer a lossless link needs, and prove it", Args: arguments(0, 0),
		Long: `Computes what a switch port must be able to buffer for one lossless class on a link of the
given length: headroom, XOFF threshold and buffer for classic PFC, and the buffer for point
braking (ABS-PFC). Then simulates the link with a receiver that keeps stopping: at these sizes
nothing may be lost and the receiver must be used to 99 %; with less, one of the two must fail.`,
		Example: "  inofctl fabric headroom --rate 400G --km 40",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := model.ParseRate(rate)
			if err != nil {
				return usageError{err}
			}
			re := model.QbbReaction
			if reaction != qbb {
				if re, err = model.ParseTime(reaction); err != nil {
					return usageError{fmt.Errorf("--reaction: %w, or %s", err, qbb)}
				}
			}
			pe, err := model.ParseTime(period)
			if err != nil {
				return usageError{err}
			}
			length := km + metres/1000
			if !(length > 0) || length > 2000 || mtu < 128 || mtu > 65000 {
				return usagef("length %g km and frames of %d bytes: want up to 2000 km and 128..65000 bytes", length, mtu)
			}
			h := model.Headroom{Rate: r, Delay: model.KM(length), MTU: int32(mtu), Reaction: re, Cell: workload.LongCell}
			a := workload.NewSizing(h, pe)
			if proof {
				if err := a.Prove(); err != nil {
					return err
				}
			}
			if asJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), a)
			}
			if err := printSizing(cmd.OutOrStdout(), a, length); err != nil {
				return err
			}
			for _, p := range a.Proof {
				if !p.OK {
					return fmt.Errorf("%s: the simulation does not agree with the computation", p.What)
				}
			}
			return nil
		}}
	f := c.Flags()
	f.StringVar(&rate, "rate", "100G", "speed of the link")
	f.Float64Var(&km, "km", 0, "length of the link in kilometres")
	f.Float64Var(&metres, "m", 0, "length in metres, added to --km")
	f.IntVar(&mtu, "mtu", 4200, "largest frame on the wire in bytes")
	f.StringVar(&reaction, "reaction", qbb, "time from the arrival of a PFC frame to silence; "+qbb+": the longest that the standards allow at 100G, 4.47us")
	f.StringVar(&period, "period", "0", "period of point braking (0: a fiftieth of the round trip, at most 20us)")
	f.BoolVar(&proof, "proof", true, "simulate it")
	return c
}

// qbb names the standard's own reaction time.
const qbb = "802.1Qbb"

// verdict says in words what the simulation showed.
func verdict(a *workload.Sizing) string {
	if len(a.Proof) == 0 {
		return "computed, not simulated"
	}
	for _, p := range a.Proof {
		if !p.OK {
			return "the simulation does NOT agree, see below"
		}
	}
	if len(a.Proof) == 1 {
		return "simulated: with it nothing is lost"
	}
	less := "a tenth less"
	if a.Room-a.Room/10 > a.B2T+a.Headroom.Rate.Bytes(a.Headroom.Reaction) {
		less = "what the wire holds alone"
	}
	return fmt.Sprintf("simulated: with it nothing is lost, with %s %d frames are", less, a.Proof[1].Worst.Drops)
}

func printSizing(w io.Writer, a *workload.Sizing, km float64) error {
	h := a.Headroom
	fmt.Fprintf(w, "headroom %.2f MB (%d bytes) for one lossless class at %v over %g km; %s\n", float64(a.Room)/1e6, a.Room, h.Rate, km, verdict(a))
	fmt.Fprintf(w, "frames of %d bytes, reaction %v: %d bytes are on the wire both ways (B x 2T)\n\n", h.MTU, h.Reaction, a.B2T)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "classic PFC\tXOFF threshold\t%d bytes\t%.2f MB\n", a.Xoff, float64(a.Xoff)/1e6)
	fmt.Fprintf(tw, "\theadroom\t%d bytes\t%.2f MB\n", a.Room, float64(a.Room)/1e6)
	fmt.Fprintf(tw, "\tbuffer in all\t%d bytes\t%.2f MB\n", a.Classic, float64(a.Classic)/1e6)
	if a.Braking > 0 {
		fmt.Fprintf(tw, "point braking\tbuffer in all\t%d bytes\t%.2f MB\n", a.Braking, float64(a.Braking)/1e6)
	} else {
		fmt.Fprintf(tw, "point braking\tnot for a link of less than 10 km, 35 decision periods or 100 frames both ways\t\t\n")
	}
	if len(a.Proof) > 0 {
		fmt.Fprint(tw, "\nsimulated\treceiver\tframes lost\tuse of the receiver\tpeak, B x 2T\n")
	}
	for _, p := range a.Proof {
		not := ""
		if !p.OK {
			not = "  NOT AS EXPECTED"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%.2f %%\t%.3f%s\n", p.What, p.Worst.Pattern, p.Worst.Drops, 100*p.Worst.Use, float64(p.Worst.Peak)/float64(a.B2T), not)
	}
	return tw.Flush()
}

func fabricBenchCmd() *cobra.Command {
	var only string
	var count int
	c := &cobra.Command{Use: "bench", Short: "Measure the speed of the model on the reference workloads", Args: arguments(0, 0),
		Long: `Runs W1, W2 and W3 (docs/performance.md) with DCQCN, all features on, on one core, and prints
frame-hops a second of processor time, peak memory and set-up time beside published peers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			count = max(1, count)
			all := count
			if only == "" { // every workload, and the last on one core, on two, and split
				all *= len(workload.References) + 3
			}
			begun, p, runs := time.Now(), progress.To(cmd.ErrOrStderr(), "runs"), 0
			done := func() { runs++; p.At(runs, all, time.Since(begun)) }
			if err := bench(cmd.OutOrStdout(), only, count, done); err != nil || only != "" {
				return err
			}
			return benchCores(cmd.OutOrStdout(), count, done)
		}}
	c.Flags().StringVar(&only, "only", "", "one workload: W1, W2 or W3")
	c.Flags().IntVar(&count, "count", 3, "runs of each; the median is printed")
	return c
}

// peers are frame-hops a second, in millions, of other simulators on one core, as
// quoted in docs/performance.md: HPCC ns-3, ns-3.39, htsim with DCQCN, htsim PFC only.
var peers = map[string][4]float64{"W1": {0.93, 0.75, 2.0, 8.0}, "W2": {1.07, 0.80, 2.0, 3.5}, "W3": {0.42, 0.28, 0.89, 1.17}}

func bench(w io.Writer, only string, count int, done func()) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "workload\tframe-hops\tset-up ms\trun s\tM hops/s\tpeak RSS MB\tHPCC ns-3\tns-3.39\thtsim DCQCN\thtsim PFC only\ttimes HPCC ns-3\t\n")
	found := false
	for _, r := range workload.References {
		if only != "" && !strings.EqualFold(only, r.Name) {
			continue
		}
		found = true
		m, err := workload.Measure(r, count, done)
		if err != nil {
			return err
		}
		p := peers[r.Name]
		fmt.Fprintf(tw, "%s\t%d\t%.2f\t%.3f\t%.2f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t\n", r.Name, m.Hops, m.SetUp.Seconds()*1e3, m.CPU.Seconds(), m.Speed/1e6, megabytes(m.Peak), p[0], p[1], p[2], p[3], m.Speed/1e6/p[0])
	}
	if !found {
		return usagef("no workload %q", only)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "run and speed in processor time of one core; peers as published, on their own machine; %d processors here\n", runtime.NumCPU())
	return err
}

// benchCores compares W3 on one core and on two by the clock on the wall, and by the processor
// time of what each core has to do.
func benchCores(w io.Writer, count int, done func()) error {
	if runtime.NumCPU() < 2 {
		return nil
	}
	w3 := workload.References[2]
	var wall, cpu [3]time.Duration
	var ideal []float64
	for range count {
		for cores := 1; cores <= 2; cores++ {
			t, c, err := workload.Wall(w3, cores)
			if err != nil {
				return err
			}
			if wall[cores] == 0 || t < wall[cores] {
				wall[cores], cpu[cores] = t, c
			}
			done()
		}
		_, x, err := workload.Split(w3, 2)
		if err != nil {
			return err
		}
		ideal = append(ideal, x)
		done()
	}
	slices.Sort(ideal)
	_, err := fmt.Fprintf(w, `W3 by the clock, best of %d: one core %.2f s, two cores %.2f s (processor time %.2f and %.2f s), %.2f times as fast
by the processor time of the longer half of each window two cores could be %.2f times as fast
`, count, wall[1].Seconds(), wall[2].Seconds(), cpu[1].Seconds(), cpu[2].Seconds(), wall[1].Seconds()/wall[2].Seconds(), ideal[len(ideal)/2])
	return err
}

func megabytes(b int64) string {
	if b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(b)/1e6)
}
