package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/plot/plotter"

	"github.com/openinof/inof/model/scenario"
)

// Study prints a table with a line for each metric and a column for each variant: the median,
// and over several seeds where 95 of 100 runs lie. Patterns choose metrics, as file names
// are chosen by a shell; without any, all that differ are printed.
func Study(w io.Writer, st *scenario.Study, patterns []string) error {
	keys, same := chosen(st, patterns)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "metric")
	for _, v := range st.Variants {
		fmt.Fprintf(tw, "\t%s", v.Name)
	}
	two := len(st.Variants) == 2
	if two {
		fmt.Fprint(tw, "\tchange")
	}
	fmt.Fprint(tw, "\t\n")
	for _, k := range keys {
		fmt.Fprint(tw, k)
		for _, v := range st.Variants {
			fmt.Fprintf(tw, "\t%s", spread(v.Metrics[k], st.Seeds))
		}
		if two {
			x, okX := st.Variants[0].Metrics[k]
			y, okY := st.Variants[1].Metrics[k]
			fmt.Fprintf(tw, "\t%s", change(x.Median, y.Median, okX && okY))
		}
		fmt.Fprint(tw, "\t\n")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if st.Seeds > 1 {
		fmt.Fprintf(w, "median of %d seeds (where 95 of 100 runs lie; of less than 40, all)\n", st.Seeds)
	}
	for _, v := range st.Variants {
		if v.Failed > 0 {
			fmt.Fprintf(w, "%s: %d of %d runs are not as the file expects\n", v.Name, v.Failed, st.Seeds)
		}
	}
	if len(patterns) == 0 && len(st.Variants) > 1 {
		_, err := fmt.Fprintf(w, "%d metrics are the same\n", same)
		return err
	}
	return nil
}

// chosen gives the metrics that the patterns name, or all that differ, and how many do not.
func chosen(st *scenario.Study, patterns []string) (keys []string, same int) {
	all := map[string]bool{}
	for _, v := range st.Variants {
		for k := range v.Metrics {
			all[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		take := false
		for _, p := range patterns {
			// In path.Match a * ends at a slash, which names of queues have.
			ok, err := path.Match(strings.ReplaceAll(p, "/", "|"), strings.ReplaceAll(k, "/", "|"))
			take = take || ok && err == nil || p == k
		}
		if len(patterns) == 0 {
			take = len(st.Variants) == 1
			first := st.Variants[0].Metrics[k]
			for _, v := range st.Variants[1:] {
				take = take || v.Metrics[k] != first
			}
			if !take {
				same++
			}
		}
		if take {
			keys = append(keys, k)
		}
	}
	return keys, same
}

func spread(s scenario.Spread, seeds int) string {
	switch {
	case s.Runs == 0:
		return "-"
	case seeds == 1 || s.Low == s.High:
		return figure(s.Median, true)
	}
	return fmt.Sprintf("%.5g (%.4g..%.4g)", s.Median, s.Low, s.High)
}

// StudyPlots draws each chosen metric over the variants, with a bar for where the runs lie.
func StudyPlots(dir string, st *scenario.Study, patterns []string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	keys, _ := chosen(st, patterns)
	var done, names []string
	for _, v := range st.Variants {
		names = append(names, v.Name)
	}
	for _, k := range keys {
		p := newPicture(fmt.Sprintf("%s, median of %d seeds", k, st.Seeds), "", k)
		p.NominalX(names...)
		bars := &errorBars{}
		for i, v := range st.Variants {
			if s := v.Metrics[k]; s.Runs > 0 {
				bars.XYs = append(bars.XYs, plotter.XY{X: float64(i), Y: s.Median})
				bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{s.Median - s.Low, s.High - s.Median})
				p.Y.Max = math.Max(p.Y.Max, s.High*1.1)
			}
		}
		line, points, err := plotter.NewLinePoints(bars.XYs)
		if err != nil {
			return done, err
		}
		eb, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return done, err
		}
		line.Color, points.Color, eb.Color = palette[0], palette[0], palette[1]
		p.Add(line, points, eb)
		file := filepath.Join(dir, strings.NewReplacer("/", "-", ">", "-").Replace(k)+".svg")
		if err := p.save(file, "svg"); err != nil {
			return done, fmt.Errorf("%s: %w", file, err)
		}
		done = append(done, file)
	}
	return done, nil
}

type errorBars struct {
	plotter.XYs
	plotter.YErrors
}
