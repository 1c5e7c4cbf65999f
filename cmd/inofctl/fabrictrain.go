package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/train"
)

// fabricTrainCmd makes the network of AI-ECN's inference mode, or judges one.
func fabricTrainCmd() *cobra.Command {
	p := train.NewPlan()
	var out, judged string
	var judge bool
	c := &cobra.Command{Use: "train", Short: "Train the network of AI-ECN's inference mode, or judge it on other traffic", Args: arguments(0, 0),
		Long: `Trains the small network with which AI-ECN chooses thresholds of marking, on short runs of the
simulator, and writes its weights; the same seed gives the same file on every machine. With
--judge it runs a network on traffic that no training had, beside fixed thresholds and the other
mechanisms, and prints how each did.`,
		Example: "  inofctl fabric train --seed 1 --generations 25 --out aiecn.weights\n  inofctl fabric train --judge",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if judge {
				return judgeNetwork(cmd, judged, p.Workers)
			}
			if p.Generations < 1 || p.Generations > 1000 {
				return usagef("--generations %d: want 1..1000", p.Generations)
			}
			begun, left := time.Now(), progress.To(cmd.ErrOrStderr(), "generations")
			p.Told = func(g int, mean, best int64) {
				fmt.Fprintf(cmd.ErrOrStderr(), "generation %d of %d: score %.3f in the mean, %.3f the best\n", g+1, p.Generations, float64(mean)/1e6, float64(best)/1e6)
				left.At(g+1, p.Generations, time.Since(begun))
			}
			net, err := p.Train(cmd.Context())
			if err != nil {
				return err
			}
			if out == "" {
				_, err = io.WriteString(cmd.OutOrStdout(), net.Text())
				return err
			}
			return os.WriteFile(out, []byte(net.Text()), 0o644)
		}}
	f := c.Flags()
	f.Uint64Var(&p.Seed, "seed", p.Seed, "seed of changes and traffic")
	f.IntVar(&p.Generations, "generations", p.Generations, "generations of 24 tries, each of 24 ms of virtual time")
	f.IntVar(&p.Workers, "cores", p.Workers, "tries at a time; the result is the same")
	f.StringVar(&out, "out", "", "file for the weights (default: print them)")
	f.BoolVar(&judge, "judge", false, "do not train: compare a network with what else there is")
	f.StringVar(&judged, "weights", "", "with --judge: file of the network (default: the one that is shipped)")
	return c
}

func judgeNetwork(cmd *cobra.Command, path string, workers int) error {
	net, err := model.ShippedThresholdNet()
	if path != "" {
		text, e := os.ReadFile(path)
		if e != nil {
			return e
		}
		net, err = model.ParseThresholdNet(string(text))
	}
	if err != nil {
		return err
	}
	table, err := train.Judge(cmd.Context(), net, workers)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), table)
	}
	tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "traffic\tthresholds\tscore\tuse\tmice mean us\tmice p99 us\tlong Gb/s\tXOFF\tdrops\tinferred\tunlike\t\n")
	for _, r := range table {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.3f\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t%d\t\n", r.Case, r.Marks, r.Scored(), r.Use, r.MiceMean, r.MiceP99, r.Long, r.Xoff, r.Drops, r.Inferred, r.Unlike)
	}
	return tw.Flush()
}
