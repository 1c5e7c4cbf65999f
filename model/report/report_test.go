package report

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/model/scenario"
)

func result(t *testing.T, name, headroom string) *scenario.Result {
	t.Helper()
	text := `name: ` + name + `
duration: 400us
topology: {kind: two-sites, hosts: 2, link: {rate: 100G, delay: 1us}, uplink: {rate: 100G, delay: 5us}}
switch: {model: cells, buffer: 8MiB, pfc: {quanta: 65535}, cells: {cell: 320, headroom: ` + headroom + `, xoff: 100KB, limit-alpha: 7}}
traffic:
  - {name: far, kind: incast, from: h0, to: h2, bytes: 1MB}
  - {name: near, kind: incast, from: h3, to: h2}
record: {every: 10us, queues: site1>h2/3}
expect:
  - {metric: far.done, min: 1}
  - {metric: drops, max: 0}
`
	f, err := scenario.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReports(t *testing.T) {
	good, bad := result(t, "good", "300KB"), result(t, "bad", "20KB")
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	err := bad.Check()
	if err == nil || !strings.Contains(err.Error(), "expect: drops is ") {
		t.Errorf("got %v", err)
	}
	var out bytes.Buffer
	if err := Summary(&out, good); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"far", "site1>h2/3", "dropped: none"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "LOSS") {
		t.Error("cries of loss without any")
	}
	out.Reset()
	if err := Summary(&out, bad); err != nil || !strings.Contains(out.String(), "!! LOSS ON A LOSSLESS QUEUE") {
		t.Errorf("%v: loss on a lossless queue is not said loudly:\n%s", err, out.String())
	}
	out.Reset()
	spreads := func(r *scenario.Result) scenario.Outcome {
		o := scenario.Outcome{Name: r.Name, Metrics: map[string]scenario.Spread{}}
		for k, v := range r.Metrics {
			o.Metrics[k] = scenario.Spread{Median: v, Low: v * 0.9, High: v * 1.1, Runs: 5}
		}
		return o
	}
	st := &scenario.Study{Seeds: 5, Variants: []scenario.Outcome{spreads(good), spreads(bad)}}
	if err := Study(&out, st, nil); err != nil || !strings.Contains(out.String(), "lossless-drops") {
		t.Errorf("%v: the comparison lacks the drops:\n%s", err, out.String())
	}
	out.Reset()
	if err := Study(&out, st, []string{"site1>h2/3.peak*"}); err != nil || strings.Contains(out.String(), "lossless-drops") || !strings.Contains(out.String(), "site1>h2/3.peak-kb") {
		t.Errorf("%v: not the metric asked for:\n%s", err, out.String())
	}
	if files, err := StudyPlots(t.TempDir(), st, []string{"drops"}); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	for _, format := range []string{"svg", "png"} {
		dir := t.TempDir()
		files, err := Plots(dir, format, good, bad)
		if err != nil || len(files) != 3 {
			t.Errorf("%v, %v", files, err)
		}
	}
	if _, err := Plots(t.TempDir(), "gif", good); err == nil {
		t.Error("gif was accepted")
	}
	dir := t.TempDir()
	files, err := CSV(dir, good)
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if lines[0] != "ms,far Gb/s,near Gb/s,site1>h2/3 KB,XOFF frames" || len(lines) != 41 {
		t.Errorf("%d lines, first %q", len(lines), lines[0])
	}
}

// A picture says what it shows: its title, the moments of faults and thresholds of marking as
// entries of a legend beside the plot, in a font that every reader has one like.
func TestPicturesSayWhatTheyShow(t *testing.T) {
	f, err := scenario.Parse("cut", []byte(`name: cut
about: a cable goes
duration: 300us
reroute: 20us
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, link: {rate: 100G, delay: 1us}}
switch: {ecn: {low: 5KB, high: 20KB, percent: 20}}
traffic: [{name: in, kind: incast, from: [h0, h1, h3], to: h2}]
faults: [{at: 100us, kind: link-down, link: leaf0-spine0}]
record: {every: 10us, queues: leaf1>h2/3}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Plots(t.TempDir(), "svg", r)
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"cut: a cable goes", "link-down leaf0-spine0, 0.1 ms", "sans-serif"}
		if strings.HasSuffix(file, "queues.svg") {
			want = append(want, "marks from, 5 KB", "marks all from, 20 KB", "leaf1&gt;h2/3")
		}
		for _, w := range want {
			if !strings.Contains(string(data), w) {
				t.Errorf("%s: no %q", file, w)
			}
		}
	}
	other := *r
	other.Name, other.Thresholds = "other", append(slices.Clone(r.Thresholds[:1]), scenario.Threshold{KB: 7, What: "marks from"})
	files, err = Plots(t.TempDir(), "svg", r, &other)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "queues.svg") {
			continue
		}
		for w, want := range map[string]bool{">marks from, 5 KB": true, "other: marks from, 7 KB": true, "cut: marks all from, 20 KB": true, ": marks from, 5 KB": false} {
			if strings.Contains(string(data), w) != want {
				t.Errorf("two runs: %q is there: %v", w, !want)
			}
		}
	}
	if n := strings.Count(wrapped(strings.Repeat("word ", 40)), "\n"); n != 2 {
		t.Errorf("a title of 200 characters has %d breaks", n)
	}
}
