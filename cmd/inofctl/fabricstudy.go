package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/model/report"
	"github.com/openinof/inof/model/scenario"
)

// studyFlags are what compare and sweep have in common.
type studyFlags struct {
	seeds, cores int
	metrics      []string
	plotDir      string
}

func (s *studyFlags) add(f *pflag.FlagSet) {
	f.IntVar(&s.seeds, "seeds", 1, "runs of each, with seeds counted from the file's")
	f.IntVar(&s.cores, "cores", runtime.NumCPU(), "runs at a time")
	f.StringSliceVar(&s.metrics, "metric", nil, "metrics to show, * for any characters; without it, all that differ")
	f.StringVar(&s.plotDir, "plot", "", "directory for pictures")
}

// run runs the variants and prints the table.
func (s *studyFlags) run(cmd *cobra.Command, variants []scenario.Variant) (*scenario.Study, error) {
	if s.seeds < 1 || s.seeds > 10_000 || s.cores < 1 {
		return nil, usagef("--seeds %d, --cores %d: want 1 to 10000 seeds and a core", s.seeds, s.cores)
	}
	begun, p := time.Now(), progress.To(cmd.ErrOrStderr(), "runs")
	st, err := scenario.RunStudy(cmd.Context(), variants, s.seeds, s.cores, func(done, all int) { p.At(done, all, time.Since(begun)) })
	if err != nil {
		return nil, err
	}
	if asJSON(cmd) {
		return st, printJSON(cmd.OutOrStdout(), st)
	}
	return st, report.Study(cmd.OutOrStdout(), st, s.metrics)
}

func fabricCompareCmd() *cobra.Command {
	var s studyFlags
	c := &cobra.Command{Use: "compare FILE...", Short: "Run scenarios and show what differs, in one table", Args: arguments(1, -1),
		Long: `Runs any number of scenarios and prints a table with a column for each: every metric that
differs (of one alone, every metric), or those of --metric. With --seeds the median and where 95
of 100 runs lie.`,
		Example: "  inofctl fabric compare --metric '*.fct-p99-ms,xoff' --seeds 20 incast-hpcc.yaml incast-timely.yaml incast-dctcp.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			var variants []scenario.Variant
			seen := map[string]bool{}
			for _, path := range args {
				f, err := scenario.Load(path)
				if err != nil {
					return err
				}
				name := f.Name
				if seen[name] {
					name = filepath.Base(path)
				}
				for n := 2; seen[name]; n++ {
					name = fmt.Sprintf("%s (%d)", filepath.Base(path), n)
				}
				seen[name] = true
				variants = append(variants, scenario.Variant{Name: name, Path: path})
			}
			st, err := s.run(cmd, variants)
			if err != nil || s.plotDir == "" {
				return err
			}
			var first []*scenario.Result
			for _, v := range st.Variants {
				v.First.Name = v.Name
				first = append(first, v.First)
			}
			_, err = report.Plots(s.plotDir, "svg", first...)
			return err
		}}
	s.add(c.Flags())
	return c
}

func fabricSweepCmd() *cobra.Command {
	var s studyFlags
	var set []string
	c := &cobra.Command{Use: "sweep FILE --set KEY=VALUE,VALUE", Short: "Run a scenario with all combinations of some values", Args: arguments(1, 1),
		Long: `Runs a scenario once for each combination of the values given, and prints a table with a
column for each. A key is its path in the file; entries of lists go by number or name. A value
may be a mapping: --set 'switch.balancer={kind: flowlet, gap: 50us},spray'. With --plot each
metric shown is drawn over the combinations.`,
		Example: "  inofctl fabric sweep scenarios/incast-dcqcn.yaml --set switch.ecn.low=100KB,400KB --metric '*.fct-p50-ms,*.fct-p99-ms,xoff'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(set) == 0 {
				return usagef("--set is missing: which key gets which values")
			}
			variants, err := scenario.Product(args[0], set)
			if err != nil {
				return usageError{err}
			}
			st, err := s.run(cmd, variants)
			if err != nil || s.plotDir == "" {
				return err
			}
			files, err := report.StudyPlots(s.plotDir, st, s.metrics)
			for _, f := range files {
				fmt.Fprintln(cmd.ErrOrStderr(), "wrote", f)
			}
			return err
		}}
	c.Flags().StringArrayVar(&set, "set", nil, "key=value,value; several of these give all combinations")
	s.add(c.Flags())
	return c
}
