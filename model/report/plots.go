package report

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/openinof/inof/model/scenario"
)

// palette is a set of colours that stay apart in print and for colour-blind readers.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{0, 0, 0, 255},
}

// picture is a plot whose legend stands beside it, where it covers nothing.
type picture struct {
	*plot.Plot
	legend  plot.Legend
	entries int
}

// Size of pictures, and how much a legend has room for.
const (
	pictureWidth  = 19 * vg.Centimeter
	pictureHeight = 8 * vg.Centimeter
	legendEntries = 16
	titleWidth    = 72 // characters of a line
)

func newPicture(title, x, y string) *picture {
	p := &picture{Plot: plot.New(), legend: plot.NewLegend()}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = wrapped(title), x, y
	sans := func(f *font.Font) { f.Typeface, f.Variant = "Liberation", "Sans" }
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.legend.TextStyle.Font} {
		sans(f)
	}
	p.Title.TextStyle.Font.Size, p.legend.TextStyle.Font.Size = vg.Points(11), vg.Points(9)
	p.legend.Padding = vg.Points(2)
	p.legend.Top, p.legend.Left = true, true
	p.Title.Padding = vg.Points(6)
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	return p
}

// wrapped breaks a title into lines.
func wrapped(title string) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(title) {
		switch {
		case i > 0 && n+len(word) > titleWidth:
			b.WriteByte('\n')
			n = 0
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(word)
		n += len(word) + 1
	}
	return b.String()
}

// name adds an entry to the legend; what is too much for it is left out.
func (p *picture) name(label string, line *plotter.Line) {
	if p.entries++; p.entries <= legendEntries {
		p.legend.Add(label, line)
	}
}

// save draws plot and legend beside each other.
func (p *picture) save(path, format string) error {
	if p.entries > legendEntries {
		p.legend.Add(fmt.Sprintf("and %d more", p.entries-legendEntries))
	}
	c, err := draw.NewFormattedCanvas(pictureWidth, pictureHeight, format)
	if err != nil {
		return err
	}
	all := draw.New(c)
	width := vg.Length(0)
	if p.entries > 0 {
		width = p.legend.Rectangle(all).Size().X + vg.Points(8)
	}
	p.Draw(draw.Crop(all, 0, -width, 0, 0))
	p.legend.Draw(draw.Crop(all, pictureWidth-width+vg.Points(4), 0, 0, -vg.Points(24)))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return err
	}
	// Who has not the font that was measured has one of its widths.
	text := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, text, 0o644)
}

// Plots draws the recorded series of one or more results, one picture for each unit: goodput, queue
// depth, XOFF frames, with the moments of faults and the thresholds of queues. format is "svg" or
// "png"; what has nothing to show is left out. It gives the names of the files.
func Plots(dir, format string, results ...*scenario.Result) ([]string, error) {
	if format != "svg" && format != "png" {
		return nil, fmt.Errorf("plot format %q, want svg or png", format)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var done []string
	for _, kind := range []struct{ file, unit, label string }{
		{"goodput", "Gb/s", "goodput, Gb/s"}, {"iops", "kIOPS", "thousand I/Os a second"}, {"queues", "KB", "queue depth, KB"}, {"xoff", "XOFF frames", "XOFF frames in a period"},
	} {
		p := newPicture(titleOf(results), "time, ms", kind.label)
		lines, tallest := 0, 0.0
		for _, r := range results {
			s := r.Series.Select(kind.unit)
			for i, name := range s.Names {
				line, top, err := newLine(s, i, lines)
				if err != nil {
					return done, err
				}
				tallest = max(tallest, top)
				lines++
				p.Add(line)
				label := strings.TrimSuffix(name, " "+kind.unit)
				if len(results) > 1 {
					label = r.Name + ": " + label
				}
				p.name(label, line)
			}
		}
		if lines == 0 || tallest == 0 {
			continue
		}
		p.Y.Max = tallest * 1.05
		if err := p.faults(results); err != nil {
			return done, err
		}
		if kind.unit == "KB" {
			if err := p.thresholds(results, tallest); err != nil {
				return done, err
			}
		}
		path := filepath.Join(dir, kind.file+"."+format)
		if err := p.save(path, format); err != nil {
			return done, fmt.Errorf("%s: %w", path, err)
		}
		done = append(done, path)
	}
	return done, nil
}

// titleOf says what a picture is of.
func titleOf(results []*scenario.Result) string {
	if len(results) == 1 && results[0].About != "" {
		return results[0].Name + ": " + results[0].About
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// faults draws a line at each moment of a fault.
func (p *picture) faults(results []*scenario.Result) error {
	seen := map[scenario.Moment]bool{}
	for _, r := range results {
		for _, f := range r.Faults {
			if seen[f] {
				continue
			}
			seen[f] = true
			if err := p.rule(plotter.XYs{{X: f.Ms, Y: 0}, {X: f.Ms, Y: p.Y.Max}}, fmt.Sprintf("%s, %.4g ms", f.What, f.Ms), color.RGBA{200, 0, 0, 255}, dashes[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dashes tell rules of one picture apart.
var dashes = [][]vg.Length{{4, 3}, {1, 2}, {8, 2}, {6, 2, 1, 2}, {2, 4}, {10, 4, 2, 4}}

// thresholds draws a line at each threshold of marking that is near what queues reach. One that not
// all runs have says whose it is.
func (p *picture) thresholds(results []*scenario.Result, tallest float64) error {
	of, runs := map[scenario.Threshold][]string{}, map[string]bool{}
	for _, r := range results {
		runs[r.Name] = true
		for _, t := range r.Thresholds {
			if names := of[t]; !slices.Contains(names, r.Name) {
				of[t] = append(names, r.Name)
			}
		}
	}
	drawn := map[scenario.Threshold]bool{}
	for _, r := range results {
		for _, t := range r.Thresholds {
			if drawn[t] || t.KB > 2*tallest || len(r.Series.Times) == 0 {
				continue
			}
			p.Y.Max = max(p.Y.Max, t.KB*1.05)
			end := r.Series.Times[len(r.Series.Times)-1]
			label := fmt.Sprintf("%s, %.4g KB", t.What, t.KB)
			if len(of[t]) < len(runs) {
				label = strings.Join(of[t], ", ") + ": " + label
			}
			if err := p.rule(plotter.XYs{{X: 0, Y: t.KB}, {X: end, Y: t.KB}}, label, color.Gray{110}, dashes[len(drawn)%len(dashes)]); err != nil {
				return err
			}
			drawn[t] = true
		}
	}
	return nil
}

func (p *picture) rule(at plotter.XYs, label string, c color.Color, dash []vg.Length) error {
	line, err := plotter.NewLine(at)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = c, vg.Points(0.8), dash
	p.Add(line)
	p.name(label, line)
	return nil
}

func newLine(s scenario.Series, i, n int) (*plotter.Line, float64, error) {
	pts := make(plotter.XYs, len(s.Times))
	top := 0.0
	for k, t := range s.Times {
		pts[k] = plotter.XY{X: t, Y: s.Values[i][k]}
		top = max(top, s.Values[i][k])
	}
	line, err := plotter.NewLine(pts)
	if err != nil {
		return nil, 0, err
	}
	line.Color = palette[n%len(palette)]
	line.Width = vg.Points(1.2)
	return line, top, nil
}
