package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/model/workload"
)

// runFabric runs "fabric ..." alone.
func runFabric(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := newFabricCmd()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFabricHeadroomInOneLine(t *testing.T) {
	out, err := runFabric(t, "headroom", "--rate", "100G", "--km", "10")
	if err != nil || strings.Contains(out, "NOT AS EXPECTED") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"1250000 bytes are on the wire both ways", "headroom", "point braking at this size"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// The question and its answer are one line each.
	out, err = runFabric(t, "headroom", "--km", "40", "--rate", "400G")
	first, _, _ := strings.Cut(out, "\n")
	if want := "headroom 20.35 MB (20352046 bytes) for one lossless class at 400G over 40 km; simulated: with it nothing is lost, with a tenth less 5191 frames are"; err != nil || first != want {
		t.Errorf("%v: got %q\nwant %q", err, first, want)
	}
	for _, bad := range [][]string{{"headroom"}, {"headroom", "--km", "-1"}, {"headroom", "--km", "1", "--rate", "fast"}, {"headroom", "--km", "1", "--mtu", "5"}, {"headroom", "--km", "1", "--period", "x"}} {
		if _, err := runFabric(t, bad...); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// The reaction of the peer is the standard's unless another time is given; what a receiver takes is
// never more than all of the link.
func TestFabricHeadroomByReaction(t *testing.T) {
	sizes := func(args ...string) (a workload.Sizing) {
		t.Helper()
		var out, complaint bytes.Buffer
		if code := run(t.Context(), append([]string{"fabric", "headroom", "--output", "json"}, args...), &out, &complaint); code != 0 {
			t.Fatalf("%v: %d: %s", args, code, &complaint)
		}
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Proof {
			if !(p.Worst.Use > 0 && p.Worst.Use <= 1) {
				t.Errorf("%v: %s: use %v", args, p.What, p.Worst.Use)
			}
		}
		return a
	}
	link := []string{"--rate", "100G", "--m", "300"}
	given, named := sizes(link...), sizes(append(link, "--reaction", "802.1Qbb", "--proof=false")...)
	quick := sizes(append(link, "--reaction", "1us")...)
	if given.Headroom.Reaction != model.QbbReaction || named.Room != given.Room {
		t.Errorf("without --reaction %v and %d bytes, with the standard's name %d", given.Headroom.Reaction, given.Room, named.Room)
	}
	wire := (100 * model.Gbps).Bytes(model.QbbReaction - model.Microsecond)
	if more := given.Room - quick.Room; more < wire || more > wire*101/100 { // which fills cells
		t.Errorf("the standard's reaction asks for %d bytes more than 1 us, want %d and the rest of their cells", more, wire)
	}
	if out, err := runFabric(t, "headroom", "--km", "1", "--reaction", "soon"); err == nil || !strings.Contains(err.Error(), `--reaction: time "soon"`) || !strings.Contains(err.Error(), "802.1Qbb") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFabricRunAndCompare(t *testing.T) {
	dir := t.TempDir()
	text := `name: small
about: two flows
duration: 1ms
until-idle: true
topology: {kind: star, hosts: 3, link: {rate: 100G, delay: 1us}}
traffic: [{name: in, kind: incast, from: h0..h1, to: h2, bytes: 100KB}]
record: {every: 5us, queues: s0>h2/3}
expect: [{metric: in.done, min: 2}]
`
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, body := range map[string]string{good: text, bad: strings.ReplaceAll(strings.ReplaceAll(text, "min: 2", "min: 3"), "small", "other")} {
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := runFabric(t, "run", "--csv", dir, "--plot", dir, good)
	if err != nil || !strings.Contains(out, "small:") || !strings.Contains(out, "series.csv") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "goodput.svg")); err != nil {
		t.Error(err)
	}
	if out, err := runFabric(t, "run", bad); err == nil || !strings.Contains(err.Error(), "bad.yaml:8: expect: in.done is 2, want 3 or more") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runFabric(t, "compare", good, bad); err != nil || !strings.Contains(out, "metrics are the same") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runFabric(t, "compare", "--seeds", "3", "--metric", "in.fct-*", good, bad, good); err != nil || !strings.Contains(out, "in.fct-p50-ms") || !strings.Contains(out, "median of 3 seeds") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runFabric(t, "compare", "--seeds", "3", good); err != nil || !strings.Contains(out, "in.fct-p50-ms") || strings.Contains(out, "the same") {
		t.Errorf("one scenario alone: %v\n%s", err, out)
	}
	if out, err := runFabric(t, "sweep", good, "--set", "traffic.in.bytes=50KB,100KB", "--plot", dir, "--metric", "in.fct-p50-ms"); err != nil || !strings.Contains(out, "bytes=50KB") || !strings.Contains(out, "in.fct-p50-ms.svg") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runFabric(t, "list", "spray"); err != nil || !strings.Contains(out, "least loaded port") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runFabric(t, "check", good, bad); err != nil || !strings.Contains(out, "two flows") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := runFabric(t, "run", filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("a file that is not there was run")
	}
}

// What the registry has is listed whole: each mechanism with its sets, and by its name its keys.
func TestFabricListHasTheWholeRegistry(t *testing.T) {
	all, err := runFabric(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range model.Parts {
		for _, m := range model.Mechanisms(p.Part) {
			for _, set := range m.Sets {
				if !strings.Contains(all, "set "+set.Name) || !strings.Contains(all, set.About) {
					t.Errorf("%s %s: set %s is not listed", p.Part, m.Kind, set.Name)
				}
			}
			one, err := runFabric(t, "list", m.Kind)
			if err != nil || !strings.Contains(all, m.About) || !strings.Contains(one, m.About) {
				t.Errorf("%s %s is not listed: %v", p.Part, m.Kind, err)
			}
			for _, k := range model.Keys(m.New()) {
				if !strings.Contains(one, k.Name+": "+k.Default) || !strings.Contains(one, k.About) {
					t.Errorf("%s %s: key %s is not listed in\n%s", p.Part, m.Kind, k.Name, one)
				}
			}
		}
	}
	if _, err := runFabric(t, "list", "cubicle"); err == nil || !strings.Contains(err.Error(), "inofctl fabric list shows all") {
		t.Error(err)
	}
}

func TestFabricBench(t *testing.T) {
	out, err := runFabric(t, "bench", "--only", "W1", "--count", "1")
	if err != nil || !strings.Contains(out, "640000") {
		t.Errorf("%v\n%s", err, out)
	}
	runs := 0
	if err := bench(io.Discard, "W1", 2, func() { runs++ }); err != nil || runs != 2 {
		t.Errorf("%d runs of 2 were told, %v", runs, err)
	}
	if _, err := runFabric(t, "bench", "--only", "W9"); err == nil {
		t.Error("W9 was measured")
	}
}

func TestProgressSaysWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := progressTo(&out, func() time.Time { return now })
	p(model.Millisecond, 10*model.Millisecond, 5)
	if out.Len() > 0 {
		t.Error("spoke within the first second")
	}
	now = now.Add(2 * time.Second)
	p(2*model.Millisecond, 10*model.Millisecond, 2_000_000)
	if got := out.String(); got != "2ms of 10ms, 2.0 M events, about 8s left\n" {
		t.Errorf("%q", got)
	}
}

// A run that is watched shows progress, rate and the fullest queues, and ends as one that is not.
func TestFabricRunLive(t *testing.T) {
	f, err := scenario.Load("../../scenarios/incast-pfc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Trace = true
	plain, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	now := time.Unix(0, 0)
	f.Live = newLiveView(&out, func() time.Time { now = now.Add(200 * time.Millisecond); return now }).see
	watched, err := f.Run(t.Context(), nil)
	if err != nil || watched.Hash != plain.Hash {
		t.Errorf("%v: %016x, unwatched %016x", err, watched.Hash, plain.Hash)
	}
	for _, want := range []string{"M frame-hops/s", " of 30ms", "s0>h16/3", "flows: 16 at work", "about "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%.1500s", want, out.String())
		}
	}
	if _, err := runFabric(t, "run", "--live", "--quiet", "../../scenarios/incast-pfc.yaml"); err == nil {
		t.Error("--live with --quiet is accepted")
	}
}
